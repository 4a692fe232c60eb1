"""`nn.Module` objects: attributes and calls without their Python plumbing.

Owns the short ways through ``Module.__getattr__``, ``__call__`` and ``__setattr__`` where the class left
these as they are; all else (hooks, registration, containers, iteration over parameters) is interpreted like
the code of any user's class. Mirrors torch/nn/modules/module.py.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Final

import torch
from torch.nn.modules import module as module_file
from torch.nn.modules.lazy import LazyModuleMixin

from graphlift import _C
from graphlift.guards.kinds.dictionaries import Lacks
from graphlift.guards.kinds.modules import ENTRY_KINDS, TABLES
from graphlift.heap import Handle
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import AttrSource, GlobalSource, Source
from graphlift.variables import namespace
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import wraps_if
from graphlift.variables.lazy import LazyVariableTracker
from graphlift.variables.slots import attributes, items, operators
from graphlift.variables.slots.type_lookup import Binding, TypeAttr, anchor, classes_written, type_lookup
from graphlift.variables.user_defined import UserDefinedObject

_Module: Final = torch.nn.Module
_OBJECT_GETATTRIBUTE: Final = object.__dict__["__getattribute__"]
_GETATTR: Final = _Module.__dict__["__getattr__"]
_SETATTR: Final = _Module.__dict__["__setattr__"]
_CALL: Final = _Module.__dict__["__call__"]
_CALL_IMPL: Final = _Module.__dict__["_call_impl"]

_HOOKS: Final = ("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks")
_GLOBAL_HOOKS: Final = tuple(
    f"_global{name}"
    for name in ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks")
)
#: What the instance must not have of its own for a call to be one of the class's ``forward``.
_OVERRIDES: Final = ("_compiled_call_impl", "_call_impl", "forward")
#: What it lacks, and where it has nothing.
_UNDISTURBED: Final = Lacks(_OVERRIDES, _HOOKS)
_OVERRIDING: Final = frozenset(_OVERRIDES)
_hooks_of: Final = itemgetter(*_HOOKS)
_NOT_HOOKED: Final = frozenset((dict, OrderedDict))
#: Descriptors that may raise AttributeError.
_MAY_FAIL: Final = (Binding.PROPERTY, Binding.DESCRIPTOR, Binding.MEMBER)


class ModuleVariable(UserDefinedObject):
    """A module."""

    __slots__ = ()

    # --- attributes ------------------------------------------------------------------------

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        attr = type_lookup(tx, self.cls, name)
        # A descriptor that raises AttributeError falls back on ``__getattr__``: the general way knows how.
        computed = attr is not None and attr.binding in _MAY_FAIL
        if computed or not self._reads_plainly(tx):
            return super().getattr_(tx, name)
        if attr is None:
            entry = self._entry_at_once(tx, name)
            if entry is not None:
                return entry
        found = attributes.generic_lookup(tx, self, self.cls, name, attr)
        if found is None:
            found = self._registered(tx, name)
        if found is None:
            attributes.raise_no_attribute(tx, self.cls, name)
        return found

    def _reads_plainly(self, tx: Tx) -> bool:
        """Whether the class reads attributes as `nn.Module` does."""
        key = (id(self.cls), _GETATTR)
        known = tx.reads.get(key)
        if known is None or classes_written(tx):
            hook = type_lookup(tx, self.cls, "__getattribute__")
            fallback = type_lookup(tx, self.cls, "__getattr__")
            known = hook is not None and hook.raw is _OBJECT_GETATTRIBUTE
            known = known and fallback is not None and fallback.raw is _GETATTR
            tx.reads[key] = known
        return bool(known)

    def _entry_at_once(self, tx: Tx, name: str) -> VariableTracker | None:
        """A parameter, buffer or submodule of a module that existed and was not written to, with one
        assumption for all that is looked into on the way; None: it is to be looked for step by step."""
        own = self.instance_dict(tx)
        if own is None or own.source is None or own.dirty:
            return None
        real, has_only_strings = own.real, _C.has_only_strings
        if type(real) is not dict or not has_only_strings(real) or name in real:
            return None
        for passed, table in enumerate(TABLES):
            entries = real.get(table)
            if type(entries) is not dict or not has_only_strings(entries):
                return None  # looking for a name may run code of the program's
            known = tx.heap.known(entries)
            if known is not None and known.dirty:
                return None
            if name in entries:
                return self._entry_of(tx, own.source, name, passed, entries)
        return None

    def _entry_of(
        self, tx: Tx, own: Source, name: str, passed: int, entries: dict[str, object]
    ) -> VariableTracker:
        """``entries[name]``, the first tables having been passed."""
        handle = namespace.handle_at(tx, entries, own.child(AttrSource, TABLES[passed]))
        if handle.table is None:
            handle.table = {}
        tx.guard(ENTRY_KINDS[passed], own, name)
        entry = namespace.lookup(tx, handle, name)
        assert isinstance(entry, VariableTracker)
        return entry

    def _own(self, tx: Tx, name: str) -> Var | None:
        """An entry of the instance dictionary."""
        own = self.instance_dict(tx)
        return None if own is None else namespace.lookup(tx, own, name, AttrSource)

    def _registered(self, tx: Tx, name: str) -> VariableTracker | None:
        """``Module.__getattr__``, None where it raises."""
        for table in TABLES:
            entries = self._own(tx, table)
            if entries is None:
                continue
            found = _entry(tx, entries.realize(tx), name)
            if found is not None:
                return found
        return None

    def setattr_(self, tx: Tx, name: str, value: VariableTracker) -> None:
        hook = type_lookup(tx, self.cls, "__setattr__")
        if hook is None or hook.raw is not _SETATTR or self._is_registration(tx, name, value):
            super().setattr_(tx, name, value)
        else:
            attributes.generic_setattr(tx, self, self.cls, name, value)

    def _is_registration(self, tx: Tx, name: str, value: VariableTracker) -> bool:
        """Whether the value, or what is there under the name, is a parameter, buffer or module."""
        cls = value.realize(tx).python_type(tx)
        if issubclass(cls, (torch.Tensor, _Module)):
            known_plain = cls is torch.Tensor and not _is_marked(tx, value.realize(tx))
            if not known_plain:
                return True
        return self._registered(tx, name) is not None

    # --- calls -----------------------------------------------------------------------------

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        forward = _plain_forward(tx, self.cls)
        if forward is not None and self._is_undisturbed(tx) and _no_global_hooks(tx):
            if tx.takes("__call__", self):
                tx.last_call(forward.value(tx))
            result: VariableTracker = attributes.call_attr(tx, forward, self, self.cls, args, kwargs)
            return result
        return super().call(tx, args, kwargs)

    def _is_undisturbed(self, tx: Tx) -> bool:
        """Whether the module has no hooks, and nothing of its own that a call would use first."""
        own = self.instance_dict(tx)
        if own is None:
            return False
        real = own.real
        if type(real) is not dict or own.source is None or own.dirty:
            return self._lacks_all(tx, own)
        if not real.keys().isdisjoint(_OVERRIDING):
            return False
        try:
            hooks = _hooks_of(real)
        except KeyError:
            return self._lacks_all(tx, own)
        if not _NOT_HOOKED.issuperset(map(type, hooks)) or any(hooks) or tx.heap.knows_any(hooks):
            return self._lacks_all(tx, own)
        tx.guard("namespace_lacks", own.source, _UNDISTURBED)
        return True

    def _lacks_all(self, tx: Tx, own: Handle) -> bool:
        """The same, asked one by one, for a module that the program made or wrote to."""
        if any(namespace.lookup(tx, own, name, AttrSource) is not None for name in _OVERRIDES):
            return False
        return all(_is_empty(tx, namespace.lookup(tx, own, name, AttrSource)) for name in _HOOKS)

    def invoke(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        attr = type_lookup(tx, self.cls, name)
        if attr is None or attr.binding is not Binding.FUNCTION or not self._reads_plainly(tx):
            return super().invoke(tx, name, args, kwargs)
        if self._own(tx, name) is not None:
            return super().invoke(tx, name, args, kwargs)
        result: VariableTracker = attributes.call_attr(tx, attr, self, self.cls, args, kwargs)
        return result


def _entry(tx: Tx, entries: VariableTracker, name: str) -> VariableTracker | None:
    """``entries[name]`` of a dictionary of parameters, buffers or modules; None when it has no such key."""
    handle: Handle | None = getattr(entries, "handle", None)
    is_plain = handle is not None and (handle.real is None or _C.has_only_strings(handle.real))
    if handle is not None and is_plain and entries.python_type(tx) is dict:
        found = namespace.lookup(tx, handle, name)
        assert found is None or isinstance(found, VariableTracker)
        return found
    key = tx.make.constant(name)
    if not operators.is_true(tx, operators.contains(tx, key, entries)):
        return None
    return items.getitem(tx, entries, key)


def _is_marked(tx: Tx, tensor: VariableTracker) -> bool:
    """Whether a tensor counts as a parameter or buffer by a mark on it."""
    return any(attributes.hasattr_(tx, tensor, mark) for mark in ("_is_param", "_is_buffer"))


def _is_empty(tx: Tx, entries: Var | None) -> bool:
    """Whether a dictionary of hooks has no entries."""
    if entries is None:
        return False
    if type(entries) is LazyVariableTracker and type(entries.value) in _NOT_HOOKED:
        known = tx.heap.known(entries.value)
        if known is None and not entries.value:
            assert entries.source is not None
            tx.guard("length", entries.source, 0)
            return True
    tracker: VariableTracker = entries.realize(tx)
    count = tracker.length(tx)
    return count.is_constant() and count.as_constant() == 0


def _plain_forward(tx: Tx, cls: type) -> TypeAttr | None:
    """The class's ``forward`` where a call of an instance without hooks is a call of it and nothing else."""
    key = (id(cls), _CALL)
    if key in tx.reads and not classes_written(tx):
        known: TypeAttr | None = tx.reads[key]
        return known
    found = tx.reads[key] = _find_plain_forward(tx, cls)
    return found


def _find_plain_forward(tx: Tx, cls: type) -> TypeAttr | None:
    for name, wanted in (
        ("__call__", _CALL),
        ("_call_impl", _CALL_IMPL),
        ("__getattribute__", _OBJECT_GETATTRIBUTE),
    ):
        attr = type_lookup(tx, cls, name)
        if attr is None or attr.raw is not wanted:
            return None
    compiled = type_lookup(tx, cls, "_compiled_call_impl")
    if compiled is None or compiled.raw is not None or compiled.written is not None:
        return None
    forward = type_lookup(tx, cls, "forward")
    return forward if forward is not None and forward.binding is Binding.FUNCTION else None


_NO_GLOBAL_HOOKS: Final = (id(module_file), "no global hooks")


def _no_global_hooks(tx: Tx) -> bool:
    known = tx.reads.get(_NO_GLOBAL_HOOKS)
    handle = tx.globals_handle(vars(module_file), None)
    if known is not None and not handle.dirty and not tx.heap.knows_any(known):
        return True
    found = [namespace.lookup(tx, handle, name, GlobalSource) for name in _GLOBAL_HOOKS]
    if not all(_is_empty(tx, entries) for entries in found):
        return False
    tx.reads[_NO_GLOBAL_HOOKS] = [vars(module_file)[name] for name in _GLOBAL_HOOKS]
    return True


def _is_module(value: object) -> bool:
    # Not `isinstance`, which asks the object for its ``__class__``.
    return issubclass(type(value), _Module)


@wraps_if(_is_module, order=20)
def wrap_module(tx: Tx, value: torch.nn.Module, source: Source | None) -> ModuleVariable:
    """The rule for modules: the class is guarded, attributes are read one by one."""
    if issubclass(type(value), LazyModuleMixin):
        tx.fail(Reason.UNSUPPORTED_VALUE, "a lazy module that has not met its first input")
    if source is None:
        source = anchor(tx, value)
    tx.guard("type", source, type(value))
    handle = tx.heap.handle_of(value, source)
    made = ModuleVariable(type(value), handle, source)
    handle.tracker = made
    return made
