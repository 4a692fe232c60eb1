"""Operator opcodes; the algorithms are in `variables/slots/operators.py` and `items.py`."""

from __future__ import annotations

from graphlift.interpreter.dispatch import Handler, Translator, family, handler
from graphlift.protocol import Var
from graphlift.reasons import Reason
from graphlift.variables.slots import items, operators


@handler
def BINARY_OP(tx: Translator, operand: tuple[str, bool]) -> None:
    op, inplace = operand
    right = tx.stack.pop()
    apply = operators.inplace if inplace else operators.binary
    tx.stack[-1] = apply(tx, op, tx.stack[-1], right)


_UNARY = {"UNARY_NEGATIVE": "-", "UNARY_POSITIVE": "+", "UNARY_INVERT": "~"}


@family(*_UNARY)
def _unary(name: str) -> Handler:
    op = _UNARY[name]

    def run(tx: Translator, operand: None) -> None:
        tx.stack[-1] = operators.unary(tx, op, tx.stack[-1])

    return run


@handler
def UNARY_NOT(tx: Translator, operand: None) -> None:
    tx.stack[-1] = operators.not_(tx, tx.stack[-1])


@handler
def TO_BOOL(tx: Translator, operand: None) -> None:
    # The jump that follows takes nothing but a bool, so it is this instruction that CPython must run.
    truth = operators.truth(tx, tx.stack[-1])
    if not isinstance(truth, bool):
        tx.fail(Reason.DATA_DEPENDENT_BRANCH, f"attempted to jump with {truth!r}")
    tx.stack[-1] = tx.make.constant(truth)


@handler
def COMPARE_OP(tx: Translator, operand: tuple[str, bool]) -> None:
    op, to_bool = operand
    right = tx.stack.pop()
    tx.stack[-1] = operators.compare(tx, op, tx.stack[-1], right)
    if to_bool:
        TO_BOOL(tx, None)


def _negate(tx: Translator, inverted: bool) -> None:
    if inverted:
        tx.stack[-1] = operators.not_(tx, tx.stack[-1])


@handler
def IS_OP(tx: Translator, inverted: bool) -> None:
    right = tx.stack.pop()
    tx.stack[-1] = operators.is_(tx, tx.stack[-1], right)
    _negate(tx, inverted)


@handler
def CONTAINS_OP(tx: Translator, inverted: bool) -> None:
    container = tx.stack.pop()
    tx.stack[-1] = operators.contains(tx, tx.stack[-1], container)
    _negate(tx, inverted)


@handler
def BINARY_SUBSCR(tx: Translator, operand: None) -> None:
    key = tx.stack.pop()
    tx.stack[-1] = items.getitem(tx, tx.stack[-1], key)


@handler
def STORE_SUBSCR(tx: Translator, operand: None) -> None:
    stack = tx.stack
    key, owner, value = stack.pop(), stack.pop(), stack.pop()
    items.setitem(tx, owner, key, value)


@handler
def DELETE_SUBSCR(tx: Translator, operand: None) -> None:
    key = tx.stack.pop()
    items.delitem(tx, tx.stack.pop(), key)


def _pop_slice(tx: Translator) -> Var:
    stop, start = tx.stack.pop(), tx.stack.pop()
    return tx.make.slice(start, stop, tx.make.constant(None))


@handler
def BINARY_SLICE(tx: Translator, operand: None) -> None:
    key = _pop_slice(tx)
    tx.stack[-1] = items.getitem(tx, tx.stack[-1], key)


@handler
def STORE_SLICE(tx: Translator, operand: None) -> None:
    key = _pop_slice(tx)
    owner = tx.stack.pop()
    items.setitem(tx, owner, key, tx.stack.pop())
