"""How guards refer to objects without keeping the user's alive.

Guards hang on code objects, which the garbage collector cannot see into: whatever they owned would never be
freed if it led back to the code. So an object is held by a weak reference, and outright only if it belongs to
the process and leads to nothing of the user's.
"""

from __future__ import annotations

import weakref
from _collections import _tuplegetter  # type: ignore[import-not-found]
from types import (
    ClassMethodDescriptorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any, Final

#: `Py_TPFLAGS_HEAPTYPE`: the class was made while the program ran.
_HEAP_TYPE: Final = 1 << 9
#: `Py_TPFLAGS_IMMUTABLETYPE`: no attribute of the class can be set; C modules make such classes, too.
_IMMUTABLE_TYPE: Final = 1 << 8

_flags: Final[Any] = type.__dict__["__flags__"].__get__

#: Of a class, without asking its metaclass: ``class_name(cls)`` is ``cls.__qualname__`` as `type` gives it.
class_name: Final[Any] = type.__dict__["__qualname__"].__get__

#: Descriptors that C types are made with; those of static types live as long as the process.
_DESCRIPTORS: Final = frozenset(
    {
        MethodDescriptorType,
        WrapperDescriptorType,
        GetSetDescriptorType,
        MemberDescriptorType,
        ClassMethodDescriptorType,
    }
)

#: Descriptors that only classes made in C have, also those that are no static types.
_METHODS: Final = frozenset({MethodDescriptorType, ClassMethodDescriptorType})
#: Constants, and the fields of named tuples (an index and a text).
_OUTRIGHT: Final = frozenset(
    {type(None), type(...), type(NotImplemented), int, float, bool, str, bytes, complex, _tuplegetter}
)
_TORCH_OUTRIGHT: Final = frozenset({"dtype", "layout", "memory_format", "device", "qscheme"})


class NotGuardableError(Exception):
    """Nothing can say at the next call whether this is still so; the capture cannot be kept."""


class Gone:
    """What stands for an object that is no longer there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "an object that is gone"


GONE: Final = Gone()


def is_static_type(value: object) -> bool:
    """Whether `value` is a class made in C, which no program can change or drop."""
    if not issubclass(type(value), type):
        return False
    flags = _flags(value)
    return not flags & _HEAP_TYPE or bool(flags & _IMMUTABLE_TYPE)


def hold(value: Any) -> Any:
    """A weak reference to `value`, or `value` itself where that keeps nothing of the user's alive.

    Raises:
        NotGuardableError: for an object of the user's that cannot be held weakly.
    """
    kind = type(value)
    if kind is type:
        return value if is_static_type(value) else weakref.ref(value)
    if kind in _OUTRIGHT:
        return value
    if kind in _METHODS or (kind in _DESCRIPTORS and is_static_type(value.__objclass__)):
        return value
    if (
        type(kind) is type
        and kind.__module__ == "torch"
        and kind.__name__ in _TORCH_OUTRIGHT
        and is_static_type(kind)
    ):
        return value
    if kind is weakref.ref:
        raise NotGuardableError("a weak reference cannot be told from another one later")
    try:
        return weakref.ref(value)
    except TypeError:
        raise NotGuardableError(f"an object of class {class_name(kind)} cannot be held weakly") from None


def held(holder: Any) -> Any:
    """The object that `holder` stands for, or `GONE`."""
    if type(holder) is not weakref.ref:
        return holder
    value = holder()
    return GONE if value is None else value
