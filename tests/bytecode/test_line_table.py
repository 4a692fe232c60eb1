"""The table of source positions, written by us and read by CPython."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from graphlift.bytecode import line_table
from graphlift.bytecode.instruction import NOWHERE, Position

CODE = (lambda: None).__code__
NOP = b"\x09\x00"


@st.composite
def positions(draw: st.DrawFn) -> Position:
    shape = draw(st.integers(0, 3))
    line = draw(st.integers(1, 400))
    if shape == 0:
        return NOWHERE
    end = line + draw(st.sampled_from([0, 0, 0, 1, 70]))
    if shape == 1:
        return line, end, None, None
    start = draw(st.integers(0, 200))
    stop = draw(st.integers(start if end == line else 0, 300))
    return line, end, start, stop


@given(st.lists(st.tuples(st.integers(1, 40), positions()), min_size=1, max_size=20), st.integers(1, 500))
@example([(1, (5, 5, 79, 94)), (1, (5, 5, 79, 95)), (9, (7, 7, 127, 127)), (1, (7, 7, 128, 128))], 5)
@example([(8, (1, 1, 0, 0)), (16, (100_000, 100_000, 0, 5000))], 90_000)
def test_cpython_reads_what_was_written(spans: list[tuple[int, Position]], first: int) -> None:
    units = sum(count for count, _ in spans)
    code = CODE.replace(
        co_code=NOP * units, co_linetable=line_table.assemble(spans, first), co_firstlineno=first
    )
    expected = [position for count, position in spans for _ in range(count)]
    assert list(code.co_positions()) == expected


def test_a_position_that_cannot_be_written_keeps_its_line() -> None:
    spans = [(1, (9, None, 4, 7)), (1, (9, 3, 4, 7)), (1, (9, 9, 4, None))]
    code = CODE.replace(co_code=NOP * 3, co_linetable=line_table.assemble(spans, 1), co_firstlineno=1)
    assert list(code.co_positions()) == [(9, 9, None, None)] * 3
