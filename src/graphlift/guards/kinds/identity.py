"""Kinds about which object it is, and of which class.

An object that cannot be held weakly (a property, a class method, a slot's descriptor, a member of an
enumeration of ints) is known by its parts, which can.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from enum import Enum
from types import FunctionType, MemberDescriptorType
from typing import Any, Final

from graphlift.guards.guard import Guard, Kind, kind
from graphlift.guards.holding import GONE, NotGuardableError, class_name, held, hold, is_static_type
from graphlift.guards.kinds.showing import show
from graphlift.guards.places import Rows, SlotOf, dict_value, type_lookup


@kind
class TypeKind(Kind):
    """The exact class of an object. Payload: (class,)."""

    name = "type"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        holder = rows.hold(guard.payload[0])
        rows.rows.append(("type_is", at, holder))
        return (at,), holder

    def holds(self, payload: Any, *values: Any) -> bool:
        return type(values[0]) is held(payload)

    def describe(self, payload: Any, *names: str) -> str:
        return f"is of {show(held(payload))}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} was of {show(held(payload))}, now it is of {show(type(values[0]))}"


# --- identity --------------------------------------------------------------------------------------------


class Parts:
    """An object known by its parts: its class, and the identity of what certain descriptors read.

    Attributes:
        cls: the class, static.
        parts: (descriptor, lasting form of what it reads).
    """

    __slots__ = ("cls", "parts")

    def __init__(self, cls: type, parts: tuple[tuple[Any, Any], ...]) -> None:
        self.cls: Final = cls
        self.parts: Final = parts


class EnumMember:
    """A member of an enumeration: the class weakly, the table that lists it, and its key there."""

    __slots__ = ("key", "owner", "table")

    def __init__(self, member: Enum) -> None:
        cls = type(member)
        self.owner: Final = weakref.ref(cls)
        self.table: str
        self.key: str | int
        # One that is being made (in `_missing_`, `__new__`, `__init__`) may have neither name nor value yet.
        name, value = getattr(member, "_name_", None), getattr(member, "_value_", None)
        if type(name) is str and cls._member_map_.get(name) is member:
            self.table, self.key = "_member_map_", name
        elif type(value) is int and cls._value2member_map_.get(value) is member:
            self.table, self.key = "_value2member_map_", value
        else:
            raise NotGuardableError(f"a member that {class_name(cls)} does not list")

    def member(self) -> Any:
        """The member as the class lists it now."""
        owner = self.owner()
        return GONE if owner is None else dict_value(type_lookup(owner, self.table), self.key)


#: What makes up an object that takes no weak reference, by its class.
_PARTS: Final[dict[type, tuple[Any, ...]]] = {
    property: tuple(property.__dict__[name] for name in ("fget", "fset", "fdel")),
    staticmethod: (staticmethod.__dict__["__func__"],),
    classmethod: (classmethod.__dict__["__func__"],),
}


def identify(value: Any, at: int, rows: Rows) -> Any:
    """Add the nodes that tell whether what row `at` reads is this very object; its lasting form.

    Raises:
        NotGuardableError: the object can neither be held nor told by its parts.
    """
    cls = type(value)
    parts = _PARTS.get(cls)
    if parts is not None:
        rows.add("type_is", at, cls)
        return Parts(
            cls, tuple((d, identify(d.__get__(value), rows.add("slot", at, d), rows)) for d in parts)
        )
    if cls is MemberDescriptorType and not is_static_type(value.__objclass__):
        return rows.add_about_slot("slot_descriptor", at, value)
    if issubclass(cls, Enum) and issubclass(cls, (int, tuple, bytes)):  # the object itself is asked nothing
        return _identify_member(value, at, rows)
    holder = hold(value)
    rows.add("is", at, holder)
    return holder


def _identify_member(value: Enum, at: int, rows: Rows) -> EnumMember:
    member = EnumMember(value)
    owner = rows.add("anchor", -1, member.owner)
    table = rows.add("type_lookup", owner, member.table)
    rows.add("same", -1, at, rows.add("dict_value", table, member.key))
    return member


def is_identified(holder: Any, value: Any) -> bool:
    """Whether `value` is the object whose lasting form `identify` gave."""
    if type(holder) is Parts:
        return type(value) is holder.cls and all(
            is_identified(part, descriptor.__get__(value)) for descriptor, part in holder.parts
        )
    if type(holder) is SlotOf:
        return type(value) is MemberDescriptorType and value == holder.descriptor()
    if type(holder) is EnumMember:
        return value is holder.member()
    expected = held(holder)
    return value is expected and expected is not GONE


def show_identified(holder: Any) -> str:
    """The object in a few words."""
    if type(holder) is Parts:
        return f"a {holder.cls.__name__}"
    if type(holder) is SlotOf:
        return f"slot `{holder.name}`"
    if type(holder) is EnumMember:
        return f"member `{holder.key}`"
    return show(held(holder))


@kind
class IsKind(Kind):
    """One certain object. Payload: (object,)."""

    name = "is"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        return (at,), identify(guard.payload[0], at, rows)

    def holds(self, payload: Any, *values: Any) -> bool:
        return is_identified(payload, values[0])

    def describe(self, payload: Any, *names: str) -> str:
        return f"is {show_identified(payload)}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        now = show(values[0])
        was = show_identified(payload)
        if now == was:
            now = f"another {'function' if type(values[0]) is FunctionType else 'object'} like it"
        return f"{names[0]} was {was}, now it is {now}"


@kind
class IsNotKind(Kind):
    """Any object but one. Payload: (object,)."""

    name = "is_not"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        holder = hold(guard.payload[0])
        rows.add("is_not", at, holder)
        return (at,), holder

    def holds(self, payload: Any, *values: Any) -> bool:
        return values[0] is not held(payload)

    def describe(self, payload: Any, *names: str) -> str:
        return f"is not {show(held(payload))}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} was not {show(held(payload))}, now it is"
