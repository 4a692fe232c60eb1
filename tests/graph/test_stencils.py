"""Code put together from stencils: tables beyond a byte, folding by the compiler, lines, soundness."""

from __future__ import annotations

import traceback
from types import FunctionType

import pytest

from graphlift.bytecode.verify import verify_code
from graphlift.output_graph import stencils
from graphlift.output_graph.stencils import FIRST_CONST, Filler, stencil


def built(filler, argcount, local_count):
    code = filler.code("made", "<made>", argcount, local_count)
    verify_code(code)
    return FunctionType(code, {"__builtins__": {}, **filler.globals})


def test_statements_one_behind_the_other():
    filler = Filler()
    filler.add(f"L1 = L0 + {FIRST_CONST}", [0, 1], [10], [])
    filler.add(f"L1 = G0(L0, base={FIRST_CONST}); del L0", [1, 2], [8], [lambda x, base: (x, base)])
    filler.add("return L0", [2], [], [])
    assert built(filler, 1, 3)(5) == (15, 8)


def test_more_than_a_byte_can_number():
    filler = Filler()
    count = 700
    for i in range(count):
        filler.add(
            f"L1 = G0(L0, {FIRST_CONST})", [i, count + i], [f"constant {i}"], [lambda x, c, i=i: (i, x, c)]
        )
    filler.add(
        "return (" + "".join(f"L{i}, " for i in range(count)) + ")", [*range(count, 2 * count)], [], []
    )
    got = built(filler, count, 2 * count)(*range(count))
    assert got == tuple((i, i, f"constant {i}") for i in range(count))


def test_equal_constants_of_different_types_stay_apart():
    filler = Filler()
    a, b, c = FIRST_CONST, FIRST_CONST + 1, FIRST_CONST + 2
    filler.add(f"return G0({a}, {b}, {c}, True, None)", [], [1, 1.0, -0.0], [lambda *x: x])
    got = built(filler, 0, 0)()
    assert [type(x) for x in got[:4]] == [int, float, float, bool]
    assert str(got[2]) == "-0.0"


@pytest.mark.parametrize("text", ["L0[({0}, {1})]", "G0(({0}, {1}, {2}))", "{0} * {1}", "-{0}"])
def test_a_placeholder_that_the_compiler_folds_is_noticed(text):
    with pytest.raises(NotImplementedError):
        stencil("return " + text.format(*range(FIRST_CONST, FIRST_CONST + 3)))


def test_each_statement_is_a_line():
    def fail():
        raise ValueError

    filler = Filler()
    filler.add("G0()", [], [], [lambda: None])
    filler.add("G0()", [], [], [lambda: None])
    filler.add("G0()", [], [], [fail])
    filler.add("return None", [], [], [])
    with pytest.raises(ValueError) as caught:
        built(filler, 0, 0)()
    assert [frame.lineno for frame in traceback.extract_tb(caught.tb) if frame.name == "made"] == [4]


@pytest.mark.parametrize("count", [1, 8, 9, 40])
def test_entries_of_the_table_of_positions_are_made_once(count):
    made = stencils._units(count, 1)
    assert stencils._units(count, 1) is made
    assert sum((first & 7) + 1 for first in made[::2]) == count
    assert list(made[1::2]) == [2] + [0] * (len(made) // 2 - 1)
