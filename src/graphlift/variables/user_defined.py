"""Objects of classes that no other file models: found in the program's state or made by it.

Owns instance dictionaries, ``__slots__`` members, special methods, and objects whose class derives from a
builtin type: they have a second tracker, `storage`, for the builtin part. Attribute algorithms are in
`slots/attributes.py`. Mirrors the ``slot_...`` functions of Objects/typeobject.c.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import BuiltinFunctionType, MemberDescriptorType
from typing import Any, Final

import torch

from graphlift.errors import ObservedException
from graphlift.heap import Handle
from graphlift.operators import (
    BINARY_METHODS,
    COMPARE_METHODS,
    INPLACE_METHODS,
    REFLECTED_METHODS,
    SWAPPED,
    UNARY_METHODS,
    numbers_lack,
)
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import InstanceDictSource, SlotSource, Source
from graphlift.variables import namespace, rebuild
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker
from graphlift.variables.builder import maker, wraps_if
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.iterators import GETITEM_ITERATOR, SequenceIteratorVariable
from graphlift.variables.keys import OpenKey, hash_of, known_hash
from graphlift.variables.object_methods import C_METHODS, OBJECT_METHODS
from graphlift.variables.slots import attributes
from graphlift.variables.slots.numbers import index_
from graphlift.variables.slots.truth import is_true
from graphlift.variables.slots.type_lookup import (
    Binding,
    TypeAttr,
    anchor,
    check_holdable,
    is_of_c,
    mro_of,
    namespace_of,
    type_lookup,
)

#: Special methods that an instruction may consist of, and what is left to do behind their call.
_LAST: Final = {
    "__getitem__": "push",
    "__setitem__": "discard",
    "__delitem__": "discard",
    "__contains__": "truth_of",
    "__bool__": "truth",
    "__iter__": "iterator",
    "__next__": "item",
    "__neg__": "push",
    "__pos__": "push",
    "__invert__": "push",
}
#: Special methods that a class may set to None to say that it has none, and the text of the error.
_NONE_MEANS: Final = {
    "__iter__": "'{}' object is not iterable",
    "__contains__": "'{}' object is not a container",
    "__reversed__": "'{}' object is not reversible",
}
_OBJECT_HASH: Final = object.__dict__["__hash__"]
_OBJECT_EQ: Final = object.__dict__["__eq__"]


class UserDefinedObject(VariableTracker):
    """An object with attributes.

    Attributes:
        cls: its class, whose identity is guarded.
        handle: what can change: `namespace` is the instance dictionary, `slots` the members kept in C.
        storage: tracker of the builtin part, or None.
    """

    __slots__ = ("cls", "cls_var", "handle", "storage")

    def __init__(
        self,
        cls: type,
        handle: Handle,
        source: Source | None = None,
        cls_var: Var | None = None,
        storage: VariableTracker | None = None,
    ) -> None:
        self.source = source
        self.cls: Final = cls
        self.handle: Final = handle
        self.storage = storage
        #: The class's tracker, where the program made the object.
        self.cls_var: Final = cls_var

    @property
    def value(self) -> Any:
        """The real object, or None if the program made it."""
        return self.handle.real

    # --- what is it ------------------------------------------------------------------------------

    def python_type(self, tx: Tx) -> type:
        return self.cls

    def hash_key(self, tx: Tx) -> Hashable:
        attr = type_lookup(tx, self.cls, "__hash__")
        if attr is None or attributes.is_none(tx, attr):
            return self.type_error(tx, "unhashable type: '{}'")
        if attr.raw is _OBJECT_HASH:
            return self.identity(tx)  # no other object has this hash, so that nobody asks `__eq__`
        if attr.binding is not Binding.C_METHOD:
            return OpenKey(tx, self, hash_of(tx, attributes.call_attr(tx, attr, self, self.cls, [])))
        if self.storage is None:
            tx.fail(Reason.UNSUPPORTED_OPERATION, f"hash() of {self!r} by a method of its C class")
        stored = self.storage.hash_key(tx)
        eq = type_lookup(tx, self.cls, "__eq__")
        if eq is not None and eq.binding is Binding.C_METHOD:
            return stored
        value = known_hash(stored)
        if value is None:
            tx.fail(Reason.IDENTITY, f"hash() of {self!r}")
        return OpenKey(tx, self, value)

    def identity(self, tx: Tx) -> Hashable:
        """What stands for the object where only its identity counts."""
        if self.handle.real is None:
            return self
        if self.source is not None:
            check_holdable(tx, self.handle.real)
            tx.guard("is", self.source, self.handle.real)
        real: Hashable = self.handle.real
        return real

    # --- attributes ------------------------------------------------------------------------------

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        return attributes.object_getattr(tx, self, self.cls, name)

    def setattr_(self, tx: Tx, name: str, value: VariableTracker) -> None:
        attributes.object_setattr(tx, self, self.cls, name, value)

    def delattr_(self, tx: Tx, name: str) -> None:
        attributes.object_setattr(tx, self, self.cls, name, None)

    def instance_dict(self, tx: Tx) -> Handle | None:
        handle = self.handle
        if handle.namespace is None:
            if not self.cls.__dictoffset__:
                return None
            if handle.real is None:
                handle.namespace = Handle()
                handle.namespace.table = {}
            else:
                own = rebuild.dict_of(handle.real)
                if own is None:
                    return None
                assert self.source is not None
                source = self.source.child(InstanceDictSource, "__dict__")
                handle.namespace = namespace.handle_at(tx, own, source)
        return handle.namespace

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if name == "__dict__":
            return self._dict_attribute(tx)
        slots = self.handle.slots
        if slots is not None:
            assert slots.table is not None
            entry = slots.table.get(descriptor)
            if entry is not None:
                value: VariableTracker = entry[1]
                return value
            if slots.removed and descriptor in slots.removed:
                attributes.raise_unset(tx, self.cls, name)
        if self.handle.real is None:
            if self.storage is not None and _is_of_builtin(descriptor):
                return self.storage.read_member(tx, descriptor, name)
            return self.unset_member(tx, descriptor, name)
        if not self.may_read(descriptor):
            if self.storage is not None:
                return self.storage.read_member(tx, descriptor, name)
            return self.refuse(tx, f"attribute {name!r}")
        return self._real_member(tx, descriptor, name)

    def may_read(self, descriptor: Any) -> bool:
        """Whether a descriptor's C getter is known to run no code of anybody's."""
        return type(descriptor) is MemberDescriptorType

    def unset_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        """A member of an object that the program made and that nothing was stored in."""
        attributes.raise_unset(tx, self.cls, name)

    def _real_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        assert self.source is not None
        try:
            value = descriptor.__get__(self.handle.real)
        except AttributeError:
            tx.guard("member_unset", self.source, descriptor)
            attributes.raise_unset(tx, self.cls, name)
        source = self.source.child(SlotSource, descriptor)
        tx.guard("there", source)
        made = tx.make.lazy(value, source)
        slots = self._slots()
        assert isinstance(made, VariableTracker) and slots.table is not None
        slots.table[descriptor] = (tx.make.constant(name), made)
        return made

    def _slots(self) -> Handle:
        handle = self.handle
        if handle.slots is None:
            handle.slots = Handle(handle.real, self.source)
            handle.slots.table = {}
            handle.slots.tracker = self
        return handle.slots

    def _dict_attribute(self, tx: Tx) -> VariableTracker:
        own = self.instance_dict(tx)
        if own is None:
            return self.refuse(tx, "attribute '__dict__'")
        made = tx.make.namespace_dict(own, self)
        assert isinstance(made, VariableTracker)
        return made

    def write_member(self, tx: Tx, descriptor: Any, name: str, value: VariableTracker | None) -> None:
        of_storage = self.storage is not None and _is_of_builtin(descriptor)
        if of_storage or name in ("__dict__", "__weakref__", "__class__") or not self.may_write(descriptor):
            self.refuse(tx, f"setting attribute {name!r}")
        slots = self._slots()
        if value is not None:
            tx.heap.put(slots, descriptor, (tx.make.constant(name), value))
            return
        try:
            self.read_member(tx, descriptor, name)
        except ObservedException:
            attributes.raise_unset(tx, self.cls, name, deleting=True)
        assert slots.table is not None
        tx.heap.drop(slots, descriptor)
        tx.heap.set_slot(slots, "removed", {**(slots.removed or {}), descriptor: None})

    def may_write(self, descriptor: Any) -> bool:
        """Whether a store through the descriptor is nothing but a store."""
        return type(descriptor) is MemberDescriptorType

    # --- calls -----------------------------------------------------------------------------------

    def invoke(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        attr = self.plain_method(tx, name)
        if attr is None:
            return super().invoke(tx, name, args, kwargs)
        result: VariableTracker = attributes.call_attr(tx, attr, self, self.cls, args, kwargs)
        return result

    def plain_method(self, tx: Tx, name: str) -> TypeAttr | None:
        """The method of the class, where neither hooks nor the instance's dictionary come before it."""
        hook = type_lookup(tx, self.cls, "__getattribute__")
        if hook is None or hook.binding is not Binding.C_METHOD:
            return None
        attr = type_lookup(tx, self.cls, name)
        if attr is None or attr.binding not in (Binding.FUNCTION, Binding.C_METHOD):
            return None
        if attributes.generic_lookup(tx, self, self.cls, name, None) is not None:
            return None
        return attr

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        attr = type_lookup(tx, self.cls, "__call__")
        if attr is None:
            return self.type_error(tx, "'{}' object is not callable")
        if attr.binding is Binding.C_METHOD:
            model = C_METHODS.get((attr.owner, "__call__"))
            if model is None:
                tx.fail(Reason.UNKNOWN_CALLABLE, self._as_callable())
            return model(tx, self, args, kwargs)  # type: ignore[no-any-return]
        if tx.takes("__call__", self) and attr.binding is Binding.FUNCTION:
            tx.last_call(attr.value(tx))
        result: VariableTracker = attributes.call_attr(tx, attr, self, self.cls, args, kwargs)
        return result

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        """A method that the class inherits from a C type, by its name."""
        attr = type_lookup(tx, self.cls, name)
        owner = object if attr is None else self._c_owner(tx, attr, name)
        model = C_METHODS.get((owner, name))
        if model is None and owner is object:
            model = OBJECT_METHODS.get(name)
        if model is not None:
            result: VariableTracker = model(tx, self, args, kwargs)
            return result
        if self.storage is not None:
            made = self.storage.call_method(tx, name, args, kwargs)
            return self if made is self.storage else made
        managed = name in ("__enter__", "__exit__")
        reason = Reason.UNSUPPORTED_CONTEXT_MANAGER if managed else Reason.UNKNOWN_CALLABLE
        tx.fail(reason, f"method {name!r} of {owner.__qualname__}")

    def _as_callable(self) -> str:
        """What a message calls the object when it is called."""
        if self.cls is BuiltinFunctionType:
            return f"the C function {self.value.__module__}.{self.value.__qualname__}()"
        return f"an object of class {self.cls.__qualname__}"

    def _c_owner(self, tx: Tx, attr: TypeAttr, name: str) -> type:
        """The C class whose method of this name the class inherits beneath its own overrides."""
        if attr.binding is Binding.C_METHOD:
            return attr.raw.__objclass__  # type: ignore[no-any-return]
        key = (id(self.cls), ("in C", name))
        known: type | None = tx.reads.get(key)
        if known is None:
            known = tx.reads[key] = self._find_c_owner(name)
        return known

    def _find_c_owner(self, name: str) -> type:
        owner: type
        for owner in mro_of(self.cls):
            found = namespace_of(owner).get(name)
            if found is not None and hasattr(type(found), "__objclass__"):
                return owner
        return object

    # --- special methods -------------------------------------------------------------------------

    def special(self, tx: Tx, name: str, *args: Any) -> Any:
        """Call a special method that the user's class defines; `NOT_IMPLEMENTED` when it defines none."""
        attr = type_lookup(tx, self.cls, name)
        if attr is None or attr.binding is Binding.C_METHOD:
            if attr is not None and self.storage is None and attr.owner is not object:
                self.refuse(tx, f"{name!r} of {attr.owner.__qualname__}")
            return NOT_IMPLEMENTED
        if attr.binding is Binding.PLAIN and name in _NONE_MEANS and attributes.is_none(tx, attr):
            return self.type_error(tx, _NONE_MEANS[name])
        if name in _LAST and tx.takes(name, self) and attr.binding is Binding.FUNCTION:
            tx.last_call(attr.value(tx), _LAST[name])
        return attributes.call_attr(tx, attr, self, self.cls, args)

    def _answer(self, tx: Tx, result: Any) -> Any:
        """What an operator method returned, its ``NotImplemented`` as `NOT_IMPLEMENTED`."""
        if isinstance(result, NotImplementedType):
            return result
        answer: VariableTracker = result.realize(tx)
        if answer.is_constant() and answer.as_constant() is NotImplemented:
            return NOT_IMPLEMENTED
        return answer

    def truth(self, tx: Tx) -> VariableTracker | bool:
        result = self.special(tx, "__bool__")
        if not isinstance(result, NotImplementedType):
            answer = result.realize(tx)
            kind = answer.python_type(tx)
            if kind is not bool and not issubclass(kind, torch.Tensor):  # whose branch is a cut
                tx.raise_(TypeError, f"__bool__ should return bool, returned {kind.__name__}")
            return bool(answer.as_constant()) if answer.is_constant() else answer
        if type_lookup(tx, self.cls, "__bool__") is None and type_lookup(tx, self.cls, "__len__") is None:
            return True
        if type_lookup(tx, self.cls, "__bool__") is not None:
            return True if self.storage is None else self.storage.truth(tx)
        count = self.length(tx)
        return bool(count.as_constant()) if count.is_constant() else count

    def length(self, tx: Tx) -> VariableTracker:
        result = self.special(tx, "__len__")
        if isinstance(result, NotImplementedType):
            return super().length(tx) if self._lacks(tx, "__len__") else self.storage.length(tx)  # type: ignore[union-attr]
        count: VariableTracker = result.realize(tx)
        if count.symbolic and count.python_type(tx) is int and _is_natural(tx, count):
            return count
        value = index_(tx, count)
        if value > sys.maxsize or value < -sys.maxsize - 1:
            tx.raise_(
                OverflowError, f"cannot fit '{count.python_type(tx).__name__}' into an index-sized integer"
            )
        if value < 0:
            tx.raise_(ValueError, "__len__() should return >= 0")
        return tx.make.constant(value)  # type: ignore[return-value]

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        result = self.special(tx, "__getitem__", key)
        if isinstance(result, NotImplementedType):
            if self.storage is None or type_lookup(tx, self.cls, "__getitem__") is None:
                return super().getitem(tx, key)
            return self._stored_item(tx, key)
        return result.realize(tx)  # type: ignore[no-any-return]

    def _stored_item(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        """An item of the builtin part; dictionaries ask ``__missing__`` of the class."""
        assert self.storage is not None
        attr = type_lookup(tx, self.cls, "__missing__") if issubclass(self.cls, dict) else None
        if attr is not None and attr.binding is not Binding.C_METHOD:
            found = self.storage.contains(tx, key)
            if isinstance(found, VariableTracker) and not found.truth(tx):
                result: VariableTracker = attributes.call_attr(tx, attr, self, self.cls, [key])
                return result
        return self.storage.getitem(tx, key)

    def setitem(self, tx: Tx, key: VariableTracker, value: VariableTracker) -> NotImplementedType | None:
        result = self.special(tx, "__setitem__", key, value)
        if isinstance(result, NotImplementedType):
            return NOT_IMPLEMENTED if self.storage is None else self.storage.setitem(tx, key, value)
        return None

    def delitem(self, tx: Tx, key: VariableTracker) -> NotImplementedType | None:
        result = self.special(tx, "__delitem__", key)
        if isinstance(result, NotImplementedType):
            return NOT_IMPLEMENTED if self.storage is None else self.storage.delitem(tx, key)
        return None

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        result = self.special(tx, "__contains__", item)
        if isinstance(result, NotImplementedType):
            if self.storage is None or type_lookup(tx, self.cls, "__contains__") is None:
                return NOT_IMPLEMENTED
            return self.storage.contains(tx, item)
        known = result.realize(tx).truth(tx)
        return tx.make.constant(known) if isinstance(known, bool) else known  # type: ignore[return-value]

    def iter_(self, tx: Tx) -> VariableTracker:
        result = self.special(tx, "__iter__")
        if not isinstance(result, NotImplementedType):
            made: VariableTracker = result.realize(tx)
            kind = made.python_type(tx)
            if type_lookup(tx, kind, "__next__") is None:
                tx.raise_(TypeError, f"iter() returned non-iterator of type '{kind.__name__}'")
            return made
        if self.storage is not None and type_lookup(tx, self.cls, "__iter__") is not None:
            return self.storage.iter_(tx)
        if type_lookup(tx, self.cls, "__getitem__") is not None:
            return SequenceIteratorVariable(self, GETITEM_ITERATOR)
        return super().iter_(tx)

    def _lacks(self, tx: Tx, name: str) -> bool:
        """Whether neither the class nor the builtin class beneath it has a special method."""
        return self.storage is None or type_lookup(tx, self.cls, name) is None

    def next_(self, tx: Tx) -> VariableTracker | None:
        try:
            result = self.special(tx, "__next__")
        except ObservedException as error:
            if StopIteration not in mro_of(error.value.python_type(tx)):
                raise
            return None
        if isinstance(result, NotImplementedType):
            return super().next_(tx) if self.storage is None else self.storage.next_(tx)
        return result.realize(tx)  # type: ignore[no-any-return]

    def unpack(self, tx: Tx) -> list[VariableTracker] | None:
        attr = type_lookup(tx, self.cls, "__iter__")
        if self.storage is None or attr is None or attr.binding is not Binding.C_METHOD:
            return None
        return self.storage.unpack(tx)

    def unary(self, tx: Tx, op: str) -> VariableTracker:
        result = self.special(tx, UNARY_METHODS[op])
        if isinstance(result, NotImplementedType):
            name = UNARY_METHODS[op]
            return super().unary(tx, op) if self._lacks(tx, name) else self.storage.unary(tx, op)  # type: ignore[union-attr]
        return result  # type: ignore[no-any-return]

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        return self._operate(tx, BINARY_METHODS[op], "binary", op, other)

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if other.python_type(tx) is self.cls:
            return NOT_IMPLEMENTED  # operands of one class are asked once
        return self._operate(tx, REFLECTED_METHODS[op], "rbinary", op, other)

    def inplace(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        return self._operate(tx, INPLACE_METHODS[op], "inplace", op, other)

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        name = COMPARE_METHODS[op]
        attr = type_lookup(tx, self.cls, name)
        if attr is not None and attr.binding is Binding.C_METHOD and attr.owner is object:
            if op == "!=" and type_lookup(tx, self.cls, "__eq__").raw is not _OBJECT_EQ:  # type: ignore[union-attr]
                return self._answer(tx, OBJECT_METHODS["__ne__"](tx, self, [other], {}))  # type: ignore[no-any-return]
            return NOT_IMPLEMENTED
        return self._operate(tx, name, "compare", op, other)

    def _operate(
        self, tx: Tx, name: str, slot: str, op: str, other: VariableTracker
    ) -> VariableTracker | NotImplementedType:
        attr = type_lookup(tx, self.cls, name)
        if attr is None:
            return NOT_IMPLEMENTED
        if attr.binding is Binding.C_METHOD:
            if self.storage is None:
                self.refuse(tx, f"{name!r} of a class written in C")
            if _declines(tx, self.storage, op, other):
                return NOT_IMPLEMENTED
            if isinstance(other, UserDefinedObject) and other.storage is not None:
                other = other.storage
            result = getattr(self.storage, slot)(tx, op, other)
            if other.symbolic and isinstance(result, NotImplementedType) and slot in _FROM_THE_RIGHT:
                result = _FROM_THE_RIGHT[slot](tx, op, self.storage, other)
            return self if result is self.storage else result
        plain = slot == "compare" or (slot == "binary" and not self._may_be_sequences(op, other))
        if plain and attr.binding is Binding.FUNCTION and tx.takes(name, self):
            tx.last_call(attr.value(tx), slot, self, other)
        return self._answer(tx, attributes.call_attr(tx, attr, self, self.cls, [other]))  # type: ignore[no-any-return]

    def _may_be_sequences(self, op: str, other: VariableTracker) -> bool:
        """Whether ``+`` or ``*`` may go on to concatenate or repeat where no method answers."""
        plain = other.is_constant() and not isinstance(other.as_constant(), (str, bytes, tuple))
        plain = plain or (isinstance(other, UserDefinedObject) and other.storage is None)
        return op in ("+", "*") and (self.storage is not None or not plain)

    # --- becoming real ---------------------------------------------------------------------------

    def reconstruct(self, codegen: Codegen) -> None:
        assert self.cls_var is not None
        new = c_new(self.cls)
        codegen.call(new, [self.cls_var])
        codegen.later(lambda: self.fill(codegen))

    def fill(self, codegen: Codegen) -> None:
        """Emit what puts attributes and contents into the object."""
        rebuild.members(codegen, self, self.cls, self.handle)
        rebuild.attributes(codegen, self, self.handle)

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Emit the writes to members kept in C (`handle` is `slots`)."""
        rebuild.written_members(codegen, handle, self.cls)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.cls.__qualname__})"


_NUMBERS: Final = (int, float, complex)

#: How a number that is not fixed answers for one of a derived class on the other side.
_FROM_THE_RIGHT: Final[dict[str, Callable[..., Any]]] = {
    "binary": lambda tx, op, number, other: other.rbinary(tx, op, number),
    "rbinary": lambda tx, op, number, other: other.binary(tx, op, number),
    "compare": lambda tx, op, number, other: other.compare(tx, SWAPPED[op], number),
}


def _declines(tx: Tx, number: Any, op: str, other: Any) -> bool:
    """Whether a number of a derived class answers ``NotImplemented``: the error names that class."""
    if not isinstance(number, ConstantVariable) or not isinstance(number.value, _NUMBERS):
        return False
    if isinstance(other, UserDefinedObject) and other.storage is not None:
        other = other.storage
    if not isinstance(other, ConstantVariable) and not other.symbolic:
        return False
    cls = other.python_type(tx)
    return not issubclass(cls, _NUMBERS) or numbers_lack(op, type(number.value), cls)


def _is_natural(tx: Tx, number: VariableTracker) -> bool:
    """Whether a symbolic integer is not negative; assumed from now on."""
    answer = number.compare(tx, ">=", ConstantVariable(0))
    assert not isinstance(answer, NotImplementedType)
    return is_true(tx, answer)


def _is_of_builtin(descriptor: Any) -> bool:
    """Whether a descriptor written in C reads a field of a builtin class, not a slot of the program's."""
    return type(descriptor) is not MemberDescriptorType or is_of_c(descriptor.__objclass__)


def c_new(cls: type) -> Any:
    """The C ``__new__`` that makes the memory of the class's instances."""
    for owner in mro_of(cls):
        new = namespace_of(owner).get("__new__")
        if new is not None and type(new) is type(object.__new__):
            return new
    return object.__new__


@maker
def instance(tx: Tx, cls: Any) -> UserDefinedObject:
    """See `protocol.Make.instance`."""
    real = cls.realize(tx).value
    if type_lookup(tx, real, "__del__") is not None:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"an object of {real.__qualname__}, which has a finalizer")
    return INSTANCES.get(real, UserDefinedObject)(real, Handle(), None, cls)


#: Classes of the library of whose objects more is known than what they hold: their trackers.
INSTANCES: Final[dict[type, type[UserDefinedObject]]] = {}


def _anything(value: object) -> bool:
    return True


@wraps_if(_anything, order=90)
def wrap_object(tx: Tx, value: Any, source: Source | None) -> UserDefinedObject:
    """Any object: its class is guarded, its attributes are read one by one when asked for."""
    if source is None:
        source = anchor(tx, value)
    tx.guard("type", source, type(value))
    handle = tx.heap.handle_of(value, source)
    made = UserDefinedObject(type(value), handle, source)
    handle.tracker = made
    return made
