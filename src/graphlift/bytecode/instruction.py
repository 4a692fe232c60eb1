"""What emitted code is made of before it has bytes: instructions, labels, protected ranges.

Owns the items of an instruction list, nothing else; it must not know opcode numbers, versions or how an
operand becomes an argument.
"""

from __future__ import annotations

from typing import Any

#: (line, end line, column, end column) in the user's source, as `code.co_positions` gives them.
Position = tuple[int | None, int | None, int | None, int | None]

#: The position of code that belongs to no line. Such code must neither raise nor call: many tools cannot
#: bear a traceback entry without a line.
NOWHERE: Position = (None, None, None, None)


class Label:
    """A place in an instruction list that jumps and protected ranges name; compared by identity."""

    __slots__ = ("name",)

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Label({self.name!r})" if self.name else f"Label(at {id(self):#x})"


class Instruction:
    """One instruction.

    Attributes:
        op: the opcode's name.
        operand: resolved, see `operands`.
        position: in the source; None means the line at which the function begins.
    """

    __slots__ = ("op", "operand", "position")

    def __init__(self, op: str, operand: Any = None, position: Position | None = None) -> None:
        self.op = op
        self.operand = operand
        self.position = position

    def __repr__(self) -> str:
        return self.op if self.operand is None else f"{self.op} {self.operand!r}"


class TryBegin:
    """From here on an exception continues at `handler`, until the `TryEnd` that names this object.

    Attributes:
        handler: where control goes, with the exception on top of the stack.
        lasti: whether the offset of the failing instruction is pushed below the exception.
        depth: stack depth to unwind to; None means the depth at this point.
    """

    __slots__ = ("depth", "handler", "lasti")

    def __init__(self, handler: Label, lasti: bool = False, depth: int | None = None) -> None:
        self.handler = handler
        self.lasti = lasti
        self.depth = depth


class TryEnd:
    """The end of the range that `begin` opened. Where ranges nest, the one opened last is in force."""

    __slots__ = ("begin",)

    def __init__(self, begin: TryBegin) -> None:
        self.begin = begin


Item = Instruction | Label | TryBegin | TryEnd
