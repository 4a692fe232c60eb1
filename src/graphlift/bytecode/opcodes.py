"""The form of the facts about one Python version: rows of the opcode table, and the layout.

Owns the shape of these facts and how a version is derived from the one before; the facts themselves are in
`versions/`. It must not know which Python is running.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphlift.bytecode.operands import Operand

#: The handler of opcodes that CPython never puts into `co_code`; meeting one is graphlift's mistake.
UNEXPECTED = "UNEXPECTED_OPCODE"

INSTRUMENTED = "INSTRUMENTED_"

NOTHING = Operand()


@dataclass(frozen=True, slots=True)
class Row:
    """What there is to know about one opcode.

    Attributes:
        handlers: names of the handlers that carry it out, in order; two for a fused opcode.
        operand: how its argument is read and written.
        folded: whether decoding leaves the instruction out, for it does nothing.
    """

    handlers: tuple[str, ...]
    operand: Operand = NOTHING
    folded: bool = False


Rows = Mapping[str, Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the versions differ in more than their opcodes: the facts by name.

    Attributes:
        null_after_callable: a plain call's NULL lies above the callable, not below it.
        keyword_call: an opcode of its own calls with keyword names taken from the stack.
        for_iter_skips: instructions at a loop's end label that an exhausted `FOR_ITER` jumps over. The
            operand of a decoded `FOR_ITER` lies behind them; exhaustion pops the iterator.
        send_keeps_receiver: when a `SEND` is done, the receiver stays under the value until `END_SEND`.
        return_generator_pushes: what CPython's own count for `RETURN_GENERATOR` leaves out (the value
            that the first `send` pushes).
        bool_before_test: conditional jumps and `not` want an exact bool on the stack.
        jumps_back_on_condition: conditional jumps can go backward.
        frame_keeps_locals: what ``exec`` and ``locals()`` put into the dictionary of a frame's locals is
            there when the same frame asks again.
        inseparable: opcodes that specialised code carries out together with the one behind them, by that
            one's name; nothing may be put between, and no jump go between.
        caches: inline cache entries behind an opcode, where there are any.
    """

    null_after_callable: bool
    keyword_call: bool
    for_iter_skips: tuple[str, ...]
    send_keeps_receiver: bool
    return_generator_pushes: int
    bool_before_test: bool
    jumps_back_on_condition: bool
    frame_keeps_locals: bool
    inseparable: Mapping[str, str]
    caches: Mapping[str, int] = field(default_factory=dict)


def rows(groups: Mapping[Operand, str]) -> dict[str, Row]:
    """Rows of opcodes that have a handler of their own name, written as words grouped by operand."""
    return {name: Row((name,), operand) for operand, names in groups.items() for name in names.split()}


def derive(before: Rows, *, without: str, adding: Rows) -> dict[str, Row]:
    """The next version's rows: those before, without some, with others added or replaced.

    Raises KeyError if an opcode to be left out was not there.
    """
    derived = dict(before)
    for name in without.split():
        del derived[name]
    derived.update(adding)
    return derived


def by_number(named: Rows, numbers: Mapping[str, int]) -> list[Row | None]:
    """The table of 256 rows for the opcode numbers of the running Python; None where there is no opcode.

    An instrumented opcode shares the row of the plain one.
    """
    table: list[Row | None] = [None] * 256
    for name, number in numbers.items():
        if number < 256:
            plain = named.get(name.removeprefix(INSTRUMENTED))
            table[number] = plain or (Row((UNEXPECTED,)) if name.startswith(INSTRUMENTED) else None)
    return table
