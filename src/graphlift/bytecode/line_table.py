"""Writing the table of source positions of a code object (`co_linetable`).

Mirrors CPython's `Objects/locations.md`; reading is left to `code.co_positions()`.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphlift.bytecode.instruction import Position

_LONGEST = 8  # code units that one entry can cover

_ONE_LINE = 10
_NO_COLUMNS = 13
_LONG = 14
_NONE = 15


def assemble(spans: Iterable[tuple[int, Position]], firstlineno: int) -> bytes:
    """The bytes of a position table.

    Arguments:
        spans: (number of code units, their position), in order.
        firstlineno: the line from which the first difference is counted.
    """
    out = bytearray()
    line = firstlineno
    for units, position in spans:
        while units > 0:
            part = min(units, _LONGEST)
            line = _write_entry(out, part - 1, position, line)
            units -= part
    return bytes(out)


def _write_entry(out: bytearray, units: int, position: Position, line: int) -> int:
    """Append one entry; `units` is one less than what it covers. Returns the line reached."""
    start, end, column, end_column = position
    if start is None:
        out.append(_first(_NONE, units))
        return line
    delta = start - line
    if end is None or end < start:
        # The format has no words for this; what is left is the line.
        end, column, end_column = start, None, None
    if column is None or end_column is None:
        if end == start:
            out.append(_first(_NO_COLUMNS, units))
            _signed(out, delta)
        else:
            _long(out, units, delta, end - start, None, None)
    elif end == start and delta == 0 and column < 80 and 0 <= end_column - column < 16:
        out.append(_first(column >> 3, units))
        out.append((column & 7) << 4 | end_column - column)
    elif end == start and 0 <= delta < 3 and column < 128 and end_column < 128:
        out.append(_first(_ONE_LINE + delta, units))
        out.append(column)
        out.append(end_column)
    else:
        _long(out, units, delta, end - start, column, end_column)
    return start


def _long(
    out: bytearray, units: int, delta: int, lines: int, column: int | None, end_column: int | None
) -> None:
    out.append(_first(_LONG, units))
    _signed(out, delta)
    _unsigned(out, lines)
    _unsigned(out, 0 if column is None else column + 1)
    _unsigned(out, 0 if end_column is None else end_column + 1)


def _first(kind: int, units: int) -> int:
    return 0x80 | kind << 3 | units


def _unsigned(out: bytearray, value: int) -> None:
    while value >= 64:
        out.append(value & 63 | 64)
        value >>= 6
    out.append(value)


def _signed(out: bytearray, value: int) -> None:
    _unsigned(out, -value << 1 | 1 if value < 0 else value << 1)
