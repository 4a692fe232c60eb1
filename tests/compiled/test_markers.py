"""Marks on callables and tensors, graphlift's own and torch's, do what they say."""

from __future__ import annotations

import importlib
import operator

import pytest
import torch

import graphlift
from graphlift.reasons import Reason
from graphlift.testing import CompileCounter, EagerAndRecordGraphs

dynamo = importlib.import_module("torch." + "_dynamo")
X = torch.arange(3.0)


def helper(x):
    return x * 3


def kept(x):
    return helper(x) * 2


@pytest.fixture
def counter():
    graphlift.reset()
    return CompileCounter()


def counts(counter, function, *inputs):
    """(graphs, operations) of two calls with each input."""
    counter.clear()
    compiled = graphlift.compile(function, backend=counter)
    for x in inputs:
        for _ in range(2):
            assert torch.equal(compiled(x), function(x))
    return counter.frame_count, counter.op_count


@pytest.mark.parametrize("disable", [graphlift.disable, torch.compiler.disable, dynamo.disable])
def test_disabled_functions_and_what_they_call_run_plainly(counter, disable):
    disabled = disable(kept)
    assert counts(counter, lambda x: disabled(x) + 1, X) == (1, 1)
    assert graphlift.compile(disabled, backend=counter) is disabled
    assert counts(counter, disabled, X) == (0, 0)


def test_disable_as_a_decorator_with_parentheses(counter):
    @graphlift.disable()
    def disabled(x):
        return helper(x)

    assert counts(counter, lambda x: disabled(x) + 1, X) == (1, 1)


def test_disabled_alone(counter):
    """`recursive=False`: the mark's own frame runs plainly, what it calls is captured."""
    disabled = dynamo.disable(kept, recursive=False)
    assert counts(counter, lambda x: disabled(x) + 1, X) == (2, 3)


@pytest.mark.parametrize("allow", [graphlift.allow_in_graph, torch.compiler.allow_in_graph])
def test_allowed_functions_are_one_node(counter, allow):
    def whole(x):
        return torch.add(x * 3, 1)

    whole = allow(whole)
    recorded = EagerAndRecordGraphs()
    assert torch.equal(graphlift.compile(lambda x: whole(x) + 1, backend=recorded)(X), whole(X) + 1)
    (graph,) = recorded.graphs
    assert [node.target for node in graph.graph.nodes if node.op == "call_function"] == [whole, operator.add]


def test_disallowed_functions_cut_the_graph(counter):
    def refused(x):
        return x + 1

    graphlift.disallow_in_graph(refused)
    assert graphlift.explain(lambda x: refused(x * 2) * 3)(X).graph_break_count == 1


def test_functions_that_torch_was_told_to_disallow_cut_the_graph(counter):
    dynamo.disallow_in_graph(torch.cos)
    try:
        assert graphlift.explain(lambda x: torch.cos(x * 2) * 3)(X).graph_break_count == 1
    finally:
        dynamo.allow_in_graph(torch.cos)


@pytest.mark.parametrize("cut", [graphlift.graph_break, dynamo.graph_break])
def test_graph_break(counter, cut):
    def program(x):
        x = x + 1
        cut()
        return x * 2

    assert counts(counter, program, X) == (2, 2)
    with pytest.raises(graphlift.exc.Unsupported):
        graphlift.compile(program, backend="eager", fullgraph=True)(X)


def test_the_message_of_a_graph_break_is_told():
    def program(x):
        graphlift.graph_break("because of me")
        return x + 1

    assert "because of me" in graphlift.explain(program)(X).break_reasons[0].message


def test_torchs_graph_break_is_the_users_wish():
    def program(x):
        dynamo.graph_break()
        return x + 1

    (reason,) = graphlift.explain(program)(X).break_reasons
    assert reason.reason is Reason.USER_BREAK


def by_size(x):
    return x * x.shape[0]


def test_sizes_become_symbolic_at_the_second_value_by_themselves(counter):
    assert counts(counter, by_size, *map(torch.ones, (3, 4, 5))) == (2, 3)


@pytest.mark.parametrize("mark", [graphlift.mark_dynamic, dynamo.mark_dynamic, dynamo.maybe_mark_dynamic])
def test_marked_sizes_are_symbolic_from_the_first(counter, mark):
    first = torch.ones(3)
    mark(first, 0)
    assert counts(counter, by_size, first, torch.ones(4), torch.ones(5)) == (1, 2)


@pytest.mark.parametrize("mark", [graphlift.mark_static, dynamo.mark_static])
def test_marked_sizes_stay_fixed(counter, mark):
    tensors = [torch.ones(n) for n in (3, 4, 5)]
    for tensor in tensors:
        mark(tensor, 0)
    assert counts(counter, by_size, *tensors)[0] == 3


def test_marks_are_refused_where_there_is_no_such_dimension():
    for mark in (graphlift.mark_dynamic, graphlift.mark_static):
        with pytest.raises(IndexError):
            mark(torch.ones(2), 1)
    tensor = torch.ones(2, 3)
    graphlift.mark_static(tensor)
    graphlift.mark_dynamic(tensor, [-1])
    graphlift.mark_dynamic(tensor, (0,))


def test_a_result_that_never_changes(counter):
    asked = []

    @torch.compiler.assume_constant_result
    def constant():
        asked.append(1)
        return 7

    compiled = graphlift.compile(lambda x: x * constant(), backend=counter, fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(X), X * 7)
    assert asked == [1] and counter.frame_count == 1


@pytest.mark.parametrize("asks", [graphlift.is_compiling, torch.compiler.is_compiling], ids=["own", "torch"])
def test_is_compiling(counter, asks):
    def program(x):
        return x + 1 if asks() else x + 2

    assert torch.equal(graphlift.compile(program, backend=counter)(X), X + 1)
    assert torch.equal(program(X), X + 2) and asks() is False
