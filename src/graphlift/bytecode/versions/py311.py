"""Python 3.11: the opcodes, the layout and the forms of emission that later versions are derived from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from graphlift.bytecode.instruction import Label
from graphlift.bytecode.opcodes import NOTHING, UNEXPECTED, Layout, Row, rows
from graphlift.bytecode.operands import (
    Binary,
    Compare,
    Const,
    Flag,
    Flagged,
    Format,
    FreeVars,
    FunctionParts,
    Jump,
    JumpBack,
    Name,
    Number,
    Slot,
    UnpackEx,
)
from graphlift.bytecode.verbs import Conversion, Verbs, ordered_parts

OPCODES = rows(
    {
        NOTHING: """
            POP_TOP PUSH_NULL UNARY_POSITIVE UNARY_NEGATIVE UNARY_NOT UNARY_INVERT BINARY_SUBSCR STORE_SUBSCR
            DELETE_SUBSCR GET_LEN MATCH_MAPPING MATCH_SEQUENCE MATCH_KEYS PUSH_EXC_INFO CHECK_EXC_MATCH
            CHECK_EG_MATCH WITH_EXCEPT_START POP_EXCEPT PREP_RERAISE_STAR BEFORE_WITH BEFORE_ASYNC_WITH
            GET_AITER GET_ANEXT END_ASYNC_FOR GET_ITER GET_YIELD_FROM_ITER RETURN_GENERATOR YIELD_VALUE
            ASYNC_GEN_WRAP RETURN_VALUE PRINT_EXPR IMPORT_STAR LOAD_BUILD_CLASS LOAD_ASSERTION_ERROR
            LIST_TO_TUPLE SETUP_ANNOTATIONS
            """,
        Number(): """
            UNPACK_SEQUENCE SWAP COPY BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP BUILD_CONST_KEY_MAP
            BUILD_STRING BUILD_SLICE LIST_APPEND SET_ADD MAP_ADD LIST_EXTEND SET_UPDATE DICT_MERGE DICT_UPDATE
            CALL RAISE_VARARGS RERAISE RESUME GET_AWAITABLE MATCH_CLASS
            """,
        Flag(): "IS_OP CONTAINS_OP CALL_FUNCTION_EX",
        Const(): "LOAD_CONST KW_NAMES",
        Name(): """
            LOAD_NAME STORE_NAME DELETE_NAME STORE_GLOBAL DELETE_GLOBAL STORE_ATTR DELETE_ATTR IMPORT_NAME
            IMPORT_FROM
            """,
        Flagged(1): "LOAD_GLOBAL",
        Flagged(0, fixed=(False,)): "LOAD_ATTR",
        Slot(): """
            LOAD_FAST STORE_FAST DELETE_FAST MAKE_CELL LOAD_CLOSURE LOAD_DEREF STORE_DEREF DELETE_DEREF
            LOAD_CLASSDEREF
            """,
        FreeVars(): "COPY_FREE_VARS",
        Compare(): "COMPARE_OP",
        Binary(): "BINARY_OP",
        UnpackEx(): "UNPACK_EX",
        Format(): "FORMAT_VALUE",
        FunctionParts(): "MAKE_FUNCTION",
        Jump(): "FOR_ITER SEND JUMP_FORWARD JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP",
        JumpBack(): "JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT",
    }
)

# The direction of a jump is no concern of a handler.
for _test in ("TRUE", "FALSE", "NONE", "NOT_NONE"):
    OPCODES[f"POP_JUMP_FORWARD_IF_{_test}"] = Row((f"POP_JUMP_IF_{_test}",), Jump())
    OPCODES[f"POP_JUMP_BACKWARD_IF_{_test}"] = Row((f"POP_JUMP_IF_{_test}",), JumpBack())

OPCODES |= {
    "LOAD_METHOD": Row(("LOAD_ATTR",), Flagged(0, fixed=(True,))),
    "NOP": Row(("NOP",), folded=True),
    "PRECALL": Row(("NOP",), Number(), folded=True),
    "CACHE": Row((UNEXPECTED,), folded=True),
    "EXTENDED_ARG": Row((UNEXPECTED,), Number(), folded=True),
}

LAYOUT = Layout(
    null_after_callable=False,
    keyword_call=False,
    for_iter_skips=(),
    send_keeps_receiver=False,
    return_generator_pushes=1,
    bool_before_test=False,
    jumps_back_on_condition=True,
    frame_keeps_locals=True,
    inseparable={"PRECALL": "CALL"},
    caches={
        "BINARY_OP": 1,
        "BINARY_SUBSCR": 4,
        "CALL": 4,
        "COMPARE_OP": 2,
        "LOAD_ATTR": 4,
        "LOAD_GLOBAL": 5,
        "LOAD_METHOD": 10,
        "PRECALL": 1,
        "STORE_ATTR": 4,
        "STORE_SUBSCR": 1,
        "UNPACK_SEQUENCE": 1,
    },
)


class Emitter(Verbs):
    """The verbs as 3.11 spells them."""

    def return_const(self, value: object) -> None:
        self.load_const(value)
        self.return_value()

    def load_fast_check(self, name: str) -> None:
        self.emit("LOAD_FAST", name)

    def load_global(self, name: str) -> None:
        last = self.last()
        if last is not None and last.op == "PUSH_NULL":
            self.items.pop()
            self.emit("LOAD_GLOBAL", (name, True))
        else:
            super().load_global(name)

    def load_closure(self, name: str) -> None:
        self.emit("LOAD_CLOSURE", name)

    def list_to_tuple(self) -> None:
        self.emit("LIST_TO_TUPLE")

    def unary_positive(self) -> None:
        self.emit("UNARY_POSITIVE")

    def format_value(self, conversion: Conversion = "", spec: bool = False) -> None:
        self.emit("FORMAT_VALUE", (conversion, spec))

    def prepare_call(self) -> None:
        self.push_null()

    def callable_ready(self) -> None:
        """Nothing to say: the NULL lies below the callable."""

    def null_goes_above(self) -> bool:
        return False

    def load_method(self, name: str) -> None:
        self.emit("LOAD_METHOD", (name, True))

    def call(self, count: int, keywords: Sequence[str] = ()) -> None:
        if keywords:
            self.emit("KW_NAMES", tuple(keywords))
        self.emit("PRECALL", count)
        self.emit("CALL", count)

    def make_function(self, parts: Sequence[str] = ()) -> None:
        self.emit("MAKE_FUNCTION", ordered_parts(parts))

    def conditional_jump(self, test: Literal["TRUE", "FALSE", "NONE", "NOT_NONE"], label: Label) -> None:
        direction = "BACKWARD" if self.placed(label) else "FORWARD"
        self.emit(f"POP_JUMP_{direction}_IF_{test}", label)

    def end_for(self, done: Label) -> None:
        self.place(done)

    def yield_value(self) -> None:
        self.emit("YIELD_VALUE")
        self.emit("RESUME", 1)
