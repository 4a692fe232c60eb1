"""Generator opcodes. Generators are captured when inlined; coroutines pass through."""

from __future__ import annotations

from graphlift.interpreter.dispatch import RETURNED, YIELDED, Handler, Translator, family, handler
from graphlift.protocol import Var
from graphlift.variables import generators
from graphlift.variables.slots import iteration, operators


@handler
def RETURN_GENERATOR(tx: Translator, operand: None) -> int:
    tx.result = tx.make.generator(tx.suspend())
    return RETURNED


@handler
def YIELD_VALUE(tx: Translator, operand: object) -> int:
    tx.result = tx.stack.pop()
    return YIELDED


@handler
def GET_YIELD_FROM_ITER(tx: Translator, operand: None) -> None:
    value = tx.stack[-1].realize(tx)
    if not isinstance(value, generators.GeneratorVariable):
        tx.stack[-1] = iteration.iter_(tx, value)


@handler
def SEND(tx: Translator, target: int) -> int | None:
    sent = tx.stack.pop()
    done, value = generators.send(tx, tx.stack[-1], sent)
    if not done:
        tx.stack.append(value)
        return None
    if not tx.send_keeps_receiver:
        tx.stack.pop()
    tx.stack.append(value)
    return target


@handler
def END_SEND(tx: Translator, operand: None) -> None:
    value = tx.stack.pop()
    tx.stack[-1] = value


@handler
def CLEANUP_THROW(tx: Translator, operand: None) -> None:
    value = tx.stack[-1]
    stopped = generators.stop_value(tx, value)
    if stopped is None:
        tx.reraise(tx.stack.pop())
    del tx.stack[-3:]
    tx.stack += (tx.make.constant(None), stopped)


# --- functions of the interpreter itself ---------------------------------------------------------


def _stopiteration_error(tx: Translator, value: Var) -> Var:
    return generators.stopiteration_error(tx, tx.frame, value)


def _list_to_tuple(tx: Translator, value: Var) -> Var:
    return tx.make.tuple(iteration.unpack(tx, value))


def _unary_positive(tx: Translator, value: Var) -> Var:
    return operators.unary(tx, "+", value)


_INTRINSICS = {
    "STOPITERATION_ERROR": _stopiteration_error,
    "LIST_TO_TUPLE": _list_to_tuple,
    "UNARY_POSITIVE": _unary_positive,
}


@handler
def CALL_INTRINSIC_1(tx: Translator, name: str) -> None:
    intrinsic = _INTRINSICS.get(name)
    if intrinsic is None:
        tx.missing(f"CALL_INTRINSIC_1 {name}")
    tx.stack[-1] = intrinsic(tx, tx.stack[-1])


@family(
    "GET_AWAITABLE",
    "GET_AITER",
    "GET_ANEXT",
    "END_ASYNC_FOR",
    "ASYNC_GEN_WRAP",
    "PRINT_EXPR",
)
def _missing(name: str) -> Handler:
    def run(tx: Translator, operand: object) -> None:
        tx.missing(name)

    return run
