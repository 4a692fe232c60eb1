"""Python modules as values: names are read one by one from the module's namespace, the same one that its
functions see as their globals. Mirrors Objects/moduleobject.c."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from graphlift.heap import Handle
from graphlift.protocol import Tx, Var
from graphlift.sources import AttrSource, ModuleDictSource, Source
from graphlift.variables import namespace
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import wraps_if
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import anchor, type_lookup
from graphlift.variables.user_defined import UserDefinedObject

_MODULE_DICT: Any = type.__dict__["__dict__"].__get__(ModuleType)["__dict__"]


class PythonModuleVariable(UserDefinedObject):
    """A module; its identity is guarded."""

    __slots__ = ()

    def instance_dict(self, tx: Tx) -> Handle:
        handle = self.handle
        if handle.namespace is None:
            assert self.source is not None
            own = _MODULE_DICT.__get__(handle.real)
            handle.namespace = tx.globals_handle(own, self.source.child(ModuleDictSource, "__dict__"))
        return handle.namespace

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if self.cls is not ModuleType:
            return super().getattr_(tx, name)
        if type_lookup(tx, ModuleType, name) is None:
            value: Any = namespace.lookup(tx, self.instance_dict(tx), name, AttrSource)
            if value is not None:
                return value  # type: ignore[no-any-return]
        else:
            found = attributes.generic_lookup(tx, self, self.cls, name, type_lookup(tx, ModuleType, name))
            if found is not None:
                return found
        return self._missing(tx, name)

    def _missing(self, tx: Tx, name: str) -> VariableTracker:
        own = self.instance_dict(tx)
        fallback: Any = namespace.lookup(tx, own, "__getattr__", AttrSource)
        if fallback is not None:
            return fallback.realize(tx).call(tx, [tx.make.constant(name)], {})  # type: ignore[no-any-return]
        called: Any = namespace.lookup(tx, own, "__name__", AttrSource)
        known = None if called is None else called.realize(tx)
        shown = known.as_constant() if known is not None and known.is_constant() else "?"
        tx.raise_(AttributeError, f"module '{shown}' has no attribute '{name}'")


@wraps_if(lambda value: issubclass(type(value), ModuleType), order=30)
def wrap_module(tx: Tx, value: ModuleType, source: Source | None) -> Var:
    """Any module."""
    if source is None:
        source = anchor(tx, value)
    else:
        tx.guard("is", source, value)
    handle = tx.heap.handle_of(value, source)
    made = PythonModuleVariable(type(value), handle, source)
    handle.tracker = made
    return made
