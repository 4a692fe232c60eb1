"""Symbolic numbers: ints, floats and bools that the graph is handed or computes.

Arithmetic on them is recorded like tensor operations; asking for their truth or for a plain number settles
them for this capture, by a guard of the shape environment behind `SymValue.sym`. Knows nothing of when a
number becomes symbolic.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import torch

from graphlift.graph_value import SymValue
from graphlift.operators import BINARY, COMPARE
from graphlift.protocol import Codegen, Tx, Var
from graphlift.sources import Source
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker
from graphlift.variables.builder import maker
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.graph_calls import graph_argument, record, result_of

#: Operators that symbolic ints are followed through; others settle the number first.
_FOLLOWED: Final = frozenset({"+", "-", "*", "/", "//", "%", "**"})
_DIVISIONS: Final = frozenset({"/", "//", "%"})
_NUMBERS: Final = frozenset({int, float, bool})

#: Methods of numbers that are followed; the function that is recorded.
_METHODS: Final[dict[str, Any]] = {
    "__float__": torch.sym_float,
    "__neg__": operator.neg,
    "__abs__": abs,
    "__floor__": math.floor,
    "__ceil__": math.ceil,
}


class SymNodeVariable(VariableTracker):
    """A number not fixed by the capture.

    Attributes:
        value: what the graph knows it by.
    """

    __slots__ = ("value",)
    leaf = True
    symbolic = True

    def __init__(self, value: SymValue, source: Source | None = None) -> None:
        self.source = source
        self.value: Final = value
        value.var = self

    def python_type(self, tx: Tx) -> type:
        if isinstance(self.value.sym, torch.SymInt):
            return int
        return float if isinstance(self.value.sym, torch.SymFloat) else bool

    def settle(self, tx: Tx) -> ConstantVariable:
        """The number it is in this capture, kept by a guard."""
        return ConstantVariable(self.python_type(tx)(self.value.sym))

    def snapshot(self, tx: Tx, depth: int = 0) -> Any:
        return self.settle(tx).value

    def hash_key(self, tx: Tx) -> Hashable:
        return self.settle(tx).hash_key(tx)

    def truth(self, tx: Tx) -> VariableTracker | bool:
        return bool(self.value.sym) if self.python_type(tx) is bool else bool(self.value.sym != 0)

    # --- operators -------------------------------------------------------------------------

    def _operate(self, tx: Tx, function: Any, first: Any, second: Any) -> VariableTracker:
        try:
            return record(tx, function, (first, second))
        except ArithmeticError as error:
            tx.raise_real(error)

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        operand = _operand(tx, other)
        if operand is None:
            return NOT_IMPLEMENTED
        if self.python_type(tx) is bool or not _is_followed(op, self.value, operand):
            return _fold(tx, BINARY[op], self, other)
        return self._operate(tx, BINARY[op], self.value, operand)

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        operand = _operand(tx, other)
        if operand is None:
            return NOT_IMPLEMENTED
        if self.python_type(tx) is bool or not _is_followed(op, operand, self.value):
            return _fold(tx, BINARY[op], other, self)
        return self._operate(tx, BINARY[op], operand, self.value)

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        operand = _operand(tx, other)
        if operand is None:
            return NOT_IMPLEMENTED
        if self.python_type(tx) is bool:
            return _fold(tx, COMPARE[op], self, other)
        return record(tx, COMPARE[op], (self.value, operand))

    def unary(self, tx: Tx, op: str) -> VariableTracker:
        if op == "~" or self.python_type(tx) is bool:
            number = self.settle(tx).value
            return ConstantVariable(~number if op == "~" else -number if op == "-" else +number)
        return self if op == "+" else record(tx, operator.neg, (self.value,))

    # --- attributes ------------------------------------------------------------------------

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if not hasattr(self.python_type(tx), name):
            tx.raise_(AttributeError, f"'{self.python_type(tx).__name__}' object has no attribute '{name}'")
        var = tx.make.builtin_method(name, self)
        assert isinstance(var, VariableTracker)
        return var

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        function = _METHODS.get(name)
        if function is not None and not args and not kwargs and self.python_type(tx) is not bool:
            return record(tx, function, (self.value,))
        if name in ("__int__", "__index__") and self.python_type(tx) is int:
            return self
        return self.settle(tx).call_method(tx, name, args, kwargs)

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_graph_output(self.value)


def _operand(tx: Tx, other: VariableTracker) -> Any:
    """What stands for a number in a recorded operation, None for what is none; a bool counts as an int,
    for the shape environment takes it for something else."""
    if isinstance(other, SymNodeVariable):
        return int(other.settle(tx).value) if other.python_type(tx) is bool else other.value
    if type(other) is ConstantVariable and type(other.value) in _NUMBERS:
        return int(other.value) if type(other.value) is bool else other.value
    return None


def _is_followed(op: str, left: Any, right: Any) -> bool:
    """Whether the result is what torch's symbols say, here and wherever their guards hold."""
    divisor = right.sym if isinstance(right, SymValue) else right
    if op in _DIVISIONS:
        return bool(divisor != 0)
    return op in _FOLLOWED and (op != "**" or _is_plain_power(left, right))


def _is_plain_power(base: Any, exponent: Any) -> bool:
    """Whether a power is an int to a natural number, or of something positive."""
    hints = [number.sym.node.hint if isinstance(number, SymValue) else number for number in (base, exponent)]
    if all(type(hint) is int for hint in hints):
        return bool(hints[1] >= 0)
    return bool(hints[0] > 0)


def _fold(tx: Tx, function: Any, first: VariableTracker, second: VariableTracker) -> VariableTracker:
    """Compute on settled numbers."""
    numbers = [
        var.settle(tx).value if isinstance(var, SymNodeVariable) else var.as_constant()
        for var in (first, second)
    ]
    try:
        return ConstantVariable(function(*numbers))
    except Exception as error:
        tx.raise_real(error)


@graph_argument(SymNodeVariable)
def _argument(tx: Tx, var: SymNodeVariable) -> SymValue:
    return var.value


@result_of(SymValue)
def _result(tx: Tx, value: SymValue) -> Var:
    known: Var | None = value.var
    return SymNodeVariable(value) if known is None else known


def settled(tx: Tx, var: Var) -> Var:
    """`var` itself, or the constant that a symbolic number is in this capture."""
    return var.settle(tx) if isinstance(var, SymNodeVariable) else var


@maker
def symbol(tx: Tx, number: float, source: Source) -> SymNodeVariable:
    """A number of the program that differs from call to call: an input of the graph."""
    tx.guard("type", source, type(number))
    return SymNodeVariable(tx.graph.add_symbol_input(number, source), source)
