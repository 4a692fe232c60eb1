"""Calling: the one way by which anything is called. Mirrors Objects/call.c."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphlift.errors import ObservedException
from graphlift.variables.slots import attributes


def call(tx: Any, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``fn(*args, **kwargs)``."""
    return fn.realize(tx).call(tx, args, kwargs)


def call_method(tx: Any, a: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``a.name(*args, **kwargs)``, without a bound method where none can be seen."""
    return a.realize(tx).invoke(tx, name, args, kwargs)


def callable_name(tx: Any, fn: Any) -> str:
    """A callable's name as error messages give it (``_PyObject_FunctionStr``)."""
    try:
        qualname = attributes.getattr_(tx, fn, "__qualname__").realize(tx)
        module = attributes.getattr_(tx, fn, "__module__").realize(tx)
    except ObservedException:
        return f"{fn.realize(tx).python_type(tx).__name__} object"
    if not qualname.is_constant():
        return f"{fn.realize(tx).python_type(tx).__name__} object"
    name = str(qualname.as_constant())
    if module.is_constant() and module.as_constant() not in (None, "builtins"):
        name = f"{module.as_constant()}.{name}"
    return f"{name}()"
