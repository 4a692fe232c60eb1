"""The kind for values that a capture baked in: exact class and value, floats by their bits."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from graphlift.guards.guard import Guard, Kind, kind
from graphlift.guards.holding import NotGuardableError, is_static_type
from graphlift.guards.kinds.identity import identify, is_identified, show_identified
from graphlift.guards.kinds.showing import show
from graphlift.guards.places import Rows

_LEAVES: Final = frozenset({int, str, bytes, bool, float, complex, type(None), type(...), range})
_TORCH_LEAVES: Final = frozenset({"dtype", "device", "layout", "memory_format", "qscheme"})


def _is_torch(cls: type, names: frozenset[str]) -> bool:
    return cls.__module__ == "torch" and cls.__name__ in names and is_static_type(cls)


def same_constant(expected: Any, value: Any) -> bool:
    """Same exact class and same value through and through; sets in the order of iteration."""
    cls = type(expected)
    if type(value) is not cls:
        return False
    if cls is float:
        return struct.pack("d", expected) == struct.pack("d", value)
    if cls is complex:
        return same_constant(expected.real, value.real) and same_constant(expected.imag, value.imag)
    if isinstance(expected, tuple) or cls is frozenset:
        return len(expected) == len(value) and all(map(same_constant, expected, value))
    if cls is slice:
        return all(same_constant(getattr(expected, n), getattr(value, n)) for n in ("start", "stop", "step"))
    if isinstance(expected, type):
        return expected is value
    return bool(expected == value)


def is_constant(value: Any) -> bool:
    """Whether `same_constant` can compare such a value without running anybody's code."""
    cls = type(value)
    if cls in _LEAVES or value is NotImplemented or _is_torch(cls, _TORCH_LEAVES):
        return True
    if cls in (tuple, frozenset) or _is_torch(cls, frozenset({"Size"})):
        return all(map(is_constant, value))
    if cls is slice:
        return is_constant(value.start) and is_constant(value.stop) and is_constant(value.step)
    return cls is type and is_static_type(value)


class Baked:
    """The lasting form of a constant."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Final = value


@kind
class ConstantKind(Kind):
    """A value baked in; members of enumerations by identity. Payload: (value,)."""

    name = "constant"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        value = guard.payload[0]
        at = rows.at(guard.source)
        if type(value) in _LEAVES or is_constant(value):
            rows.rows.append(("constant", at, value))
            return (at,), Baked(value)
        if issubclass(type(value), Enum):
            return (at,), identify(value, at, rows)
        raise NotGuardableError(f"{show(value)} is no constant")

    def holds(self, payload: Any, *values: Any) -> bool:
        if type(payload) is Baked:
            return same_constant(payload.value, values[0])
        return is_identified(payload, values[0])

    def describe(self, payload: Any, *names: str) -> str:
        return f"== {_show(payload)}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        was, now = _show(payload), show(values[0])
        if type(payload) is Baked and type(payload.value) is not type(values[0]):
            now = f"{now} ({type(values[0]).__name__})"
        return f"{names[0]} was {was}, now it is {now}"


def _show(payload: Any) -> str:
    return show(payload.value) if type(payload) is Baked else show_identified(payload)
