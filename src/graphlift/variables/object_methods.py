"""The methods of `object`, on trackers: what a class inherits when neither it nor a builtin base defines one.

Mirrors the ``object_...`` functions of Objects/typeobject.c.
"""

from __future__ import annotations

import copyreg
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from graphlift.protocol import Tx
from graphlift.reasons import Reason
from graphlift.variables import namespace
from graphlift.variables.base import VariableTracker
from graphlift.variables.slots import attributes, iteration, text
from graphlift.variables.slots.type_lookup import mro_of, namespace_of, own_attr, type_lookup, written_class

Args = Sequence[Any]
KwArgs = Mapping[str, Any]
ObjectMethod = Callable[[Tx, VariableTracker, Args, KwArgs], Any]

OBJECT_METHODS: Final[dict[str, ObjectMethod]] = {}

#: Models of methods of other C classes whose objects are nothing but attributes, by class and name.
C_METHODS: Final[dict[tuple[type, str], ObjectMethod]] = {}

_OBJECT_INIT: Final = object.__dict__["__init__"]
_HEAP_TYPE: Final = 1 << 9
_POINTER: Final = struct.calcsize("P")
_OBJECT_NEW: Final = object.__dict__["__new__"]
_NEWOBJ: Final[Any] = vars(copyreg)["__newobj__"]


def object_method(function: ObjectMethod) -> ObjectMethod:
    """Enter the model of the method of `object` that has the function's name between double underscores."""
    OBJECT_METHODS[f"__{function.__name__.strip('_')}__"] = function
    return function


def constant_name(tx: Tx, value: Any) -> str:
    """An attribute name given as a value.

    Raises a TypeError in the user's program when it is no string; breaks when it is not known.
    """
    name = value.realize(tx)
    if not name.is_constant():
        tx.fail(Reason.UNSUPPORTED_OPERATION, f"an attribute whose name is {name!r}")
    text = name.as_constant()
    if not isinstance(text, str):
        tx.raise_(TypeError, f"attribute name must be string, not '{type(text).__name__}'")
    return text


def _expect(tx: Tx, name: str, args: Args, kwargs: KwArgs, count: int) -> None:
    """The TypeError of a slot wrapper called with a wrong number of arguments."""
    if kwargs:
        tx.raise_(TypeError, f"wrapper {name}() takes no keyword arguments")
    if len(args) != count:
        plural = "" if count == 1 else "s"
        tx.raise_(TypeError, f"expected {count} argument{plural}, got {len(args)}")


@object_method
def _getattribute(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> Any:
    _expect(tx, "__getattribute__", args, kwargs, 1)
    return attributes.generic_getattr(tx, self, self.python_type(tx), constant_name(tx, args[0]))


@object_method
def _setattr(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> Any:
    _expect(tx, "__setattr__", args, kwargs, 2)
    attributes.generic_setattr(tx, self, self.python_type(tx), constant_name(tx, args[0]), args[1])
    return tx.make.constant(None)


@object_method
def _delattr(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> Any:
    _expect(tx, "__delattr__", args, kwargs, 1)
    attributes.generic_setattr(tx, self, self.python_type(tx), constant_name(tx, args[0]), None)
    return tx.make.constant(None)


@object_method
def _init(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> Any:
    if args or kwargs:
        cls = self.python_type(tx)
        init, new = type_lookup(tx, cls, "__init__"), type_lookup(tx, cls, "__new__")
        if init is not None and init.raw is not _OBJECT_INIT:
            tx.raise_(TypeError, "object.__init__() takes exactly one argument (the instance to initialize)")
        if new is not None and new.raw is _OBJECT_NEW:
            text = f"{cls.__name__}.__init__() takes exactly one argument (the instance to initialize)"
            tx.raise_(TypeError, text)
    return tx.make.constant(None)


@object_method
def _init_subclass(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> Any:
    return tx.make.constant(None)


@object_method
def _eq(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> Any:
    _expect(tx, "__eq__", args, kwargs, 1)
    return tx.make.constant(True if args[0].realize(tx) is self else NotImplemented)


@object_method
def _ne(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> Any:
    _expect(tx, "__ne__", args, kwargs, 1)
    result = self.compare(tx, "==", args[0].realize(tx))
    if not isinstance(result, VariableTracker):
        return tx.make.constant(False if args[0].realize(tx) is self else NotImplemented)
    known = result.truth(tx)
    if not isinstance(known, bool):
        tx.fail(Reason.DATA_DEPENDENT_BRANCH, f"`!=` of {self!r}")
    return tx.make.constant(not known)


def _not_ordered(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> Any:
    return tx.make.constant(NotImplemented)


for _op in ("__lt__", "__le__", "__gt__", "__ge__"):
    OBJECT_METHODS[_op] = _not_ordered


@object_method
def _hash(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> NoReturn:
    tx.fail(Reason.IDENTITY, f"hash() of {self!r}")


@object_method
def _str(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> Any:
    _expect(tx, "__str__", args, kwargs, 0)
    return text.repr_(tx, self)


@object_method
def _repr(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> NoReturn:
    tx.fail(Reason.IDENTITY, f"the default repr() of {self!r} shows an address")


@object_method
def _format(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> Any:
    _expect(tx, "__format__", args, kwargs, 1)
    spec = args[0].realize(tx)
    if not spec.is_constant() or spec.as_constant():
        tx.raise_(
            TypeError, f"unsupported format string passed to {self.python_type(tx).__name__}.__format__"
        )
    return text.str_(tx, self)


# --- copying -----------------------------------------------------------------------------------------


@object_method
def _reduce_ex(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> Any:
    """``object.__reduce_ex__`` of protocol 2 and up, for objects without members in C."""
    _expect(tx, "__reduce_ex__", args, kwargs, 1)
    cls = self.python_type(tx)
    reduce = attributes.user_special(tx, self, "__reduce__")
    if reduce is not None:
        return attributes.call_attr(tx, reduce, self, cls, [])
    of_c = type_lookup(tx, cls, "__reduce__")
    if of_c is not None and of_c.raw is not object.__dict__["__reduce__"]:
        return self.invoke(tx, "__reduce__", [], {})
    protocol = args[0].realize(tx)
    number = protocol.as_constant() if protocol.is_constant() else None
    if not isinstance(number, int) or number < 2 or not _is_followed(tx, cls):
        tx.fail(Reason.UNSUPPORTED_OPERATION, f"copying or pickling of {self!r}")
    items = self.iter_(tx) if issubclass(cls, list) else tx.make.constant(None)
    entries = tx.make.constant(None)
    if issubclass(cls, dict):
        entries = self.invoke(tx, "items", [], {}).realize(tx).iter_(tx)
    given: list[Any] = []
    if type_lookup(tx, cls, "__getnewargs__") is not None:
        given = iteration.unpack(tx, self.invoke(tx, "__getnewargs__", [], {}))
    newargs = tx.make.tuple([attributes.class_of(tx, self, cls), *given])
    return tx.make.tuple([tx.make.from_value(_NEWOBJ, None), newargs, _state(tx, self, cls), items, entries])


def _is_followed(tx: Tx, cls: type) -> bool:
    """Whether an object is its attributes (and list items, dictionary entries or arguments of `__new__`)."""
    if any(type_lookup(tx, cls, name) is not None for name in ("__getnewargs_ex__", "__copy__")):
        return False
    base = next(each for each in mro_of(cls) if not each.__flags__ & _HEAP_TYPE or _has_fields_in_c(each))
    return base in (object, list, dict, tuple)


def _has_fields_in_c(cls: type) -> bool:
    """Whether objects have more room than the base's, beside slots, dictionary and weak references."""
    base: Any = cls.__base__
    slots = namespace_of(cls).get("__slots__", ())
    names = slots if type(slots) in (tuple, list, dict) else (slots,) if type(slots) is str else ()
    count = sum(name not in ("__dict__", "__weakref__") for name in names)
    count += cls.__dictoffset__ != base.__dictoffset__
    count += cls.__weakrefoffset__ != base.__weakrefoffset__
    return bool(cls.__basicsize__ - base.__basicsize__ > count * _POINTER)


def _slot_names(tx: Tx, cls: type) -> list[str]:
    """The names of members of ``__slots__``, as `copyreg` finds them, or those that the class has at hand."""
    if written_class(tx, cls, "__slotnames__"):
        attr = own_attr(tx, cls, "__slotnames__")
        assert attr is not None
        return [constant_name(tx, name) for name in iteration.unpack(tx, attr.value(tx))]
    kept = namespace_of(cls).get("__slotnames__")
    if type(kept) is list:
        if not all(type(name) is str for name in kept):
            tx.fail(Reason.UNSUPPORTED_OPERATION, f"the state of an object of {cls.__qualname__}")
        return list(kept)
    names: list[str] = []
    for owner in mro_of(cls):
        slots = namespace_of(owner).get("__slots__", ()) if owner.__flags__ & _HEAP_TYPE else ()
        for name in (slots,) if isinstance(slots, str) else slots:
            private = name.startswith("__") and not name.endswith("__")
            stripped = owner.__name__.lstrip("_")
            names.append(f"_{stripped}{name}" if private and stripped else name)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


@object_method
def _getstate(tx: Tx, self: VariableTracker, args: Args, kwargs: KwArgs) -> Any:
    """``object.__getstate__``: the dictionary, or that and the members in C that are set."""
    _expect(tx, "__getstate__", args, kwargs, 0)
    cls = self.python_type(tx)
    if not _is_followed(tx, cls):
        tx.fail(Reason.UNSUPPORTED_OPERATION, f"the state of {self!r}")
    handle = self.instance_dict(tx)
    state = tx.make.constant(None)
    if handle is not None:
        namespace.complete(tx, handle)
        state = tx.make.namespace_dict(handle, self) if handle.table else state
    names = [name for name in _slot_names(tx, cls) if attributes.hasattr_(tx, self, name)]
    if not names:
        return state
    slots = [(tx.make.constant(name), attributes.getattr_(tx, self, name)) for name in names]
    return tx.make.tuple([state, tx.make.dict(slots)])


def _state(tx: Tx, self: VariableTracker, cls: type) -> Any:
    own = attributes.user_special(tx, self, "__getstate__")
    if own is not None:
        return attributes.call_attr(tx, own, self, cls, [])
    return _getstate(tx, self, [], {})
