"""What a name means on a class: the walk along the method resolution order, guarded once a name.

Owns the classification of what is found (function, property, member, ...), and the fact that class
attributes written during the capture are seen by later look-ups. Runs no user code: classes are read
through their own C descriptors. Mirrors _PyType_Lookup of Objects/typeobject.c.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from enum import Enum
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any, Final

from graphlift import _C
from graphlift.guards.holding import NotGuardableError, hold
from graphlift.heap import Handle
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import AnchorSource, InstanceDictSource, SlotSource, Source, TypeLookupSource
from graphlift.verification import VerifiedFunction


class Binding(Enum):
    """How ``attr.__get__(obj, cls)`` behaves, told by the class of what was found."""

    FUNCTION = "function"
    STATIC = "staticmethod"
    CLASS = "classmethod"
    PROPERTY = "property"
    MEMBER = "member descriptor"
    GETSET = "getset descriptor"
    C_METHOD = "method of a C type"
    C_CLASS_METHOD = "class method of a C type"
    DESCRIPTOR = "other descriptor"
    PLAIN = "no descriptor"


_BINDINGS: Final[dict[type, Binding]] = {
    FunctionType: Binding.FUNCTION,
    _C.CompiledFunction: Binding.FUNCTION,
    VerifiedFunction: Binding.FUNCTION,
    staticmethod: Binding.STATIC,
    classmethod: Binding.CLASS,
    property: Binding.PROPERTY,
    MemberDescriptorType: Binding.MEMBER,
    GetSetDescriptorType: Binding.GETSET,
    MethodDescriptorType: Binding.C_METHOD,
    WrapperDescriptorType: Binding.C_METHOD,
    ClassMethodDescriptorType: Binding.C_CLASS_METHOD,
    BuiltinFunctionType: Binding.PLAIN,
}

_DATA_BINDINGS: Final = frozenset({Binding.PROPERTY, Binding.MEMBER, Binding.GETSET})
_IN_C: Final = frozenset({Binding.C_METHOD, Binding.MEMBER, Binding.GETSET})
_IMMUTABLE_TYPE: Final = 1 << 8

_MRO: Final = type.__dict__["__mro__"]

mro_of = _MRO.__get__
_flags_of = type.__dict__["__flags__"].__get__
_QUALNAME: Final = type.__dict__["__qualname__"].__get__
_namespace_of = type.__dict__["__dict__"].__get__


#: The place of what stands on no class that existed before the capture.
NOWHERE: Final = Source(None, "nowhere")


class TypeAttr:
    """What a look-up along a class's method resolution order found.

    Attributes:
        raw: the object in the class's namespace; None where `written` is set to anything but a C method. In a
            class made by the program it is a descriptor that came with the making, or None.
        owner: the class in whose namespace it is.
        source: where it can be read again, or `NOWHERE`.
        binding: how it binds to an instance.
        is_data: whether it goes before the instance's own dictionary.
        written: the tracker that the program stored on the class during this capture, or None.
    """

    __slots__ = ("binding", "is_data", "owner", "raw", "source", "written")

    def __init__(
        self,
        raw: Any,
        owner: type,
        source: Source,
        binding: Binding,
        is_data: bool,
        written: Var | None = None,
    ) -> None:
        self.raw: Final = raw
        self.owner: Final = owner
        self.source: Final = source
        self.binding: Final = binding
        self.is_data: Final = is_data
        self.written: Final = written

    def value(self, tx: Tx) -> Var:
        """The object itself, unbound, as a tracker."""
        if self.written is not None:
            return self.written
        if self.source is not NOWHERE:
            return tx.make.from_value(self.raw, self.source)
        return tx.make.from_value(self.raw, None)


def namespace_of(cls: type) -> MappingProxyType[str, Any]:
    """The class's own namespace, read past any metaclass."""
    namespace: MappingProxyType[str, Any] = _namespace_of(cls)
    return namespace


def raw_lookup(cls: type, name: str) -> tuple[Any, type] | None:
    """What is found and in which class, with no guard and as the classes are outside the capture."""
    for owner in mro_of(cls):
        namespace = _namespace_of(owner)
        if name in namespace:
            return namespace[name], owner
    return None


def is_of_c(cls: type) -> bool:
    """Whether it is a class in C that the program cannot change (Py_TPFLAGS_IMMUTABLETYPE)."""
    return bool(_flags_of(cls) & _IMMUTABLE_TYPE)


def is_immutable(cls: type) -> bool:
    """Whether no attribute of the class can change from call to call: C types other than heap types, and
    what the program makes anew in each."""
    return is_of_c(cls) or id(cls) in _made


#: Classes that stand for those which captured code makes (see `made_classes.py`), by identity, and their
#: trackers, for as long as they live.
_made: Final[dict[int, tuple[weakref.ref[type], weakref.ref[Var]]]] = {}


def note_made(cls: type, tracker: Var) -> None:
    """Enter a class that stands for one which the program makes."""
    key = id(cls)
    _made[key] = (weakref.ref(cls, lambda _: _made.pop(key, None)), weakref.ref(tracker))


def is_made(cls: type) -> bool:
    """Whether the class stands for one that the captured program makes."""
    return id(cls) in _made


def made_classes() -> list[type]:
    """All classes that stand for those which programs make."""
    known = [cls() for cls, _ in list(_made.values())]
    return [cls for cls in known if cls is not None]


def made_tracker(cls: type) -> Var | None:
    """The tracker of a class that the program makes, None for classes that existed."""
    known = _made.get(id(cls))
    return None if known is None else known[1]()


def anchor(tx: Tx, value: object) -> AnchorSource:
    """The one source of an object that is pinned down by its identity.

    Breaks for an object that no guard could hold weakly.
    """
    key = (id(value), AnchorSource)
    found = tx.reads.get(key)
    if found is None:
        if id(value) in _made and isinstance(value, type):
            tx.fail(Reason.CLASS_DEFINITION, f"{value.__qualname__}, made here, at a place of its own")
        check_holdable(tx, value)
        found = tx.reads[key] = AnchorSource(None, value)
    assert isinstance(found, AnchorSource)
    return found


def check_holdable(tx: Tx, value: object) -> None:
    """Break if no guard can refer to `value` without keeping it alive."""
    try:
        hold(value)
    except NotGuardableError as error:
        tx.fail(Reason.UNSUPPORTED_VALUE, str(error))


def type_lookup(tx: Tx, cls: type, name: str) -> TypeAttr | None:
    """The attribute `name` of a class whose identity is guarded already; None when there is none.

    The answer is guarded: presence by the object found (what is no descriptor: by its type), or absence.
    """
    reads = tx.reads
    if _WRITTEN in reads:
        found = _lookup_written(tx, cls, name, reads[_WRITTEN])
        if found is not _UNTOUCHED:
            assert found is None or isinstance(found, TypeAttr)
            return found
    known: TypeAttr | None = reads.get((id(cls), name), _UNTOUCHED)
    if known is _UNTOUCHED:
        known = reads[(id(cls), name)] = _look(tx, cls, name)
    return known


_UNTOUCHED: Final[Any] = object()
_WRITTEN: Final = (0, "written classes")


def _look(tx: Tx, cls: type, name: str) -> TypeAttr | None:
    if id(cls) in _made:
        return look_in_order(tx, mro_of(cls), name)
    if not _C.has_only_strings(cls):
        check_names(tx, cls)
    found = raw_lookup(cls, name)
    at = anchor(tx, cls)
    if found is None:
        if not is_immutable(cls):
            tx.guard("type_absent", at, name)
        return None
    raw, owner = found
    source = at.child(TypeLookupSource, name)
    binding, is_data = _classify(tx, raw)
    if not is_immutable(cls):
        of_heap_type = binding is Binding.GETSET and not is_immutable(raw.__objclass__)
        if of_heap_type or (binding is Binding.PLAIN and type(raw) is not BuiltinFunctionType):
            tx.guard("type", source, type(raw))
        else:
            tx.guard("type_lookup", at, name, raw)
    return TypeAttr(raw, owner, source, binding, is_data)


def check_names(tx: Tx, cls: type) -> None:
    """Break where a look-up on a class would compare by code of the user's, which names of other kinds than
    strings may have."""
    if not all(type(key) is str for owner in mro_of(cls) for key in _namespace_of(owner)):
        tx.fail(Reason.UNSUPPORTED_VALUE, f"class {_QUALNAME(cls)}, which has names that are no strings")


def look_in_order(tx: Tx, order: Sequence[type], name: str) -> TypeAttr | None:
    """What a look-up through some classes in turn finds; that it is not in the first ones is guarded."""
    written: dict[type, Handle] = tx.reads.get(_WRITTEN) or {}
    for cls in order:
        handle = written.get(cls)
        if handle is not None and name in (handle.table or ()):
            return _written_attr(tx, cls, name, handle)
        if handle is not None and name in (handle.removed or ()):
            continue
        if name not in _namespace_of(cls):
            _guard_absent(tx, [cls], name)
        elif id(cls) in _made:
            raw = _namespace_of(cls)[name]
            return TypeAttr(raw, cls, NOWHERE, *_classify(tx, raw))
        else:
            return type_lookup(tx, cls, name)
    return None


def guard_mro(tx: Tx, cls: type) -> tuple[type, ...]:
    """The classes in which names of `cls` are looked up; the order can change (``__bases__`` can be set)."""
    mro: tuple[type, ...] = mro_of(cls)
    key = (id(cls), ("mro",))
    if key in tx.reads or is_immutable(cls):
        return mro
    tx.reads[key] = mro
    source = anchor(tx, cls).child(SlotSource, _MRO)
    tx.guard("length", source, len(mro))
    for index, each in enumerate(mro):
        tx.guard("is", source.item(index), each)
    return mro


def _classify(tx: Tx, raw: object) -> tuple[Binding, bool]:
    kind = type(raw)
    binding = _BINDINGS.get(kind)
    if binding is not None:
        return binding, binding in _DATA_BINDINGS
    if type_lookup(tx, kind, "__get__") is None:
        return Binding.PLAIN, _has_setter(tx, kind)
    return Binding.DESCRIPTOR, _has_setter(tx, kind)


def _has_setter(tx: Tx, kind: type) -> bool:
    return type_lookup(tx, kind, "__set__") is not None or type_lookup(tx, kind, "__delete__") is not None


def classes_written(tx: Tx) -> bool:
    """Whether the program wrote to a class, so that what is kept of look-ups may be out of date."""
    return bool(tx.reads.get(_WRITTEN))


def written_names(tx: Tx, cls: type) -> tuple[Sequence[str], set[str]]:
    """The names that the program stored in a class's own namespace, in order, and those that it removed."""
    handle = (tx.reads.get(_WRITTEN) or {}).get(cls)
    return ((), set()) if handle is None else (list(handle.table or ()), handle.removed or set())


def presence_changed(tx: Tx, cls: type) -> set[str]:
    """Names of a class's own namespace that the program added, deleted, or set to None or from None, so that
    who asks the class itself is told what was, not what is."""
    handle = (tx.reads.get(_WRITTEN) or {}).get(cls)
    if handle is None:
        return set()
    own, table = namespace_of(cls), handle.table or {}
    changed = {name for name in handle.removed or () if name in own and name not in table}
    for name, (_, value) in table.items():
        is_none = value.realize(tx).python_type(tx) is type(None)
        if name not in own or (own[name] is None) is not is_none:
            changed.add(name)
    return changed


def own_attr(tx: Tx, cls: type, name: str) -> TypeAttr | None:
    """The attribute in the class's own namespace, guarded; None when there is none."""
    return look_in_order(tx, (cls,), name)


# --- classes written during the capture ---------------------------------------------------------


def class_namespace(tx: Tx, cls: type, tracker: Var) -> Handle:
    """The handle of a class's own namespace, made when it is first written to.

    Arguments:
        tracker: the class's tracker, kept for whoever does the writes for real.
    """
    written: dict[type, Handle] = tx.reads.setdefault(_WRITTEN, {})
    handle = written.get(cls)
    if handle is None:
        source = anchor(tx, cls).child(InstanceDictSource, "__dict__")
        handle = written[cls] = Handle(namespace_of(cls), source)
        handle.table = {}
        handle.tracker = tracker
    return handle


def made_namespace(tx: Tx, cls: type, tracker: Var) -> Handle:
    """The handle of the namespace of a class that the program makes; what is written to it has no place to go
    to but the class itself, when that becomes real."""
    written: dict[type, Handle] = tx.reads.setdefault(_WRITTEN, {})
    handle = written[cls] = Handle(namespace_of(cls))
    handle.table = {}
    handle.tracker = tracker
    return handle


def _lookup_written(tx: Tx, cls: type, name: str, written: dict[type, Handle]) -> Any:
    """The look-up where a class on the way was written to; `_UNTOUCHED` where that made no difference."""
    passed: list[type] = []
    for owner in mro_of(cls):
        handle = written.get(owner)
        if handle is not None:
            assert handle.table is not None
            if name in handle.table:
                guard_mro(tx, cls)
                _guard_absent(tx, passed, name)
                return _written_attr(tx, owner, name, handle)
            if handle.removed and name in handle.removed:
                return _look_behind(tx, cls, name, owner)
        if name in _namespace_of(owner):
            break
        passed.append(owner)
    return _UNTOUCHED


def _written_attr(tx: Tx, owner: type, name: str, handle: Handle) -> TypeAttr:
    assert handle.table is not None
    var: Any = handle.table[name][1]
    binding, is_data = classify_value(tx, var)
    raw = getattr(var.realize(tx), "value", None) if binding in _IN_C else None
    return TypeAttr(raw, owner, NOWHERE, binding, is_data, var)


def _guard_absent(tx: Tx, classes: list[type], name: str) -> None:
    for cls in classes:
        if not is_immutable(cls):
            tx.guard("absent", anchor(tx, cls).child(InstanceDictSource, "__dict__"), name)


def _look_behind(tx: Tx, cls: type, name: str, removed_from: type) -> TypeAttr | None:
    """The look-up past a class from which the name was deleted."""
    mro = guard_mro(tx, cls)
    return look_in_order(tx, mro[mro.index(removed_from) + 1 :], name)


def classify_value(tx: Tx, var: Any) -> tuple[Binding, bool]:
    """How a value that stands on a class binds, and whether it goes before an instance's dictionary."""
    kind = var.realize(tx).python_type(tx)
    binding = _BINDINGS.get(kind)
    if binding is not None:
        return binding, binding in _DATA_BINDINGS
    plain = type_lookup(tx, kind, "__get__") is None
    return Binding.PLAIN if plain else Binding.DESCRIPTOR, _has_setter(tx, kind)


def written_class(tx: Tx, cls: type, name: str) -> bool:
    """Whether the program stored `name` in the class's own namespace during this capture."""
    written: dict[type, Handle] | None = tx.reads.get(_WRITTEN)
    handle = None if not written else written.get(cls)
    return handle is not None and name in (handle.table or {})
