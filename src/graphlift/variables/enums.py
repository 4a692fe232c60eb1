"""Enum members: constants by identity, with attributes; a mixed-in builtin value is their `storage`."""

from __future__ import annotations

import enum
from collections.abc import Hashable
from typing import Any

from graphlift.protocol import Codegen, Tx
from graphlift.reasons import Reason
from graphlift.sources import Source, TypeLookupSource
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import wraps_if
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.graph_calls import as_graph_argument, graph_argument, refuse_overloads
from graphlift.variables.rebuild import dict_of
from graphlift.variables.sequences import TupleVariable, tuple_items
from graphlift.variables.slots.type_lookup import Binding, anchor, mro_of, type_lookup
from graphlift.variables.user_defined import UserDefinedObject

_MIXED = (str, int, float, bytes)


class EnumMemberVariable(UserDefinedObject):
    """A member of an enumeration."""

    __slots__ = ()
    leaf = True

    def is_constant(self) -> bool:
        return True

    def as_constant(self) -> Any:
        return self.handle.real

    def hash_key(self, tx: Tx) -> Hashable:
        attr = type_lookup(tx, self.cls, "__hash__")
        if self.storage is not None and attr is not None and attr.binding is Binding.C_METHOD:
            return self.storage.hash_key(tx)
        if attr is not None and attr.owner is enum.Enum:
            return self.handle.real  # type: ignore[no-any-return]
        return super().hash_key(tx)

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_object(self.handle.real)

    def __repr__(self) -> str:
        return f"EnumMemberVariable({self.cls.__qualname__})"


def _builtin_part(tx: Tx, value: Any, source: Source) -> VariableTracker | None:
    """The mixed-in value of a member such as one of `enum.IntEnum`."""
    if tuple in mro_of(type(value)):
        return TupleVariable(tuple_items(tx, value, source), part=True)
    for kind in _MIXED:
        if kind in mro_of(type(value)):
            plain: Any = kind.__dict__["__new__"](kind, value) if kind is not str else str.__str__(value)
            return ConstantVariable(plain)
    return None


@graph_argument(EnumMemberVariable)
def _as_argument(tx: Tx, var: EnumMemberVariable) -> Any:
    """A mixed-in number is a number to torch."""
    if var.storage is None:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"{var!r} as an argument of a tensor operation")
    refuse_overloads(tx, var.cls)
    return as_graph_argument(tx, var.storage)


def _listed(tx: Tx, value: Any) -> Source:
    """Where the member's class lists it."""
    members = anchor(tx, type(value)).child(TypeLookupSource, "_member_map_")
    name = (dict_of(value) or {}).get("_name_")  # absent while the member is being made
    if name is not None and type(value)._member_map_.get(name) is value:
        return members.value_of(name)
    return anchor(tx, value)


@wraps_if(lambda value: enum.Enum in mro_of(type(value)), order=50)
def wrap_member(tx: Tx, value: Any, source: Source | None) -> EnumMemberVariable:
    """A member that exists (they all do)."""
    if source is None:
        source = _listed(tx, value)
    else:
        tx.guard("is", source, value)
    handle = tx.heap.handle_of(value, source)
    made = EnumMemberVariable(type(value), handle, source, None, _builtin_part(tx, value, source))
    handle.tracker = made
    return made
