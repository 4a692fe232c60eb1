"""Descriptors in C as values: the members, ``__dict__`` and ``__weakref__`` of classes.

Those of a class that the program makes come with its making; they are found again on the real class.
Mirrors getset_get and member_get of Objects/descrobject.c.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

from graphlift.protocol import Codegen, Tx, Var
from graphlift.sources import Source
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import is_made, made_tracker, mro_of, namespace_of
from graphlift.variables.user_defined import UserDefinedObject, wrap_object


class ClassMemberVariable(UserDefinedObject):
    """A member or attribute descriptor that existed."""

    __slots__ = ()

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name in ("__name__", "__qualname__", "__doc__"):
            return tx.make.constant(getattr(self.value, name))  # type: ignore[return-value]
        if name == "__objclass__":
            return tx.make.from_value(self.value.__objclass__, None)  # type: ignore[return-value]
        return super().getattr_(tx, name)

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        found = _accessed(self, tx, self.value, name, args, kwargs)
        return super().call_method(tx, name, args, kwargs) if found is None else found


class MadeMemberVariable(VariableTracker):
    """One that came with the making of a class by the program.

    Attributes:
        value: the one of the class that stands for it.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.source = None
        self.value: Final = value

    def _owner(self) -> Any:
        return made_tracker(self.value.__objclass__)

    def children(self) -> tuple[Var, ...]:
        """What it belongs to."""
        return (self._owner(),)

    def python_type(self, tx: Tx) -> type:
        return type(self.value)

    def hash_key(self, tx: Tx) -> Hashable:
        key: Hashable = self.value
        return key

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name in ("__name__", "__qualname__", "__doc__"):
            return tx.make.constant(getattr(self.value, name))  # type: ignore[return-value]
        if name == "__objclass__":
            return self._owner()  # type: ignore[no-any-return]
        return attributes.object_getattr(tx, self, type(self.value), name)

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        found = _accessed(self, tx, self.value, name, args, kwargs)
        return self.refuse(tx, f"method {name!r}") if found is None else found

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(_member_of, [self._owner(), ConstantVariable(self.value.__name__)])

    def __repr__(self) -> str:
        return f"MadeMemberVariable({self.value.__qualname__})"


def _member_of(cls: type, name: str) -> Any:
    """The descriptor in a class's namespace (runs in the compiled program)."""
    return namespace_of(cls)[name]


def _accessed(
    self: VariableTracker,
    tx: Tx,
    descriptor: Any,
    name: str,
    args: Sequence[VariableTracker],
    kwargs: Mapping[str, VariableTracker],
) -> VariableTracker | None:
    """What ``__get__``, ``__set__`` and ``__delete__`` of a descriptor do; None for other methods."""
    counts = {"__get__": (1, 2), "__set__": (2, 2), "__delete__": (1, 1)}.get(name)
    if counts is None or kwargs or not counts[0] <= len(args) <= counts[1]:
        return None
    instance = args[0].realize(tx)
    if name == "__get__" and instance.is_constant() and instance.as_constant() is None:
        return self if len(args) == 2 else None
    if descriptor.__objclass__ not in mro_of(instance.python_type(tx)):
        return None
    called = descriptor.__name__
    if name == "__get__":
        return instance.read_member(tx, descriptor, called)
    instance.write_member(tx, descriptor, called, args[1] if name == "__set__" else None)
    return tx.make.constant(None)  # type: ignore[return-value]


@wraps(GetSetDescriptorType, MemberDescriptorType)
def wrap_class_member(tx: Tx, value: Any, source: Source | None) -> Var:
    """A descriptor in C: its identity is that of its class and name."""
    if source is None and is_made(value.__objclass__):
        return MadeMemberVariable(value)
    plain = wrap_object(tx, value, source)
    made = ClassMemberVariable(plain.cls, plain.handle, plain.source)
    plain.handle.tracker = made
    return made
