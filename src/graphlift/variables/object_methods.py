"""The methods of `object`, on trackers: what a class inherits when neither it nor a builtin base defines one.

Mirrors the ``object_...`` functions of Objects/typeobject.c.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Mapping, Sequence
from types import MemberDescriptorType
from typing import Any, Final, NoReturn

from graphlift.protocol import Tx
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.slots import attributes, operators, text
from graphlift.variables.slots.type_lookup import mro_of, namespace_of, type_lookup

Args = Sequence[Any]
KwArgs = Mapping[str, Any]
ObjectMethod = Callable[[Tx, VariableTracker, Args, KwArgs], Any]

OBJECT_METHODS: Final[dict[str, ObjectMethod]] = {}

#: Models of methods of other C classes whose objects are nothing but attributes, by class and name.
C_METHODS: Final[dict[tuple[type, str], ObjectMethod]] = {}

_OBJECT_INIT: Final = object.__dict__["__init__"]
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
    protocol = args[0].realize(tx)
    if not protocol.is_constant() or protocol.as_constant() < 2 or not _is_dictionary_only(tx, self, cls):
        tx.fail(Reason.UNSUPPORTED_OPERATION, f"copying or pickling of {self!r}")
    items = self.iter_(tx) if issubclass(cls, list) else tx.make.constant(None)
    entries = tx.make.constant(None)
    if issubclass(cls, dict):
        entries = self.invoke(tx, "items", [], {}).realize(tx).iter_(tx)
    newargs = tx.make.tuple([attributes.class_of(tx, self, cls)])
    return tx.make.tuple([tx.make.from_value(_NEWOBJ, None), newargs, _state(tx, self, cls), items, entries])


def _is_dictionary_only(tx: Tx, self: VariableTracker, cls: type) -> bool:
    """Whether an object is its dictionary (and list items or dictionary entries), and nothing else."""
    names = ("__getnewargs__", "__getnewargs_ex__", "__copy__")
    if any(type_lookup(tx, cls, name) is not None for name in names) or self.instance_dict(tx) is None:
        return False
    return not any(
        type(value) is MemberDescriptorType for owner in mro_of(cls) for value in namespace_of(owner).values()
    )


def _state(tx: Tx, self: VariableTracker, cls: type) -> Any:
    own = attributes.user_special(tx, self, "__getstate__")
    if own is not None:
        return attributes.call_attr(tx, own, self, cls, [])
    handle = self.instance_dict(tx)
    assert handle is not None
    state = tx.make.namespace_dict(handle, self)
    return state if operators.is_true(tx, state) else tx.make.constant(None)
