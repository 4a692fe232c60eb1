"""Slices and ranges. Mirrors Objects/sliceobject.c and Objects/rangeobject.c."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, cast

from graphlift.protocol import Codegen, Tx, Var
from graphlift.sources import SlotSource, Source
from graphlift.variables.base import NOT_IMPLEMENTED, UNKNOWN, NotImplementedType, VariableTracker
from graphlift.variables.builder import makes, wraps
from graphlift.variables.builtin_object import BuiltinObjectVariable, constant, make_tuple, method
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.folding import as_host, fold, known
from graphlift.variables.iterators import RangeIteratorVariable
from graphlift.variables.slots import iteration, operators
from graphlift.variables.slots.numbers import has_index, index_


class SliceVariable(BuiltinObjectVariable):
    """A slice; its parts may be of any kind.

    Attributes:
        parts: start, stop and step.
    """

    __slots__ = ("parts",)
    models = slice

    def __init__(self, start: Var, stop: Var, step: Var, source: Source | None = None) -> None:
        self.source = source
        self.parts: Final = (start, stop, step)

    def children(self) -> tuple[Var, ...]:
        """What it holds."""
        return self.parts

    def python_type(self, tx: Tx) -> type:
        return slice

    def snapshot(self, tx: Tx, depth: int = 0) -> Any:
        values = [part.realize(tx).snapshot(tx, depth + 1) for part in self.parts]
        return UNKNOWN if UNKNOWN in values else slice(*values)

    def hash_key(self, tx: Tx) -> Hashable:
        try:
            hash(slice(None))
        except TypeError as error:
            tx.raise_real(error)
        value = self.snapshot(tx)
        if value is not UNKNOWN:
            return cast(Hashable, value)
        return (slice, *(part.realize(tx).hash_key(tx) for part in self.parts))

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        part: VariableTracker = self.parts[("start", "stop", "step").index(name)].realize(tx)
        return part

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if not isinstance(other, SliceVariable):
            return NOT_IMPLEMENTED
        return operators.compare(tx, op, make_tuple(tx, self.parts), make_tuple(tx, other.parts))

    def resolve(self, tx: Tx, length: int) -> tuple[int, int, int]:
        """``slice.indices(length)``: start, stop and step for a sequence of that length."""
        step, start, stop = (self._part(tx, self.parts[index]) for index in (2, 0, 1))  # as CPython does
        try:
            return slice(start, stop, step).indices(length)
        except ValueError as error:
            tx.raise_real(error)

    def _part(self, tx: Tx, part: Var) -> int | None:
        value: VariableTracker = part.realize(tx)
        if isinstance(value, ConstantVariable) and value.value is None:
            return None
        if not has_index(tx, value):
            tx.raise_(TypeError, "slice indices must be integers or None or have an __index__ method")
        return index_(tx, value)

    @method()
    def indices(self, tx: Tx, length: VariableTracker) -> VariableTracker:
        """``slice.indices``."""
        count = index_(tx, length)
        if count < 0:
            tx.raise_(ValueError, "length should not be negative")
        return make_tuple(tx, [constant(tx, i) for i in self.resolve(tx, count)])

    def reconstruct(self, codegen: Codegen) -> None:
        for part in self.parts:
            codegen(part)
        codegen.build("slice", 3)


class RangeVariable(BuiltinObjectVariable):
    """A range of known integers.

    Attributes:
        value: the range.
    """

    __slots__ = ("value",)
    models = range
    leaf = True

    def __init__(self, value: range, source: Source | None = None) -> None:
        self.source = source
        self.value: Final = value

    def python_type(self, tx: Tx) -> type:
        return range

    def snapshot(self, tx: Tx, depth: int = 0) -> Any:
        return self.value

    def hash_key(self, tx: Tx) -> Hashable:
        return self.value

    def truth(self, tx: Tx) -> bool:
        return bool(self.value)

    def length(self, tx: Tx) -> VariableTracker:
        return fold(tx, len, self.value)

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        return fold(tx, getattr, self.value, name)

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        if isinstance(key, SliceVariable):
            index = known(tx, key)
            if index is UNKNOWN:
                start, stop, step = key.resolve(tx, len(self.value))
                return RangeVariable(_cut(self.value, start, stop, step))
            return fold(tx, self.value.__getitem__, index)
        if not has_index(tx, key):
            name = key.python_type(tx).__name__
            tx.raise_(TypeError, f"range indices must be integers or slices, not {name}")
        return fold(tx, self.value.__getitem__, index_(tx, key))

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        value = item.snapshot(tx)
        return NOT_IMPLEMENTED if value is UNKNOWN else fold(tx, self.value.__contains__, value)

    def unpack(self, tx: Tx) -> list[VariableTracker]:
        if self.value[iteration.LIMIT :]:  # its length need not fit a C integer
            iteration.too_long(tx, self)
        return [constant(tx, item) for item in self.value]

    def iter_(self, tx: Tx) -> VariableTracker:
        return RangeIteratorVariable(self.value)

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if op in ("==", "!=") and isinstance(other, RangeVariable):
            return constant(tx, (self.value == other.value) is (op == "=="))
        return NOT_IMPLEMENTED

    @method("__reversed__")
    def _reversed(self, tx: Tx) -> VariableTracker:
        return RangeIteratorVariable(self.value[::-1])

    @method()
    def index(self, tx: Tx, item: VariableTracker) -> VariableTracker:
        """``range.index``."""
        return fold(tx, self.value.index, as_host(tx, item, "range.index()"))

    @method()
    def count(self, tx: Tx, item: VariableTracker) -> VariableTracker:
        """``range.count``."""
        return fold(tx, self.value.count, as_host(tx, item, "range.count()"))

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(
            range, [ConstantVariable(n) for n in (self.value.start, self.value.stop, self.value.step)]
        )


def _cut(value: range, start: int, stop: int, step: int) -> range:
    """The range of the items that a resolved slice names (its stop may be -1 for "past the first")."""
    first = value.start + start * value.step
    last = value.start + stop * value.step
    return range(first, last, step * value.step)


@wraps(range)
def wrap_range(tx: Tx, value: range, source: Source | None) -> Var:
    """A range is read by its three numbers, each guarded."""
    if source is not None:
        tx.guard("type", source, range)
        for name in ("start", "stop", "step"):
            tx.guard("constant", source.child(SlotSource, range.__dict__[name]), getattr(value, name))
    return RangeVariable(value, source)


@wraps(slice)
def wrap_slice(tx: Tx, value: slice, source: Source | None) -> Var:
    """The parts of an existing slice are read one by one."""
    if source is not None:
        tx.guard("type", source, slice)

    def part(name: str) -> Var:
        held = getattr(value, name)
        if source is None:
            return tx.make.from_value(held, None)
        return tx.make.lazy(held, source.child(SlotSource, slice.__dict__[name]))

    return SliceVariable(part("start"), part("stop"), part("step"), source)


@makes("slice")
def make_slice(tx: Tx, start: Var, stop: Var, step: Var) -> Var:
    """See `protocol.Make.slice`."""
    return SliceVariable(start, stop, step)
