"""Functions of ``inspect`` that look at the interpreter itself, without doing so."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import GetSetDescriptorType
from typing import Any

#: More wrappers than any program has; Python bounds them by its recursion limit.
_LIMIT = 1000


class _Wrapping:
    __wrapped__ = None


#: Whether a class counts as a wrapper, too; newer Pythons look for functions only.
_CLASSES_WRAP = inspect.unwrap(_Wrapping) is None


def unwrap(func: Any, stop: Callable[[Any], object] | None = None) -> Any:
    """``inspect.unwrap``.

    https://docs.python.org/3/library/inspect.html#inspect.unwrap
    """
    first = func
    met = [func]
    while (_CLASSES_WRAP or not isinstance(func, type)) and hasattr(func, "__wrapped__"):
        if stop is not None and stop(func):
            break
        func = func.__wrapped__
        if len(met) >= _LIMIT or any(func is each for each in met):
            raise ValueError(f"wrapper loop when unwrapping {first!r}")
        met.append(func)
    return func


def shadowed_dict(cls: type) -> Any:
    """What stands for ``__dict__`` on a class instead of the descriptor that Python puts there, if anything.

    https://docs.python.org/3/library/inspect.html#inspect.getattr_static
    """
    for owner in type.__dict__["__mro__"].__get__(cls):
        own = type.__dict__["__dict__"].__get__(owner)
        if "__dict__" in own:
            found = own["__dict__"]
            is_plain = type(found) is GetSetDescriptorType and found.__name__ == "__dict__"
            if not (is_plain and found.__objclass__ is owner):
                return found
    return inspect._sentinel  # type: ignore[attr-defined]
