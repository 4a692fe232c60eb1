"""Classes as values: their attributes, and calling them to make objects.

Owns ``type.__call__`` (``__new__``, then ``__init__``), attribute access on classes, and the table of C
classes with a model for their ``__new__``. Mirrors type_call, type_getattro and type_setattro of
Objects/typeobject.c.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import BuiltinFunctionType
from typing import Any, Final, NoReturn

from graphlift import _C
from graphlift.heap import Handle
from graphlift.operators import BINARY_METHODS, COMPARE_METHODS, REFLECTED_METHODS
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import AttrSource, SlotSource, Source
from graphlift.variables import namespace
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker, c_name
from graphlift.variables.builder import pinned, wraps_if
from graphlift.variables.class_dicts import ClassDictVariable
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.object_methods import OBJECT_METHODS, constant_name
from graphlift.variables.slots import attributes
from graphlift.variables.slots.class_checks import plain_is_instance
from graphlift.variables.slots.operators import answer_of
from graphlift.variables.slots.type_lookup import (
    Binding,
    TypeAttr,
    anchor,
    class_namespace,
    is_immutable,
    is_made,
    is_of_c,
    mro_of,
    namespace_of,
    own_attr,
    type_lookup,
    written_class,
)
from graphlift.variables.unions import union_of

#: Makes an instance: (tx, class tracker, class, positional arguments, keyword arguments) -> tracker.
Construct = Callable[[Tx, Any, type, Sequence[Any], Mapping[str, Any]], Any]

#: C classes -> the model of their `__new__` (for subclasses, too); the flag says that `__init__` is included.
_NEW: Final[dict[type, tuple[Construct, bool]]] = {}

#: Classes in C of which a call is a call of their own `__new__` and nothing more.
_WHOLE: Final[dict[type, Construct]] = {}

_flags_of: Final[Any] = type.__dict__["__flags__"].__get__
_TYPE_GETATTRIBUTE: Final = type.__dict__["__getattribute__"]
_IS_ABSTRACT: Final = 1 << 20
_HEAP_TYPE: Final = 1 << 9
_BASE: Final = type.__dict__["__base__"].__get__


def constructs(*classes: type, whole: bool = False) -> Callable[[Construct], Construct]:
    """Register the model of a C class's ``__new__``.

    Arguments:
        whole: the model does the work of the C class's ``__init__``, too.
    """

    def register(construct: Construct) -> Construct:
        for cls in classes:
            _NEW[cls] = (construct, whole)
            new = namespace_of(cls).get("__new__")
            if (
                whole
                and cls is not type
                and is_of_c(cls)
                and type(cls) is type
                and getattr(new, "__self__", None) is cls
            ):
                _WHOLE[cls] = construct
        return construct

    return register


class ClassVariable(VariableTracker):
    """A class.

    Attributes:
        value: the class itself; its identity is guarded wherever it was found.
    """

    __slots__ = ("value",)

    def __init__(self, value: type, source: Source | None = None) -> None:
        self.source = source
        self.value: Final = value

    def python_type(self, tx: Tx) -> type:
        return type(self.value)

    def hash_key(self, tx: Tx) -> Hashable:
        hook = type_lookup(tx, type(self.value), "__hash__")
        if hook is not None and hook.binding is not Binding.C_METHOD:
            tx.fail(Reason.UNSUPPORTED_OPERATION, f"hash() of {self!r} by a method of the user's")
        return self.value

    # --- calls -----------------------------------------------------------------------------------

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        meta = type(self.value)
        construct = _WHOLE.get(self.value) if meta is type else None
        if construct is not None:  # neither the class nor `type` can be changed
            tx.takes("__call__", self)
            return construct(tx, self, self.value, args, kwargs).realize(tx)  # type: ignore[no-any-return]
        hook = type_lookup(tx, meta, "__call__")
        if hook is None or hook.binding is Binding.C_METHOD:
            return self.instantiate(tx, args, kwargs)
        if tx.takes("__call__", self) and hook.binding is Binding.FUNCTION:
            tx.last_call(hook.value(tx))
        result: VariableTracker = attributes.call_attr(tx, hook, self, meta, args, kwargs)
        return result

    def instantiate(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        """``type.__call__``: the class's ``__new__``, then its ``__init__``."""
        cls = self.value
        whole = tx.takes("__call__", self)
        new = type_lookup(tx, cls, "__new__")
        assert new is not None
        _check_new(tx, cls, new)
        if type(new.raw) is BuiltinFunctionType:
            made, initialised = c_construct(tx, self, cls, new.raw, args, kwargs)
        else:
            initialised = False
            made = attributes.bind(tx, new, None, cls).realize(tx).call(tx, [self, *args], kwargs)
        made = made.realize(tx)
        if cls is type and len(args) == 3:  # what decides is the metaclass that the bases have
            initialised = made.python_type(tx) is type
        if not initialised and cls in mro_of(made.python_type(tx)):
            self._initialise(tx, made, args, kwargs, whole)
        assert isinstance(made, VariableTracker)
        return made

    def _initialise(
        self,
        tx: Tx,
        made: Any,
        args: Sequence[VariableTracker],
        kwargs: Mapping[str, VariableTracker],
        whole: bool,
    ) -> None:
        """Call ``__init__``; `whole`: the instruction consists of the making of this object."""
        kind = made.python_type(tx)
        init = type_lookup(tx, kind, "__init__")
        assert init is not None
        if init.raw is object.__dict__["__init__"]:
            OBJECT_METHODS["__init__"](tx, made, args, kwargs)
            return
        if whole and init.binding is Binding.FUNCTION:
            tx.last_call(init.value(tx), "instance", made)
        result = attributes.call_attr(tx, init, made, kind, args, kwargs).realize(tx)
        if result.python_type(tx) is not type(None):
            result.type_error(tx, "__init__() should return None, not '{}'")

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        model = _TYPE_METHODS.get(name)
        if model is not None:
            result: VariableTracker = model(tx, self, args, kwargs)
            return result
        for owner in mro_of(self.value):  # what the program defines under this name was passed over
            if (owner, name) in CLASS_METHODS:
                made: VariableTracker = CLASS_METHODS[owner, name](tx, self, args, kwargs)
                return made
        if (type, name) in CLASS_METHODS and type in mro_of(type(self.value)):
            return CLASS_METHODS[type, name](tx, self, args, kwargs)  # type: ignore[no-any-return]
        return self.refuse(tx, f"method {name!r}")

    # --- attributes ------------------------------------------------------------------------------

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        meta = type(self.value)
        hook = type_lookup(tx, meta, "__getattribute__")
        if hook is not None and hook.raw is not _TYPE_GETATTRIBUTE:
            tx.fail(
                Reason.UNSUPPORTED_OPERATION, f"attribute of {self!r}, whose metaclass has `__getattribute__`"
            )
        found = self.type_getattr(tx, name)
        if found is not None:
            return found
        fallback = type_lookup(tx, meta, "__getattr__")
        if fallback is not None:
            result: VariableTracker = attributes.call_attr(tx, fallback, self, meta, [tx.make.constant(name)])
            return result
        tx.raise_(AttributeError, f"type object '{self.value.__name__}' has no attribute '{name}'")

    def type_getattr(self, tx: Tx, name: str) -> VariableTracker | None:
        """``type.__getattribute__``; None when there is no such attribute."""
        meta = type(self.value)
        of_meta = type_lookup(tx, meta, name)
        if of_meta is not None and of_meta.is_data and of_meta.binding is not Binding.PLAIN:
            found: VariableTracker = attributes.bind(tx, of_meta, self, meta)
            return found
        attr = type_lookup(tx, self.value, name)
        if attr is not None:
            return self._own(tx, attr, name)
        return None if of_meta is None else attributes.bind(tx, of_meta, self, meta)

    def _own(self, tx: Tx, attr: TypeAttr, name: str) -> VariableTracker:
        if attr.binding is Binding.C_CLASS_METHOD:
            made: Any = tx.make.builtin_method(name, self, attr.raw.__objclass__)
        else:
            made = attributes.bind(tx, attr, None, self.value)
        return made  # type: ignore[no-any-return]

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if name in KEPT_IN_NAMESPACE and (name != "__doc__" or written_class(tx, self.value, name)):
            attr = own_attr(tx, self.value, name)
            if attr is not None and attr.binding is not Binding.GETSET:
                return attributes.bind(tx, attr, None, self.value).realize(tx)  # type: ignore[no-any-return]
            if name == "__type_params__":
                return tx.make.tuple(())  # type: ignore[return-value]
            if name == "__abstractmethods__":
                tx.raise_(AttributeError, name)
            if name == "__annotations__" and not _flags_of(self.value) & _HEAP_TYPE:
                tx.raise_(AttributeError, f"type object {c_name(self.value)!r} has no attribute {name!r}")
            if name == "__annotations__" and not (is_immutable(self.value) and not is_made(self.value)):
                made_now: VariableTracker = tx.make.dict([])  # type: ignore[assignment]
                self._store(tx, name, made_now)
                return made_now
        if name == "__dict__":
            return ClassDictVariable(self)
        if name in ("__name__", "__qualname__", "__module__", "__mro__", "__bases__", "__base__", "__doc__"):
            value = _plain_field(self.value, descriptor, name)
            if value is not _UNKNOWN:
                made: Any
                if is_immutable(self.value):
                    made = tx.make.from_value(value, None)
                else:
                    made = tx.make.lazy(value, anchor(tx, self.value).child(SlotSource, descriptor))
                assert isinstance(made, VariableTracker)
                return made
        return self.refuse(tx, f"attribute {name!r}")

    def setattr_(self, tx: Tx, name: str, value: VariableTracker) -> None:
        self._set(tx, name, value)

    def delattr_(self, tx: Tx, name: str) -> None:
        self._set(tx, name, None)

    def _set(self, tx: Tx, name: str, value: VariableTracker | None) -> None:
        meta = type(self.value)
        hook = type_lookup(tx, meta, "__delattr__" if value is None else "__setattr__")
        if hook is not None and hook.binding is not Binding.C_METHOD:
            arguments = [tx.make.constant(name)] if value is None else [tx.make.constant(name), value]
            attributes.call_attr(tx, hook, self, meta, arguments)
        else:
            self.type_setattr(tx, name, value)

    def type_setattr(self, tx: Tx, name: str, value: VariableTracker | None) -> None:
        """``type.__setattr__`` and, with None, ``type.__delattr__``."""
        cls = self.value
        if is_immutable(cls) and not is_made(cls):
            tx.raise_(TypeError, f"cannot set '{name}' attribute of immutable type '{cls.__name__}'")
        of_meta = type_lookup(tx, type(cls), name)
        if of_meta is not None and of_meta.is_data:
            attributes.set_descriptor(tx, of_meta, self, type(cls), name, value)
            return
        self._store(tx, name, value)

    def _store(self, tx: Tx, name: str, value: VariableTracker | None) -> None:
        own = class_namespace(tx, self.value, self)
        if value is None and name == "__new__":  # the class goes on making its objects by looking the name up
            self.refuse(tx, "deleting attribute '__new__'")
        if value is not None:
            namespace.store(tx, own, name, tx.make.constant(name), value)
        elif not namespace.delete(tx, own, name, AttrSource):
            tx.raise_(AttributeError, f"type object '{self.value.__name__}' has no attribute '{name}'")

    def write_member(self, tx: Tx, descriptor: Any, name: str, value: VariableTracker | None) -> None:
        if value is None or name not in KEPT_IN_NAMESPACE:
            self.refuse(tx, f"setting attribute {name!r}")
        self._store(tx, name, value)

    # --- special methods of the metaclass --------------------------------------------------------

    def special(self, tx: Tx, name: str, *args: Any) -> Any:
        """Call a special method that the metaclass defines in Python, else `NOT_IMPLEMENTED`."""
        meta = type(self.value)
        attr = type_lookup(tx, meta, name)
        if attr is None or attr.binding is Binding.C_METHOD:
            return NOT_IMPLEMENTED
        return attributes.call_attr(tx, attr, self, meta, args)

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        result = self.special(tx, "__getitem__", key)
        if not isinstance(result, NotImplementedType):
            return result.realize(tx)  # type: ignore[no-any-return]
        attr = type_lookup(tx, self.value, "__class_getitem__")
        if attr is None:
            tx.raise_(TypeError, f"type '{self.value.__qualname__}' is not subscriptable")
        bound = attributes.bind(tx, attr, None, self.value)
        return bound.realize(tx).call(tx, [key], {})  # type: ignore[no-any-return]

    def length(self, tx: Tx) -> VariableTracker:
        result = self.special(tx, "__len__")
        return super().length(tx) if isinstance(result, NotImplementedType) else result.realize(tx)

    def iter_(self, tx: Tx) -> VariableTracker:
        result = self.special(tx, "__iter__")
        if isinstance(result, NotImplementedType):
            tx.raise_(TypeError, f"'{type(self.value).__name__}' object is not iterable")
        return result.realize(tx)  # type: ignore[no-any-return]

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        result = self.special(tx, "__contains__", item)
        if isinstance(result, NotImplementedType):
            return NOT_IMPLEMENTED
        known = result.realize(tx).truth(tx)
        return tx.make.constant(known) if isinstance(known, bool) else known  # type: ignore[return-value]

    def truth(self, tx: Tx) -> VariableTracker | bool:
        result = self.special(tx, "__bool__")
        if isinstance(result, NotImplementedType):
            result = self.special(tx, "__len__")
        return True if isinstance(result, NotImplementedType) else result.realize(tx).truth(tx)

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        result = self.special(tx, COMPARE_METHODS[op], other)
        if isinstance(result, NotImplementedType) and op == "!=":  # `object.__ne__` turns `__eq__` round
            equal = self.compare(tx, "==", other)
            if isinstance(equal, NotImplementedType):
                return NOT_IMPLEMENTED
            known = equal.truth(tx)
            if not isinstance(known, bool):
                return self.refuse(tx, "comparison whose answer is not known")
            return tx.make.constant(not known)  # type: ignore[return-value]
        return NOT_IMPLEMENTED if isinstance(result, NotImplementedType) else answer_of(tx, result)

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        result = self.special(tx, BINARY_METHODS[op], other)
        if isinstance(result, NotImplementedType):
            return union_of(tx, self, other) if op == "|" else NOT_IMPLEMENTED
        return answer_of(tx, result)

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        result = self.special(tx, REFLECTED_METHODS[op], other)
        if isinstance(result, NotImplementedType):
            return union_of(tx, other, self) if op == "|" else NOT_IMPLEMENTED
        return answer_of(tx, result)

    # --- becoming real ---------------------------------------------------------------------------

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_object(self.value)

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Emit the writes to the class's namespace."""
        first = handle.first_table or {}
        for name, (key, value) in (handle.table or {}).items():
            before = first.get(name)
            if before is None or before[1] is not value:
                codegen.run(type.__setattr__, [self, key, value])
        for name in handle.removed or ():
            if name in handle.real and name not in (handle.table or {}):
                codegen.run(type.__delattr__, [self, ConstantVariable(name)])

    def called_name(self, tx: Tx) -> str:
        """See `slots.calls.callable_name`."""
        return type_name(self.value)

    def __repr__(self) -> str:
        return f"ClassVariable({self.value.__qualname__})"


def type_name(cls: type) -> str:
    """A class's name with its module, as error messages about calls show it."""
    module = namespace_of(cls).get("__module__", "builtins")
    return cls.__qualname__ if module == "builtins" else f"{module}.{cls.__qualname__}"


_UNKNOWN: Final = object()

#: Fields of classes that the descriptors of `type` keep in the class's own namespace.
KEPT_IN_NAMESPACE: Final = (
    "__module__",
    "__doc__",
    "__annotations__",
    "__abstractmethods__",
    "__type_params__",
)


def _plain_field(cls: type, descriptor: Any, name: str) -> Any:
    """A field of a class read in C; `_UNKNOWN` where reading it could run code of the user's."""
    if name == "__doc__":
        text = namespace_of(cls).get("__doc__")
        return text if text is None or type(text) is str else _UNKNOWN
    return descriptor.__get__(cls)


def is_class(value: object) -> bool:
    """Whether `value` is a class."""
    return type in mro_of(type(value))


@wraps_if(is_class, order=40)
def wrap_class(tx: Tx, value: type, source: Source | None) -> Var:
    """Any class: pinned by its identity."""
    if mro_of(value) is None:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"{value.__qualname__}, which is just being made")
    if source is not None:
        tx.guard("is", source, value)
    return ClassVariable(value, source)


# --- the methods of `type` ----------------------------------------------------------------------


def _type_call(tx: Tx, cls: ClassVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return cls.instantiate(tx, args, kwargs)


def _type_getattribute(tx: Tx, cls: ClassVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    name = constant_name(tx, args[0])
    found = cls.type_getattr(tx, name)
    if found is None:
        tx.raise_(AttributeError, f"type object '{cls.value.__name__}' has no attribute '{name}'")
    return found


def _type_setattr(tx: Tx, cls: ClassVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    cls.type_setattr(tx, constant_name(tx, args[0]), args[1])
    return tx.make.constant(None)


def _type_delattr(tx: Tx, cls: ClassVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    cls.type_setattr(tx, constant_name(tx, args[0]), None)
    return tx.make.constant(None)


def _type_init(tx: Tx, cls: ClassVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs and len(args) == 1:
        tx.raise_(TypeError, "type.__init__() takes no keyword arguments")
    if len(args) not in (1, 3):
        tx.raise_(TypeError, "type.__init__() takes 1 or 3 arguments")
    return tx.make.constant(None)


def _type_check(tx: Tx, cls: ClassVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.make.constant(plain_is_instance(tx, args[0].realize(tx), cls.value))


def _type_subclass_check(tx: Tx, cls: ClassVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    kind = args[0].realize(tx)
    if not isinstance(kind, ClassVariable):
        tx.raise_(TypeError, "issubclass() arg 1 must be a class")
    return tx.make.constant(cls.value in mro_of(kind.value))


def _type_mro(tx: Tx, cls: ClassVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.make.list([tx.make.from_value(base, None) for base in mro_of(cls.value)])


def _type_repr(tx: Tx, cls: ClassVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``repr(cls)``: the names are read, so they are guarded."""
    names = [attributes.getattr_(tx, cls, name).realize(tx) for name in ("__module__", "__qualname__")]
    if not all(name.is_constant() for name in names):
        return cls.refuse(tx, "repr()")
    return tx.make.constant(type.__repr__(cls.value))


ClassMethod = Callable[[Tx, Any, Sequence[Any], Mapping[str, Any]], Any]

_TYPE_METHODS: Final[dict[str, ClassMethod]] = {
    "__call__": _type_call,
    "__init__": _type_init,
    "__instancecheck__": _type_check,
    "__subclasscheck__": _type_subclass_check,
    "__getattribute__": _type_getattribute,
    "__setattr__": _type_setattr,
    "__delattr__": _type_delattr,
    "__repr__": _type_repr,
    "__str__": _type_repr,
    "mro": _type_mro,
}

#: Models of class methods of C classes (``dict.fromkeys``), by class and name.
CLASS_METHODS: Final[dict[tuple[type, str], ClassMethod]] = {}


def _init_subclass(tx: Tx, cls: ClassVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if args or kwargs:
        try:
            object.__init_subclass__(*[None] * len(args), **dict.fromkeys(kwargs))
        except TypeError as error:
            text = str(error.args[0])
            tx.raise_(TypeError, text.replace("object.", f"{cls.value.__qualname__}.", 1))
    return tx.make.constant(None)


def _subclass_hook(tx: Tx, cls: ClassVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.make.constant(NotImplemented)


CLASS_METHODS[object, "__init_subclass__"] = _init_subclass
CLASS_METHODS[object, "__subclasshook__"] = _subclass_hook


# --- making objects ----------------------------------------------------------------------------


class _Probe:
    def __new__(cls) -> Any:
        return object.__new__(cls)


_BY_NAME: Final = _C.new_slot(_Probe)


def calls_by_name(cls: type) -> bool:
    """Whether a class makes its objects by looking ``__new__`` up (`slot_tp_new`). So it does if it, or the
    base that it inherits that from, ever had one in Python, though that may be gone."""
    return _C.new_slot(cls) == _BY_NAME


def _check_new(tx: Tx, cls: type, new: TypeAttr) -> None:
    """Break where what ``type.__call__`` runs need not be what is found under ``__new__``: a C function that
    stands on another class than its own changes nothing about one that never looked its ``__new__`` up."""
    found = new.raw if new.written is None else new.written.realize(tx)
    written = type(found) is NewFunctionVariable
    if written or (type(found) is BuiltinFunctionType and getattr(found, "__self__", None) is not new.owner):
        tx.fail(
            Reason.UNKNOWN_CALLABLE,
            f"making an object of {cls.__qualname__}, whose `__new__` is another class's",
        )


def _check_layout(tx: Tx, owner: type, cls: type) -> None:
    """The TypeError of a C ``__new__`` that is called for a class which C code lays out otherwise. Mirrors
    tp_new_wrapper."""
    base: Any = cls
    while base is not None and calls_by_name(base):
        base = _BASE(base)
    if base is not None and _C.new_slot(base) != _C.new_slot(owner):
        call = f"{owner.__name__}.__new__({cls.__name__})"
        tx.raise_(TypeError, f"{call} is not safe, use {base.__name__}.__new__()")


# --- making objects by C classes ----------------------------------------------------------------


def c_construct(
    tx: Tx, cls_var: Any, cls: type, new: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, bool]:
    """Call a C ``__new__`` for `cls`: the object, and whether that did the work of ``__init__``, too."""
    owner = new.__self__
    row = _NEW.get(BaseException if BaseException in mro_of(owner) else owner)
    if row is None:
        _refuse_making(tx, cls)
    construct, whole = row
    made = construct(tx, cls_var, cls, args, kwargs)
    if cls is not owner and made.realize(tx).python_type(tx) is not cls:
        _refuse_making(tx, cls)  # the model knows the class itself only
    return made, whole and cls is owner


def _refuse_making(tx: Tx, cls: type) -> NoReturn:
    managed = type_lookup(tx, cls, "__exit__") is not None
    reason = Reason.UNSUPPORTED_CONTEXT_MANAGER if managed else Reason.UNKNOWN_CALLABLE
    tx.fail(reason, f"making an object of {cls.__module__}.{cls.__qualname__}")


@constructs(object)
def _new_object(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if args or kwargs:
        new, init = type_lookup(tx, cls, "__new__"), type_lookup(tx, cls, "__init__")
        if calls_by_name(cls) or (new is not None and new.raw is not object.__new__):
            tx.raise_(TypeError, "object.__new__() takes exactly one argument (the type to instantiate)")
        if init is not None and init.raw is object.__dict__["__init__"]:
            tx.raise_(TypeError, f"{cls.__name__}() takes no arguments")
    if cls.__flags__ & _IS_ABSTRACT:
        try:
            object.__new__(cls)
        except TypeError as error:
            tx.raise_real(error)
    if cls.__basicsize__ and not cls.__flags__ & (1 << 9) and cls is not object:
        tx.fail(Reason.UNKNOWN_CALLABLE, f"making an object of {cls.__module__}.{cls.__qualname__}")
    return tx.make.instance(cls_var)


def _is_new(value: object) -> bool:
    return (
        type(value) is BuiltinFunctionType
        and value.__name__ == "__new__"
        and isinstance(value.__self__, type)
    )


class NewFunctionVariable(ConstantVariable):
    """The ``__new__`` of a C class as a value: ``object.__new__``, ``tuple.__new__``."""

    __slots__ = ()

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        owner = self.value.__self__
        if not args:
            tx.raise_(TypeError, f"{owner.__name__}.__new__(): not enough arguments")
        cls = args[0].realize(tx)
        if not isinstance(cls, ClassVariable):
            self.refuse(tx, f"call with {cls!r}")
        if not issubclass(cls.value, owner):
            name = cls.value.__name__
            call = f"{owner.__name__}.__new__({name})"
            tx.raise_(TypeError, f"{call}: {name} is not a subtype of {owner.__name__}")
        _check_layout(tx, owner, cls.value)
        made: VariableTracker = c_construct(tx, cls, cls.value, self.value, args[1:], kwargs)[0]
        return made

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_object(self.value)


# The ``__new__`` of a C class.
wraps_if(_is_new, order=25)(pinned(NewFunctionVariable))
