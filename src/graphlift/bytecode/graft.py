"""New instructions in front of existing code whose bytes stay as they are.

Serves code that goes on in the middle of a user's function: the tables are shifted, the instructions are
not looked at. It must not know why somebody wants to enter there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from opcode import opmap
from types import CodeType

from graphlift.bytecode import exception_table, line_table
from graphlift.bytecode.emit import Assembly, Header, Pools, encoded
from graphlift.bytecode.instruction import Instruction, Item, Label
from graphlift.bytecode.operands import unique_slot_names
from graphlift.errors import InternalError

JUMP_FORWARD = opmap["JUMP_FORWARD"]


def graft(items: Sequence[Item], code: CodeType, offset: int, header: Header, depth: int) -> CodeType:
    """Code that runs `items` and then goes on in `code`.

    Arguments:
        items: what comes first; control runs off its end with the stack that `code` has at `offset`.
        code: the code to be entered; its own prologue does not run.
        offset: where to enter, as `Decoded.start` gives it.
        header: of the result. Slots may be renamed from local to cell to free variable and parameters be
            declared, but every slot of `code` must keep its number.
        depth: stack depth of `code` at `offset`.

    Raises InternalError if a slot would move or the stack be of another depth.
    """
    _check_slots(code, header)
    pools = Pools(header, code.co_consts, code.co_names)
    end = Label("entry")
    # A jump to itself stands for the code that follows while the stack is followed, and is cut off then.
    stop = Instruction("JUMP_BACKWARD_NO_INTERRUPT", end)
    assembly = Assembly([*items, end, stop], pools)
    flow = assembly.flow()
    if flow.depths[-1] != depth:
        raise InternalError(f"the stack has depth {flow.depths[-1]} at the graft, {depth} is wanted")
    offsets = assembly.offsets()
    jump = encoded(JUMP_FORWARD, offset // 2)
    first = header.first_position
    spans = [*assembly.spans(offsets, first, len(offsets) - 2), (len(jump) // 2, first)]
    regions = [*assembly.regions(offsets), *_shifted(code, offsets[-2] + len(jump))]
    return code.replace(
        co_argcount=header.argcount,
        co_posonlyargcount=header.posonlyargcount,
        co_kwonlyargcount=header.kwonlyargcount,
        co_nlocals=len(header.varnames),
        co_stacksize=max(flow.size, code.co_stacksize),
        co_flags=header.flags,
        co_code=assembly.code_bytes()[: offsets[-2]] + jump + code.co_code,
        co_consts=tuple(pools.consts),
        co_names=tuple(pools.names),
        co_varnames=header.varnames,
        co_cellvars=header.cellvars,
        co_freevars=header.freevars,
        co_filename=header.filename,
        co_name=header.name,
        co_qualname=header.qualname,
        co_firstlineno=header.firstlineno,
        # The old table counts from the first line, which is where the jump stands.
        co_linetable=line_table.assemble(spans, header.firstlineno) + code.co_linetable,
        co_exceptiontable=exception_table.assemble(regions),
    )


def _shifted(code: CodeType, shift: int) -> Iterator[exception_table.Region]:
    """The ranges of the old code where it stands now."""
    for region in exception_table.parse(code.co_exceptiontable):
        yield region._replace(
            start=region.start + shift, end=region.end + shift, target=region.target + shift
        )


def _check_slots(code: CodeType, header: Header) -> None:
    """Raise InternalError unless every slot of `code` has the same number under `header`."""
    if header.firstlineno != code.co_firstlineno:
        raise InternalError("grafted code must begin at the line at which the old code begins")
    old = [*code.co_varnames, *(name for name in code.co_cellvars if name not in code.co_varnames)]
    old += code.co_freevars
    new = [name.removesuffix(".free") for name in _slots(header)]
    if new[: len(old)] != old:
        raise InternalError(f"slots {old} of {code.co_qualname} would become {new}")


def _slots(header: Header) -> tuple[str, ...]:
    return unique_slot_names(header.varnames, header.cellvars, header.freevars)
