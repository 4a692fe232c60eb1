"""Kinds about how much a container holds, and about the elements of a set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphlift import _C
from graphlift.guards.guard import Guard, Kind, kind
from graphlift.guards.holding import GONE, held, is_static_type
from graphlift.guards.kinds.constants import is_constant, same_constant
from graphlift.guards.kinds.showing import show
from graphlift.guards.places import Rows, hold_key


def _length(value: Any) -> int | None:
    """The length that the C storage tells, whatever a subclass's ``__len__`` says."""
    for cls in type(value).__mro__:
        if is_static_type(cls) and hasattr(cls, "__len__"):
            return int(cls.__len__(value))
    return None


@kind
class LengthKind(Kind):
    """The length of a list, tuple, dict, set or another container in C. Payload: (length,)."""

    name = "length"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        rows.rows.append(("length", at, guard.payload[0]))
        return (at,), guard.payload[0]

    def holds(self, payload: Any, *values: Any) -> bool:
        return bool(_length(values[0]) == payload)

    def describe(self, payload: Any, *names: str) -> str:
        return f"has length {payload}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        now = _length(values[0])
        return f"{names[0]} had length {payload}, now it has {'none' if now is None else now}"


@kind
class SetItemsKind(Kind):
    """The elements of a set, in the order of iteration. Payload: (tuple of elements,)."""

    name = "set_items"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        items = tuple(map(hold_key, guard.payload[0]))
        rows.add("set_items", at, items)
        return (at,), items

    def holds(self, payload: Any, *values: Any) -> bool:
        value = values[0]
        if not issubclass(type(value), (set, frozenset)):
            return False
        items = list(set.__iter__(value) if issubclass(type(value), set) else frozenset.__iter__(value))
        return len(items) == len(payload) and all(map(same_item, payload, items))

    def describe(self, payload: Any, *names: str) -> str:
        return f"holds exactly {show(tuple(map(held, payload)))}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        now = show(tuple(values[0])) if issubclass(type(values[0]), (set, frozenset)) else show(values[0])
        return f"the elements of {names[0]} were {show(tuple(map(held, payload)))}, now they are {now}"


@kind
class HashesKind(Kind):
    """The hashes that a dictionary or set keeps, in the order of its table; None stands for any.

    Payload: (tuple of hashes,).
    """

    name = "hashes"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        rows.add("hashes", at, guard.payload[0])
        return (at,), guard.payload[0]

    def holds(self, payload: Any, *values: Any) -> bool:
        if not issubclass(type(values[0]), (dict, set, frozenset)):
            return False
        now = [value for _, value in _C.stored_hashes(values[0])]
        return len(payload) == len(now) and all(
            expected in (None, value) for expected, value in zip(payload, now, strict=True)
        )

    def describe(self, payload: Any, *names: str) -> str:
        return f"keeps the hashes {show(payload)}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"the keys of {names[0]} were stored under other hashes than now"


def same_item(holder: Any, item: Any) -> bool:
    """Whether an element (or key) is the one held: the very object, or an equal constant."""
    expected = held(holder)
    if expected is item:
        return expected is not GONE
    return expected is holder and is_constant(expected) and same_constant(expected, item)
