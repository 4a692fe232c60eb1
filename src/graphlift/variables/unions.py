"""Unions of types (``int | str``, ``Optional[int]``) as values: for `isinstance` and for annotations.

They are immutable and known whole; which classes they name is pinned by the union's identity, or by the
classes it was made of.
"""

from __future__ import annotations

import types
import typing
from typing import Any

from graphlift.protocol import Codegen, Tx, Var
from graphlift.sources import SlotSource, Source
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.constant import ConstantVariable

#: The class of ``typing.Union[...]``, where it is not that of ``int | str``.
_TYPING_UNION: type = type(typing.Union[int, str])  # noqa: UP007

#: Attributes that never change.
_PLAIN = ("__origin__", "__parameters__", "__module__", "__class__")
_MEMBERS: Any = types.UnionType.__dict__["__args__"]


class UnionVariable(ConstantVariable):
    """A union of types."""

    __slots__ = ()

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        return union_of(tx, self, other) if op == "|" else NOT_IMPLEMENTED

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        return union_of(tx, other, self) if op == "|" else NOT_IMPLEMENTED

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if op in ("==", "!=") and isinstance(other, UnionVariable):
            made: Any = tx.make.constant((self.value == other.value) is (op == "=="))
            return made  # type: ignore[no-any-return]
        return NOT_IMPLEMENTED

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name in _PLAIN and hasattr(self.value, name):
            return tx.make.from_value(getattr(self.value, name), None).realize(tx)  # type: ignore[no-any-return]
        if name != "__args__":
            self.refuse(tx, f"attribute {name!r}")
        made: Any = tx.make.tuple([tx.make.from_value(member, None) for member in self.value.__args__])
        return made  # type: ignore[no-any-return]

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_object(self.value)


def _member(var: VariableTracker) -> Any:
    """The type that a tracker stands for in a union, `NOT_IMPLEMENTED` if none."""
    if isinstance(var, UnionVariable):
        return var.value
    if var.is_constant():
        return None if var.as_constant() is None else NOT_IMPLEMENTED
    value = getattr(var, "value", NOT_IMPLEMENTED)
    return value if isinstance(value, type) else NOT_IMPLEMENTED


def union_of(tx: Tx, left: VariableTracker, right: VariableTracker) -> VariableTracker | NotImplementedType:
    """``left | right`` of classes, unions and None."""
    one, two = _member(left), _member(right)
    if one is NOT_IMPLEMENTED or two is NOT_IMPLEMENTED or (one is None and two is None):
        return NOT_IMPLEMENTED
    return UnionVariable(type.__or__(one, two) if isinstance(one, type) else one | two)


@wraps(types.UnionType, _TYPING_UNION)
def wrap_union(tx: Tx, value: Any, source: Source | None) -> Var:
    """An existing union: pinned by its identity or, where nothing can refer to it weakly, by its members."""
    if source is not None and type(value) is types.UnionType:
        tx.guard("type", source, types.UnionType)
        members = source.child(SlotSource, _MEMBERS)
        tx.guard("length", members, len(value.__args__))
        for index, member in enumerate(value.__args__):
            tx.guard("is", members.item(index), member)
    elif source is not None:
        tx.guard("is", source, value)
    return UnionVariable(value, source)
