"""How guards show values to people, without running the user's code (no ``__repr__`` of theirs)."""

from __future__ import annotations

from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

from graphlift.guards.holding import GONE, class_name
from graphlift.guards.places import MISSING, plain_repr

_PLAIN: Final = frozenset({int, float, bool, complex, bytes, str, type(None), type(...), range})
_LIMIT: Final = 80


def _shorten(text: str) -> str:
    return text if len(text) <= _LIMIT else text[: _LIMIT - 1] + "…"


def show(value: Any) -> str:
    """A value in a few words."""
    kind = type(value)
    if kind in _PLAIN:
        return _shorten(plain_repr(value))
    if value is MISSING or value is GONE:
        return repr(value)
    if kind in (tuple, list, frozenset, set):
        return _shorten(f"{kind.__name__} of {len(value)}") if kind is not tuple else _show_tuple(value)
    if issubclass(kind, type):
        return f"class `{class_name(value)}`"
    if kind in (FunctionType, BuiltinFunctionType):
        return f"function `{value.__qualname__}`"
    if kind is CodeType:
        return f"the code of `{value.co_qualname}`"
    if kind is ModuleType:
        name = (value.__dict__ or {}).get("__name__")  # one that was never initialised has none
        return f"module `{name}`" if type(name) is str else "a module without a name"
    if type(kind) is type and kind.__module__ == "torch":
        return str(value)
    return f"an object of class `{class_name(kind)}`"


def _show_tuple(value: tuple[Any, ...]) -> str:
    inner = ", ".join(map(show, value[:8])) + (", …" if len(value) > 8 else "")
    return _shorten(f"({inner}{',' if len(value) == 1 else ''})")
