"""Checks of code objects: that emitted code is sound, and that rewritten code says the same.

Used by tests and, in debug mode, on every code object that graphlift makes. A mistake here costs the user's
process, so nothing is taken on trust: offsets, indices, tables and stack depths are all looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from opcode import opname
from types import CodeType
from typing import Any

from graphlift.bytecode import exception_table
from graphlift.bytecode.decode import Raw, scan
from graphlift.bytecode.emit import Header, const_key
from graphlift.bytecode.instruction import NOWHERE, Position
from graphlift.bytecode.opcodes import UNEXPECTED
from graphlift.bytecode.operands import CodeView
from graphlift.bytecode.stack_depth import Flow, Guarded
from graphlift.bytecode.versions import LAYOUT, ROWS
from graphlift.errors import InternalError


def verify_code(code: CodeType) -> None:
    """Raise InternalError, with all that is wrong, unless the code object is sound.

    Sound means: every opcode known, every argument inside its table, every jump and handler at an
    instruction, every path ending, one stack depth an instruction, no deeper than the code object says.
    """
    found = list(problems(code))
    if found:
        raise InternalError(f"code of {code.co_qualname} is not sound: " + "; ".join(found))


def problems(code: CodeType) -> Iterator[str]:
    """What is wrong with a code object, one line each."""
    raws = list(scan(code.co_code))
    index = {raw.start: at for at, raw in enumerate(raws)}
    found = [
        *_argument_problems(code, raws, index),
        *_region_problems(code, raws, index),
        *_neighbour_problems(raws, index),
    ]
    yield from found
    if found:
        return
    try:
        depth = flow_of(code, raws, index)
    except InternalError as error:
        yield str(error)
        return
    if depth.size > code.co_stacksize:
        yield f"stack size {code.co_stacksize} is less than the {depth.size} needed"
    yield from _handler_problems(depth)


def flow_of(code: CodeType, raws: list[Raw], index: dict[int, int]) -> Flow:
    """The stack depths of a code object whose arguments and regions are sound."""
    guards: list[Guarded | None] = [None] * len(raws)
    for start, end, target, depth, lasti in exception_table.parse(code.co_exceptiontable):
        guard = Guarded(index[start], index[target], lasti, depth)
        for at in range(index[start], index.get(end, len(raws))):
            guards[at] = guard
    targets = {at: index[raw.target] for at, raw in enumerate(raws) if raw.target >= 0}
    return Flow([raw.number for raw in raws], [raw.arg for raw in raws], targets, guards)


def _argument_problems(code: CodeType, raws: list[Raw], index: dict[int, int]) -> Iterator[str]:
    view = CodeView(code)
    for raw in raws:
        row = ROWS[raw.number]
        if row is None or UNEXPECTED in row.handlers:
            yield f"{opname[raw.number]} at {raw.offset} cannot occur"
            continue
        if raw.end > len(code.co_code):
            yield f"{opname[raw.number]} at {raw.offset} lacks caches"
        if raw.target >= 0:
            if raw.target not in index:
                yield f"{opname[raw.number]} at {raw.offset} jumps to {raw.target}, which is no instruction"
            continue
        try:
            row.operand.decode(raw.arg, view)
        except IndexError:
            yield f"{opname[raw.number]} at {raw.offset} has an argument out of range, {raw.arg}"


def _region_problems(code: CodeType, raws: list[Raw], index: dict[int, int]) -> Iterator[str]:
    covered = 0
    end_of_code = raws[-1].end if raws else 0
    try:
        regions = list(exception_table.parse(code.co_exceptiontable))
    except ValueError as error:
        yield str(error)
        return
    for start, end, target, _, _ in regions:
        if not covered <= start < end:
            yield f"protected range {start}..{end} is empty or out of order"
        covered = end
        for place in (start, target) if end == end_of_code else (start, end, target):
            if place not in index:
                yield f"protected range {start}..{end} -> {target}: no instruction at {place}"


def _neighbour_problems(raws: list[Raw], index: dict[int, int]) -> Iterator[str]:
    """What must stand together does."""
    names = [opname[raw.number] for raw in raws] + [""]
    targets = {raw.target for raw in raws}
    for at, raw in enumerate(raws):
        partner = LAYOUT.inseparable.get(names[at])
        if partner is not None and (names[at + 1] != partner or raw.end in targets):
            yield f"{names[at]} at {raw.offset} is cut off from its {partner}"
        if names[at] == "FOR_ITER" and raw.target in index:
            end = index[raw.target]
            if tuple(names[end : end + len(LAYOUT.for_iter_skips)]) != LAYOUT.for_iter_skips:
                yield f"the loop at {raw.offset} does not end in {' '.join(LAYOUT.for_iter_skips)}"


def _handler_problems(flow: Flow) -> Iterator[str]:
    """A handler must not expect more on the stack than there is where the exception comes from."""
    for at, guard in enumerate(flow.guards):
        here = flow.depths[at]
        if guard is not None and guard.depth is not None and here is not None and here < guard.depth:
            yield f"instruction {at} has depth {here}, its handler wants {guard.depth}"


def verify(old: CodeType, new: CodeType) -> None:
    """Raise InternalError unless two code objects say the same.

    That is: the same header, the same instructions with the same operands, and for each instruction the
    same jump target, handler, unwinding depth and source position.
    """
    if Header.of(old) != Header.of(new):
        raise InternalError(f"headers differ: {Header.of(old)} and {Header.of(new)}")
    before, after = list(_statements(old)), list(_statements(new))
    for at, (one, other) in enumerate(zip(before, after, strict=False)):
        if one != other:
            raise InternalError(f"{old.co_qualname}, instruction {at}: {one} became {other}")
    if len(before) != len(after):
        raise InternalError(f"{old.co_qualname}: {len(before)} instructions became {len(after)}")


Statement = tuple[str, Any, tuple[int, int, bool] | None, Position]


def _statements(code: CodeType) -> Iterator[Statement]:
    """Each instruction with its operand, handler and position, free of offsets and indices."""
    view = CodeView(code)
    raws = list(scan(code.co_code))
    index = {raw.start: at for at, raw in enumerate(raws)}
    handlers: list[tuple[int, int, bool] | None] = [None] * len(raws)
    for start, end, target, depth, lasti in exception_table.parse(code.co_exceptiontable):
        for at in range(index[start], index.get(end, len(raws))):
            handlers[at] = (index[target], depth, lasti)
    positions = list(code.co_positions())
    for at, raw in enumerate(raws):
        row = ROWS[raw.number]
        if row is None:
            raise InternalError(f"opcode {raw.number} at offset {raw.offset} is unknown")
        operand = index[raw.target] if raw.target >= 0 else row.operand.decode(raw.arg, view)
        unit = raw.offset >> 1
        position = positions[unit] if unit < len(positions) else NOWHERE
        yield opname[raw.number], _comparable(operand), handlers[at], position


def _comparable(operand: object) -> object:
    """Equal for operands that say the same; code objects held as constants are compared in depth."""
    if isinstance(operand, CodeType):
        return Header.of(operand), tuple(_statements(operand))
    return const_key(operand)
