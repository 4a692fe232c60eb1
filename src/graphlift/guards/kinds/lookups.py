"""Kinds about what look-ups on classes, slots and cells find, or do not."""

from __future__ import annotations

from collections.abc import Sequence
from types import CellType
from typing import Any

from graphlift.guards.guard import PRESENCE, Guard, Kind, kind
from graphlift.guards.holding import is_static_type
from graphlift.guards.kinds.identity import identify, is_identified, show_identified
from graphlift.guards.kinds.showing import show
from graphlift.guards.places import MISSING, Rows, type_lookup
from graphlift.sources import TypeLookupSource


@kind
class ThereKind(Kind):
    """A place that is there at all: a key, an attribute, a slot or cell with something in it. Payload: ().

    What was found is often looked into as well, and then this costs nothing: reading a place is a check.
    """

    name = "there"
    rank = PRESENCE

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        return (rows.at(guard.source),), None

    def holds(self, payload: Any, *values: Any) -> bool:
        return values[0] is not MISSING

    def describe(self, payload: Any, *names: str) -> str:
        return "is there"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} was there, now it is not"


@kind
class TypeLookupKind(Kind):
    """What a name is found to be along the method resolution order. Payload: (name, object)."""

    name = "type_lookup"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        name, found = guard.payload
        at = rows.at(guard.source.child(TypeLookupSource, name))
        return (at,), (name, identify(found, at, rows))

    def holds(self, payload: Any, *values: Any) -> bool:
        return is_identified(payload[1], values[0])

    def describe(self, payload: Any, *names: str) -> str:
        return f"is {show_identified(payload[1])}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        was, now = show_identified(payload[1]), show(values[0])
        return f"{names[0]} was {was}, now it is {'another one' if was == now else now}"


@kind
class TypeAbsentKind(Kind):
    """A name that no class along the method resolution order has. Payload: (name,)."""

    name = "type_absent"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        rows.rows.append(("type_lookup_absent", at, guard.payload[0]))
        return (at,), guard.payload[0]

    def holds(self, payload: Any, *values: Any) -> bool:
        return issubclass(type(values[0]), type) and type_lookup(values[0], payload) is MISSING

    def describe(self, payload: Any, *names: str) -> str:
        return f"lacks `{payload}`"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} lacked `{payload}`, now it has it"


@kind
class CellEmptyKind(Kind):
    """A closure cell that holds nothing. Payload: ()."""

    name = "cell_empty"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        rows.add("cell_empty", at)
        return (at,), None

    def holds(self, payload: Any, *values: Any) -> bool:
        if type(values[0]) is not CellType:
            return False
        try:
            values[0].cell_contents  # noqa: B018
        except ValueError:
            return True
        return False

    def describe(self, payload: Any, *names: str) -> str:
        return "holds nothing"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} held nothing, now it holds something"


@kind
class MemberUnsetKind(Kind):
    """A slot in which nothing is stored. Payload: (member descriptor,)."""

    name = "member_unset"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        descriptor = guard.payload[0]
        if is_static_type(descriptor.__objclass__):
            rows.add("slot_unset", at, descriptor)
            return (at,), descriptor
        return (at,), rows.add_about_slot("class_slot_empty", at, descriptor)

    def holds(self, payload: Any, *values: Any) -> bool:
        descriptor = payload if hasattr(payload, "__objclass__") else payload.descriptor()
        try:
            descriptor.__get__(values[0])
        except AttributeError:
            return descriptor is not None
        except TypeError:
            return False
        return False

    def describe(self, payload: Any, *names: str) -> str:
        return f"has nothing in `{_slot_name(payload)}`"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} had nothing in `{_slot_name(payload)}`, now it has something"


def _slot_name(payload: Any) -> str:
    return str(payload.__name__ if hasattr(payload, "__objclass__") else payload.name)
