"""What an instruction's argument means: each kind of operand decodes, encodes and prints itself.

An operand is what a handler gets: a name, a constant, a label, a flag pair, never an index into a pool. One
kind serves decoding and emission, so that what was read can be written again. Mirrors the argument
conventions of CPython's `ceval.c`; which opcode has which kind is in `versions/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any, ClassVar, Protocol


def unique_slot_names(
    varnames: Sequence[str], cellvars: Sequence[str], freevars: Sequence[str]
) -> tuple[str, ...]:
    """Names of a frame's fast slots, in order, no two alike.

    An argument that is also a cell has one slot. Since comprehensions are inlined, a name can be a local and
    a free variable of the same code, in two slots: the free one is then called ``name.free``.
    """
    known = set(varnames)
    names = [*varnames, *(name for name in cellvars if name not in known)]
    known.update(cellvars)
    names.extend(name + ".free" if name in known else name for name in freevars)
    return tuple(names)


class Pools(Protocol):
    """Where encoding finds or makes the index of a constant, a name or a slot."""

    def const(self, value: object) -> int: ...
    def name(self, name: str) -> int: ...
    def slot(self, name: str) -> int: ...


class CodeView:
    """The tables of a code object that decoding looks into."""

    __slots__ = ("consts", "freevars", "names", "slots")

    def __init__(self, code: CodeType) -> None:
        self.consts = code.co_consts
        self.names = code.co_names
        self.freevars = code.co_freevars
        self.slots = unique_slot_names(code.co_varnames, code.co_cellvars, code.co_freevars)


class Operand:
    """A kind of operand. The base is the kind of opcodes without argument: their operand is None.

    Attributes:
        jump: 1 or -1 for a relative jump forward or backward, else 0. The operand is then a `Label` in an
            instruction list and a step index in decoded code; neither comes from `decode`.
    """

    jump: ClassVar[int] = 0

    def decode(self, arg: int, view: CodeView) -> Any:
        """The operand for the argument `arg`; raises IndexError if it points out of its table."""
        return None

    def encode(self, operand: Any, pools: Pools) -> int:
        """The argument that decodes to `operand`."""
        return 0

    def show(self, operand: Any, arg: int) -> str:
        """The operand as logs print it."""
        return str(operand)


class Number(Operand):
    """A count, a depth, a plain number."""

    def decode(self, arg: int, view: CodeView) -> int:
        return arg

    def encode(self, operand: int, pools: Pools) -> int:
        return operand


class Flag(Operand):
    """A truth value in the lowest bit."""

    def decode(self, arg: int, view: CodeView) -> bool:
        return bool(arg & 1)

    def encode(self, operand: bool, pools: Pools) -> int:
        return int(operand)

    def show(self, operand: bool, arg: int) -> str:
        return str(arg)


class Const(Operand):
    """A constant, as the raw Python object."""

    def decode(self, arg: int, view: CodeView) -> object:
        return view.consts[arg]

    def encode(self, operand: object, pools: Pools) -> int:
        return pools.const(operand)

    def show(self, operand: object, arg: int) -> str:
        return repr(operand)


class Name(Operand):
    """A name of a global, an attribute, a module."""

    def decode(self, arg: int, view: CodeView) -> str:
        return view.names[arg]

    def encode(self, operand: str, pools: Pools) -> int:
        return pools.name(operand)


class Slot(Operand):
    """A fast local, cell or free variable by its unique slot name."""

    def decode(self, arg: int, view: CodeView) -> str:
        return view.slots[arg]

    def encode(self, operand: str, pools: Pools) -> int:
        return pools.slot(operand)


class SlotPair(Operand):
    """The two locals of a fused opcode; each part is the operand of one of its handlers."""

    def decode(self, arg: int, view: CodeView) -> tuple[str, str]:
        return view.slots[arg >> 4], view.slots[arg & 15]

    def encode(self, operand: tuple[str, str], pools: Pools) -> int:
        first, second = pools.slot(operand[0]), pools.slot(operand[1])
        if first > 15 or second > 15:
            raise ValueError(f"locals {operand} lie too far back for a fused instruction")
        return first << 4 | second

    def show(self, operand: tuple[str, str], arg: int) -> str:
        return " ".join(operand)


class FreeVars(Operand):
    """All free variables, by slot name."""

    def decode(self, arg: int, view: CodeView) -> tuple[str, ...]:
        return view.slots[len(view.slots) - arg :]

    def encode(self, operand: tuple[str, ...], pools: Pools) -> int:
        return len(operand)

    def show(self, operand: tuple[str, ...], arg: int) -> str:
        return str(arg)


class Jump(Operand):
    """A relative jump forward."""

    jump = 1

    def show(self, operand: int, arg: int) -> str:
        return f"to {operand}"


class JumpBack(Jump):
    """A relative jump backward."""

    jump = -1


class Flagged(Operand):
    """A name above `len(flags)` low bits; the operand is the name followed by one bool a bit.

    Where the opcode itself says what a later version says by a bit, the flag is `fixed`, so that all
    versions share one operand shape. Encoding other flags than there are raises ValueError.
    """

    def __init__(self, bits: int, fixed: tuple[bool, ...] = ()) -> None:
        self.bits = bits
        low = [tuple(bool(n >> bit & 1) for bit in range(bits)) for n in range(1 << bits)]
        self._low = [flags + fixed for flags in low]

    def decode(self, arg: int, view: CodeView) -> tuple[Any, ...]:
        return (view.names[arg >> self.bits], *self._low[arg & (1 << self.bits) - 1])

    def encode(self, operand: tuple[Any, ...], pools: Pools) -> int:
        flags = operand[1:]
        low: int = self._low.index(flags)
        return pools.name(operand[0]) << self.bits | low

    def show(self, operand: tuple[Any, ...], arg: int) -> str:
        return str(operand[0])


COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")


class Compare(Operand):
    """A comparison; the operand is (operator, whether the result is turned into a bool).

    Arguments:
        shift: bits below the operator's number.
        masks: what specialisation wants in the low bits, one an operator.
        bool_bit: the bit that asks for a bool, or 0 where there is none.
    """

    def __init__(self, shift: int = 0, masks: Sequence[int] = (0,) * 6, bool_bit: int = 0) -> None:
        self.shift = shift
        self.masks = masks
        self.bool_bit = bool_bit

    def decode(self, arg: int, view: CodeView) -> tuple[str, bool]:
        return COMPARISONS[arg >> self.shift], bool(arg & self.bool_bit)

    def encode(self, operand: tuple[str, bool], pools: Pools) -> int:
        operator, to_bool = operand
        if to_bool and not self.bool_bit:
            raise ValueError("this Python's comparison cannot convert its result to bool")
        number = COMPARISONS.index(operator)
        return number << self.shift | self.masks[number] | (self.bool_bit if to_bool else 0)

    def show(self, operand: tuple[str, bool], arg: int) -> str:
        return operand[0]


BINARY_OPERATORS = ("+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^")
_BINARY_PAIRS = [(op, inplace) for inplace in (False, True) for op in BINARY_OPERATORS]


class Binary(Operand):
    """A binary operator; the operand is (symbol, whether in place); logs print CPython's number."""

    def decode(self, arg: int, view: CodeView) -> tuple[str, bool]:
        return _BINARY_PAIRS[arg]

    def encode(self, operand: tuple[str, bool], pools: Pools) -> int:
        return _BINARY_PAIRS.index(operand)

    def show(self, operand: tuple[str, bool], arg: int) -> str:
        return str(arg)


class UnpackEx(Operand):
    """How many items stand before and after the starred one."""

    def decode(self, arg: int, view: CodeView) -> tuple[int, int]:
        return arg & 0xFF, arg >> 8

    def encode(self, operand: tuple[int, int], pools: Pools) -> int:
        return operand[0] | operand[1] << 8


class Choice(Operand):
    """One of a list of words; the argument is its place, counted from `start`."""

    def __init__(self, words: str, start: int = 0) -> None:
        self.words = words.split()
        self.start = start

    def decode(self, arg: int, view: CodeView) -> str:
        if arg < self.start:
            raise IndexError(f"argument {arg} is below {self.start}")
        return self.words[arg - self.start]

    def encode(self, operand: str, pools: Pools) -> int:
        return self.words.index(operand) + self.start


CONVERSIONS = ("", "s", "r", "a")


class Format(Operand):
    """How an f-string formats a value: (conversion letter or "", whether a format spec is on the stack)."""

    def decode(self, arg: int, view: CodeView) -> tuple[str, bool]:
        return CONVERSIONS[arg & 3], bool(arg & 4)

    def encode(self, operand: tuple[str, bool], pools: Pools) -> int:
        return CONVERSIONS.index(operand[0]) | (4 if operand[1] else 0)


class Conversion(Operand):
    """The conversion letter of an f-string field."""

    def decode(self, arg: int, view: CodeView) -> str:
        return CONVERSIONS[arg]

    def encode(self, operand: str, pools: Pools) -> int:
        return CONVERSIONS.index(operand)


#: What a function can be given when it is made, lowest bit first, which is also the order on the stack.
FUNCTION_PARTS = ("defaults", "kwdefaults", "annotations", "closure")


class FunctionParts(Operand):
    """Which parts of a function lie on the stack below its code, in stack order."""

    def decode(self, arg: int, view: CodeView) -> tuple[str, ...]:
        return tuple(part for bit, part in enumerate(FUNCTION_PARTS) if arg >> bit & 1)

    def encode(self, operand: tuple[str, ...], pools: Pools) -> int:
        return sum(1 << FUNCTION_PARTS.index(part) for part in operand)

    def show(self, operand: tuple[str, ...], arg: int) -> str:
        return str(arg)


class NoFunctionParts(Operand):
    """The empty tuple: a function that is given its parts after it was made."""

    def decode(self, arg: int, view: CodeView) -> tuple[str, ...]:
        return ()

    def show(self, operand: tuple[str, ...], arg: int) -> str:
        return str(None)


class FunctionPart(Operand):
    """The part given to a function after it was made."""

    def decode(self, arg: int, view: CodeView) -> str:
        return FUNCTION_PARTS[arg.bit_length() - 1]

    def encode(self, operand: str, pools: Pools) -> int:
        return 1 << FUNCTION_PARTS.index(operand)
