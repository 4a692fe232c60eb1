"""Methods of C types: bound to an object or not, found as values or made by a look-up.

Mirrors Objects/descrobject.c and Objects/methodobject.c.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import (
    BuiltinMethodType,
    ClassMethodDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final

from graphlift.protocol import Codegen, Tx
from graphlift.sources import SlotSource, Source
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker, c_name
from graphlift.variables.builder import maker, pinned, wraps, wraps_if
from graphlift.variables.classes import CLASS_METHODS, ClassVariable
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.object_methods import OBJECT_METHODS
from graphlift.variables.slots import attributes, operators
from graphlift.variables.slots.type_lookup import mro_of, namespace_of, type_lookup
from graphlift.variables.user_defined import UserDefinedObject

#: The classes of a method bound to an object, by the name that reads the object in C.
_SELVES: Final = {kind: kind.__dict__["__self__"] for kind in (BuiltinMethodType, MethodWrapperType)}
_NAMES: Final = {kind: kind.__dict__["__name__"] for kind in _SELVES}
_OWNER: Final = MethodWrapperType.__dict__["__objclass__"]
_DESCRIPTORS: Final = (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)


class BuiltinMethodVariable(VariableTracker):
    """A method of a C type, bound to a tracker that models it by `call_method`.

    Attributes:
        name: the method's name.
        instance: what it is bound to.
        owner: the C class whose class method it is, where that is told; else None.
    """

    __slots__ = ("instance", "name", "owner")

    def __init__(
        self, name: str, instance: Any, source: Source | None = None, owner: type | None = None
    ) -> None:
        self.source = source
        self.owner: Final = owner
        self.name: Final = name
        self.instance: Final = instance

    def python_type(self, tx: Tx) -> type:
        return MethodWrapperType if type(self._descriptor(tx)) is WrapperDescriptorType else BuiltinMethodType

    def _descriptor(self, tx: Tx) -> Any:
        """What stands in the C class, beneath all overrides; None where it is modelled but stands nowhere."""
        owner = self.instance.realize(tx)
        if isinstance(owner, ClassVariable):
            return find_c_method(self.name, owner.value, type(owner.value))
        cls = owner.python_type(tx)
        attr = type_lookup(tx, cls, self.name)
        raw = None if attr is None else attr.raw
        return raw if type(raw) in _DESCRIPTORS else find_c_method(self.name, None, cls)

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        instance = self.instance.realize(tx)
        model = None if self.owner is None else CLASS_METHODS.get((self.owner, self.name))
        result: VariableTracker
        if model is not None:
            result = model(tx, instance, args, kwargs)
        else:
            result = instance.call_method(tx, self.name, args, kwargs)
        return result

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name == "__call__":
            return self
        return attributes.object_getattr(tx, self, self.python_type(tx), name)

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if name == "__self__":
            return self.instance.realize(tx)  # type: ignore[no-any-return]
        if name in ("__name__", "__qualname__"):
            shown = self.name if name == "__name__" else self.called_name(tx)
            return tx.make.constant(shown)  # type: ignore[return-value]
        if name == "__module__":
            return tx.make.constant(None)  # type: ignore[return-value]
        found = self._descriptor(tx)
        if found is None or not hasattr(found, name):
            return self.refuse(tx, f"attribute {name!r}")
        return tx.make.from_value(getattr(found, name), None)  # type: ignore[return-value]

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name == "__call__":
            return self.call(tx, args, kwargs)
        return self.refuse(tx, f"method {name!r}")

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if op not in ("==", "!=") or not isinstance(other, BuiltinMethodVariable):
            return NOT_IMPLEMENTED
        owners = self.instance.realize(tx), other.instance.realize(tx)
        same = self.name == other.name and operators.same_object(tx, *owners)
        return tx.make.constant(same is (op == "=="))  # type: ignore[return-value]

    def hash_key(self, tx: Tx) -> Hashable:
        instance = self.instance.realize(tx)
        if isinstance(instance, ClassVariable):
            return (BuiltinMethodType, self.name, instance.value)
        if not isinstance(instance, UserDefinedObject):
            return self.refuse(tx, "hash()")
        return (BuiltinMethodType, self.name, instance.identity(tx))

    def called_name(self, tx: Tx) -> str:
        """See `slots.calls.callable_name`. Mirrors meth_get__qualname__ and wrapper_qualname."""
        found, instance = self._descriptor(tx), self.instance.realize(tx)
        cls = instance.value if isinstance(instance, ClassVariable) else instance.python_type(tx)
        if type(found) is WrapperDescriptorType:
            cls = found.__objclass__
        return f"{cls.__qualname__}.{self.name}"

    def reconstruct(self, codegen: Codegen) -> None:
        if isinstance(self.instance, (UserDefinedObject, ClassVariable)):
            codegen.call(bind_c_method, [ConstantVariable(self.name), self.instance])
        else:
            codegen(self.instance)
            codegen.load_attr(self.name)

    def __repr__(self) -> str:
        return f"BuiltinMethodVariable({self.name})"


def find_c_method(name: str, instance: Any, cls: type) -> Any:
    """The method of this name that a C class defines, beneath all overrides; None where there is none.

    Arguments:
        instance: a class whose class methods are looked at first, or anything else.
        cls: the class of the object that it is a method of.
    """
    if issubclass(type(instance), type):
        for owner in mro_of(instance) or ():  # none while the class is being made
            found = namespace_of(owner).get(name)
            if type(found) is ClassMethodDescriptorType:
                return found
    for owner in mro_of(cls):
        found = namespace_of(owner).get(name)
        if hasattr(type(found), "__objclass__"):
            return found
    return None


def bind_c_method(name: str, instance: Any) -> Any:
    """A C type's method beneath all overrides, bound to an object or class (runs in the compiled program)."""
    found = find_c_method(name, instance, type(instance))
    if found is None:
        return getattr(instance, name)
    if type(found) is ClassMethodDescriptorType:
        return found.__get__(None, instance)
    # CPython 3.11 crashes on some C methods (of compiled patterns, say) when the class is left out.
    return found.__get__(instance, type(instance))


@maker
def builtin_method(tx: Tx, name: str, instance: Any, owner: type | None = None) -> BuiltinMethodVariable:
    """See `protocol.Make.builtin_method`."""
    return BuiltinMethodVariable(name, instance, owner=owner)


def _is_bound(value: object) -> bool:
    """Whether `value` is a method of a C class bound to an object, and the one that its name stands for."""
    kind = type(value)
    if kind not in _SELVES:
        return False
    instance, name = _SELVES[kind].__get__(value), _NAMES[kind].__get__(value)
    if instance is None or issubclass(type(instance), ModuleType):
        return False
    found = find_c_method(name, instance, type(instance))
    if type(found) not in _DESCRIPTORS:
        return False
    return bool(bind_c_method(name, instance) == value)


def _is_ambiguous(name: str, cls: type) -> bool:
    """Whether several of the classes from which `cls` derives define a method of this name in C."""
    found = [namespace_of(owner).get(name) for owner in mro_of(cls)]
    return sum(type(one) in _DESCRIPTORS for one in found) > 1


@wraps_if(_is_bound, order=29)
def wrap_bound(tx: Tx, value: Any, source: Source | None) -> BuiltinMethodVariable:
    """A bound method of a C class that exists: told by its object and its name."""
    kind = type(value)
    instance, name = _SELVES[kind].__get__(value), _NAMES[kind].__get__(value)
    if source is None:
        return BuiltinMethodVariable(name, tx.make.from_value(instance, None))
    if kind is BuiltinMethodType and _is_ambiguous(name, type(instance)):
        tx.guard("is", source, value)
    else:
        tx.guard("type", source, kind)
        tx.guard("constant", source.child(SlotSource, _NAMES[kind]), name)
    if kind is MethodWrapperType and _is_ambiguous(name, type(instance)):
        tx.guard("is", source.child(SlotSource, _OWNER), value.__objclass__)
    held = tx.make.lazy(instance, source.child(SlotSource, _SELVES[kind]))
    return BuiltinMethodVariable(name, held, source)


class MethodDescriptorVariable(ConstantVariable):
    """A method of a C type, not bound: ``list.append``, ``object.__setattr__``."""

    __slots__ = ()

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        descriptor = self.value
        owner, name = descriptor.__objclass__, descriptor.__name__
        if not args:
            kind = "unbound method" if type(descriptor) is MethodDescriptorType else "descriptor"
            tx.raise_(TypeError, f"{kind} {owner.__name__}.{name}() needs an argument")
        instance = args[0].realize(tx)
        if not issubclass(instance.python_type(tx), owner):
            text = f"descriptor '{name}' requires a '{owner.__name__}' object but received a '{{}}'"
            if type(descriptor) is MethodDescriptorType:
                text = f"descriptor '{name}' for '{owner.__name__}' objects doesn't apply to a '{{}}' object"
            instance.type_error(tx, text)
        model = OBJECT_METHODS.get(name) if owner is object else None
        if model is not None:
            result: VariableTracker = model(tx, instance, args[1:], kwargs)
            return result
        attributes.check_nearest(tx, descriptor, instance.python_type(tx))
        return instance.call_method(tx, name, args[1:], kwargs)

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        return attributes.object_getattr(tx, self, type(self.value), name)

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        return tx.make.from_value(getattr(self.value, name), None)  # type: ignore[return-value]

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name == "__call__":
            return self.call(tx, args, kwargs)
        if name == "__get__" and len(args) in (1, 2) and not kwargs:
            return self._bind(tx, args[0].realize(tx), args[1:])
        return super().call_method(tx, name, args, kwargs)

    def _bind(self, tx: Tx, instance: VariableTracker, cls: Sequence[Any]) -> VariableTracker:
        """Mirrors method_get, classmethod_get and wrapperdescr_get."""
        descriptor = self.value
        owner, none = descriptor.__objclass__, instance.is_constant() and instance.as_constant() is None
        if type(descriptor) is ClassMethodDescriptorType:
            return self.refuse(tx, "method '__get__'")
        if none:
            if not cls or (cls[0].realize(tx).is_constant() and cls[0].realize(tx).as_constant() is None):
                tx.raise_(TypeError, "__get__(None, None) is invalid")
            return self
        if not issubclass(instance.python_type(tx), owner):
            name = descriptor.__name__
            instance.type_error(
                tx, f"descriptor '{name}' for '{c_name(owner)}' objects doesn't apply to a '{{}}' object"
            )
        return tx.make.builtin_method(descriptor.__name__, instance)  # type: ignore[return-value]

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_object(self.value)

    def __repr__(self) -> str:
        return f"MethodDescriptorVariable({self.value.__qualname__})"


# An unbound method of a C type.
wraps(MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)(
    pinned(MethodDescriptorVariable)
)
