"""Opcodes of ``for``; the algorithms are in `variables/slots/iteration.py`."""

from __future__ import annotations

from graphlift.interpreter.dispatch import Translator, handler
from graphlift.variables.slots import iteration


@handler
def GET_ITER(tx: Translator, operand: None) -> None:
    tx.stack[-1] = iteration.iter_(tx, tx.stack[-1])


@handler
def FOR_ITER(tx: Translator, target: int) -> int | None:
    value = iteration.next_(tx, tx.stack[-1])
    if value is None:
        tx.stack.pop()
        return target
    tx.stack.append(value)
    return None
