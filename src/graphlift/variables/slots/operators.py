"""Operators, comparison, identity, membership, truth: mirrors the number part of Objects/abstract.c and
`PyObject_RichCompare` and `PyObject_IsTrue` of Objects/object.c."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import torch

from graphlift import _C
from graphlift.metadata import PLAIN_CLASSES
from graphlift.operators import COMPARE, REFLECTED_METHODS, SWAPPED
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker, c_name
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.folding import FOLDABLE, fold_binary
from graphlift.variables.slots import iteration
from graphlift.variables.slots.numbers import repeat_count
from graphlift.variables.slots.truth import is_true, truth
from graphlift.variables.slots.type_lookup import mro_of, type_lookup

__all__ = [
    "answer_of",
    "binary",
    "compare",
    "contains",
    "equal",
    "inplace",
    "is_",
    "is_true",
    "not_",
    "same_object",
    "truth",
    "unary",
]


def answer_of(tx: Tx, result: Var) -> VariableTracker | NotImplementedType:
    """What an operator's method written in Python returned: the program's ``NotImplemented`` becomes ours."""
    answer: VariableTracker = result.realize(tx)
    if answer.is_constant() and answer.as_constant() is NotImplemented:
        return NOT_IMPLEMENTED
    return answer


# --- binary operators -------------------------------------------------------------------------------


def binary(tx: Tx, op: str, a: Var, b: Var) -> VariableTracker:
    """``a op b``; raises TypeError in the program when neither operand knows how."""
    left: VariableTracker = a.realize(tx)
    right: VariableTracker = b.realize(tx)
    if type(left) is ConstantVariable and type(right) is ConstantVariable:
        x, y = left.value, right.value
        if type(x) in FOLDABLE and type(y) in FOLDABLE:
            return fold_binary(tx, op, x, y)
    result = _binary(tx, op, left, right)
    if isinstance(result, NotImplementedType):
        _no_operator(tx, op, left, right)
    return result


def inplace(tx: Tx, op: str, a: Var, b: Var) -> VariableTracker:
    """``a op= b``: the value to store back."""
    left: VariableTracker = a.realize(tx)
    right: VariableTracker = b.realize(tx)
    if type(left) is ConstantVariable and type(right) is ConstantVariable:
        x, y = left.value, right.value
        if type(x) in FOLDABLE and type(y) in FOLDABLE:
            return fold_binary(tx, op, x, y, inplace=True)
    result = left.inplace(tx, op, right)
    if isinstance(result, NotImplementedType):
        result = _numeric(tx, op, left, right)
    if isinstance(result, NotImplementedType):
        result = _sequence(tx, op, left, right, inplace=True)
    if isinstance(result, NotImplementedType):
        _no_operator(tx, op + "=", left, right)
    return result


def _binary(
    tx: Tx, op: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | NotImplementedType:
    result = _numeric(tx, op, left, right)
    if isinstance(result, NotImplementedType):
        return _sequence(tx, op, left, right, inplace=False)
    return result


def _numeric(
    tx: Tx, op: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | NotImplementedType:
    """``binary_op1``: the right operand goes first when its class is below the left's and overrides the
    reflected method."""
    right_tried = _right_first(tx, op, left, right)
    if right_tried:
        tx.operation = None  # what is left to do depends on the answer
        result = right.rbinary(tx, op, left)
        if not isinstance(result, NotImplementedType):
            return result
    result = left.binary(tx, op, right)
    if isinstance(result, NotImplementedType) and not right_tried:
        result = right.rbinary(tx, op, left)
    return result


def _right_first(tx: Tx, op: str, left: VariableTracker, right: VariableTracker) -> bool:
    if isinstance(right, ConstantVariable):
        return False
    return goes_first(tx, right, left, REFLECTED_METHODS[op])


def goes_first(tx: Tx, right: VariableTracker, left: VariableTracker, name: str) -> bool:
    """Whether the right operand is asked before the left one: its class is below the left's and has the
    reflected method `name` of its own. Mirrors method_is_overloaded of Objects/typeobject.c."""
    below, above = right.python_type(tx), left.python_type(tx)
    if below is above or above not in mro_of(below) or below in PLAIN_CLASSES:
        return False
    own, inherited = type_lookup(tx, below, name), type_lookup(tx, above, name)
    if own is None or inherited is None:
        return own is not None
    if own.written is None and inherited.written is None:
        # A class method is bound to each class: two objects.
        return own.raw is not inherited.raw or type(own.raw) is classmethod
    return own.written is not inherited.written


def _sequence(
    tx: Tx, op: str, left: VariableTracker, right: VariableTracker, *, inplace: bool
) -> VariableTracker | NotImplementedType:
    """``+`` and ``*`` of sequences, which come after both operands' number methods."""
    if op == "+":
        result = left.inplace_concat(tx, right) if inplace else NOT_IMPLEMENTED
        return left.concat(tx, right) if isinstance(result, NotImplementedType) else result
    if op != "*":
        return NOT_IMPLEMENTED
    result = left.inplace_repeat(tx, right) if inplace else NOT_IMPLEMENTED
    if isinstance(result, NotImplementedType):
        result = _repeat(tx, left, right)
    # In place, a left operand that has anything of a sequence is the only one to be repeated.
    if not isinstance(result, NotImplementedType) or (inplace and _C.item_slots(left.python_type(tx))[1]):
        return result
    return _repeat(tx, right, left)


def _repeat(
    tx: Tx, sequence: VariableTracker, count: VariableTracker
) -> VariableTracker | NotImplementedType:
    if isinstance(sequence, ConstantVariable):
        return (
            fold_binary(tx, "*", sequence.value, repeat_count(tx, count))
            if sequence.is_text()
            else NOT_IMPLEMENTED
        )
    return sequence.repeat(tx, count)


def _no_operator(tx: Tx, op: str, left: VariableTracker, right: VariableTracker) -> NoReturn:
    x, y = c_name(left.python_type(tx)), c_name(right.python_type(tx))
    shown = "** or pow()" if op == "**" else op
    tx.raise_(TypeError, f"unsupported operand type(s) for {shown}: '{x}' and '{y}'")


# --- unary operators and truth ----------------------------------------------------------------------


def unary(tx: Tx, op: str, a: Var) -> VariableTracker:
    """``-a``, ``+a``, ``~a``."""
    operand: VariableTracker = a.realize(tx)
    return operand.unary(tx, op)


def not_(tx: Tx, a: Var) -> VariableTracker:
    """``not a``."""
    known = truth(tx, a)
    if not isinstance(known, bool):
        tx.fail(Reason.DATA_DEPENDENT_BRANCH, f"`not` of {known!r}")
    return _constant(tx, not known)


# --- comparison and identity ------------------------------------------------------------------------


def compare(tx: Tx, op: str, a: Var, b: Var) -> VariableTracker:
    """``a op b`` for the six comparisons (``do_richcompare``)."""
    left: VariableTracker = a.realize(tx)
    right: VariableTracker = b.realize(tx)
    if type(left) is ConstantVariable and type(right) is ConstantVariable:
        x, y = left.value, right.value
        if type(x) in FOLDABLE and type(y) in FOLDABLE:
            try:
                return ConstantVariable(COMPARE[op](x, y))
            except Exception as error:
                tx.raise_real(error)
    swapped = SWAPPED[op]
    right_tried = _is_below(tx, right, left)
    result: VariableTracker | NotImplementedType = NOT_IMPLEMENTED
    if right_tried:
        tx.operation = None  # what is left to do depends on the answer
        result = right.compare(tx, swapped, left)
    if isinstance(result, NotImplementedType):
        result = left.compare(tx, op, right)
    if isinstance(result, NotImplementedType) and not right_tried:
        result = right.compare(tx, swapped, left)
    if not isinstance(result, NotImplementedType):
        return result
    if op in ("==", "!="):
        return _constant(tx, same_object(tx, left, right) is (op == "=="))
    x, y = c_name(left.python_type(tx)), c_name(right.python_type(tx))
    tx.raise_(TypeError, f"'{op}' not supported between instances of '{x}' and '{y}'")


def _is_below(tx: Tx, right: VariableTracker, left: VariableTracker) -> bool:
    if isinstance(right, ConstantVariable):
        return False
    below, above = right.python_type(tx), left.python_type(tx)
    return below is not above and above in mro_of(below)


def equal(tx: Tx, a: Var, b: Var) -> bool:
    """``a is b or a == b`` decided now (`PyObject_RichCompareBool`); a break when it cannot be."""
    left: VariableTracker = a.realize(tx)
    right: VariableTracker = b.realize(tx)
    if left is right:
        return True
    if _is_nan(left) and _is_nan(right):
        if left.source is not None and right.source is not None:
            return same_object(tx, left, right)
        return left.as_constant() is right.as_constant()
    return is_true(tx, compare(tx, "==", left, right))


def _is_nan(a: VariableTracker) -> bool:
    """Whether it is a number that differs from itself, so that identity alone makes two of them one."""
    return type(a) is ConstantVariable and type(a.value) in (float, complex) and a.value != a.value


def is_(tx: Tx, a: Var, b: Var) -> VariableTracker:
    """``a is b``."""
    return _constant(tx, same_object(tx, a.realize(tx), b.realize(tx)))


def same_object(tx: Tx, left: VariableTracker, right: VariableTracker) -> bool:
    """Whether two realised trackers stand for one object; a break where that is not settled now."""
    if left is right:
        return True
    known_left, known_right = left.is_constant(), right.is_constant()
    if known_left and known_right:
        return _same_constant(tx, left, right)
    if known_left or known_right:
        constant, other = (left, right) if known_left else (right, left)
        if constant.as_constant() is not None and other.python_type(tx) is constant.python_type(tx):
            tx.fail(Reason.IDENTITY, f"`is` between {left!r} and {right!r}")
        return False
    if left.source is not None and right.source is not None and left.python_type(tx) is right.python_type(tx):
        tx.guard("distinct", left.source, right.source)
    return False


def _same_constant(tx: Tx, left: VariableTracker, right: VariableTracker) -> bool:
    x, y = left.as_constant(), right.as_constant()
    if type(x) is not type(y) or (type(x) in _SINGLETONS and x is not y):
        return False
    if type(x) in _SINGLETONS or _is_cached(x, y):
        return True
    if type(x) in FOLDABLE and (x != y and x == x and y == y):
        return False
    if left.source is not None and right.source is not None:
        tx.guard("same" if x is y else "distinct", left.source, right.source)
        return x is y
    if type(x) not in FOLDABLE:
        return x is y
    tx.fail(Reason.IDENTITY, f"`is` between {left!r} and {right!r}")


#: Types of which no two objects are equal.
_SINGLETONS: Final = frozenset(
    (
        type(None),
        bool,
        type(Ellipsis),
        type(NotImplemented),
        torch.dtype,
        torch.layout,
        torch.memory_format,
    )
)


def _is_cached(x: Any, y: Any) -> bool:
    """Whether CPython keeps one object for this value (small integers, empty and one-letter strings)."""
    if type(x) is int:
        return bool(x == y and -5 <= x <= 256)
    if type(x) is str:
        return bool(x == y and (not x or (len(x) == 1 and x < chr(256))))
    if type(x) is bytes:
        return bool(x == y and len(x) < 2)
    return False


# --- membership -------------------------------------------------------------------------------------


def contains(tx: Tx, item: Var, container: Var) -> VariableTracker:
    """``item in container`` (`PySequence_Contains`)."""
    holder: VariableTracker = container.realize(tx)
    found = holder.contains(tx, item.realize(tx))
    if not isinstance(found, NotImplementedType):
        return found
    return _constant(tx, _search(tx, item, holder))


def _search(tx: Tx, item: Var, holder: VariableTracker) -> bool:
    items = holder.unpack(tx)
    if items is not None:
        return any(equal(tx, other, item) for other in items)
    iterator = iteration.iter_(tx, holder, "argument of type '{}' is not iterable")
    for _ in range(iteration.LIMIT):
        other = iteration.next_(tx, iterator)
        if other is None:
            return False
        if equal(tx, other, item):
            return True
    iteration.too_long(tx, holder)


def _constant(tx: Tx, value: object) -> VariableTracker:
    made = tx.make.constant(value)
    assert isinstance(made, VariableTracker)
    return made
