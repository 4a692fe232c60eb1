"""From an instruction list to a code object.

Owns the pools, the encoding of arguments and jumps, the tables and the stack size. What to say in which
version is the business of `Emitter` (the running version's verbs), which is re-exported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from opcode import opmap, opname
from types import CodeType, EllipsisType, NoneType
from typing import Any

from graphlift.bytecode import exception_table, line_table
from graphlift.bytecode.decode import EXTENDED_ARG, WIDTHS
from graphlift.bytecode.exception_table import Region
from graphlift.bytecode.instruction import Instruction, Item, Label, Position, TryBegin, TryEnd
from graphlift.bytecode.operands import Operand, unique_slot_names
from graphlift.bytecode.stack_depth import Flow, Guarded
from graphlift.bytecode.versions import OPCODES, Emitter
from graphlift.errors import InternalError

__all__ = ["Assembly", "Emitter", "Header", "Pools", "assemble", "const_key", "encoded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a code object says about itself besides its instructions.

    `varnames` begins with the parameters, in CPython's order: positional, keyword-only, ``*args``,
    ``**kwargs``.
    """

    name: str
    qualname: str
    filename: str
    firstlineno: int
    flags: int
    argcount: int = 0
    posonlyargcount: int = 0
    kwonlyargcount: int = 0
    varnames: tuple[str, ...] = ()
    cellvars: tuple[str, ...] = ()
    freevars: tuple[str, ...] = ()

    @property
    def first_position(self) -> Position:
        """The line at which the function begins; CPython gives it to a function's prologue."""
        return self.firstlineno, self.firstlineno, 0, 0

    @classmethod
    def of(cls, code: CodeType) -> Header:
        """The header of an existing code object; vary it with `dataclasses.replace`."""
        return cls(
            name=code.co_name,
            qualname=code.co_qualname,
            filename=code.co_filename,
            firstlineno=code.co_firstlineno,
            flags=code.co_flags,
            argcount=code.co_argcount,
            posonlyargcount=code.co_posonlyargcount,
            kwonlyargcount=code.co_kwonlyargcount,
            varnames=code.co_varnames,
            cellvars=code.co_cellvars,
            freevars=code.co_freevars,
        )


_PLAIN = frozenset({int, str, bytes, bool, NoneType, EllipsisType})


def const_key(value: Any) -> object:
    """Equal for constants that may be one: same type and value to the bit, or the same object.

    Runs no code of the value's own, so that any object may be a constant.
    """
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if (kind is float or kind is complex) and value == value:
        return kind, repr(value)
    if kind is tuple:
        return kind, tuple(map(const_key, value))
    if kind is frozenset:
        return kind, frozenset(map(const_key, value))
    return None, id(value)


class Pools:
    """The constants, names and local slots of a code object being made.

    Arguments:
        header: gives the slots that exist; locals stored to under new names are added.
        consts, names: what is to come first, in this order.
    """

    def __init__(self, header: Header, consts: Sequence[object] = (None,), names: Sequence[str] = ()) -> None:
        self.consts = list(consts)
        self.names = list(names)
        self.varnames = list(header.varnames)
        self._header = header
        self._const_at: dict[object, int] = {}
        for index, value in enumerate(consts):
            self._const_at.setdefault(const_key(value), index)
        self._name_at = {name: index for index, name in enumerate(names)}
        self._slot_at: dict[str, int] = {}
        self._number_slots()

    def _number_slots(self) -> None:
        header = self._header
        slots = unique_slot_names(self.varnames, header.cellvars, header.freevars)
        self._slot_at = {name: index for index, name in enumerate(slots)}

    def add_locals(self, names: Iterable[str]) -> None:
        """Make locals of the names that have no slot yet; must come before any slot is asked for."""
        new = [name for name in dict.fromkeys(names) if name not in self._slot_at]
        if new:
            self.varnames.extend(new)
            self._number_slots()

    def const(self, value: object) -> int:
        key = (type(value), value) if type(value) in _PLAIN else const_key(value)
        index = self._const_at.get(key)
        if index is None:
            index = self._const_at[key] = len(self.consts)
            self.consts.append(value)
        return index

    def name(self, name: str) -> int:
        index = self._name_at.get(name)
        if index is None:
            index = self._name_at[name] = len(self.names)
            self.names.append(name)
        return index

    def slot(self, name: str) -> int:
        index = self._slot_at.get(name)
        if index is None:
            raise InternalError(f"{self._header.qualname} has no local {name!r}")
        return index


_NUMBERS: dict[str, tuple[int, Operand]] = {name: (opmap[name], row.operand) for name, row in OPCODES.items()}
#: Stores are what may name a local for the first time.
_STORES = frozenset({"STORE_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"})


class Assembly:
    """The instruction list while it turns into numbers: parallel lists, one item an instruction."""

    def __init__(self, items: Iterable[Item], pools: Pools) -> None:
        self.numbers: list[int] = []
        self.args: list[int] = []
        self.positions: list[Position | None] = []
        self.jumps: list[tuple[int, Label, int]] = []
        self.places: dict[Label, int] = {}
        self.begins: list[TryBegin | None] = []
        self.guarded = False
        self._resolve(items, pools)
        self.targets = {at: self._place(label) for at, label, _ in self.jumps}

    def _resolve(self, items: Iterable[Item], pools: Pools) -> None:
        numbers, args, positions, begins = self.numbers, self.args, self.positions, self.begins
        active: list[TryBegin] = []
        inmost: TryBegin | None = None
        for item in items:
            if type(item) is Instruction:
                operand = item.operand
                number, kind = _NUMBERS[item.op]
                if kind.jump:
                    self.jumps.append((len(numbers), operand, kind.jump))
                    args.append(0)
                else:
                    args.append(kind.encode(operand, pools))
                numbers.append(number)
                positions.append(item.position)
                begins.append(inmost)
                continue
            if type(item) is Label:
                self.places[item] = len(numbers)
            elif isinstance(item, TryBegin):
                active.append(item)
            elif isinstance(item, TryEnd):
                active.remove(item.begin)
            inmost = active[-1] if active else None
            self.guarded = self.guarded or inmost is not None

    def _place(self, label: Label) -> int:
        place = self.places.get(label)
        if place is None or place >= len(self.numbers):
            raise InternalError(f"{label!r} stands before no instruction")
        return place

    def flow(self) -> Flow:
        """The depths of the stack, which also gives the ranges their depth."""
        self.guards: dict[TryBegin, Guarded] = {}
        if self.guarded:
            for at, begin in enumerate(self.begins):
                if begin is not None and begin not in self.guards:
                    target = self._place(begin.handler)
                    self.guards[begin] = Guarded(at, target, begin.lasti, begin.depth)
        guards = [self.guards[b] if b is not None else None for b in self.begins] if self.guarded else ()
        return Flow(self.numbers, self.args, self.targets, guards)

    def offsets(self) -> list[int]:
        """Settle the jumps; gives the byte offset of each instruction's first unit, and of the end.

        A jump can only grow when something between it and its target grows, so this comes to an end.
        """
        args = self.args
        widths = [WIDTHS[n] + _extra(a) for n, a in zip(self.numbers, args, strict=True)]
        while True:
            offsets = [0]
            for width in widths:
                offsets.append(offsets[-1] + width)
            settled = True
            for at, _, sign in self.jumps:
                distance = sign * (offsets[self.targets[at]] - offsets[at + 1]) >> 1
                if distance < 0:
                    raise InternalError(f"{opname[self.numbers[at]]} cannot jump in that direction")
                args[at] = distance
                width = max(widths[at], WIDTHS[self.numbers[at]] + _extra(distance))
                if width != widths[at]:
                    widths[at], settled = width, False
            if settled:
                self._spare = {at: widths[at] for at, _, _ in self.jumps}
                return offsets

    def code_bytes(self) -> bytes:
        spare = self._spare
        parts = []
        for at, (number, arg) in enumerate(zip(self.numbers, self.args, strict=True)):
            if at in spare:
                parts.append(encoded(number, arg, spare[at]))
            else:
                parts.append(_ENCODED.get(arg << 8 | number) or encoded(number, arg))
        return b"".join(parts)

    def regions(self, offsets: Sequence[int]) -> Iterable[Region]:
        """The protected ranges over byte offsets, each run of instructions under one range together."""
        start = 0
        for at in range(1, len(self.begins) + 1) if self.guarded else ():
            begin = self.begins[start]
            if at < len(self.begins) and self.begins[at] is begin:
                continue
            if begin is not None:
                guard = self.guards[begin]
                if guard.depth is not None:
                    yield Region(offsets[start], offsets[at], offsets[guard.target], guard.depth, guard.lasti)
            start = at

    def spans(
        self, offsets: Sequence[int], first: Position, count: int | None = None
    ) -> Iterable[tuple[int, Position]]:
        """Code units by position, neighbours of one position together.

        Arguments:
            offsets: as `offsets` gives them.
            first: the position where an instruction has none.
            count: how many instructions; all if None.
        """
        positions = self.positions[:count]
        if not positions:
            return
        start, position = 0, positions[0]
        for at, here in enumerate(positions):
            if here != position:
                yield offsets[at] - start >> 1, position or first
                start, position = offsets[at], here
        yield offsets[len(positions)] - start >> 1, position or first


#: Bytes of instructions met so far, by argument and opcode number in one.
_ENCODED: dict[int, bytes] = {}


def encoded(number: int, arg: int, width: int = 0) -> bytes:
    """The bytes of an instruction with prefixes and caches; at least `width` of them."""
    plain = WIDTHS[number]
    prefixes = max(width - plain, _extra(arg)) >> 1
    out = bytearray()
    for shift in range(prefixes, 0, -1):
        out += bytes((EXTENDED_ARG, arg >> 8 * shift & 255))
    out += bytes((number, arg & 255)) + bytes(plain - 2)
    if width == 0 and arg < 256:
        _ENCODED[arg << 8 | number] = bytes(out)
    return bytes(out)


def _extra(arg: int) -> int:
    """Bytes of `EXTENDED_ARG` that an argument needs."""
    return 0 if arg < 0x100 else 2 if arg < 0x1_0000 else 4 if arg < 0x100_0000 else 6


def _stored(items: Iterable[Item]) -> Iterable[str]:
    """Names of locals in the order in which they are stored to."""
    for item in items:
        if type(item) is Instruction and item.op in _STORES:
            operand: Any = item.operand
            if isinstance(operand, str):
                yield operand
            else:
                yield from operand


def assemble(items: Sequence[Item], header: Header, pools: Pools | None = None) -> CodeType:
    """The code object of an instruction list.

    Locals that the list stores to and `header` lacks are added behind the header's.

    Raises InternalError if a label is nowhere, a local unknown, a jump impossible, or the paths through the
    code disagree about the stack.
    """
    if pools is None:
        pools = Pools(header)
    pools.add_locals(_stored(items))
    assembly = Assembly(items, pools)
    if not assembly.numbers:
        raise InternalError("there are no instructions to assemble")
    flow = assembly.flow()
    offsets = assembly.offsets()
    return CodeType(
        header.argcount,
        header.posonlyargcount,
        header.kwonlyargcount,
        len(pools.varnames),
        flow.size,
        header.flags,
        assembly.code_bytes(),
        tuple(pools.consts),
        tuple(pools.names),
        tuple(pools.varnames),
        header.filename,
        header.name,
        header.qualname,
        header.firstlineno,
        line_table.assemble(assembly.spans(offsets, header.first_position), header.firstlineno),
        exception_table.assemble(assembly.regions(offsets)),
        header.freevars,
        header.cellvars,
    )
