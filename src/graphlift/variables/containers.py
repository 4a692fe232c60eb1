"""Objects of classes derived from builtin containers: attributes, and a builtin part that is a tracker of its
own (`storage`) and shares the object's handle.

Owns which builtin part a class has, and how such objects are made and made real. What the builtin part does
is in `sequences.py`, `mappings.py` and `sets.py`.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.heap import Handle
from graphlift.polyfills import ordered_dicts as polyfills
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import Source
from graphlift.variables import keys, rebuild
from graphlift.variables.base import NotImplementedType, VariableTracker
from graphlift.variables.builder import maker, wraps_if
from graphlift.variables.classes import constructs
from graphlift.variables.deques import DequeVariable, ExistingDequeVariable
from graphlift.variables.folding import fold
from graphlift.variables.lists import ListVariable
from graphlift.variables.mappings import VARIABLES, DictVariable, dict_storage
from graphlift.variables.sequences import TupleVariable, adds_names_only, storage, tuple_items
from graphlift.variables.sets import FrozenSetVariable, SetVariable
from graphlift.variables.slots import length_hint
from graphlift.variables.slots.type_lookup import Binding, anchor, mro_of, type_lookup
from graphlift.variables.user_defined import UserDefinedObject

#: Builtin parts, most derived first.
_KINDS: Final = (OrderedDict, defaultdict, dict, list, tuple, set, frozenset, deque)


def kind_of(cls: type) -> type | None:
    """The builtin container that a class derives from (and is not itself), or None."""
    mro = mro_of(cls)
    return None if cls in _KINDS else next((kind for kind in _KINDS if kind in mro), None)


class ContainerObject(UserDefinedObject):
    """An object whose class derives from a builtin container."""

    __slots__ = ()

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name in ("__init__", "update") and OrderedDict in mro_of(self.cls):
            store = type_lookup(tx, self.cls, "__setitem__")
            if store is not None and store.binding is not Binding.C_METHOD:
                return self._ordered_update(tx, args, kwargs)
        return super().call_method(tx, name, args, kwargs)

    def _ordered_update(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        """Unlike dict, OrderedDict fills itself through ``self[key] = value``."""
        positional = tx.make.tuple(args)
        named = tx.make.dict([(tx.make.constant(key), value) for key, value in kwargs.items()])
        result = tx.run_host(polyfills.ordered_update, [self, positional, named]).realize(tx)
        assert isinstance(result, VariableTracker)
        return result

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if descriptor.__objclass__ in _KINDS and name != "__dict__":
            return self.part.read_member(tx, descriptor, name)
        return super().read_member(tx, descriptor, name)

    def write_member(self, tx: Tx, descriptor: Any, name: str, value: VariableTracker | None) -> None:
        if descriptor.__objclass__ in _KINDS:
            self.part.write_member(tx, descriptor, name, value)
        else:
            super().write_member(tx, descriptor, name, value)

    @property
    def part(self) -> VariableTracker:
        """The builtin part."""
        assert self.storage is not None
        return self.storage

    # The sequence slots of the C class stay in place beneath whatever operators the class defines.

    def concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        return self.part.concat(tx, other)

    def repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        return self.part.repeat(tx, count)

    def inplace_concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        result = self.part.inplace_concat(tx, other)
        return result if isinstance(result, NotImplementedType) else self

    def inplace_repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        result = self.part.inplace_repeat(tx, count)
        return result if isinstance(result, NotImplementedType) else self

    def children(self) -> list[Var]:
        """What it holds."""
        return [self]  # it may hold itself through its attributes, too

    def reconstruct(self, codegen: Codegen) -> None:
        part = self.storage
        if not isinstance(part, TupleVariable | FrozenSetVariable):
            super().reconstruct(codegen)
            return
        assert self.cls_var is not None
        if isinstance(part, TupleVariable):
            codegen.call(tuple.__new__, [self.cls_var, TupleVariable(part.items)])
        else:
            part.construct(codegen, frozenset.__new__, [self.cls_var])
        codegen.later(lambda: self.fill(codegen))

    def fill(self, codegen: Codegen) -> None:
        kind = kind_of(self.cls)
        if kind is list:
            for item in self.handle.items or ():
                codegen.run(list.append, [self, item])
        elif isinstance(self.part, SetVariable | DequeVariable):
            self.part.fill(codegen, self)
        else:
            self._fill_entries(codegen, kind)
        super().fill(codegen)

    def _fill_entries(self, codegen: Codegen, kind: Any) -> None:
        if kind is defaultdict and self.handle.value is not None:
            codegen.run(defaultdict.__init__, [self, self.handle.value])
        store = OrderedDict.__setitem__ if kind is OrderedDict else dict.__setitem__
        table = self.handle.table or {}
        for key, value in table.values():
            keys.run_stored(codegen, store, [self, key, value], table)


def _attach(tx: Tx, made: ContainerObject, kind: type, real: Any) -> None:
    """Give an object its builtin part."""
    if issubclass(kind, dict):
        if real is not None:
            made.storage = dict_storage(tx, real, kind, made.source, made)
        else:
            made.storage = VARIABLES[kind](made.handle, None, made)
    elif kind is list:
        made.storage = ListVariable(made.handle, made.source, made)
    elif kind is tuple:
        made.storage = TupleVariable(tuple_items(tx, real, made.source), part=True)
    elif kind is deque:
        made.storage = (DequeVariable if real is None else ExistingDequeVariable)(
            made.handle, made.source, made
        )
    else:
        made.handle.complete = False
        made.storage = (SetVariable if kind is set else FrozenSetVariable)(made.handle, made.source, made)


@wraps_if(lambda value: kind_of(type(value)) is not None, order=60)
def wrap_container(tx: Tx, value: Any, source: Source | None) -> ContainerObject:
    """An object that exists: its class is guarded; contents and attributes are read when asked for."""
    if source is None:
        source = anchor(tx, value)
    kind = kind_of(type(value))
    assert kind is not None
    tx.guard("type", source, type(value))
    handle = tx.heap.handle_of(value, source)
    made = ContainerObject(type(value), handle, source)
    _attach(tx, made, kind, value)
    handle.tracker = made.storage  # the contents are written back as those of any container
    return made


@constructs(dict, list, OrderedDict, defaultdict)
def _new_container(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``__new__`` of a builtin container: empty, whatever the arguments."""
    kind = kind_of(cls)
    if kind is None:
        return tx.make.list([]) if cls is list else tx.make.dict([], cls)
    return tx.make.derived(cls_var)


@maker
def derived(tx: Tx, cls_var: Any) -> ContainerObject:
    """See `protocol.Make.derived`."""
    cls = cls_var.realize(tx).value
    kind = kind_of(cls)
    assert kind is not None
    if type_lookup(tx, cls, "__del__") is not None:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__}, which has a finalizer")
    handle = Handle()
    if kind in (list, deque):
        handle.items = []
        handle.absent = {object()}
    else:
        handle.table = {}
    made = ContainerObject(cls, handle, None, cls_var)
    _attach(tx, made, kind, None)
    return made


@constructs(tuple, whole=True)
def _new_tuple(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``tuple.__new__``: a plain tuple, one with names, or an object whose class derives from tuple."""
    if kwargs or len(args) > 1:
        return fold(tx, tuple, *[()] * len(args), **dict.fromkeys(kwargs))
    operand: VariableTracker | None = args[0].realize(tx) if args else None
    if cls is tuple and isinstance(operand, TupleVariable) and operand.cls is tuple:
        return operand
    found = [] if operand is None else length_hint.unpack(tx, operand)
    if cls is tuple or adds_names_only(cls):
        return tx.make.tuple(found, cls)
    if type_lookup(tx, cls, "__del__") is not None:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__}, which has a finalizer")
    return ContainerObject(cls, Handle(), None, cls_var, TupleVariable(found))


@constructs(set)
def _new_set(tx: Tx, cls_var: Any, cls: type, args: Any, kwargs: Any) -> Any:
    return tx.make.set([]) if cls is set else tx.make.derived(cls_var)


@constructs(frozenset, whole=True)
def _new_frozenset(tx: Tx, cls_var: Any, cls: type, args: Any, kwargs: Any) -> Any:
    if (kwargs and cls is frozenset) or len(args) > 1:
        return fold(tx, frozenset, *[()] * len(args), **dict.fromkeys(kwargs))
    operand = args[0].realize(tx) if args else None
    if cls is frozenset and isinstance(operand, FrozenSetVariable):
        return operand
    made: Any = tx.make.set([], frozenset) if cls is frozenset else tx.make.derived(cls_var)
    if operand is not None:
        part: Any = storage(made)
        part.merge(tx, operand)
    return made


class InstanceDictVariable(DictVariable):
    """The ``__dict__`` of an object that the program made: it goes on being that when it becomes real."""

    __slots__ = ("_of",)

    def __init__(self, handle: Handle, of: Var) -> None:
        super().__init__(handle)
        self._of: Final = of

    def children(self) -> list[Var]:
        """What it holds, and whose it is."""
        return [*super().children(), self._of]

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(rebuild.dict_of, [self._of])


@maker
def namespace_dict(tx: Tx, handle: Handle, owner: Var) -> Var:
    """See `protocol.Make.namespace_dict`."""
    if handle.real is not None:
        return tx.make.from_value(handle.real, handle.source)
    if handle.tracker is None:
        handle.tracker = InstanceDictVariable(handle, owner)
    tracker: Var = handle.tracker
    return tracker
