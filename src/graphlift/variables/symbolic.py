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
from graphlift.operators import BINARY, COMPARE, UNARY, numbers_lack
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import Source
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker
from graphlift.variables.builder import maker
from graphlift.variables.constant import METHOD_TYPES, ConstantVariable
from graphlift.variables.folding import FOLDABLE, fold, fold_binary
from graphlift.variables.graph_calls import graph_argument, record, result_of

#: Operators that symbolic numbers are followed through; others settle the number first.
_FOLLOWED: Final = frozenset({"+", "-", "*", "/", "//", "%", "**"})
_DIVISIONS: Final = frozenset({"/", "//", "%"})
_NUMBERS: Final = frozenset({int, float, bool})
_NO_NUMBERS: Final = frozenset({str, bytes, type(None), type(Ellipsis), type(NotImplemented)})
#: Larger whole numbers that change are addresses and hashes: to settle one is to capture at every call.
_LARGEST_KEY: Final = 1 << 32

#: The largest power of a whole number that is followed.
_LARGEST_POWER: Final = 16

#: Methods that give a whole number for a float: the function that is recorded.
_ROUNDINGS: Final[dict[str, Any]] = {
    "__floor__": math.floor,
    "__ceil__": math.ceil,
    "__trunc__": math.trunc,
    "__int__": math.trunc,
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
        if isinstance(self.value.sym, torch.SymFloat):
            return ConstantVariable(tx.graph.exact.fix(self.value))
        return ConstantVariable(self.python_type(tx)(self.value.sym))

    def snapshot(self, tx: Tx, depth: int = 0) -> Any:
        return self.settle(tx).value

    def hash_key(self, tx: Tx) -> Hashable:
        if self.python_type(tx) is int and abs(tx.graph.exact.hint(self.value)) > _LARGEST_KEY:
            tx.fail(Reason.IDENTITY, "a large number that changes, such as an id(), as a key")
        return self.settle(tx).hash_key(tx)

    def truth(self, tx: Tx) -> VariableTracker | bool:
        return _is_not_zero(tx, self)

    # --- operators -------------------------------------------------------------------------

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        other = _number_in(other)
        if not _is_value(other) or _lacks(tx, op, self, other):
            return NOT_IMPLEMENTED
        return _binary(tx, op, self, other)

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        other = _number_in(other)
        if not _is_value(other) or _lacks(tx, op, other, self):
            return NOT_IMPLEMENTED
        return _binary(tx, op, other, self)

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        other = _number_in(other)
        if not _is_value(other) or _lacks(tx, op, self, other):
            return NOT_IMPLEMENTED
        first, second = _operand(tx, self), _operand(tx, other)
        followed = isinstance(other, SymNodeVariable) or type(second) in _NUMBERS
        if not followed or not (isinstance(first, SymValue) or isinstance(second, SymValue)):
            return _fold(tx, COMPARE[op], self, other)
        if float not in (_kind(tx, self), _kind(tx, other)):
            return record(tx, COMPARE[op], (first, second))
        answer: bool = COMPARE[op](tx.graph.exact.hint(first), tx.graph.exact.hint(second))
        tx.graph.exact.assume(answer, op, first, second)
        return ConstantVariable(answer)

    def unary(self, tx: Tx, op: str) -> VariableTracker:
        kind = self.python_type(tx)
        if op == "~" or kind is bool:
            return _fold(tx, UNARY[op], self)
        if op == "+":
            return self
        return self._computed(tx, operator.neg, "neg")

    def _computed(self, tx: Tx, function: Any, op: str) -> VariableTracker:
        """`function` of the number; `op` is its name in guards."""
        return _noted(tx, record(tx, function, (self.value,)), function, op, self.value)

    # --- attributes ------------------------------------------------------------------------

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        kind = self.python_type(tx)
        if name == "real" and kind is not bool:
            return self
        if not isinstance(getattr(kind, name, None), METHOD_TYPES):
            return self.settle(tx).getattr_(tx, name)
        var = tx.make.builtin_method(name, self)
        assert isinstance(var, VariableTracker)
        return var

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        followed = None if args or kwargs else self._followed(tx, name)
        return self.settle(tx).call_method(tx, name, args, kwargs) if followed is None else followed

    def _followed(self, tx: Tx, name: str) -> VariableTracker | None:
        """What a method without arguments gives, where it need not settle the number."""
        kind = self.python_type(tx)
        if kind is bool:
            return None
        if name == "__float__":
            return self if kind is float else self._computed(tx, torch.sym_float, "float")
        if name == "__neg__":
            return self.unary(tx, "-")
        if name == "__abs__":
            return self._computed(tx, abs, "abs")
        if kind is int:
            return self if name in _ROUNDINGS or name == "__index__" else None
        if name in _ROUNDINGS and tx.graph.exact.takes_one_step(self.value):
            return record(tx, _ROUNDINGS[name], (self.value,))
        return None

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_graph_output(self.value)


# --- arithmetic ----------------------------------------------------------------------------------------


def _number_in(other: VariableTracker) -> VariableTracker:
    """The builtin part of a number of a derived class, which is all that a builtin number asks."""
    part: Any = getattr(other, "storage", None)
    is_number = isinstance(part, SymNodeVariable) or (
        isinstance(part, ConstantVariable) and isinstance(part.value, (int, float, complex))
    )
    return part if is_number else other


def _is_value(var: VariableTracker) -> bool:
    """Whether an operator may be about numbers: an operand that is one, or a value like a time difference."""
    return isinstance(var, SymNodeVariable) or (
        isinstance(var, ConstantVariable)
        and type(var.value) in FOLDABLE
        and type(var.value) not in _NO_NUMBERS
    )


def _lacks(tx: Tx, op: str, left: VariableTracker, right: VariableTracker) -> bool:
    return numbers_lack(op, left.python_type(tx), right.python_type(tx))


def _is_finite(tx: Tx, var: VariableTracker) -> bool:
    """Whether a number that is known is none that torch's symbols do not know."""
    return (
        var.python_type(tx) is not float
        or isinstance(var, SymNodeVariable)
        or math.isfinite(var.as_constant())
    )


def _kind(tx: Tx, var: VariableTracker) -> type:
    """int, float or complex; a bool is a whole number."""
    kind = var.python_type(tx)
    return int if kind is bool else kind


def _operand(tx: Tx, var: VariableTracker) -> Any:
    """What stands for a number in a recorded operation; a bool is settled, for torch takes it for something
    else."""
    if isinstance(var, SymNodeVariable) and var.python_type(tx) is not bool:
        return var.value
    value = settled(tx, var).as_constant()
    return int(value) if type(value) is bool else value


def _binary(tx: Tx, op: str, left: VariableTracker, right: VariableTracker) -> VariableTracker:
    """``left op right`` of numbers, at least one of them symbolic: recorded where it cannot fail at another
    call, else computed for the numbers that they are in this capture."""
    kinds = {_kind(tx, left), _kind(tx, right)}
    if not _is_followed(tx, op, left, right, kinds):
        return _fold_binary(tx, op, left, right)
    function, operands = BINARY[op], (_operand(tx, left), _operand(tx, right))
    if not any(isinstance(operand, SymValue) for operand in operands):
        return _fold_binary(tx, op, left, right)
    if float in kinds or op == "/":
        try:
            function(*map(tx.graph.exact.hint, operands))
        except ArithmeticError:
            return _fold_binary(tx, op, left, right)
    return _noted(tx, record(tx, function, operands), function, op, *operands)


def _is_followed(tx: Tx, op: str, left: VariableTracker, right: VariableTracker, kinds: set[type]) -> bool:
    """Whether the operator gives a number of the same kind, and no error, wherever the guards hold."""
    if (
        op not in _FOLLOWED
        or not kinds <= {int, float}
        or not (_is_finite(tx, left) and _is_finite(tx, right))
    ):
        return False
    if op in _DIVISIONS:
        return _is_not_zero(tx, right)
    return op != "**" or _has_power(tx, left, right)


def _noted(tx: Tx, made: VariableTracker, function: Any, op: str, *operands: Any) -> VariableTracker:
    """The result of a recorded operation; of a float it is kept how it came about."""
    if isinstance(made, SymNodeVariable) and isinstance(made.value.sym, torch.SymFloat):
        exact = tx.graph.exact
        hints = [exact.hint(operand) for operand in operands]
        exact.note(made.value, function(*hints), op, *operands)
    return made


def _is_not_zero(tx: Tx, var: VariableTracker) -> bool:
    """Whether a number is true; assumed from now on."""
    if not isinstance(var, SymNodeVariable):
        return bool(var.as_constant())
    if not isinstance(var.value.sym, torch.SymFloat):
        return bool(var.value.sym) if isinstance(var.value.sym, torch.SymBool) else bool(var.value.sym != 0)
    answer: bool = tx.graph.exact.hint(var.value) != 0.0
    tx.graph.exact.assume(answer, "!=", var.value, 0.0)
    return answer


def _has_power(tx: Tx, base: VariableTracker, exponent: VariableTracker) -> bool:
    """Whether ``base ** exponent`` is a real number of the same kind whatever the base will be."""
    if isinstance(exponent, SymNodeVariable):
        return False
    power = exponent.as_constant()
    if type(power) is not float and base.python_type(tx) is int:
        return bool(0 <= power <= _LARGEST_POWER)
    if float(power).is_integer() and power >= 0:
        return True
    zero = ConstantVariable(0)
    above = base.compare(tx, ">", zero)
    assert not isinstance(above, NotImplementedType)
    return _is_not_zero(tx, above)


def _fold_binary(tx: Tx, op: str, left: VariableTracker, right: VariableTracker) -> VariableTracker:
    return fold_binary(tx, op, settled(tx, left).as_constant(), settled(tx, right).as_constant())


def _fold(tx: Tx, function: Any, *operands: VariableTracker) -> VariableTracker:
    """Compute on settled numbers."""
    return fold(tx, function, *(settled(tx, var).as_constant() for var in operands))


# --- the graph ----------------------------------------------------------------------------------------------


@graph_argument(SymNodeVariable)
def _argument(tx: Tx, var: SymNodeVariable) -> SymValue:
    return var.value


@result_of(SymValue)
def _result(tx: Tx, value: SymValue) -> Var:
    known: Var | None = value.var
    return SymNodeVariable(value) if known is None else known


def settled(tx: Tx, var: Any) -> Any:
    """`var` itself, or the constant that a symbolic number is in this capture."""
    return var.settle(tx) if isinstance(var, SymNodeVariable) else var


@maker
def symbol(tx: Tx, number: float, source: Source) -> SymNodeVariable:
    """A number of the program that differs from call to call: an input of the graph."""
    tx.guard("type", source, type(number))
    return SymNodeVariable(tx.graph.add_symbol_input(number, source), source)
