"""Verification notices what would crash or silently change a program."""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType
from typing import Any

import pytest

from graphlift.bytecode import exception_table
from graphlift.bytecode.decode import scan
from graphlift.bytecode.emit import Header, Pools, assemble
from graphlift.bytecode.instruction import Instruction, Item, TryBegin
from graphlift.bytecode.reassemble import disassemble, reassemble
from graphlift.bytecode.verify import problems, verify, verify_code
from graphlift.bytecode.versions import LAYOUT
from graphlift.errors import InternalError


def program(x, y):
    total = 0
    for item in x:
        try:
            total += item.value(y, key=1)
        except ValueError as error:
            total = error
    return f"{total}", lambda: y


CODE = program.__code__


def changed(edit: Callable[[list[Item]], None]) -> CodeType:
    """The program after an edit of its instruction list."""
    items = disassemble(CODE)
    edit(items)
    header = Header.of(CODE)
    return assemble(items, header, Pools(header, CODE.co_consts, CODE.co_names))


def first(items: list[Item], op: str) -> Any:
    return next(item for item in items if isinstance(item, Instruction) and item.op == op)


def patched(offset: int, number: int, arg: int) -> CodeType:
    """The program with two bytes overwritten."""
    data = bytearray(CODE.co_code)
    data[offset : offset + 2] = bytes((number, arg))
    return CODE.replace(co_code=bytes(data))


def at(op: str) -> Any:
    return next(raw for raw in scan(CODE.co_code) if dis.opname[raw.number] == op)


def test_sound_code_has_no_problems() -> None:
    verify_code(CODE)
    verify(CODE, reassemble(CODE))
    assert list(problems(CODE)) == []


def test_nested_code_is_rewritten_and_compared() -> None:
    made = reassemble(CODE, nested=True)
    inner = [item for item in made.co_consts if isinstance(item, CodeType)]
    assert inner and all(item is not other for item in inner for other in CODE.co_consts)
    verify(CODE, made)
    (old,) = inner
    broken = old.replace(co_consts=(*old.co_consts, 1), co_firstlineno=old.co_firstlineno + 1)
    consts = tuple(broken if item is old else item for item in made.co_consts)
    with pytest.raises(InternalError, match="became"):
        verify(CODE, made.replace(co_consts=consts))


def shift_line(items: list[Item]) -> None:
    item = first(items, "GET_ITER")
    line, *rest = item.position
    item.position = (line + 1, *rest) if rest[0] is None else (line, line + 1, *rest[1:])


def change_depth(items: list[Item]) -> None:
    begin = [item for item in items if isinstance(item, TryBegin)][-1]
    begin.depth += 1


def change_lasti(items: list[Item]) -> None:
    begin = [item for item in items if isinstance(item, TryBegin)][-1]
    begin.lasti = not begin.lasti


def change_constant(items: list[Item]) -> None:
    first(items, "LOAD_CONST").operand = False  # equal to the 0 that was there, and not the same


def change_local(items: list[Item]) -> None:
    first(items, "LOAD_FAST").operand = "total"


def leave_out(items: list[Item]) -> None:
    items.remove(first(items, "GET_ITER"))
    items.insert(0, Instruction("NOP", None, (1, 1, 0, 0)))


@pytest.mark.parametrize(
    "edit", [shift_line, change_depth, change_lasti, change_constant, change_local, leave_out]
)
def test_every_difference_is_noticed(edit: Callable[[list[Item]], None]) -> None:
    try:
        made = changed(edit)
    except InternalError:
        return  # noticed even sooner
    with pytest.raises(InternalError, match="became"):
        verify(CODE, made)


@pytest.mark.parametrize("change", ["co_name", "co_qualname", "co_filename"])
def test_a_header_must_stay(change: str) -> None:
    with pytest.raises(InternalError, match="headers differ"):
        verify(CODE, CODE.replace(**{change: "other"}))
    with pytest.raises(InternalError, match="headers differ"):
        verify(CODE, CODE.replace(co_flags=CODE.co_flags ^ 0x10))


def test_missing_and_additional_instructions_are_noticed() -> None:
    plain = CODE.replace(co_exceptiontable=b"")
    longer = plain.replace(co_code=plain.co_code + bytes((dis.opmap["NOP"], 0)))
    for old, new in ((plain, longer), (longer, plain)):
        with pytest.raises(InternalError, match=r"\d+ instructions became \d+"):
            verify(old, new)


@pytest.mark.parametrize(
    ("code", "match"),
    [
        (patched(at("LOAD_CONST").offset, dis.opmap["LOAD_CONST"], 200), "LOAD_CONST .* out of range, 200"),
        (patched(at("LOAD_FAST").offset, dis.opmap["LOAD_FAST"], 99), "LOAD_FAST .* out of range, 99"),
        (patched(at("STORE_FAST").offset, dis.opmap["STORE_FAST"], 99), "STORE_FAST .* out of range, 99"),
        (patched(at("LOAD_FAST").offset, dis.opmap["CACHE"], 0), "CACHE .* cannot occur"),
        (patched(at("FOR_ITER").offset, dis.opmap["FOR_ITER"], 250), "jumps to .* no instruction"),
        (patched(at("LOAD_FAST").offset, dis.opmap["NOP"], 0), "too few values|reached at depths"),
        (patched(at("RESUME").offset, dis.opmap["PUSH_NULL"], 0), "is reached at depths|stack size|wants"),
        (CODE.replace(co_code=CODE.co_code[:-2]), "protected range|off the end|no instruction"),
        (CODE.replace(co_stacksize=2), "stack size 2 is less than"),
        (CODE.replace(co_exceptiontable=b"\x81"), "ends inside an entry"),
    ],
)  # fmt: skip
def test_unsound_code_is_noticed(code: CodeType, match: str) -> None:
    with pytest.raises(InternalError, match=match):
        verify_code(code)


@pytest.mark.parametrize("target", [at("BINARY_OP").end - 2, len(CODE.co_code)])
def test_handlers_begin_at_instructions(target: int) -> None:
    table = exception_table.assemble([exception_table.Region(0, at("BINARY_OP").end, target, 0, False)])
    with pytest.raises(InternalError, match=f"no instruction at {target}"):
        verify_code(CODE.replace(co_exceptiontable=table))


def test_ranges_end_at_instructions() -> None:
    inside = at("BINARY_OP").end - 2
    table = exception_table.assemble([exception_table.Region(0, inside, 0, 0, False)])
    with pytest.raises(InternalError, match=f"no instruction at {inside}"):
        verify_code(CODE.replace(co_exceptiontable=table))


def test_a_handler_deeper_than_its_range_is_noticed() -> None:
    def edit(items: list[Item]) -> None:
        for item in items:
            if isinstance(item, TryBegin) and not item.lasti:
                item.depth = 9

    with pytest.raises(InternalError, match="its handler wants 9|reached at depths"):
        verify_code(changed(edit))


@pytest.mark.skipif(not LAYOUT.inseparable, reason="nothing is inseparable in this version")
def test_what_belongs_together_is_kept_together() -> None:
    def edit(items: list[Item]) -> None:
        items.insert(items.index(first(items, "PRECALL")) + 1, Instruction("NOP"))

    with pytest.raises(InternalError, match="PRECALL .* cut off from its CALL"):
        verify_code(changed(edit))


@pytest.mark.skipif(not LAYOUT.for_iter_skips, reason="a loop ends anyhow in this version")
def test_the_end_of_a_loop_is_kept() -> None:
    def edit(items: list[Item]) -> None:
        items.insert(items.index(first(items, "END_FOR")), Instruction("NOP"))

    with pytest.raises(InternalError, match="does not end in END_FOR"):
        verify_code(changed(edit))
