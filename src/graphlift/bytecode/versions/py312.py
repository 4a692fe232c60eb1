"""Python 3.12, as what changed since 3.11."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from graphlift.bytecode.instruction import Label
from graphlift.bytecode.opcodes import NOTHING, UNEXPECTED, Row, derive, rows
from graphlift.bytecode.operands import Choice, Compare, Const, Flagged, Jump, Name, Number, Slot
from graphlift.bytecode.versions import py311

#: Functions of one argument that the interpreter itself provides, in CPython's order.
INTRINSICS_1 = """
    PRINT IMPORT_STAR STOPITERATION_ERROR ASYNC_GEN_WRAP UNARY_POSITIVE LIST_TO_TUPLE TYPEVAR PARAMSPEC
    TYPEVARTUPLE SUBSCRIPT_GENERIC TYPEALIAS
    """
INTRINSICS_2 = "PREP_RERAISE_STAR TYPEVAR_WITH_BOUND TYPEVAR_WITH_CONSTRAINTS SET_FUNCTION_TYPE_PARAMS"

#: What a comparison may find, as specialisation wants it in the low bits: less, greater, equal, unordered.
COMPARE_MASKS = (2, 2 | 8, 8, 1 | 2 | 4, 4, 4 | 8)

OPCODES = derive(
    py311.OPCODES,
    without="""
        ASYNC_GEN_WRAP IMPORT_STAR JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP LIST_TO_TUPLE LOAD_CLASSDEREF
        LOAD_METHOD PRECALL PREP_RERAISE_STAR PRINT_EXPR UNARY_POSITIVE
        POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE
        POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_BACKWARD_IF_FALSE
        POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
        """,
    adding=rows(
        {
            NOTHING: "BINARY_SLICE STORE_SLICE CLEANUP_THROW END_FOR END_SEND LOAD_LOCALS",
            Number(): "YIELD_VALUE",
            Name(): "LOAD_FROM_DICT_OR_GLOBALS",
            Slot(): "LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR LOAD_FROM_DICT_OR_DEREF",
            Const(): "RETURN_CONST",
            Flagged(1): "LOAD_ATTR",
            Flagged(2): "LOAD_SUPER_ATTR",
            Compare(shift=4, masks=COMPARE_MASKS): "COMPARE_OP",
            Choice(INTRINSICS_1, start=1): "CALL_INTRINSIC_1",
            Choice(INTRINSICS_2, start=1): "CALL_INTRINSIC_2",
            Jump(): "POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE",
        }
    )
    | {"INTERPRETER_EXIT": Row((UNEXPECTED,)), "RESERVED": Row((UNEXPECTED,))},
)

LAYOUT = replace(
    py311.LAYOUT,
    for_iter_skips=("END_FOR",),
    send_keeps_receiver=True,
    jumps_back_on_condition=False,
    inseparable={},
    caches={
        "BINARY_OP": 1,
        "BINARY_SUBSCR": 1,
        "CALL": 3,
        "COMPARE_OP": 1,
        "FOR_ITER": 1,
        "LOAD_ATTR": 9,
        "LOAD_GLOBAL": 4,
        "LOAD_SUPER_ATTR": 1,
        "SEND": 1,
        "STORE_ATTR": 4,
        "STORE_SUBSCR": 1,
        "UNPACK_SEQUENCE": 1,
    },
)

_OPPOSITE = {"TRUE": "FALSE", "FALSE": "TRUE", "NONE": "NOT_NONE", "NOT_NONE": "NONE"}


class Emitter(py311.Emitter):
    """The verbs that 3.12 spells anew."""

    def return_const(self, value: object) -> None:
        self.emit("RETURN_CONST", value)

    def load_fast_check(self, name: str) -> None:
        self.emit("LOAD_FAST_CHECK", name)

    def list_to_tuple(self) -> None:
        self.emit("CALL_INTRINSIC_1", "LIST_TO_TUPLE")

    def unary_positive(self) -> None:
        self.emit("CALL_INTRINSIC_1", "UNARY_POSITIVE")

    def load_method(self, name: str) -> None:
        self.emit("LOAD_ATTR", (name, True))

    def call(self, count: int, keywords: Sequence[str] = ()) -> None:
        if keywords:
            self.emit("KW_NAMES", tuple(keywords))
        self.emit("CALL", count)

    def conditional_jump(self, test: Literal["TRUE", "FALSE", "NONE", "NOT_NONE"], label: Label) -> None:
        if not self.placed(label):
            self.emit(f"POP_JUMP_IF_{test}", label)
            return
        over = Label()
        self.emit(f"POP_JUMP_IF_{_OPPOSITE[test]}", over)
        self.jump(label)
        self.place(over)

    def end_for(self, done: Label) -> None:
        self.place(done)
        self.emit("END_FOR")

    def yield_value(self) -> None:
        self.emit("YIELD_VALUE", 1)
        self.emit("RESUME", 1)
