"""Code objects as text, for logs and golden files: one line an instruction, the same on every run.

Unlike `dis` it shows neither addresses of objects nor caches, names jump targets and prints what a protected
range means where it begins and ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from opcode import opname
from types import CodeType

from graphlift.bytecode import exception_table
from graphlift.bytecode.decode import Raw, scan
from graphlift.bytecode.operands import CodeView
from graphlift.bytecode.versions import ROWS


def listing(code: CodeType, title: str = "") -> str:
    """The instructions of a code object as text.

    Arguments:
        title: stands above the instructions, followed by the function's name and place.
    """
    head = f"{title} {code.co_qualname} ({code.co_filename}, line {code.co_firstlineno})".lstrip()
    return "\n".join([head, *_lines(code)])


def _lines(code: CodeType) -> Iterator[str]:
    view = CodeView(code)
    raws = list(scan(code.co_code))
    regions = list(exception_table.parse(code.co_exceptiontable))
    places = {raw.target for raw in raws if raw.target >= 0} | {region.target for region in regions}
    labels = {place: f"L{number}" for number, place in enumerate(sorted(places), 1)}
    starts = {region.start: region for region in regions}
    ends = {region.end for region in regions}
    lines = [line for _, _, line in _units(code)]
    shown: int | None = None
    for raw in raws:
        if raw.start in ends:
            yield f"{'':13}end of range"
        if raw.start in starts:
            region = starts[raw.start]
            lasti = " with offset" if region.lasti else ""
            yield f"{'':13}range, on error to {labels[region.target]} at depth {region.depth}{lasti}"
        line = lines[raw.offset >> 1]
        number = str(line) if line is not None and line != shown else ""
        shown = line if line is not None else shown
        yield f"{number:>6} {labels.get(raw.start, ''):>5} {_statement(raw, view, labels)}".rstrip()


def _units(code: CodeType) -> Iterator[tuple[int, int, int | None]]:
    """(start, end, line) of each code unit."""
    for start, end, line in code.co_lines():
        for unit in range(start, end, 2):
            yield unit, unit + 2, line


def _statement(raw: Raw, view: CodeView, labels: dict[int, str]) -> str:
    row = ROWS[raw.number]
    name = opname[raw.number]
    if raw.target >= 0:
        return f"{name:26} to {labels[raw.target]}"
    if row is None:
        return f"{name:26} {raw.arg}"
    operand = row.operand.decode(raw.arg, view)
    if operand is None and name not in ("LOAD_CONST", "RETURN_CONST"):
        return name
    return f"{name:26} {_shown(operand, row.operand.show(operand, raw.arg))}{_note(name, operand)}"


def _shown(operand: object, text: str) -> str:
    return f"<code {operand.co_qualname}>" if isinstance(operand, CodeType) else text


def _note(name: str, operand: object) -> str:
    """What the printed operand does not say by itself."""
    if name == "BINARY_OP" and isinstance(operand, tuple):
        return f" ({operand[0]}{'=' if operand[1] else ''})"
    if name == "LOAD_GLOBAL" and isinstance(operand, tuple) and operand[1]:
        return " + NULL"
    if name == "LOAD_ATTR" and isinstance(operand, tuple) and operand[1]:
        return " as method"
    return ""
