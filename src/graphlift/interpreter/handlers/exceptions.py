"""Raising, catching and putting back of exceptions. Mirrors do_raise and friends of Python/ceval.c."""

from __future__ import annotations

from graphlift.errors import ObservedException
from graphlift.interpreter.dispatch import Translator, handler
from graphlift.interpreter.frame_state import HandledVariable
from graphlift.variables import exception_groups, exceptions


@handler
def RAISE_VARARGS(tx: Translator, count: int) -> None:
    cause = tx.stack.pop() if count == 2 else None
    if count == 0:
        current = tx.handled_exception()
        if current is None:
            tx.raise_(RuntimeError, "No active exception to reraise")
        raise ObservedException(current)
    value = exceptions.instantiate(tx, tx.stack.pop())
    if cause is not None:
        exceptions.set_cause(tx, value, cause)
    tx.raise_var(value)


@handler
def RERAISE(tx: Translator, depth: int) -> None:
    raise ObservedException(tx.stack.pop())


@handler
def PUSH_EXC_INFO(tx: Translator, operand: None) -> None:
    value = tx.stack.pop()
    tx.stack += (HandledVariable(tx.frame.handled, value), value)
    tx.frame.handled = value


@handler
def POP_EXCEPT(tx: Translator, operand: None) -> None:
    """Where cleanup code gave a copy, the entry below is stale: a value that nobody reads."""
    entry = tx.stack.pop()
    tx.frame.handled = entry.former
    for at, below in enumerate(tx.stack):
        if below is entry:
            tx.stack[at] = tx.make.constant(None)


@handler
def CHECK_EXC_MATCH(tx: Translator, operand: None) -> None:
    pattern = tx.stack.pop()
    tx.stack.append(tx.make.constant(exceptions.matches(tx, tx.stack[-1], pattern)))


@handler
def LOAD_ASSERTION_ERROR(tx: Translator, operand: None) -> None:
    tx.stack.append(tx.make.from_value(AssertionError, None))


@handler
def CHECK_EG_MATCH(tx: Translator, operand: None) -> None:
    """What the clause takes is handled from here on."""
    pattern = tx.stack.pop()
    match, rest = exception_groups.match_group(tx, tx.stack[-1], pattern)
    tx.stack[-1] = rest
    tx.stack.append(match)
    taken = match.realize(tx)
    if taken.is_constant():
        return
    tx.frame.handled = taken
    entry = next(entry for entry in reversed(tx.stack) if type(entry) is HandledVariable)
    changed = HandledVariable(entry.former, taken)
    tx.stack[:] = [changed if below is entry else below for below in tx.stack]


@handler
def PREP_RERAISE_STAR(tx: Translator, operand: None) -> None:
    parts = tx.stack.pop()
    tx.stack[-1] = exception_groups.prepare_reraise(tx, tx.stack[-1], parts)


@handler
def CALL_INTRINSIC_2(tx: Translator, name: str) -> None:
    if name != "PREP_RERAISE_STAR":
        tx.missing(f"CALL_INTRINSIC_2 {name}")
    PREP_RERAISE_STAR(tx, None)
