"""The table of protected ranges, read and written."""

from __future__ import annotations

import dis
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphlift.bytecode.exception_table import Region, assemble, parse


@st.composite
def tables(draw: st.DrawFn) -> list[Region]:
    regions, at = [], 0
    for _ in range(draw(st.integers(0, 6))):
        start = at + 2 * draw(st.integers(0, 5000))
        at = start + 2 * draw(st.integers(1, 5000))
        target = 2 * draw(st.integers(0, 10**6))
        regions.append(Region(start, at, target, draw(st.integers(0, 200)), draw(st.booleans())))
    return regions


@given(tables())
def test_what_is_written_is_read(regions: list[Region]) -> None:
    assert list(parse(assemble(regions))) == regions


@pytest.mark.parametrize("function", [inspect.getmodule, inspect.unwrap, dis.findlinestarts, inspect.getfile])
def test_agrees_with_dis(function: object) -> None:
    code = function.__code__
    expected = [
        (entry.start, entry.end, entry.target, entry.depth, entry.lasti)
        for entry in dis._parse_exception_table(code)
    ]
    assert [tuple(region) for region in parse(code.co_exceptiontable)] == expected
    assert assemble(parse(code.co_exceptiontable)) == code.co_exceptiontable


@pytest.mark.parametrize("regions", [[(4, 4, 8)], [(0, 6, 8), (4, 8, 8)], [(8, 10, 0), (0, 4, 0)]])
def test_refuses_what_lookup_would_misread(regions: list[tuple[int, int, int]]) -> None:
    with pytest.raises(ValueError, match="empty or overlaps"):
        assemble(Region(start, end, target, 0, False) for start, end, target in regions)


def test_refuses_a_table_cut_off() -> None:
    table = assemble([Region(0, 400, 10_000, 3, True)])
    for length in range(1, len(table)):
        with pytest.raises(ValueError, match="ends inside"):
            list(parse(table[:length]))
