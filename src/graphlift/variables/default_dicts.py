"""`collections.defaultdict`. Mirrors Modules/_collectionsmodule.c."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, cast

from graphlift.heap import Table
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtin_object import constant, make_tuple, method
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.dict_views import DictIteratorVariable, Part
from graphlift.variables.mappings import VARIABLES, DictVariable
from graphlift.variables.slots import attributes, calls, items, text
from graphlift.variables.slots.type_lookup import type_lookup


class DefaultDictVariable(DictVariable):
    """A `collections.defaultdict`; the handle's value is its factory."""

    __slots__ = ()
    models = defaultdict
    copies_as = defaultdict

    def _fresh(self, tx: Tx, table: Table) -> VariableTracker:
        if self.owner is not None:
            self.refuse(tx, "copying an object of a derived class")
        made = cast(DictVariable, super()._fresh(tx, table))
        made.handle.value = self.handle.value
        return made

    def factory(self, tx: Tx) -> VariableTracker:
        """``default_factory``; None's tracker when there is none."""
        made = self.handle.value
        return constant(tx, None) if made is None else cast(VariableTracker, made.realize(tx))

    def missing(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        if self.owner is not None and attributes.user_special(tx, self.owner, "__missing__") is not None:
            return super().missing(tx, key)
        return self._missing(tx, key)

    @method("__repr__")
    def _repr(self, tx: Tx) -> VariableTracker:
        if self.owner is not None:
            self.refuse(tx, "repr()")
        factory = text.reprs(tx, [self.factory(tx)])[0]
        return self.write(
            tx, lambda: f"defaultdict({factory}, {self._written(tx)})", "defaultdict(..., {...})"
        )

    @method("__missing__")
    def _missing(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        factory = self.factory(tx)
        if factory.is_constant() and factory.as_constant() is None:
            tx.raise_(KeyError, key)
        value = cast(VariableTracker, calls.call(tx, factory, [], {}))
        items.setitem(tx, self if self.owner is None else self.owner, key, value)
        return value

    @method("__init__")
    def _init(self, tx: Tx, /, *args: VariableTracker, **kwargs: VariableTracker) -> None:
        if args:
            factory = args[0].realize(tx)
            if not _can_be_factory(tx, factory):
                tx.raise_(TypeError, "first argument must be callable or None")
            tx.heap.set_value(self.handle, factory)
        self.update(tx, *args[1:], **kwargs)

    @method("__reduce__", "__reduce_ex__")
    def _reduce(self, tx: Tx, protocol: VariableTracker | None = None) -> VariableTracker:
        if self.owner is not None:
            self.refuse(tx, "__reduce__()")
        nothing = constant(tx, None)
        args = make_tuple(tx, [] if self.handle.value is None else [self.factory(tx)])
        entries = DictIteratorVariable(tx, self, Part.ITEMS)
        return make_tuple(tx, [tx.make.from_value(defaultdict, None), args, nothing, nothing, entries])

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        return self.factory(tx)

    def write_member(self, tx: Tx, descriptor: Any, name: str, value: VariableTracker | None) -> None:
        if self.source is not None:
            tx.fail(Reason.SIDE_EFFECT, "setting default_factory of an existing defaultdict")
        tx.heap.set_value(self.handle, value)

    def children(self) -> list[Var]:
        factory = self.handle.value
        return [*super().children(), *([] if factory is None else [factory])]

    def construct(self, codegen: Codegen) -> None:
        codegen.call(defaultdict, [self.handle.value or ConstantVariable(None)])


def _can_be_factory(tx: Tx, factory: VariableTracker) -> bool:
    if factory.is_constant():
        return factory.as_constant() is None or callable(factory.as_constant())
    return type_lookup(tx, factory.python_type(tx), "__call__") is not None


VARIABLES[defaultdict] = DefaultDictVariable
