"""What segments need to know of a user's code object, worked out once for each.

Owns the cache and its lifetime: it goes with the code object. It must not know what segments are.
"""

from __future__ import annotations

from functools import cached_property
from types import CodeType
from typing import Any

from graphlift.bytecode.by_code import ByCode
from graphlift.bytecode.decode import decode, scan
from graphlift.bytecode.instruction import Instruction, Item, Label, TryBegin, TryEnd
from graphlift.bytecode.liveness import Liveness, live_locals
from graphlift.bytecode.reassemble import disassemble
from graphlift.bytecode.verify import flow_of
from graphlift.bytecode.versions import OPCODES, ROWS


class Original:
    """A user's code object taken apart.

    Attributes:
        decoded: its steps.
        first: the first step behind the prologue.
        made: code objects derived from it, kept as long as it lives.
    """

    def __init__(self, code: CodeType) -> None:
        self.decoded = decode(code)
        self.first = next((at for at in range(len(self.decoded)) if self.decoded.op(at) == "RESUME"), 0) + 1
        self.made: dict[Any, CodeType] = {}

    @property
    def code(self) -> CodeType:
        """The code object; whoever holds an `Original` must keep it alive."""
        return self.decoded.code

    @cached_property
    def alive(self) -> Liveness:
        """Which locals may still be needed before each step."""
        return live_locals(self.code)

    @cached_property
    def depths(self) -> list[int | None]:
        """The depth of the stack before each step; None for what is never reached."""
        raws = list(scan(self.code.co_code))
        depths = flow_of(self.code, raws, {raw.start: at for at, raw in enumerate(raws)}).depths
        entered: list[int | None] = []
        waiting, entry = False, None
        for raw, depth in zip(raws, depths, strict=True):
            # What is left out of the steps belongs to the step behind it, which is entered there.
            entry = entry if waiting else depth
            row = ROWS[raw.number]
            waiting = row is not None and row.folded
            if not waiting:
                entered.append(entry)
        return entered

    @cached_property
    def _lines(self) -> dict[int | None, int]:
        lines: dict[int | None, int] = {}
        for at in range(len(self.decoded)):
            lines.setdefault(self.decoded.line(at), at)
        return lines

    def first_of_line(self, step: int) -> int:
        """The first step that stands at the same line."""
        return self._lines[self.decoded.line(step)]

    @cached_property
    def body(self) -> Body:
        """The instruction list behind the prologue."""
        return Body(disassemble(self.code), self.first)


class Body:
    """The instruction list of a code object from its first step behind the prologue on.

    Attributes:
        items: the list; shared, so nothing may be changed in it.
        entries: where to enter for each step from `first` on, as index into `items`.
        ranges: the protected range around each of these steps, or None.
    """

    def __init__(self, items: list[Item], first: int) -> None:
        self.first = first
        self.entries: list[int] = []
        self.ranges: list[TryBegin | None] = []
        start = _behind(items, first)
        # A generator's code is in a range as a whole, from before its first step on.
        self.items = [*_open_ranges(items[:start]), *items[start:]]
        active: TryBegin | None = None
        entry = -1
        for at, item in enumerate(self.items):
            if isinstance(item, TryBegin):
                active = item
            elif isinstance(item, TryEnd):
                active = None
            elif isinstance(item, Instruction):
                # What is left out of the steps stands for nothing or belongs to the step behind it.
                entry = at if entry < 0 else entry
                if not OPCODES[item.op].folded:
                    self.entries.append(entry)
                    self.ranges.append(active)
                    entry = -1
        self._lowest = self._lowest_targets()

    def _lowest_targets(self) -> list[int]:
        """For each place of the list the first one that an item from there on leads to."""
        end = len(self.items)
        places = {item: at for at, item in enumerate(self.items) if isinstance(item, Label)}
        lowest = [end]
        for item in reversed(self.items):
            target = item.handler if isinstance(item, TryBegin) else getattr(item, "operand", None)
            lowest.append(min(lowest[-1], places[target] if isinstance(target, Label) else end))
        lowest.reverse()
        return lowest

    def entered(self, step: int, entry: Label) -> list[Item]:
        """The list with a label where `step` is entered, without what lies before and cannot be reached."""
        at = start = self.entries[step - self.first]
        while True:
            ranges = _open_ranges(self.items[:start])
            lowest = min([self._lowest[start], *(self.items.index(begin.handler) for begin in ranges)])
            if lowest >= start:
                return [*ranges, *self.items[start:at], entry, *self.items[at:]]
            start = lowest

    def range(self, step: int) -> TryBegin | None:
        """The protected range around a step."""
        return self.ranges[step - self.first]


def _open_ranges(items: list[Item]) -> list[TryBegin]:
    """The ranges that begin in a list and do not end there."""
    opened: list[TryBegin] = []
    for item in items:
        if isinstance(item, TryBegin):
            opened.append(item)
        elif isinstance(item, TryEnd):
            opened.remove(item.begin)
    return opened


def _behind(items: list[Item], steps: int) -> int:
    """The place in the list behind its first `steps` steps."""
    for at, item in enumerate(items):
        if not steps:
            return at
        if isinstance(item, Instruction) and not OPCODES[item.op].folded:
            steps -= 1
    return len(items)


_known: ByCode[Original] = ByCode()


def original(code: CodeType) -> Original:
    """What there is to know of `code`."""
    found = _known.get(code)
    if found is None:
        found = _known[code] = Original(code)
    return found
