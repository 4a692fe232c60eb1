"""Calling: the one way by which anything is called. Mirrors Objects/call.c."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def call(tx: Any, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``fn(*args, **kwargs)``."""
    return fn.realize(tx).call(tx, args, kwargs)


def call_method(tx: Any, a: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``a.name(*args, **kwargs)``, without a bound method where none can be seen."""
    return a.realize(tx).invoke(tx, name, args, kwargs)


def callable_name(tx: Any, fn: Any) -> str:
    """A callable's name as error messages give it (``_PyObject_FunctionStr``); nothing is guarded for it."""
    called = fn.realize(tx)
    if called.is_constant() and not callable(called.as_constant()):
        return str(called.as_constant())
    name = getattr(called, "called_name", None)
    return f"{called.python_type(tx).__name__} object" if name is None else f"{name(tx)}()"
