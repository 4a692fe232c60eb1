"""Graph breaks as users meet them: what is captured around them, what they cost, what they say."""

from __future__ import annotations

import sys
import threading

import pytest
import torch

import graphlift
from graphlift.testing import CompileCounter, check


def branch(x):
    if x.sum() > 0:
        return x * 2
    return x + 1


def test_explanation_of_a_branch_on_data():
    explanation = graphlift.explain(branch)(torch.ones(2))
    assert explanation.graph_count == 2
    assert explanation.graph_break_count == 1
    message = explanation.break_reasons[0].message
    assert f"{__file__}:{branch.__code__.co_firstlineno + 1}" in message
    for part in ("Data-dependent branching", "torch.cond", "attempted to jump with TensorVariable()"):
        assert part in message


def test_fullgraph_raises_the_same_text():
    with pytest.raises(graphlift.exc.Unsupported) as caught:
        graphlift.compile(branch, backend="eager", fullgraph=True)(torch.ones(2))
    assert "Data-dependent branching" in str(caught.value)
    assert "torch.cond" in str(caught.value)


def test_both_sides():
    compiled = graphlift.compile(branch, backend="eager")
    for x in (torch.ones(2), -torch.ones(2), torch.ones(2)):
        assert torch.equal(compiled(x), branch(x))


def deep(x):
    return helper_one(x) + 1


def helper_one(x):
    return helper_two(x * 2) * 3


def helper_two(x):
    y = x + 1
    print(y)
    return y * y.sum().item()


def test_a_break_three_calls_deep():
    check(deep, torch.ones(3), graphs=5, breaks=2)


def turns(x, n):
    depth = 0
    for _ in range(n):
        if x.sum() > 1e9:
            break
        x = x + 1
        depth = max(depth, len_of_stack())
    return x, depth


def len_of_stack():
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def test_many_breaks_at_constant_depth():
    compiled = graphlift.compile(turns, backend="eager")
    result, depth = compiled(torch.zeros(2), 3000)
    expected, expected_depth = turns(torch.zeros(2), 3000)
    assert torch.equal(result, expected)
    assert depth == expected_depth


def test_segments_are_captured_once():
    counter = CompileCounter()
    compiled = graphlift.compile(branch, backend=counter)
    for _ in range(4):
        compiled(torch.ones(2))
    assert counter.frame_count == 2


class Mortal:
    """Notes its own death."""

    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append("dead")


def drops_behind_a_break(x, log):
    value = Mortal(log)
    y = x * 2
    graphlift.graph_break()
    log.append("before")
    del value
    log.append("after")
    return y


def drops_a_parameter(x, log, value):
    y = x + 1
    graphlift.graph_break()
    del value
    graphlift.graph_break()
    log.append("in")
    return y


def drops_in_a_callee(x, log):
    y = drops_a_parameter(x * 2, log, Mortal(log))
    log.append("out")
    return y + 1


@pytest.mark.parametrize("fn", [drops_behind_a_break, drops_in_a_callee])
def test_what_the_program_drops_behind_a_break_dies_at_once(fn):
    compiled = graphlift.compile(fn, backend="eager")
    plain = []
    fn(torch.ones(2), plain)
    for _ in range(3):
        log = []
        compiled(torch.ones(2), log)
        assert log == plain


@graphlift.disable
def forget_and_call_again(again, x, depth):
    """Another call of the same compiled object is what lets go of the dropped entries."""
    graphlift.reset()
    if depth:
        thread = threading.Thread(target=again, args=(again, x, depth - 1))
        thread.start()
        thread.join()


def resets_at_a_break(again, x, depth):
    y = x * 2
    forget_and_call_again(again, x, depth)
    return resets_in_a_callee(again, y + 1, depth) + 1


def resets_in_a_callee(again, x, depth):
    y = x - 1
    forget_and_call_again(again, x, depth)
    return y * y


def test_entries_that_are_dropped_while_they_run_run_to_their_end():
    compiled = graphlift.compile(resets_at_a_break, backend="eager")
    x = torch.ones(2)
    for _ in range(3):
        result = compiled(compiled, x, 2)
        assert torch.equal(result, resets_at_a_break(resets_at_a_break, x, 0))


def test_values_nested_in_themselves_are_compared_as_python_does():
    def program(x):
        a, b = [], []
        a.append(a)
        b.append(b)
        y = x + 1
        try:
            return y, a == b
        except RecursionError as error:
            return y * 2, str(error)

    checked = check(program, torch.ones(2), graphs=None, breaks=None)
    assert "nested deeper" in checked.captured.breaks[0]
