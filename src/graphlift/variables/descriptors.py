"""property, classmethod and staticmethod objects: made by the program or found, bound, made real.

How they bind when found on a class is in `slots/attributes.py`. Mirrors Objects/descrobject.c and the end of
Objects/funcobject.c.
"""

from __future__ import annotations

from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx
from graphlift.sources import Source
from graphlift.variables import rebuild
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.classes import constructs
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.object_methods import C_METHODS, Args, KwArgs
from graphlift.variables.slots import attributes
from graphlift.variables.slots.truth import is_true
from graphlift.variables.slots.type_lookup import mro_of, type_lookup
from graphlift.variables.user_defined import UserDefinedObject, wrap_object

_ACCESSORS: Final = ("fget", "fset", "fdel")
_FIELDS: Final = {name: property.__dict__[name] for name in (*_ACCESSORS, "__doc__")}
_WRAPPERS: Final = (classmethod, staticmethod)


def _probe() -> None:
    """What a wrapper takes over from a function, is found out with this one."""


#: Attributes that a wrapper, when it is made, takes over from what it wraps. Mirrors functools_wraps.
_TAKEN_OVER: Final = tuple(vars(staticmethod(_probe)))


class DescriptorObject(UserDefinedObject):
    """A property, classmethod or staticmethod that the program made.

    Attributes:
        handle: `slots` has what it wraps, `value` the name that a property was told.
    """

    __slots__ = ()

    def unset_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if name != "__doc__":
            return tx.make.constant(None)  # type: ignore[return-value]
        getter = self.read_member(tx, _FIELDS["fget"], "fget").realize(tx)
        if getter.is_constant() and getter.as_constant() is None:
            return getter
        found: VariableTracker = attributes.getattr_(tx, getter, "__doc__").realize(tx)
        return found

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if name == "__isabstractmethod__":
            return _is_abstract(tx, self)
        if name == "__wrapped__" and type(descriptor) is MemberDescriptorType:
            return attributes.generic_getattr(tx, self, self.cls, "__func__")
        if name == "__name__" and type(descriptor) is GetSetDescriptorType and self.handle.value is not None:
            return tx.make.constant(self.handle.value)  # type: ignore[return-value]
        return super().read_member(tx, descriptor, name)

    def fill(self, codegen: Codegen) -> None:
        table = {} if self.handle.slots is None else self.handle.slots.table or {}
        given: dict[str, Any] = {name.as_constant(): value for name, value in table.values()}
        if property in mro_of(self.cls):
            named = {name.strip("_"): value for name, value in given.items()}
            codegen.run(property.__init__, [self], named)
        else:
            kind: Any = next(kind for kind in _WRAPPERS if kind in mro_of(self.cls))
            codegen.run(_wrap, [self, ConstantVariable(kind is staticmethod), given["__func__"]])
        rebuild.attributes(codegen, self, self.handle)
        if self.handle.value is not None:
            codegen.run(_SET_NAME, [self, ConstantVariable(None), ConstantVariable(self.handle.value)])

    def stand_in(self, tx: Tx) -> Any:
        """A real property that fails as this one does (`slots/attributes.py`)."""
        getter = attributes.generic_getattr(tx, self, self.cls, "fget").realize(tx)
        made = property()
        if getter.python_type(tx) is FunctionType:  # its name is that of the property, from 3.13 on
            name = attributes.getattr_(tx, getter, "__name__").realize(tx)
            made = property(_named(name.as_constant() if name.is_constant() else "?"))
        if self.handle.value is not None:
            _SET_NAME(made, object, self.handle.value)
        return made


def _wrap(made: Any, is_static: bool, function: Any) -> None:
    """Let a wrapper wrap a function, with no attributes of its own yet."""
    kind = staticmethod if is_static else classmethod
    kind.__init__(made, function)
    kind.__dict__["__dict__"].__get__(made).clear()


class ExistingDescriptor(UserDefinedObject):
    """One that existed."""

    __slots__ = ()

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if name == "__isabstractmethod__":
            return _is_abstract(tx, self)
        return super().read_member(tx, descriptor, name)


@wraps(property, classmethod, staticmethod)
def wrap_descriptor(tx: Tx, value: Any, source: Source | None) -> UserDefinedObject:
    """As any object."""
    plain = wrap_object(tx, value, source)
    made = ExistingDescriptor(plain.cls, plain.handle, plain.source)
    plain.handle.tracker = made
    return made


def _named(name: str) -> Any:
    def getter(self: object) -> None:
        pass

    getter.__name__ = name
    return getter


_SET_NAME: Final[Any] = property.__dict__["__set_name__"]


def _is_abstract(tx: Tx, self: UserDefinedObject) -> VariableTracker:
    names = _ACCESSORS if property in mro_of(self.cls) else ("__func__",)
    for name in names:
        function = attributes.generic_getattr(tx, self, self.cls, name).realize(tx)
        if attributes.hasattr_(tx, function, "__isabstractmethod__") and is_true(
            tx, attributes.getattr_(tx, function, "__isabstractmethod__")
        ):
            return tx.make.constant(True)  # type: ignore[return-value]
    return tx.make.constant(False)  # type: ignore[return-value]


@constructs(property, classmethod, staticmethod)
def _new_descriptor(tx: Tx, cls_var: Any, cls: type, args: Args, kwargs: KwArgs) -> Any:
    return DescriptorObject(cls, Handle(), None, cls_var)


def bare_wrapper(tx: Tx, kind: type, function: Any) -> DescriptorObject:
    """A static or class method as `type.__new__` makes it of a function, without attributes of its own."""
    made = DescriptorObject(kind, Handle(), None, tx.make.from_value(kind, None))
    UserDefinedObject.write_member(made, tx, kind.__dict__["__func__"], "__func__", function)
    return made


def _init_wrapper(tx: Tx, self: Any, args: Args, kwargs: KwArgs) -> Any:
    kind = next(kind for kind in _WRAPPERS if kind in mro_of(self.cls))
    if kwargs:
        tx.raise_(TypeError, f"{self.cls.__name__}() takes no keyword arguments")
    if len(args) != 1:
        tx.raise_(TypeError, f"{self.cls.__name__} expected 1 argument, got {len(args)}")
    if not isinstance(self, DescriptorObject):
        self.refuse(tx, "method '__init__'")
    UserDefinedObject.write_member(self, tx, kind.__dict__["__func__"], "__func__", args[0])
    wrapped = args[0].realize(tx)
    of_wrapped = wrapped.python_type(tx)
    hooked = attributes.user_special(tx, wrapped, "__getattribute__") is not None
    if (
        hooked or type_lookup(tx, of_wrapped, "__getattr__") is not None
    ):  # would be run again where it is made real
        self.refuse(tx, f"a wrapper of {wrapped!r}")
    for name in _TAKEN_OVER:
        if attributes.hasattr_(tx, wrapped, name):
            attributes.setattr_(tx, self, name, attributes.getattr_(tx, wrapped, name))
    return tx.make.constant(None)


def _init_property(tx: Tx, self: Any, args: Args, kwargs: KwArgs) -> Any:
    names = (*_ACCESSORS, "doc")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if len(args) > len(names) or not given.keys() <= set(names) or len(given) != len(args) + len(kwargs):
        try:
            property(*[None] * len(args), **dict.fromkeys(kwargs))
        except TypeError as error:
            tx.raise_real(error)
    if not isinstance(self, DescriptorObject):
        self.refuse(tx, "method '__init__'")
    for name, value in given.items():
        if name != "doc" or not _is_none(tx, value):
            member = _FIELDS["__doc__" if name == "doc" else name]
            UserDefinedObject.write_member(self, tx, member, name, value)
    return tx.make.constant(None)


def _is_none(tx: Tx, value: Any) -> bool:
    known = value.realize(tx)
    return known.is_constant() and known.as_constant() is None


def _copier(position: int) -> Any:
    """``property.getter`` and its like: the same property with another accessor."""

    def copy(tx: Tx, self: Any, args: Args, kwargs: KwArgs) -> Any:
        parts = [attributes.generic_getattr(tx, self, self.cls, name) for name in _ACCESSORS]
        if not _is_none(tx, args[0]):
            parts[position] = args[0]
        doc = _own_doc(tx, self)
        if doc is not None:
            parts.append(doc)
        cls = attributes.class_of(tx, self, self.cls).realize(tx)
        made = cls.call(tx, parts, {})
        if isinstance(made, DescriptorObject) and self.handle.value is not None:
            tx.heap.set_slot(made.handle, "value", self.handle.value)
        return made

    return copy


def _own_doc(tx: Tx, self: Any) -> Any:
    """The text that a property was given, None where it shows its getter's."""
    slots = self.handle.slots
    if self.handle.real is None:
        entry = None if slots is None else (slots.table or {}).get(_FIELDS["__doc__"])
        return None if entry is None else entry[1]
    if self.handle.real.__doc__ is getattr(self.handle.real.fget, "__doc__", None):
        return None
    return attributes.generic_getattr(tx, self, self.cls, "__doc__")


def _set_name(tx: Tx, self: Any, args: Args, kwargs: KwArgs) -> Any:
    if len(args) != 2:
        tx.raise_(TypeError, f"__set_name__() takes 2 positional arguments but {len(args)} were given")
    if isinstance(self, DescriptorObject):
        tx.heap.set_slot(self.handle, "value", args[1].realize(tx).as_constant())
    else:
        self.refuse(tx, "method '__set_name__'")
    return tx.make.constant(None)


def _get(tx: Tx, self: Any, args: Args, kwargs: KwArgs) -> Any:
    """``descriptor.__get__(instance, class)``."""
    if kwargs or not 1 <= len(args) <= 2:
        self.refuse(tx, "method '__get__'")
    instance = None if _is_none(tx, args[0]) else args[0].realize(tx)
    if len(args) == 2 and not _is_none(tx, args[1]):
        return attributes.bind_value(tx, self, instance, args[1].realize(tx).value)
    if instance is None:
        tx.raise_(TypeError, "__get__(None, None) is invalid")
    return attributes.bind_value(tx, self, instance, instance.python_type(tx))


def _call(tx: Tx, self: Any, args: Args, kwargs: KwArgs) -> Any:
    return attributes.generic_getattr(tx, self, self.cls, "__func__").realize(tx).call(tx, args, kwargs)


C_METHODS[staticmethod, "__call__"] = _call
for _wrapper in _WRAPPERS:
    C_METHODS[_wrapper, "__init__"] = _init_wrapper
_all: tuple[type, ...] = (*_WRAPPERS, property)
for _kind in _all:
    C_METHODS[_kind, "__get__"] = _get
C_METHODS[property, "__init__"] = _init_property
C_METHODS[property, "__set_name__"] = _set_name
for _at, _name in enumerate(("getter", "setter", "deleter")):
    C_METHODS[property, _name] = _copier(_at)
