"""Moving values on the stack, and opcodes that only mark a place. Mirrors Python/bytecodes.c."""

from __future__ import annotations

from graphlift.errors import InternalError
from graphlift.interpreter.dispatch import RETURNED, Handler, Translator, family, handler
from graphlift.interpreter.frame_state import NULL


@family("NOP", "RESUME", "CACHE", "EXTENDED_ARG", "PRECALL")
def _nothing(name: str) -> Handler:
    def run(tx: Translator, operand: object) -> None:
        return None

    return run


@handler
def UNEXPECTED_OPCODE(tx: Translator, operand: object) -> None:
    raise InternalError(f"an opcode that cannot occur in co_code, at offset {tx.offset()}")


@family("POP_TOP", "END_FOR")
def _pop(name: str) -> Handler:
    def run(tx: Translator, operand: object) -> None:
        tx.stack.pop()

    return run


@handler
def PUSH_NULL(tx: Translator, operand: None) -> None:
    tx.stack.append(NULL)


@handler
def COPY(tx: Translator, depth: int) -> None:
    tx.stack.append(tx.stack[-depth])


@handler
def SWAP(tx: Translator, depth: int) -> None:
    stack = tx.stack
    stack[-1], stack[-depth] = stack[-depth], stack[-1]


@handler
def LOAD_CONST(tx: Translator, value: object) -> None:
    tx.stack.append(tx.code_constant(value))


@handler
def RETURN_VALUE(tx: Translator, operand: None) -> int:
    tx.result = tx.stack.pop()
    return RETURNED


@handler
def RETURN_CONST(tx: Translator, value: object) -> int:
    tx.result = tx.code_constant(value)
    return RETURNED
