"""``list[int]`` and its like as values, for annotations and calls: immutable, known whole. Mirrors
Objects/genericaliasobject.c."""

from __future__ import annotations

import collections
import types
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from graphlift.errors import ObservedException
from graphlift.protocol import Codegen, Tx
from graphlift.variables.base import NOT_IMPLEMENTED, UNKNOWN, NotImplementedType, VariableTracker
from graphlift.variables.builder import pinned, wraps
from graphlift.variables.classes import CLASS_METHODS, ClassVariable
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.sequences import TupleVariable
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import is_made
from graphlift.variables.unions import UnionVariable
from graphlift.variables.user_defined import UserDefinedObject

#: What an alias answers itself; all else is its class's.
_OWN: Final = ("__origin__", "__args__", "__parameters__", "__unpacked__")
#: Modules whose objects stand in types.
_OF_TYPES: Final = ("typing", "typing_extensions", "types")


def lasting(tx: Tx, value: Any) -> Any:
    """An object that stands in a type, `UNKNOWN` where it is none that lasts: class, type variable, alias."""
    if isinstance(value, ClassVariable):
        return UNKNOWN if is_made(value.value) else value.value
    if isinstance(value, TupleVariable) and value.cls is tuple:
        items = [lasting(tx, item.realize(tx)) for item in value.items]
        return UNKNOWN if any(item is UNKNOWN for item in items) else tuple(items)
    if isinstance(value, UserDefinedObject) and value.value is not None:
        return value.identity(tx) if value.cls.__module__ in _OF_TYPES else UNKNOWN
    return value.as_constant() if value.is_constant() else UNKNOWN


#: Attributes that are not asked of the class. Mirrors attr_exceptions of Objects/genericaliasobject.c.
_NOT_THE_ORIGINS: Final = frozenset({"__reduce_ex__", "__reduce__", "__copy__", "__deepcopy__"})


class GenericAliasVariable(ConstantVariable):
    """A class with arguments in brackets."""

    __slots__ = ()

    def hash_key(self, tx: Tx) -> Hashable:
        key: Hashable = self.value
        return key

    def origin(self, tx: Tx) -> Any:
        """The class."""
        return tx.make.from_value(self.value.__origin__, None)

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name in _OWN:
            return tx.make.from_value(getattr(self.value, name), None).realize(tx)  # type: ignore[no-any-return]
        if name == "__class__":
            return tx.make.from_value(types.GenericAlias, None).realize(tx)  # type: ignore[no-any-return]
        if name in _NOT_THE_ORIGINS or (name.startswith("__") and name in types.GenericAlias.__dict__):
            return self.refuse(tx, f"attribute {name!r}")
        found: VariableTracker = attributes.getattr_(tx, self.origin(tx), name).realize(tx)
        return found

    def iter_(self, tx: Tx) -> VariableTracker:
        return self.refuse(tx, "iteration")

    def unpack(self, tx: Tx) -> list[VariableTracker] | None:
        return self.refuse(tx, "iteration")

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        return self.refuse(tx, "membership")

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        made: VariableTracker = self.origin(tx).realize(tx).call(tx, args, kwargs).realize(tx)
        if isinstance(made, UserDefinedObject):
            with suppress(ObservedException):
                attributes.setattr_(tx, made, "__orig_class__", self)
        return made

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if op not in ("==", "!=") or not isinstance(other, GenericAliasVariable):
            return NOT_IMPLEMENTED
        return tx.make.constant((self.value == other.value) is (op == "=="))  # type: ignore[return-value]

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        right = lasting(tx, other) if op == "|" else UNKNOWN
        if not isinstance(right, (type, types.GenericAlias, types.UnionType, type(None))):
            return NOT_IMPLEMENTED
        return UnionVariable(self.value | right)

    def truth(self, tx: Tx) -> bool:
        return True

    def reconstruct(self, codegen: Codegen) -> None:
        parts = (self.value.__origin__, self.value.__args__)
        codegen.call(types.GenericAlias, [ConstantVariable(part) for part in parts])

    def __repr__(self) -> str:
        return f"GenericAliasVariable({self.value!r})"


# An alias that exists: pinned by its identity.
wraps(types.GenericAlias)(pinned(GenericAliasVariable))


_KINDS: Final[tuple[type, ...]] = (
    *(list, dict, tuple, set, frozenset, enumerate),
    *(collections.deque, collections.defaultdict, collections.OrderedDict),
)


def _class_getitem(tx: Tx, cls: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs or len(args) != 1:
        cls.refuse(tx, "method '__class_getitem__'")
    item = lasting(tx, args[0].realize(tx))
    if item is UNKNOWN or is_made(cls.value):
        cls.refuse(tx, "method '__class_getitem__' with what is made here")
    return GenericAliasVariable(types.GenericAlias(cls.value, item))


for _cls in _KINDS:
    CLASS_METHODS[_cls, "__class_getitem__"] = _class_getitem
