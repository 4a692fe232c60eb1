"""Reading and writing the table of protected ranges of a code object (`co_exceptiontable`).

Mirrors CPython's `Objects/exception_handling_notes.txt`. Knows offsets and bytes only, no instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

_START = 0x80
_MORE = 0x40


class Region(NamedTuple):
    """A protected range: an exception at `start` <= place < `end` continues at `target`.

    The stack is first cut to `depth`; then the failing offset is pushed if `lasti`, then the exception.
    Places are byte offsets in this module, step indices in `decode`.
    """

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


def parse(table: bytes) -> Iterator[Region]:
    """The regions of an exception table, in order; raises ValueError if it is cut off."""
    data = iter(table)
    try:
        for first in data:
            start = _varint(first & ~_START, data)
            size, target, depth_lasti = (_varint(next(data), data) for _ in range(3))
            yield Region(start * 2, (start + size) * 2, target * 2, depth_lasti >> 1, bool(depth_lasti & 1))
    except (StopIteration, RuntimeError) as error:
        raise ValueError("exception table ends inside an entry") from error


def _varint(first: int, data: Iterator[int]) -> int:
    value = first & 63
    while first & _MORE:
        first = next(data)
        value = value << 6 | first & 63
    return value


def assemble(regions: Iterable[Region]) -> bytes:
    """The bytes of an exception table; regions must be sorted, apart and not empty."""
    out = bytearray()
    covered = 0
    for start, end, target, depth, lasti in regions:
        if not covered <= start < end:
            raise ValueError(f"region {start}..{end} is empty or overlaps the one before")
        covered = end
        at = len(out)
        for value in (start // 2, (end - start) // 2, target // 2, depth << 1 | lasti):
            _write_varint(out, value)
        out[at] |= _START
    return bytes(out)


def _write_varint(out: bytearray, value: int) -> None:
    chunks = [value & 63]
    while value := value >> 6:
        chunks.append(value & 63 | _MORE)
    out.extend(reversed(chunks))
