"""Compiled callables that captured code meets: looked into as what they stand for.

So a nested compiled callable becomes part of the outer graph, under the outer's settings. Kinds of stand-ins
that are made above this layer enter themselves by `stands_in`. It must not know how anything is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

import torch

from graphlift import _C
from graphlift.heap import Handle
from graphlift.operators import COMPARE_METHODS
from graphlift.protocol import Tx, Var
from graphlift.sources import AttrSource, SlotSource, Source
from graphlift.variables import namespace
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker
from graphlift.variables.builder import wraps, wraps_if
from graphlift.variables.functions import called_or_bound
from graphlift.variables.modules import ModuleVariable
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import anchor
from graphlift.variables.user_defined import UserDefinedObject
from graphlift.verification import VerifiedFunction

_WRAPPED: Final = _C.CompiledFunction.__dict__["__wrapped__"]


class CompiledFunctionVariable(UserDefinedObject):
    """A compiled function: called as the function it wraps.

    Attributes:
        function: what it wraps.
    """

    __slots__ = ("function",)

    def __init__(self, cls: type, function: Any, handle: Handle, source: Source) -> None:
        super().__init__(cls, handle, source)
        self.function: Final = function

    def hash_key(self, tx: Tx) -> Hashable:
        return self.identity(tx)

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        result: VariableTracker = self.function.realize(tx).call(tx, args, kwargs)
        return result

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        found = called_or_bound(self, tx, name, args, kwargs)
        return super().call_method(tx, name, args, kwargs) if found is None else found

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        """Its own dictionary first, then what its type has of its own, then the function's attribute."""
        if name == "__wrapped__":
            wrapped: VariableTracker = self.function.realize(tx)
            return wrapped
        own = self.instance_dict(tx)
        found = None if own is None else namespace.lookup(tx, own, name, AttrSource)
        if found is not None:
            return found.realize(tx)  # type: ignore[no-any-return]
        if name != "__doc__" and any(name in vars(cls) for cls in _C.CompiledFunction.__mro__):
            return super().getattr_(tx, name)
        of_function: VariableTracker = attributes.getattr_(tx, self.function, name)
        return of_function

    def setattr_(self, tx: Tx, name: str, value: VariableTracker) -> None:
        self.refuse(tx, f"setting attribute {name!r}")

    def delattr_(self, tx: Tx, name: str) -> None:
        self.refuse(tx, f"deleting attribute {name!r}")

    def called_name(self, tx: Tx) -> str:
        """See `slots.calls.callable_name`."""
        name = getattr(self.function, "called_name", None)
        return "compiled function" if name is None else str(name(tx))

    def __repr__(self) -> str:
        return f"CompiledFunctionVariable({self.function!r})"


@wraps(_C.CompiledFunction, VerifiedFunction)
def wrap_compiled_function(tx: Tx, value: Any, source: Source | None) -> CompiledFunctionVariable:
    """The function beneath is pinned like any function at such a place."""
    at = anchor(tx, value) if source is None else source
    tx.guard("type", at, type(value))
    function = tx.make.from_value(_WRAPPED.__get__(value), at.child(SlotSource, _WRAPPED))
    made = CompiledFunctionVariable(type(value), function, tx.heap.handle_of(value, at), at)
    made.handle.tracker = made
    return made


# --- stand-ins made above -----------------------------------------------------------------------

_ORIGINALS: dict[type, Callable[[Any], Any]] = {}


def stands_in(base: type, original: Callable[[Any], Any]) -> None:
    """Register a kind of object that stands for another.

    Arguments:
        base: the stand-ins are instances of its subclasses.
        original: gives the object that one stands for; it runs no user code.
    """
    _ORIGINALS[base] = original


def _base_of(value: object) -> type | None:
    return next((base for base in type(value).__mro__ if base in _ORIGINALS), None)


def _is_stand_in(value: object) -> bool:
    return _base_of(value) is not None


class StandInVariable(VariableTracker):
    """An object that stands for another callable object.

    Calls, plain attributes, special methods and what `isinstance` asks are the other's, identity is its own.

    Attributes:
        original: the other's tracker.
        real: the stand-in.
    """

    __slots__ = ("original", "real")

    def __init__(self, original: Any, real: Any, source: Source) -> None:
        self.source = source
        self.original: Final = original
        self.real: Final = real

    def python_type(self, tx: Tx) -> type:
        return type(self.real)

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        result: VariableTracker = self.original.call(tx, args, kwargs)
        return result

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        names = ("__eq__", "__ne__") if op == "!=" else (COMPARE_METHODS[op],)
        if all(attributes.user_special(tx, self.original, name) is None for name in names):
            return NOT_IMPLEMENTED
        result: VariableTracker | NotImplementedType = self.original.compare(tx, op, other)
        return result

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name == "__class__":
            cls: VariableTracker = attributes.class_of(
                tx, self.original, self.original.python_type(tx)
            ).realize(tx)
            return cls
        if name in vars(type(self.real)) or name.startswith("__"):
            return self.refuse(tx, f"attribute {name!r}")
        found: VariableTracker = attributes.getattr_(tx, self.original, name)
        return found

    def setattr_(self, tx: Tx, name: str, value: VariableTracker) -> None:
        self.original.setattr_(tx, name, value)

    def delattr_(self, tx: Tx, name: str) -> None:
        self.original.delattr_(tx, name)


def _refused(name: str) -> Callable[..., Any]:
    return lambda self, tx, *_: self.refuse(tx, name)


def _forwarded(name: str) -> Callable[..., Any]:
    def forwarded(self: StandInVariable, tx: Tx, *args: Any) -> Any:
        result = getattr(self.original, name)(tx, *args)
        return self if result is self.original else result

    return forwarded


for _name in (
    "length", "getitem", "setitem", "delitem", "contains", "iter_", "next_", "truth", "unary", "binary",
    "rbinary", "inplace", "unpack",
):  # fmt: skip
    setattr(StandInVariable, _name, _forwarded(_name))
for _name in ("concat", "repeat", "inplace_concat", "inplace_repeat"):
    setattr(StandInVariable, _name, _refused(_name))


class TwinModuleVariable(ModuleVariable):
    """A compiled module: its state is the original's, and calling it calls the original.

    Attributes:
        original: the original's tracker.
        extra: names that the twin's class adds to the original's.
    """

    __slots__ = ("extra", "original")

    def __init__(
        self, original: ModuleVariable, extra: frozenset[str], handle: Handle, source: Source
    ) -> None:
        super().__init__(original.cls, handle, source)
        self.original: Final = original
        self.extra: Final = extra

    def python_type(self, tx: Tx) -> type:
        return type(self.value)

    def instance_dict(self, tx: Tx) -> Handle | None:
        return self.original.instance_dict(tx)

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        return self.original.call(tx, args, kwargs)

    def invoke(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name in self.extra:
            return self.getattr_(tx, name).realize(tx).call(tx, args, kwargs)
        return super().invoke(tx, name, args, kwargs)

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name == "_orig_mod":
            return self.original
        if name == "__call__":
            return self.original.getattr_(tx, name)
        if name in self.extra and name != "__class__":
            return self.refuse(tx, f"attribute {name!r}")
        return super().getattr_(tx, name)


@wraps_if(_is_stand_in, order=15)
def wrap_stand_in(tx: Tx, value: Any, source: Source | None) -> Var:
    """A stand-in is pinned by identity, and with it what it stands for."""
    base = _base_of(value)
    assert base is not None
    at = anchor(tx, value)
    if source is not None:
        tx.guard("is", source, value)
        at = source  # type: ignore[assignment]
    original = _ORIGINALS[base](value)
    beneath: Any = tx.make.from_value(original, anchor(tx, original)).realize(tx)
    if isinstance(original, torch.nn.Module) and isinstance(beneath, ModuleVariable):
        extra = frozenset(vars(base)) - {"__doc__", "__module__", "__slots__"}
        made = TwinModuleVariable(beneath, extra, tx.heap.handle_of(value, at), at)
        made.handle.tracker = made
        return made
    return StandInVariable(beneath, value, at)
