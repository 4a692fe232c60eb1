"""What an instruction consists of, where that is one special method of one operand.

The closed list of instructions inside which the graph can be cut: a function called by the special method is
gone on with by itself, and what is then left of the instruction is known (`codegen/continuations.py`). An
instruction not listed here is run for real as a whole when something that it calls must be cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from graphlift.bytecode.decode import Decoded
from graphlift.bytecode.versions import LAYOUT
from graphlift.interpreter.frame_state import NULL
from graphlift.operators import BINARY_METHODS, COMPARE_METHODS

Operation = tuple[str, Any]

#: Reads the operation off the stack before the instruction.
Reader = Callable[[list[Any]], Operation]

#: Opcodes by the handler that does their work -> special method, depth of the operand.
_SPECIAL: Final[dict[str, tuple[str, int]]] = {
    "LOAD_ATTR": ("__getattribute__", 1),
    "STORE_ATTR": ("__setattr__", 1),
    "DELETE_ATTR": ("__delattr__", 1),
    "BINARY_SUBSCR": ("__getitem__", 2),
    "BINARY_SLICE": ("__getitem__", 3),
    "STORE_SUBSCR": ("__setitem__", 2),
    "STORE_SLICE": ("__setitem__", 3),
    "DELETE_SUBSCR": ("__delitem__", 2),
    "CONTAINS_OP": ("__contains__", 1),
    "UNARY_NEGATIVE": ("__neg__", 1),
    "UNARY_POSITIVE": ("__pos__", 1),
    "UNARY_INVERT": ("__invert__", 1),
    "UNARY_NOT": ("__bool__", 1),
    "TO_BOOL": ("__bool__", 1),
    "POP_JUMP_IF_TRUE": ("__bool__", 1),
    "POP_JUMP_IF_FALSE": ("__bool__", 1),
    "JUMP_IF_TRUE_OR_POP": ("__bool__", 1),
    "JUMP_IF_FALSE_OR_POP": ("__bool__", 1),
    "GET_ITER": ("__iter__", 1),
    "FOR_ITER": ("__next__", 1),
    "BEFORE_WITH": ("__enter__", 1),
    "WITH_EXCEPT_START": ("__exit__", 4),
}

_NULL_ABOVE: Final = LAYOUT.null_after_callable


def reader(decoded: Decoded, index: int) -> Reader | None:
    """How to read the operation of a step; None where the step is not in the list."""
    handler, operand = decoded.handlers(index)[-1], decoded.operands[index]
    if handler in ("CALL", "CALL_KW", "CALL_FUNCTION_EX"):
        beside = {"CALL": 0, "CALL_KW": 1, "CALL_FUNCTION_EX": 1}[handler]
        return _call_reader(int(operand) + beside)
    if handler == "BINARY_OP":
        symbol, inplace = operand
        return None if inplace else _reader(BINARY_METHODS[symbol], 2)
    if handler == "COMPARE_OP":
        return _reader(COMPARE_METHODS[operand[0]], 2)
    found = _SPECIAL.get(handler)
    return None if found is None else _reader(*found)


def _reader(name: str, depth: int) -> Reader:
    return lambda stack: (name, stack[-depth])


def _call_reader(above: int) -> Reader:
    """The callable below `above` arguments; a method's object lies between them."""

    def read(stack: list[Any]) -> Operation:
        second, first = stack[-above - 1], stack[-above - 2]
        if _NULL_ABOVE or first is not NULL:
            return "__call__", first
        return "__call__", second

    return read
