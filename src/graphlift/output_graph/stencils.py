"""Bytecode of single statements, cut out of what CPython's own compiler makes of them.

A statement is written with placeholders for locals, constants and global objects; it is compiled once a
process, and each use puts other indices into a copy of its bytes. So straight-line code comes out as the
running Python spells it, several times faster than by compiling, and no version of Python is known here.
"""

from __future__ import annotations

import dis
from collections.abc import Sequence
from types import CodeType
from typing import Any, Final, NamedTuple

#: Placeholder number `n` of a constant is written as the int `FIRST_CONST` + n.
FIRST_CONST: Final = 900_000_001
_PAST_CONSTS: Final = FIRST_CONST + 1_000_000
#: More locals in front than the compiler can fuse loads of.
_PADDING: Final = ", ".join(f"d{i}" for i in range(17))
#: Statements kept; programs differ in few.
_LIMIT: Final = 20_000

# What an operand stands for.
LOCAL, CONST, OBJECT, FIXED_CONST, FIXED_NAME, NUMBER = range(6)


class Fill(NamedTuple):
    """An operand that is filled in.

    Attributes:
        kind, index: what the operand stands for, and which (for the fixed ones, the constant or name itself).
        shift, low: the operand is ``number << shift | low``.
        at: where its byte is in the code of the statement; its opcode is the byte before.
    """

    kind: int
    index: Any
    shift: int
    low: int
    at: int


class Stencil(NamedTuple):
    """The code of one statement.

    Attributes:
        whole: its bytes, with 0 for what is filled in.
        fills: what is filled in, in order.
        stack: how much stack it needs.
    """

    whole: bytes
    fills: tuple[Fill, ...]
    stack: int


_stencils: Final[dict[str, Stencil]] = {}


def stencil(statement: str) -> Stencil:
    """The code of a statement over locals ``L0``, ``L1``, …, globals ``G0``, … and constants (see above)."""
    found = _stencils.get(statement)
    if found is None:
        if len(_stencils) > _LIMIT:
            _stencils.clear()
        found = _stencils[statement] = _cut(_compiled(statement), 3)
    return found


def _compiled(statement: str) -> CodeType:
    count = statement.count("L")
    params = ", ".join([_PADDING, *(f"L{i}" for i in range(count))])
    # The attribute takes index 0 among the names, so that a shifted index differs from a plain one.
    text = f"def f({params}):\n d0.first\n {statement}\n return d0\n"
    module = compile(text, "<statement>", "exec", dont_inherit=True, optimize=0)
    return next(x for x in module.co_consts if isinstance(x, CodeType))


#: A function without parameters or statements, to be filled.
BLANK: Final = _compiled("pass")


def prologue() -> bytes:
    """What every function's code begins with."""
    return _cut(BLANK, 1).whole


def _cut(code: CodeType, line: int) -> Stencil:
    """The instructions at one line of a code object."""
    raw = code.co_code
    rows = list(dis.get_instructions(code))
    ends = [*(row.offset for row in rows[1:]), len(raw)]
    fills: list[Fill] = []
    whole = b""
    wide = False
    for row, end in zip(rows, ends, strict=True):
        if row.positions is None or row.positions.lineno != line:
            continue
        if row.opname == "EXTENDED_ARG":
            wide = True
            continue
        kind, index, shift, low = _operand(code, row, wide)
        wide = False
        if kind is None:
            whole += raw[row.offset : end]
        else:
            fills.append(Fill(kind, index, shift, low, len(whole) + 1))
            whole += bytes((row.opcode, 0)) + raw[row.offset + 2 : end]
    return Stencil(whole, tuple(fills), code.co_stacksize)


def _operand(code: CodeType, row: dis.Instruction, wide: bool) -> tuple[int | None, Any, int, int]:
    """(kind, index, shift, low) of an instruction's operand; kind None: it stays as it is."""
    arg = row.arg or 0
    if row.opcode in dis.haslocal:
        return LOCAL, _number_of(row.argval, "L"), 0, 0
    if row.opcode in dis.hasconst:
        value = code.co_consts[arg]
        if type(value) is int and FIRST_CONST <= value < _PAST_CONSTS:
            return CONST, value - FIRST_CONST, 0, 0
        if _holds_placeholder(value):
            raise NotImplementedError("the compiler folded a placeholder into another constant")
        return FIXED_CONST, value, 0, 0
    if row.opcode in dis.hasname:
        shift = _shift(code, row.argval, arg)
        low = arg & ((1 << shift) - 1)
        if row.argval[0] == "G" and row.argval[1:].isdigit():
            return OBJECT, int(row.argval[1:]), shift, low
        return FIXED_NAME, row.argval, shift, low
    return (NUMBER, arg, 0, 0) if wide else (None, None, 0, 0)


def _holds_placeholder(value: Any) -> bool:
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    if isinstance(value, (tuple, frozenset)):
        return any(map(_holds_placeholder, value))
    return type(value) is int and abs(value) >= FIRST_CONST


def _shift(code: CodeType, name: str, arg: int) -> int:
    """By how many bits of flags an instruction's operand is more than the index of a name."""
    index = code.co_names.index(name)
    return next(shift for shift in range(4) if arg >> shift == index)


def _number_of(name: Any, letter: str) -> int:
    if not isinstance(name, str) or name[0] != letter:
        raise NotImplementedError(f"an instruction on the locals {name}")
    return int(name[1:])


class Filler:
    """Puts statements one behind the other into one code object.

    Attributes:
        consts, names: the tables of the code object.
        globals: what the names stand for.
    """

    def __init__(self) -> None:
        self._code = bytearray(prologue())
        self._table = bytearray(_units(len(self._code) // 2, 0))
        self.consts: Final[list[Any]] = [None]
        self.names: Final[list[str]] = []
        self.globals: Final[dict[str, Any]] = {}
        self._objects: dict[int, int] = {}
        self._const_places: dict[int, int] = {id(None): 0}
        self._name_places: dict[str, int] = {}
        self._stack = 1

    def add(
        self, statement: str, local: Sequence[int], consts: Sequence[Any], objects: Sequence[Any]
    ) -> None:
        """Append a statement, on a line of its own.

        Args:
            local, consts, objects: for each placeholder, the number of the local, the constant, the object.
        """
        whole, fills, stack = stencil(statement)
        if stack > self._stack:
            self._stack = stack
        code = self._code
        names = self._name_places
        start = len(code)
        code += whole
        wider = 0  # bytes by which operands above 255 have moved the rest
        for kind, index, shift, low, at in fills:
            if kind == LOCAL:
                arg = local[index]
            elif kind == CONST:
                arg = self._const(consts[index])
            elif kind == OBJECT:
                arg = self._object(objects[index]) << shift | low
            elif kind == FIXED_NAME and index in names:
                arg = names[index] << shift | low
            else:
                arg = self._fixed(kind, index) << shift | low
            if arg > 255:
                prefixes = _extended(arg)
                opcode = start + wider + at - 1
                code[opcode:opcode] = prefixes
                wider += len(prefixes)
                arg &= 255
            code[start + wider + at] = arg
        units = (len(code) - start) // 2
        self._table += _unit_bytes.get((units, 1)) or _units(units, 1)

    def _fixed(self, kind: int, index: Any) -> int:
        if kind == FIXED_CONST:
            return self._const(index)
        return int(index) if kind == NUMBER else self._name(index)

    def _const(self, value: Any) -> int:
        place = self._const_places.get(id(value))
        if place is None:
            place = self._const_places[id(value)] = len(self.consts)
            self.consts.append(value)
        return place

    def _name(self, name: str) -> int:
        place = self._name_places.get(name)
        if place is None:
            place = self._name_places[name] = len(self.names)
            self.names.append(name)
        return place

    def _object(self, value: Any) -> int:
        place = self._objects.get(id(value))
        if place is None:
            name = f"c{len(self.globals)}"
            self.globals[name] = value
            place = self._objects[id(value)] = self._name(name)
        return place

    def code(self, name: str, filename: str, argcount: int, local_count: int) -> CodeType:
        """The finished code object; its locals are numbered, parameters first."""
        return BLANK.replace(
            co_code=bytes(self._code),
            co_consts=tuple(self.consts),
            co_names=tuple(self.names),
            co_varnames=tuple([f"v{i}" for i in range(local_count)]),
            co_nlocals=local_count,
            co_argcount=argcount,
            co_stacksize=self._stack,
            co_linetable=bytes(self._table),
            co_exceptiontable=b"",
            co_filename=filename,
            co_name=name,
            co_qualname=name,
            co_firstlineno=1,
        )


_EXTENDED: Final = dis.EXTENDED_ARG
#: Entry of the table of positions for a line without columns (see CPython's `Objects/locations.md`).
_LINE: Final = 0x80 | 13 << 3


def _extended(arg: int) -> bytes:
    """The prefixes by which an operand of more than one byte begins."""
    out = bytearray()
    for shift in (24, 16, 8):
        if arg >> shift:
            out += bytes((_EXTENDED, arg >> shift & 255))
    return bytes(out)


_unit_bytes: Final[dict[tuple[int, int], bytes]] = {}


def _units(count: int, lines: int) -> bytes:
    """Entries of the table of positions: `count` code units, `lines` below what came before."""
    found = _unit_bytes.get((count, lines))
    if found is None:
        out = bytearray()
        left, step = count, lines << 1
        while left > 0:
            part = min(left, 8)
            out += bytes((_LINE | part - 1, step))
            left, step = left - part, 0
        found = _unit_bytes[count, lines] = bytes(out)
    return found
