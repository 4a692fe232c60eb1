"""From a code object back to an instruction list, and once more to a code object.

`disassemble` is for whoever changes existing code; `reassemble` changes nothing and thereby shows that
reading and writing are inverse to each other.
"""

from __future__ import annotations

from opcode import opname
from types import CodeType

from graphlift.bytecode import exception_table
from graphlift.bytecode.decode import scan
from graphlift.bytecode.emit import Header, Pools, assemble
from graphlift.bytecode.instruction import NOWHERE, Instruction, Item, Label, TryBegin, TryEnd
from graphlift.bytecode.operands import CodeView
from graphlift.bytecode.versions import ROWS
from graphlift.errors import InternalError


def disassemble(code: CodeType, view: CodeView | None = None) -> list[Item]:
    """The instruction list of a code object, `NOP` and `PRECALL` included.

    Arguments:
        view: tables to resolve arguments with, if not the code's own.

    Raises InternalError for an opcode without a row.
    """
    view = view or CodeView(code)
    raws = list(scan(code.co_code))
    labels = {raw.target: Label() for raw in raws if raw.target >= 0}
    begins: dict[int, TryBegin] = {}
    ends: dict[int, TryEnd] = {}
    for region in exception_table.parse(code.co_exceptiontable):
        handler = labels.setdefault(region.target, Label())
        begin = begins[region.start] = TryBegin(handler, region.lasti, region.depth)
        ends[region.end] = TryEnd(begin)
    positions = list(code.co_positions())
    items: list[Item] = []
    for raw in raws:
        if raw.start in ends:
            items.append(ends.pop(raw.start))
        if raw.start in begins:
            items.append(begins[raw.start])
        if raw.start in labels:
            items.append(labels[raw.start])
        row = ROWS[raw.number]
        if row is None:
            raise InternalError(f"opcode {raw.number} at offset {raw.offset} is unknown")
        operand = labels[raw.target] if raw.target >= 0 else row.operand.decode(raw.arg, view)
        unit = raw.offset >> 1
        position = positions[unit] if unit < len(positions) else NOWHERE
        items.append(Instruction(opname[raw.number], operand, position))
    items.extend(ends.values())
    return items


def reassemble(code: CodeType, nested: bool = False) -> CodeType:
    """The same code, taken apart and put together again; with `nested`, also the code objects it holds."""
    view = CodeView(code)
    if nested:
        view.consts = tuple(
            reassemble(item, nested) if isinstance(item, CodeType) else item for item in code.co_consts
        )
    header = Header.of(code)
    pools = Pools(header, view.consts, code.co_names)
    return assemble(disassemble(code, view), header, pools)
