"""What the program's own arithmetic says of symbolic numbers, beside torch's shape environment.

Torch simplifies expressions as if floats were real numbers: ``a - a`` is zero there, ``a * 0.1 * 3`` one
product. Python rounds each step, and nan, infinities and -0.0 have ways of their own. So a symbolic float
carries the steps that made it, and what is asked of it becomes a guard that takes the very same steps.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from graphlift.graph_value import SymValue
from graphlift.guards.kinds.expressions import evaluate
from graphlift.output_graph.postfix import Untranslatable
from graphlift.output_graph.symbols import Symbols

Items = tuple[Any, ...]
Number = SymValue | float

#: Steps beyond which the inputs are fixed rather than a guard made.
_LONGEST: Final = 100
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class ExactNumbers:
    """Exact expressions and assumptions of one capture."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols: Final = symbols

    def hint(self, number: Number) -> Any:
        """What the number is in this capture; nothing is assumed by asking."""
        if not isinstance(number, SymValue):
            return number
        if number.hint is None:
            number.hint = number.sym.node.hint
        return number.hint

    def items(self, number: Number) -> Items | None:
        """The steps that make the number, in postfix form; None where no guard could take them."""
        if not isinstance(number, SymValue):
            if type(number) is float:
                return (number,)
            return (int(number),) if _LEAST <= number <= _MOST else None
        if number.exact is None and not isinstance(number.sym, torch.SymFloat):
            try:
                number.exact = self._symbols.in_postfix(number.sym.node.expr)
            except Untranslatable:
                return None
        return number.exact

    def note(self, result: SymValue, hint: float, op: str, *operands: Number) -> None:
        """`result` was computed by ``op`` of `operands`, and is `hint` in this capture."""
        result.hint = hint
        items = self._joined(op, operands)
        if items is None:
            for operand in operands:
                self.fix(operand)
            items = (hint,)
        result.exact = items
        self._symbols.stands_for(result, items)

    def _joined(self, op: str, operands: tuple[Number, ...]) -> Items | None:
        items: list[Any] = []
        for operand in operands:
            found = self.items(operand)
            if found is None:
                return None
            items += found
        return (*items, op) if len(items) < _LONGEST else None

    def assume(self, answer: bool, op: str, *operands: Number) -> None:
        """Assume that ``op`` of `operands` is true (or false, as `answer` says), as it is now."""
        items = self._joined(op, operands)
        if items is not None and not answer:
            items = (*items, "not")
        if items is not None and evaluate(items, self._symbols.hint_of):
            self._symbols.assume(items)
            return
        for operand in operands:
            self.fix(operand)

    def fix(self, number: Number) -> Any:
        """Assume that the number is what it is in this capture, and give it."""
        value = self.hint(number)
        if isinstance(number, SymValue):
            items = self.items(number)
            test = (*items, value, "same") if items is not None and type(value) is float else None
            if test is not None and evaluate(test, self._symbols.hint_of):
                self._symbols.assume(test)
            else:
                self._symbols.fix(number)
        return value

    def takes_one_step(self, number: SymValue) -> bool:
        """Whether a float is one step away from whole numbers, so that torch's expression says the same, and
        that step gives a finite number."""
        items = self.items(number)
        if items is None or sum(isinstance(item, str) and item != "float" for item in items) > 1:
            return False
        return not any(_unbounded(item) for item in items)


def _unbounded(item: Any) -> bool:
    """Whether an item of an expression may lead beyond finite numbers."""
    if isinstance(item, tuple):
        return bool(item[0] == "float")
    return isinstance(item, float) and item != 0.0 and not 1e-100 < abs(item) < 1e100
