"""C functions of other modules of the standard library: counting, heaps, bisection, keys for sorting, and
what must not be folded because it changes by itself."""

from __future__ import annotations

import _bisect
import _collections  # type: ignore[import-not-found]
import _heapq
import _typing  # type: ignore[import-not-found]
import functools
import os
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType
from typing import Any, Final

from graphlift.polyfills import heaps, mappings
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker
from graphlift.variables.builtin_object import BuiltinObjectVariable, constant
from graphlift.variables.builtins.registry import PURE, builtin, refused
from graphlift.variables.slots import calls, operators

PURE.update((struct.calcsize, struct.pack, struct.unpack, os.fspath, sys.intern))

refused(
    Reason.IMPURE_READ,
    *(function for function in vars(time).values() if type(function) is BuiltinFunctionType),
    os.getpid,
    os.getcwd,
    os.urandom,
    sys.getrefcount,
    sys.getsizeof,
)


@builtin(_collections._count_elements)
def _count_elements(tx: Tx, mapping: Var, iterable: Var) -> Any:
    return tx.run_host(mappings.count_elements, [mapping, iterable])


@builtin(_typing._idfunc)
def _idfunc(tx: Tx, value: Var, /) -> Any:
    return value.realize(tx)


def _heap_function(name: str) -> None:
    polyfill = getattr(heaps, name)

    def model(tx: Tx, heap: Var, *args: Var) -> Any:
        kind = heap.realize(tx).python_type(tx)
        if not issubclass(kind, list):
            position = "" if name == "heapify" else " 1"
            tx.raise_(TypeError, f"{name}() argument{position} must be list, not {kind.__name__}")
        return tx.run_host(polyfill, [heap, *args])

    function = getattr(_heapq, name, None)
    if function is not None:
        builtin(function)(model)


for _name in ("heapify", "heappush", "heappop", "heapreplace", "heappushpop"):
    _heap_function(_name)
for _name in ("_heapify_max", "_heappop_max", "_heapreplace_max"):
    _heap_function(_name)


def _bisect_function(name: str) -> None:
    polyfill = getattr(heaps, name)

    def model(
        tx: Tx, a: Var, x: Var, lo: Var | None = None, hi: Var | None = None, *, key: Var | None = None
    ) -> Any:
        first = constant(tx, 0) if lo is None else lo
        last = constant(tx, None) if hi is None else hi
        return tx.run_host(polyfill, [a, x, first, last, constant(tx, None) if key is None else key])

    builtin(getattr(_bisect, name))(model)


for _name in ("bisect_left", "bisect_right", "insort_left", "insort_right"):
    _bisect_function(_name)


# --- functools.cmp_to_key -----------------------------------------------------------------------------------


class ComparisonKeyVariable(BuiltinObjectVariable):
    """What `functools.cmp_to_key` gives, and (with an object) what calling that gives.

    Attributes:
        function: the comparison function.
        wrapped: the object it stands for, or None.
    """

    __slots__ = ("function", "wrapped")
    models = type(functools.cmp_to_key(int))

    def __init__(self, function: VariableTracker, wrapped: VariableTracker | None) -> None:
        self.source = None
        self.function: Final = function
        self.wrapped: Final = wrapped

    def python_type(self, tx: Tx) -> type:
        return self.models

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if kwargs or len(args) != 1:
            self.refuse(tx, "call")
        return ComparisonKeyVariable(self.function, args[0])

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if not isinstance(other, ComparisonKeyVariable) or self.wrapped is None or other.wrapped is None:
            return NOT_IMPLEMENTED
        answer = calls.call(tx, self.function, [self.wrapped, other.wrapped], {})
        return operators.compare(tx, op, answer, constant(tx, 0))

    def reconstruct(self, codegen: Codegen) -> None:
        if self.wrapped is not None:
            super().reconstruct(codegen)
        codegen.call(functools.cmp_to_key, [self.function])


@builtin(functools.cmp_to_key)
def _cmp_to_key(tx: Tx, mycmp: Var) -> Any:
    return ComparisonKeyVariable(mycmp.realize(tx), None)
