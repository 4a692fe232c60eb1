"""Python 3.13, as what changed since 3.12."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphlift.bytecode import operands
from graphlift.bytecode.instruction import Instruction, Label
from graphlift.bytecode.opcodes import NOTHING, UNEXPECTED, Row, derive, rows
from graphlift.bytecode.operands import Choice, Compare, FunctionPart, NoFunctionParts, Number, SlotPair
from graphlift.bytecode.verbs import Conversion, Verbs, ordered_parts
from graphlift.bytecode.versions import py312

OPCODES = derive(
    py312.OPCODES,
    without="FORMAT_VALUE KW_NAMES LOAD_CLOSURE",
    adding=rows(
        {
            NOTHING: "FORMAT_SIMPLE FORMAT_WITH_SPEC TO_BOOL",
            Number(): "CALL_KW",
            operands.Conversion(): "CONVERT_VALUE",
            NoFunctionParts(): "MAKE_FUNCTION",
            FunctionPart(): "SET_FUNCTION_ATTRIBUTE",
            Compare(shift=5, masks=py312.COMPARE_MASKS, bool_bit=16): "COMPARE_OP",
            Choice(py312.INTRINSICS_2 + " SET_TYPEPARAM_DEFAULT", start=1): "CALL_INTRINSIC_2",
        }
    )
    | {
        "LOAD_FAST_LOAD_FAST": Row(("LOAD_FAST", "LOAD_FAST"), SlotPair()),
        "STORE_FAST_LOAD_FAST": Row(("STORE_FAST", "LOAD_FAST"), SlotPair()),
        "STORE_FAST_STORE_FAST": Row(("STORE_FAST", "STORE_FAST"), SlotPair()),
        "ENTER_EXECUTOR": Row((UNEXPECTED,)),
        "EXIT_INIT_CHECK": Row((UNEXPECTED,)),
    },
)

LAYOUT = replace(
    py312.LAYOUT,
    null_after_callable=True,
    keyword_call=True,
    for_iter_skips=("END_FOR", "POP_TOP"),
    return_generator_pushes=0,
    bool_before_test=True,
    frame_keeps_locals=False,
    caches={
        **py312.LAYOUT.caches,
        "CONTAINS_OP": 1,
        "JUMP_BACKWARD": 1,
        "POP_JUMP_IF_FALSE": 1,
        "POP_JUMP_IF_NONE": 1,
        "POP_JUMP_IF_NOT_NONE": 1,
        "POP_JUMP_IF_TRUE": 1,
        "TO_BOOL": 3,
    },
)

#: Opcodes that always leave an exact bool.
_GIVES_BOOL = {"IS_OP", "CONTAINS_OP", "UNARY_NOT", "TO_BOOL", "CHECK_EXC_MATCH"}


class Emitter(py312.Emitter):
    """The verbs that 3.13 spells anew."""

    def load_global(self, name: str) -> None:
        Verbs.load_global(self, name)

    def load_closure(self, name: str) -> None:
        self.load_fast(name)

    def to_bool(self) -> None:
        last = self.last()
        if last is not None and last.op == "COMPARE_OP":
            self.items[-1] = Instruction("COMPARE_OP", (last.operand[0], True), last.position)
        elif last is None or last.op not in _GIVES_BOOL:
            self.emit("TO_BOOL")

    def format_value(self, conversion: Conversion = "", spec: bool = False) -> None:
        if conversion and spec:
            # The spec lies above the value.
            self.swap(2)
        if conversion:
            self.emit("CONVERT_VALUE", conversion)
        if conversion and spec:
            self.swap(2)
        self.emit("FORMAT_WITH_SPEC" if spec else "FORMAT_SIMPLE")

    def prepare_call(self) -> None:
        """Nothing to say: the NULL comes after the callable."""

    def callable_ready(self) -> None:
        last = self.last()
        if last is not None and last.op == "LOAD_GLOBAL" and not last.operand[1]:
            self.items[-1] = Instruction("LOAD_GLOBAL", (last.operand[0], True), last.position)
        else:
            self.push_null()

    def null_goes_above(self) -> bool:
        return True

    def call(self, count: int, keywords: Sequence[str] = ()) -> None:
        if keywords:
            self.load_const(tuple(keywords))
            self.emit("CALL_KW", count)
        else:
            self.emit("CALL", count)

    def make_function(self, parts: Sequence[str] = ()) -> None:
        self.emit("MAKE_FUNCTION", ())
        for part in reversed(ordered_parts(parts)):
            self.emit("SET_FUNCTION_ATTRIBUTE", part)

    def end_for(self, done: Label) -> None:
        super().end_for(done)
        self.pop()
