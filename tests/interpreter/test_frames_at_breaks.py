"""What a program can see of its own frames when the graph is cut: depth, tracebacks, callers, warnings."""

from __future__ import annotations

import sys
import traceback
import warnings

import pytest
import torch

import graphlift
from graphlift.testing import check


def depth_now():
    """How many Python frames there are."""
    frame, count = sys._getframe(1), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


def loops(x, turns):
    """A break in each turn; the depth at the first and the deepest of all."""
    first, deepest = 0, 0
    for turn in range(turns):
        x = x + 1
        graphlift.graph_break()
        depth = depth_now()
        deepest = max(deepest, depth)
        if not turn:
            first = depth
    return x, first, deepest


@pytest.mark.parametrize("give_up_after", [16, 10**6])
def test_a_loop_of_breaks_runs_at_constant_depth(give_up_after, monkeypatch):
    monkeypatch.setattr(graphlift.config, "give_up_after", give_up_after)
    turns = 3 * sys.getrecursionlimit()
    result, first, deepest = graphlift.compile(loops, backend="eager")(torch.zeros(2), turns)
    assert result.tolist() == [turns, turns]
    assert first == deepest


def names_of_callers():
    """Who called this function, innermost first, down to the test."""
    names, frame = [], sys._getframe(1)
    while frame is not None and not frame.f_code.co_name.startswith("test_"):
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names


def outermost(x):
    return in_the_middle(x * 2)


def in_the_middle(x):
    with torch.no_grad():
        result = innermost(x + 1)
    return result


def innermost(x):
    y = x * 3
    graphlift.graph_break()
    names = names_of_callers()
    return y * 2, names


def test_callers_are_the_users_frames_once_each():
    compiled = graphlift.compile(outermost, backend="eager")
    for _ in range(3):
        _, names = compiled(torch.ones(2))
        assert names == ["innermost", "in_the_middle", "outermost"]


def raises_behind_breaks(x):
    y = x + 1
    graphlift.graph_break()
    y = passes_on(y)
    return y * 2


def passes_on(x):
    graphlift.graph_break()
    try:
        return fails(x * 2)
    finally:
        graphlift.graph_break()


def fails(x):
    z = x - 1
    graphlift.graph_break()
    raise KeyError(f"{z.shape[0]} elements")


def test_a_traceback_has_one_entry_for_each_frame():
    compiled = graphlift.compile(raises_behind_breaks, backend="eager")
    for _ in range(3):
        with pytest.raises(KeyError, match="2 elements") as caught:
            compiled(torch.ones(2))
        entries = traceback.extract_tb(caught.value.__traceback__)[1:]
        assert [entry.name for entry in entries] == ["raises_behind_breaks", "passes_on", "fails"]
        assert [entry.line for entry in entries] == [
            "y = passes_on(y)",
            "return fails(x * 2)",
            'raise KeyError(f"{z.shape[0]} elements")',
        ]


def warned(x):
    y = x * 2
    graphlift.graph_break()
    deprecated(y)
    return y + 1


def deprecated(x):
    graphlift.graph_break()
    warnings.warn("old", DeprecationWarning, stacklevel=2)
    warnings.warn("here", UserWarning, stacklevel=1)
    return x


def test_stack_levels_of_warnings():
    compiled = graphlift.compile(warned, backend="eager")
    first, second = warned.__code__.co_firstlineno, deprecated.__code__.co_firstlineno
    for _ in range(3):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            compiled(torch.ones(2))
        assert [(w.filename, w.lineno) for w in seen] == [(__file__, first + 3), (__file__, second + 3)]


# --- each construct, broken in its middle -----------------------------------------------------------


class Model:
    scale = 2

    def __init__(self, offset):
        self.offset = offset

    def method(self, x):
        y = x * self.scale
        graphlift.graph_break()
        self.offset += 1
        return y + self.offset

    @classmethod
    def of_class(cls, x):
        y = x * cls.scale
        graphlift.graph_break()
        return y + 1


def in_for(x):
    for i in range(3):
        x = x + i
        graphlift.graph_break()
    return x


def in_while(x):
    n = 0
    while n < 3:
        x = x * 2
        graphlift.graph_break()
        n += 1
    else:
        x = x + 1
    return x


def in_with(x):
    with torch.no_grad():
        x = x + 1
        graphlift.graph_break()
        x = x * 2
    return x


def in_try(x):
    log = []
    try:
        x = x + 1
        graphlift.graph_break()
        raise ValueError("v")
    except ValueError as error:
        log.append(str(error))
        graphlift.graph_break()
        x = x * 2
    finally:
        log.append("finally")
        graphlift.graph_break()
        x = x - 1
    return x, log


def in_comprehension(x):
    return [broken_step(x, i) for i in range(3)]


def broken_step(x, i):
    y = x + i
    graphlift.graph_break()
    return y * 2


def in_nested_calls(x):
    return outermost(x)[0] + 1


def in_methods(x):
    model = Model(1)
    return model.method(x) + Model.of_class(x), model.offset


def in_closure(x):
    total = 0

    def add(y):
        nonlocal total
        total += 1
        z = y * total
        graphlift.graph_break()
        total += 1
        return z

    return add(x) + add(x), total


def in_an_expression(x):
    return x * 2 + broken_step(x, 1) * (x - broken_step(x + 1, 2))


@pytest.mark.parametrize(
    ("program", "breaks", "operations"),
    [
        (in_for, 1, 3),
        (in_while, 1, 4),
        (in_with, 1, 4),
        (in_try, 3, 3),
        (in_comprehension, 1, 4),
        (in_nested_calls, 1, 6),
        (in_methods, 2, 5),
        (in_closure, 1, 4),
        (in_an_expression, 1, 8),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_what_is_captured_around_a_break(program, breaks, operations):
    """Results are plain Python's, places break once each, and no operation is left to plain Python."""
    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)
    explanation = graphlift.explain(program)(torch.ones(2))
    asked_for = [reason for reason in explanation.break_reasons if reason.title == "Break asked for"]
    assert len(asked_for) == breaks
    assert explanation.op_count == operations


def test_the_hard_part_is_run_once():
    calls = []

    def counted():
        calls.append(None)
        graphlift.graph_break()

    def program(x):
        y = x + 1
        counted()
        return y * 2

    compiled = graphlift.compile(program, backend="eager")
    for turn in range(1, 4):
        assert compiled(torch.ones(1)).tolist() == [4]
        assert len(calls) == turn
