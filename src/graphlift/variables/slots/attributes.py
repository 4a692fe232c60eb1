"""Attribute access: the one way by which every tracker's attributes are read, written and deleted.

Owns the algorithms of ``object.__getattribute__`` and ``object.__setattr__`` (data descriptors of the class,
the instance's dictionary, the class), binding, and the look-up of special methods. What a particular C
field holds is asked of the tracker (`read_member`). Mirrors Objects/object.c and slot_tp_getattr_hook of
Objects/typeobject.c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any, Final, NoReturn

from graphlift import _C
from graphlift.errors import ObservedException
from graphlift.polyfills import attributes as polyfills
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import AttrSource, SlotSource
from graphlift.variables import namespace
from graphlift.variables.base import VariableTracker, c_name
from graphlift.variables.slots.type_lookup import (
    NOWHERE,
    Binding,
    TypeAttr,
    classify_value,
    mro_of,
    namespace_of,
    type_lookup,
)

_OBJECT_GETATTRIBUTE: Final = object.__dict__["__getattribute__"]
#: Look-ups in C that are followed: of any object, and of modules, whose tracker asks their own `__getattr__`.
_FOLLOWED: Final = (_OBJECT_GETATTRIBUTE, vars(ModuleType)["__getattribute__"])
_OBJECT_SETATTR: Final = object.__dict__["__setattr__"]
_OBJECT_DELATTR: Final = object.__dict__["__delattr__"]
_FGET: Final = property.__dict__["fget"]
_FSET: Final = property.__dict__["fset"]
_FDEL: Final = property.__dict__["fdel"]
_STATIC_FUNCTION: Final = staticmethod.__dict__["__func__"]
_CLASS_FUNCTION: Final = classmethod.__dict__["__func__"]
_CLASS_GETSET: Final = object.__dict__["__class__"]


# --- the four verbs that handlers use -----------------------------------------------------------


def getattr_(tx: Tx, a: Any, name: str) -> Any:
    """``a.name``; an AttributeError is told what was looked for."""
    owner = a.realize(tx)
    try:
        return owner.getattr_(tx, name)
    except ObservedException as error:
        if _is_attribute_error(tx, error):
            error.value.looked_for(tx, owner, name)
        raise


def load_method(tx: Tx, a: Any, name: str) -> Any:
    """``a.name`` that is about to be called: as `getattr_`, but what a descriptor of a plain class raises is
    told nothing. Mirrors _PyObject_GetMethod."""
    owner = a.realize(tx)
    try:
        return owner.getattr_(tx, name)
    except ObservedException as error:
        if _is_attribute_error(tx, error) and not _raised_by_descriptor(tx, owner, name):
            error.value.looked_for(tx, owner, name)
        raise


def _raised_by_descriptor(tx: Tx, owner: VariableTracker, name: str) -> bool:
    cls = owner.python_type(tx)
    hook = type_lookup(tx, cls, "__getattribute__")
    if (
        hook is None
        or hook.raw is not _OBJECT_GETATTRIBUTE
        or type_lookup(tx, cls, "__getattr__") is not None
    ):
        return False
    attr = type_lookup(tx, cls, name)
    return attr is not None and (attr.is_data or attr.binding is Binding.DESCRIPTOR)


def setattr_(tx: Tx, a: Any, name: str, value: Any) -> None:
    """``a.name = value``."""
    a.realize(tx).setattr_(tx, name, value)


def delattr_(tx: Tx, a: Any, name: str) -> None:
    """``del a.name``."""
    a.realize(tx).delattr_(tx, name)


def hasattr_(tx: Tx, a: Any, name: str) -> bool:
    """``hasattr(a, name)``."""
    try:
        getattr_(tx, a, name)
    except ObservedException as error:
        if not _is_attribute_error(tx, error):
            raise
        return False
    return True


def _is_attribute_error(tx: Tx, error: ObservedException) -> bool:
    return issubclass(error.value.python_type(tx), AttributeError)


# --- reading ------------------------------------------------------------------------------------


def object_getattr(tx: Tx, obj: VariableTracker, cls: type, name: str) -> VariableTracker:
    """Attribute access of an object of a class that may define ``__getattribute__`` and ``__getattr__``."""
    hook = type_lookup(tx, cls, "__getattribute__")
    assert hook is not None
    if hook.raw is not _OBJECT_GETATTRIBUTE and hook.binding is not Binding.C_METHOD:
        return _hooked_getattr(tx, obj, cls, name, hook)
    if hook.raw not in _FOLLOWED and not _C.looks_up_generically(hook.raw):
        obj.refuse(tx, f"attribute {name!r}, which its class looks up in its own way,")
    attr = type_lookup(tx, cls, name)
    if attr is not None and attr.binding in (Binding.PROPERTY, Binding.DESCRIPTOR):
        fallback = type_lookup(tx, cls, "__getattr__")
        if fallback is not None:
            return _with_fallback(tx, obj, cls, name, fallback, lambda: generic_getattr(tx, obj, cls, name))
    try:
        found = generic_lookup(tx, obj, cls, name, attr)
    except ObservedException as error:  # an unset slot; no user code ran
        if attr is None or attr.binding not in (Binding.MEMBER, Binding.GETSET):
            raise
        if type_lookup(tx, cls, "__getattr__") is None or not _is_attribute_error(tx, error):
            raise
        found = None
    if found is not None:
        return found
    fallback = type_lookup(tx, cls, "__getattr__")
    if fallback is not None:
        _last(tx, "__getattribute__", obj, fallback, "attribute", obj)
        return call_attr(tx, fallback, obj, cls, [_name(tx, name)])  # type: ignore[no-any-return]
    raise_no_attribute(tx, cls, name)


def _last(tx: Tx, special: str, obj: VariableTracker, attr: TypeAttr, finish: str, *values: Var) -> None:
    """Announce the call of a method by which an instruction's operation on `obj` is done."""
    if tx.takes(special, obj) and attr.binding is Binding.FUNCTION:
        tx.last_call(attr.value(tx), finish, *values)


def _hooked_getattr(tx: Tx, obj: VariableTracker, cls: type, name: str, hook: TypeAttr) -> VariableTracker:
    handle = getattr(obj, "handle", None)
    may_repeat = hook.binding is Binding.FUNCTION and hook.written is None and handle is not None

    def call() -> VariableTracker:
        _last_getter(tx, obj, cls, hook.value(tx), "attribute", hook.binding is Binding.FUNCTION)
        return call_attr(tx, hook, obj, cls, [_name(tx, name)])  # type: ignore[no-any-return]

    def look_up() -> VariableTracker:
        if not may_repeat:
            return call()
        key = (id(hook.raw), id(cls), id(handle), name)  # all of them live as long as the capture
        return tx.look_up_once(key, call)  # type: ignore[no-any-return]

    fallback = type_lookup(tx, cls, "__getattr__")
    return look_up() if fallback is None else _with_fallback(tx, obj, cls, name, fallback, look_up)


def _with_fallback(
    tx: Tx,
    obj: VariableTracker,
    cls: type,
    name: str,
    fallback: TypeAttr,
    look_up: Callable[[], VariableTracker],
) -> VariableTracker:
    """``__getattribute__``, which runs user code, then ``__getattr__``. Mirrors slot_tp_getattr_hook."""
    operation = tx.operation
    try:
        return look_up()
    except ObservedException as error:
        if not _is_attribute_error(tx, error):
            raise
    tx.operation = operation  # of the instruction, only the call of `__getattr__` is left
    _last(tx, "__getattribute__", obj, fallback, "attribute", obj)
    return call_attr(tx, fallback, obj, cls, [_name(tx, name)])  # type: ignore[no-any-return]


def _last_getter(
    tx: Tx, obj: VariableTracker, cls: type, function: Any, finish: str, plain: bool = True
) -> None:
    """Announce a call by which an attribute is read; `plain`: the function itself is called."""
    if tx.takes("__getattribute__", obj) and plain:
        fallback = type_lookup(tx, cls, "__getattr__")
        if fallback is None:
            tx.last_call(function, finish, obj)
        else:
            tx.last_call(function, "fallback", obj, bind(tx, fallback, obj, cls))


def generic_getattr(tx: Tx, obj: VariableTracker, cls: type, name: str) -> VariableTracker:
    """``object.__getattribute__(obj, name)``; raises AttributeError in the user's program."""
    found = generic_lookup(tx, obj, cls, name, type_lookup(tx, cls, name))
    if found is None:
        raise_no_attribute(tx, cls, name)
    return found


def generic_lookup(
    tx: Tx, obj: VariableTracker, cls: type, name: str, attr: TypeAttr | None
) -> VariableTracker | None:
    """As `generic_getattr` with the class's look-up done already; None when there is no such attribute."""
    if attr is not None and attr.is_data and attr.binding is not Binding.PLAIN:
        return bind(tx, attr, obj, cls)  # type: ignore[no-any-return]
    own = obj.instance_dict(tx)
    if own is not None:
        value = namespace.lookup(tx, own, name, AttrSource)
        if value is not None:
            assert isinstance(value, VariableTracker)
            return value
    return None if attr is None else bind(tx, attr, obj, cls)


def raise_unset(tx: Tx, cls: type, name: str, *, deleting: bool = False) -> NoReturn:
    """The AttributeError of a slot in which nothing is stored."""
    access: Callable[[Any], object] = (
        (lambda o: delattr(o, name)) if deleting else (lambda o: getattr(o, name))
    )
    raise_as_real(tx, cls, access, {"__slots__": (name,)})


def raise_no_attribute(tx: Tx, cls: type, name: str) -> NoReturn:
    """The AttributeError of a plain object."""
    tx.raise_(AttributeError, f"'{c_name(cls)}' object has no attribute '{name}'")


def _name(tx: Tx, name: str) -> Var:
    return tx.make.constant(name)


# --- binding ------------------------------------------------------------------------------------


def bind(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    """``attr.__get__(obj, cls)``; `obj` is None when the attribute is read from the class itself."""
    return _BINDERS[attr.binding](tx, attr, obj, cls)


def bind_value(tx: Tx, descriptor: VariableTracker, obj: VariableTracker | None, cls: type) -> Any:
    """``descriptor.__get__(obj, cls)`` for any descriptor as a value."""
    binding, is_data = classify_value(tx, descriptor)
    return bind(tx, TypeAttr(None, cls, NOWHERE, binding, is_data, descriptor), obj, cls)


def bind_function(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    """As ``function.__get__`` does: from an instance it is a bound method."""
    function = attr.value(tx)
    return function if obj is None else tx.make.bound_method(function, obj)


def _bind_static(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    if attr.written is not None:
        return getattr_(tx, attr.written, "__func__")
    return tx.make.from_value(attr.raw.__func__, attr.source.child(SlotSource, _STATIC_FUNCTION))


def _bind_class(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    if attr.written is not None:
        function = getattr_(tx, attr.written, "__func__")
    else:
        function = tx.make.from_value(attr.raw.__func__, attr.source.child(SlotSource, _CLASS_FUNCTION))
    owner = class_of(tx, obj, cls)
    if _CHAINED:
        beneath = function.realize(tx)
        if classify_value(tx, beneath)[0] in (
            Binding.PROPERTY,
            Binding.DESCRIPTOR,
            Binding.CLASS,
            Binding.STATIC,
        ):
            return bind_value(tx, beneath, owner.realize(tx), cls)
    kind = function.realize(tx).python_type(tx)
    if kind is not FunctionType and type_lookup(tx, kind, "__call__") is None:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"a class method of {function!r}, which cannot be called")
    return tx.make.bound_method(function, owner)


class _Chained:
    value: Any = classmethod(property(lambda cls: True))  # type: ignore[arg-type]


#: Whether a class method binds what it wraps as that binds itself (up to Python 3.12).
_CHAINED: Final = _Chained.value is True


def _bind_property(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    if obj is None:
        return attr.value(tx)
    getter = property_function(tx, attr, _FGET)
    if getter is None:
        real = _real_property(tx, attr)
        raise_as_real(tx, cls, lambda stand_in: property.__get__(real, stand_in, type(stand_in)))
    _last_getter(tx, obj, cls, getter, "getter")
    return getter.realize(tx).call(tx, [obj], {})


def property_function(tx: Tx, attr: TypeAttr, field: Any) -> Any:
    """Getter, setter or deleter of a property, or None."""
    if attr.written is not None:
        function = getattr_(tx, attr.written, field.__name__).realize(tx)
        return None if function.python_type(tx) is type(None) else function
    function = field.__get__(attr.raw)
    return None if function is None else tx.make.from_value(function, attr.source.child(SlotSource, field))


def _real_property(tx: Tx, attr: TypeAttr) -> Any:
    """A property that fails as this one does."""
    if attr.written is None:
        return attr.raw
    made = attr.written.realize(tx)
    return made.handle.real if made.handle.real is not None else made.stand_in(tx)


def _bind_member(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    if obj is None:
        return attr.value(tx)
    if attr.raw is _CLASS_GETSET:
        return class_of(tx, obj, cls)
    return obj.read_member(tx, attr.raw, attr.raw.__name__)


def _bind_c_method(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    return attr.value(tx) if obj is None else tx.make.builtin_method(attr.raw.__name__, obj)


def _bind_c_class_method(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    return tx.make.builtin_method(attr.raw.__name__, class_of(tx, obj, cls), attr.raw.__objclass__)


def _bind_descriptor(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    kind = _kind_of(tx, attr)
    rule = _DESCRIPTOR_RULES.get(kind)
    if rule is not None:
        return rule(tx, attr, obj, cls)
    getter = type_lookup(tx, kind, "__get__")
    assert getter is not None
    if getter.raw is _PROPERTY_GET:
        return _bind_property(tx, attr, obj, cls)
    if getter.binding is Binding.C_METHOD:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"a descriptor of class {kind.__qualname__} with a C `__get__`")
    descriptor: Any = attr.value(tx)
    instance = tx.make.constant(None) if obj is None else obj
    if obj is not None:
        _last_getter(tx, obj, cls, getter.value(tx), "getter", getter.binding is Binding.FUNCTION)
    # As in slot_tp_descr_get, whatever stands there is called as it is, without being bound.
    arguments = [descriptor.realize(tx), instance, class_of(tx, obj, cls)]
    return getter.value(tx).realize(tx).call(tx, arguments, {})


def _kind_of(tx: Tx, attr: TypeAttr) -> type:
    if attr.written is None:
        return type(attr.raw)
    kind: type = attr.written.realize(tx).python_type(tx)
    return kind


_PROPERTY_GET: Final = property.__dict__["__get__"]
_PROPERTY_SET: Final = property.__dict__["__set__"]


def _bind_plain(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    return attr.value(tx) if attr.source is NOWHERE else tx.make.lazy(attr.raw, attr.source)


Binder = Callable[[Tx, TypeAttr, "VariableTracker | None", type], Any]

_BINDERS: Final[dict[Binding, Binder]] = {
    Binding.FUNCTION: bind_function,
    Binding.STATIC: _bind_static,
    Binding.CLASS: _bind_class,
    Binding.PROPERTY: _bind_property,
    Binding.MEMBER: _bind_member,
    Binding.GETSET: _bind_member,
    Binding.C_METHOD: _bind_c_method,
    Binding.C_CLASS_METHOD: _bind_c_class_method,
    Binding.DESCRIPTOR: _bind_descriptor,
    Binding.PLAIN: _bind_plain,
}

_DESCRIPTOR_RULES: Final[dict[type, Binder]] = {}


def binds(kind: type) -> Callable[[Binder], Binder]:
    """Register how descriptors of exactly this class bind, where their own ``__get__`` is not followed."""

    def register(binder: Binder) -> Binder:
        assert kind not in _DESCRIPTOR_RULES, kind
        _DESCRIPTOR_RULES[kind] = binder
        return binder

    return register


@binds(cached_property)
def _bind_cached_property(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    descriptor: Any = attr.value(tx)
    if obj is None:
        return descriptor
    return tx.run_host(polyfills.cached_property_get, [descriptor, obj])


def class_of(tx: Tx, obj: VariableTracker | None, cls: type) -> Any:
    """The tracker of an object's class (whose identity is guarded by the object's own guard)."""
    made = getattr(obj, "cls_var", None)
    return tx.make.from_value(cls, None) if made is None else made


# --- special methods ----------------------------------------------------------------------------


def lookup_special(tx: Tx, a: VariableTracker, name: str) -> VariableTracker | None:
    """A special method bound to `a`, looked up on the type only; None when the type has none.

    ``__hash__ = None`` and the like give a tracker of None, which cannot be called.
    """
    cls = a.python_type(tx)
    attr = type_lookup(tx, cls, name)
    if attr is None:
        return None
    bound: VariableTracker = bind(tx, attr, a, cls).realize(tx)
    return bound


def user_special(tx: Tx, a: VariableTracker, name: str) -> TypeAttr | None:
    """The special method as found on the type when user code defines it; None for C and absent ones."""
    attr = type_lookup(tx, a.python_type(tx), name)
    if attr is None or attr.binding is Binding.C_METHOD or attr.raw is object.__dict__.get(name, attr):
        return None
    return attr


def is_none(tx: Tx, attr: TypeAttr) -> bool:
    """Whether None stands on the class, by which it says that it cannot do this."""
    if attr.written is None:
        return attr.raw is None
    value = attr.written.realize(tx)
    return value.is_constant() and value.as_constant() is None


def check_nearest(tx: Tx, descriptor: Any, cls: type) -> None:
    """Break where a C method is asked for past one of the same name of a C class nearer to `cls`: it is that
    one which an object's tracker models. Those of exceptions do the same."""
    for owner in mro_of(cls):
        found = namespace_of(owner).get(descriptor.__name__)
        if found is descriptor or owner is descriptor.__objclass__:
            return
        if hasattr(type(found), "__objclass__") and BaseException not in mro_of(owner):
            tx.fail(Reason.UNKNOWN_CALLABLE, f"{descriptor.__qualname__}() of a {owner.__qualname__}")


def call_attr(
    tx: Tx,
    attr: TypeAttr,
    obj: VariableTracker,
    cls: type,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """``attr.__get__(obj, cls)(*args, **kwargs)`` without making a bound method where that cannot be told."""
    if attr.binding is Binding.FUNCTION:
        function: Any = attr.value(tx)
        return function.realize(tx).call(tx, [obj, *args], kwargs or {})
    if attr.binding is Binding.C_METHOD:
        return obj.call_method(tx, attr.raw.__name__, args, kwargs or {})
    return bind(tx, attr, obj, cls).realize(tx).call(tx, args, kwargs or {})


# --- writing ------------------------------------------------------------------------------------


def object_setattr(tx: Tx, obj: VariableTracker, cls: type, name: str, value: VariableTracker | None) -> None:
    """``obj.name = value`` (None: ``del obj.name``) for a class that may define its own hook."""
    hook = type_lookup(tx, cls, "__delattr__" if value is None else "__setattr__")
    assert hook is not None
    if hook.raw is _OBJECT_SETATTR or hook.raw is _OBJECT_DELATTR or hook.binding is Binding.C_METHOD:
        generic_setattr(tx, obj, cls, name, value)
    else:
        _last(tx, "__delattr__" if value is None else "__setattr__", obj, hook, "discard")
        call_attr(tx, hook, obj, cls, [_name(tx, name)] if value is None else [_name(tx, name), value])


def generic_setattr(
    tx: Tx, obj: VariableTracker, cls: type, name: str, value: VariableTracker | None
) -> None:
    """``object.__setattr__`` and, with None, ``object.__delattr__``."""
    attr = type_lookup(tx, cls, name)
    if attr is not None and attr.is_data:
        set_descriptor(tx, attr, obj, cls, name, value)
        return
    own = obj.instance_dict(tx)
    if own is None:
        present = {} if attr is None else {name: None}
        raise_as_real(tx, cls, lambda stand_in: object.__setattr__(stand_in, name, None), present)
    if value is not None:
        namespace.store(tx, own, name, _name(tx, name), value)
    elif not namespace.delete(tx, own, name, AttrSource):
        raise_no_attribute(tx, cls, name)


def set_descriptor(
    tx: Tx, attr: TypeAttr, obj: VariableTracker, cls: type, name: str, value: VariableTracker | None
) -> None:
    """``attr.__set__(obj, value)`` and, with None, ``attr.__delete__(obj)``."""
    if attr.binding in (Binding.MEMBER, Binding.GETSET):
        if _C.is_read_only(attr.raw):
            tx.raise_(AttributeError, "readonly attribute")
        obj.write_member(tx, attr.raw, name, value)
    elif attr.binding is Binding.PROPERTY:
        _set_property(tx, attr, obj, cls, name, value)
    else:
        _set_by_method(tx, attr, obj, cls, name, value)


def _set_property(
    tx: Tx, attr: TypeAttr, obj: VariableTracker, cls: type, name: str, value: VariableTracker | None
) -> None:
    function = property_function(tx, attr, _FDEL if value is None else _FSET)
    if function is None:
        real = _real_property(tx, attr)
        if value is None:
            raise_as_real(tx, cls, lambda stand_in: property.__delete__(real, stand_in))
        raise_as_real(tx, cls, lambda stand_in: property.__set__(real, stand_in, None))
    if tx.takes("__delattr__" if value is None else "__setattr__", obj):
        tx.last_call(function, "discard")
    function.realize(tx).call(tx, [obj] if value is None else [obj, value], {})


def _set_by_method(
    tx: Tx, attr: TypeAttr, obj: VariableTracker, cls: type, name: str, value: VariableTracker | None
) -> None:
    kind = _kind_of(tx, attr)
    method = type_lookup(tx, kind, "__delete__" if value is None else "__set__")
    if method is None:
        tx.raise_(AttributeError, "__delete__" if value is None else "__set__")
    if method.raw is _PROPERTY_SET:
        _set_property(tx, attr, obj, cls, name, value)
        return
    if method.binding is Binding.C_METHOD:
        tx.fail(
            Reason.UNSUPPORTED_VALUE,
            f"a descriptor of class {kind.__qualname__} with a C `{method.raw.__name__}`",
        )
    descriptor: Any = attr.value(tx)
    _last(tx, "__delattr__" if value is None else "__setattr__", obj, method, "discard")
    call_attr(tx, method, descriptor.realize(tx), kind, [obj] if value is None else [obj, value])


def raise_as_real(
    tx: Tx, cls: type, access: Callable[[Any], object], attributes: Mapping[str, object] | None = None
) -> NoReturn:
    """Raise the AttributeError that `access` raises on an object of a class of the same name: the text
    is that of the running Python."""
    stand_in = type(
        cls.__name__,
        (),
        {
            "__slots__": (),
            "__qualname__": cls.__qualname__,
            "__module__": cls.__module__,
            **(attributes or {}),
        },
    )
    try:
        access(stand_in())
    except AttributeError as error:
        tx.raise_(AttributeError, *error.args)
    tx.fail(Reason.UNSUPPORTED_OPERATION, f"an attribute error of {cls.__qualname__}")
