"""Reading a code object, once: steps for the interpreter, with handlers and operands ready.

Owns the reader and the cache of what was read. It must not know what handlers do; the interpreter binds
their names to its functions with `Decoded.bind`. What does nothing (caches, argument prefixes, `NOP`,
`PRECALL`) is gone, jumps are step indices, and the code is read as compiled, whatever CPython's specialiser
or a monitoring tool made of it in the meantime.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from opcode import opmap, opname
from types import CodeType
from typing import Any, NamedTuple, TypeVar

from graphlift.bytecode import exception_table
from graphlift.bytecode.by_code import ByCode
from graphlift.bytecode.exception_table import Region
from graphlift.bytecode.instruction import NOWHERE, Position
from graphlift.bytecode.opcodes import UNEXPECTED, Row
from graphlift.bytecode.operands import CodeView, Const, Name, Operand, Slot
from graphlift.bytecode.versions import LAYOUT, ROWS

H = TypeVar("H", bound=Callable[..., Any])

EXTENDED_ARG = opmap["EXTENDED_ARG"]
FOR_ITER = opmap["FOR_ITER"]

#: Bytes of an instruction with its caches, by opcode number.
WIDTHS = [2 + 2 * LAYOUT.caches.get(name, 0) for name in opname[:256]]


class Step(NamedTuple):
    """One decoded instruction, for whoever wants to look at it (the interpreter runs `Decoded.bind`)."""

    op: str
    handlers: tuple[str, ...]
    operand: Any
    offset: int
    arg: int


class Decoded:
    """A code object as steps. The lists run in parallel, one item a step.

    Attributes:
        numbers: opcode numbers.
        operands: operands; for a jump the index of the step it goes to.
        offsets: byte offset of the instruction itself (behind any `EXTENDED_ARG`).
        args: raw arguments.
        regions: protected ranges over step indices.
        slots: names of the fast slots, no two alike.
    """

    __slots__ = (
        "_bound",
        "_code",
        "_positions",
        "args",
        "numbers",
        "offsets",
        "operands",
        "regions",
        "slots",
    )

    def __init__(self, code: CodeType) -> None:
        # A strong reference would keep the code alive through the cache for ever.
        self._code = weakref.ref(code)
        self._positions: list[Position] | None = None
        self._bound: tuple[object, list[tuple[Any, Any, int]]] | None = None
        view = CodeView(code)
        self.slots = view.slots
        self.numbers: list[int] = []
        self.operands: list[Any] = []
        self.offsets: list[int] = []
        self.args: list[int] = []
        jumps = _read(code.co_code, view, self)
        for index, target in jumps:
            self.operands[index] = self._landing(index, target)
        self.regions = tuple(
            Region(self.index_at(start), self.index_at(end), self.index_at(target), depth, lasti)
            for start, end, target, depth, lasti in exception_table.parse(code.co_exceptiontable)
        )

    def _landing(self, index: int, target: int) -> int:
        """The step at which a jump to the byte offset `target` goes on."""
        landing = self.index_at(target)
        if self.numbers[index] == FOR_ITER:
            for skipped in LAYOUT.for_iter_skips:
                if opname[self.numbers[landing]] != skipped:
                    raise ValueError(f"loop end at offset {target} lacks {skipped}")
                landing += 1
        return landing

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def code(self) -> CodeType:
        """The code object; whoever holds a `Decoded` must keep the code alive."""
        code = self._code()
        if code is None:
            raise ReferenceError("the decoded code object is gone")
        return code

    def index_at(self, offset: int) -> int:
        """The step at a byte offset, or the next one if nothing is left of the instruction there."""
        return bisect_left(self.offsets, offset)

    def start(self, index: int) -> int:
        """The byte offset at which execution must enter to carry out the step, prefixes included."""
        return self.end(index - 1) if index else 0

    def end(self, index: int) -> int:
        """The byte offset behind the step and its caches."""
        return self.offsets[index] + WIDTHS[self.numbers[index]]

    def op(self, index: int) -> str:
        """The name of the opcode."""
        return opname[self.numbers[index]]

    def handlers(self, index: int) -> tuple[str, ...]:
        """Names of the handlers that carry out the step."""
        return _HANDLERS[self.numbers[index]]

    def jumps(self, index: int) -> bool:
        """Whether the step may jump, so that its operand is a step index."""
        return _KINDS[self.numbers[index]].jump != 0

    def step(self, index: int) -> Step:
        """The step as one object."""
        number = self.numbers[index]
        operand, offset, arg = self.operands[index], self.offsets[index], self.args[index]
        return Step(opname[number], _HANDLERS[number], operand, offset, arg)

    def steps(self) -> list[Step]:
        """All steps as objects."""
        return [self.step(index) for index in range(len(self))]

    def shown(self, index: int) -> str:
        """The step's operand as logs print it; jumps by byte offset, as `dis` does."""
        operand = self.operands[index]
        kind = _KINDS[self.numbers[index]]
        if kind.jump:
            operand = self.offsets[operand]
        return kind.show(operand, self.args[index])

    def text(self, index: int) -> str:
        """The step as one line for the `trace_bytecode` log, e.g. ``LOAD_FAST x``."""
        return f"{self.op(index)} {self.shown(index)}"

    def position(self, index: int) -> Position:
        """Where the step stands in the source."""
        if self._positions is None:
            self._positions = list(self.code.co_positions())
        at = self.offsets[index] >> 1
        return self._positions[at] if at < len(self._positions) else NOWHERE

    def line(self, index: int) -> int | None:
        """The source line of the step."""
        return self.position(index)[0]

    def region(self, index: int) -> Region | None:
        """The protected range around a step, or None."""
        for region in self.regions:
            if region.start <= index < region.end:
                return region
        return None

    def bind(self, table: Mapping[str, H], fuse: Callable[[tuple[H, ...]], H]) -> list[tuple[H, Any, int]]:
        """The steps as (handler, operand, index of the next step), for the loop that runs them.

        Arguments:
            table: handlers by name; must be the same object each time, for the result is kept.
            fuse: makes one handler of the handlers of a fused opcode; its operand is the tuple of theirs.
                It must give the same handler for the same handlers.

        Raises KeyError if the table lacks a handler.
        """
        bound = self._bound
        if bound is not None and bound[0] is table:
            return bound[1]
        by_number: dict[int, H] = {}
        for number in set(self.numbers):
            found = tuple(table[name] for name in _HANDLERS[number])
            by_number[number] = found[0] if len(found) == 1 else fuse(found)
        handlers = map(by_number.__getitem__, self.numbers)
        steps = list(zip(handlers, self.operands, range(1, len(self.numbers) + 1), strict=True))
        self._bound = (table, steps)
        return steps


_MISSING = (UNEXPECTED,)
_HANDLERS = [row.handlers if row else _MISSING for row in ROWS]
_KINDS = [row.operand if row else Operand() for row in ROWS]

# How `_read` goes about an opcode, sorted out beforehand so that its loop asks one question.
_CALL, _FOLD, _NONE, _JUMP = range(4)
_POOL = 4  # and above: the operand is an item of one of `_pools`


def _pools(view: CodeView) -> tuple[Sequence[Any], ...]:
    return (view.consts, view.names, view.slots)


def _way(row: Row | None) -> int:
    """The branch of `_read` that deals with the opcodes of a row."""
    if row is None:
        return _NONE
    if row.folded:
        return _FOLD
    if row.operand.jump:
        return _JUMP
    plain = {Operand: _NONE, Const: _POOL, Name: _POOL + 1, Slot: _POOL + 2}
    return plain.get(type(row.operand), _CALL)


_PLAN = [
    (_way(row), width, kind.decode, 2 * kind.jump)
    for row, width, kind in zip(ROWS, WIDTHS, _KINDS, strict=True)
]


def _read(data: bytes, view: CodeView, into: Decoded) -> list[tuple[int, int]]:
    """Fill the lists of `into` from the bytes; gives (step, target offset) of the jumps found."""
    numbers, operands, offsets, args = into.numbers, into.operands, into.offsets, into.args
    pools = _pools(view)
    jumps: list[tuple[int, int]] = []
    at, end, high = 0, len(data), 0
    while at < end:
        number, arg = data[at], data[at + 1] | high
        way, width, read, step = _PLAN[number]
        if way >= _POOL:
            operands.append(pools[way - _POOL][arg])
        elif way == _NONE:
            operands.append(None)
        elif way == _CALL:
            operands.append(read(arg, view))
        elif way == _JUMP:
            jumps.append((len(numbers), at + width + step * arg))
            operands.append(None)
        else:
            high = arg << 8 if number == EXTENDED_ARG else 0
            at += width
            continue
        numbers.append(number)
        args.append(arg)
        offsets.append(at)
        at += width
        high = 0
    return jumps


class Raw(NamedTuple):
    """An instruction as it lies in the bytes, prefixes taken in, nothing else left out.

    Attributes:
        start: offset of its first prefix, or of itself.
        offset: offset of the instruction.
        end: offset behind its caches.
        target: where it may jump to, or -1.
    """

    start: int
    offset: int
    end: int
    number: int
    arg: int
    target: int


def scan(data: bytes) -> Iterator[Raw]:
    """The instructions of `co_code`, one by one; slower than `decode` and complete."""
    at = start = high = 0
    while at < len(data):
        number, arg = data[at], data[at + 1] | high
        if number == EXTENDED_ARG:
            high = arg << 8
            at += 2
            continue
        _, width, _, step = _PLAN[number]
        end = at + width
        yield Raw(start, at, end, number, arg, end + step * arg if step else -1)
        at = start = end
        high = 0


_cache: ByCode[Decoded] = ByCode()


def decode(code: CodeType) -> Decoded:
    """What `code` decodes to; read at the first call, kept as long as the code object lives."""
    decoded = _cache.get(code)
    if decoded is None:
        decoded = _cache[code] = Decoded(code)
    return decoded
