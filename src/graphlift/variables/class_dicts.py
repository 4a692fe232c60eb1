"""``cls.__dict__`` as a value: a read-only view of a class's own namespace, with what was written to it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, cast

from graphlift.protocol import Codegen, Tx, Var
from graphlift.sources import InstanceDictSource
from graphlift.variables.base import NotImplementedType, VariableTracker
from graphlift.variables.builtin_object import BuiltinObjectVariable, constant
from graphlift.variables.namespace import KEYS
from graphlift.variables.slots import calls, items, iteration, operators
from graphlift.variables.slots.type_lookup import (
    anchor,
    is_immutable,
    is_made,
    namespace_of,
    own_attr,
    written_names,
)


class ClassDictVariable(BuiltinObjectVariable):
    """The namespace of a class.

    Attributes:
        owner: the class's tracker.
        cls: the class.
    """

    __slots__ = ("cls", "owner")
    models = type(type.__dict__)

    def __init__(self, owner: Any) -> None:
        self.source = None
        self.owner: Final = owner
        self.cls: Final[type] = owner.value

    def children(self) -> tuple[Var, ...]:
        """What it holds."""
        return (self.owner,)

    def python_type(self, tx: Tx) -> type:
        return self.models

    def hash_key(self, tx: Tx) -> Hashable:
        return self.type_error(tx, "unhashable type: '{}'")

    def _find(self, tx: Tx, key: Any) -> Any:
        """What stands under a key, None for nothing."""
        name = key.hash_key(tx)
        attr = own_attr(tx, self.cls, name) if type(name) is str else None
        return None if attr is None else attr.value(tx)

    def _names(self, tx: Tx) -> list[str]:
        """All names, in order."""
        stored, removed = written_names(tx, self.cls)
        own = namespace_of(self.cls)
        if not is_immutable(self.cls):
            tx.guard(KEYS, anchor(tx, self.cls).child(InstanceDictSource, "__dict__"), tuple(own))
        names = [name for name in own if name not in removed or name in stored]
        names += [name for name in stored if name not in own]
        if is_made(self.cls):
            names.sort(key=lambda name: name not in stored)
        return names

    def _keys(self, tx: Tx) -> Var:
        """A dictionary with the same keys."""
        return tx.make.dict([(tx.make.constant(name), tx.make.constant(None)) for name in self._names(tx)])

    def _copy(self, tx: Tx) -> Var:
        """A dictionary of all that is in it, in order."""
        entries = [(tx.make.constant(name), own_attr(tx, self.cls, name)) for name in self._names(tx)]
        return tx.make.dict([(name, attr.value(tx)) for name, attr in entries if attr is not None])

    def length(self, tx: Tx) -> VariableTracker:
        return items.length(tx, self._keys(tx))

    def truth(self, tx: Tx) -> VariableTracker | bool:
        return True

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        found = self._find(tx, key)
        if found is None:
            tx.raise_(KeyError, key)
        return found.realize(tx)  # type: ignore[no-any-return]

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        name = item.hash_key(tx)
        return constant(tx, type(name) is str and own_attr(tx, self.cls, name) is not None)

    def iter_(self, tx: Tx) -> VariableTracker:
        return iteration.iter_(tx, self._keys(tx))

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        right = other._copy(tx) if isinstance(other, ClassDictVariable) else other
        return operators.compare(tx, op, self._copy(tx), right)

    def call_method(self, tx: Tx, name: str, args: Any, kwargs: Any) -> VariableTracker:
        if name == "get" and 1 <= len(args) <= 2 and not kwargs:
            found = self._find(tx, args[0].realize(tx))
            default = args[1] if len(args) == 2 else tx.make.constant(None)
            return (default if found is None else found).realize(tx)  # type: ignore[no-any-return]
        if name in ("keys", "__reversed__"):
            return cast(VariableTracker, calls.call_method(tx, self._keys(tx), name, args, kwargs))
        if name in ("values", "items", "copy"):
            return cast(VariableTracker, calls.call_method(tx, self._copy(tx), name, args, kwargs))
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(namespace_of, [self.owner])
