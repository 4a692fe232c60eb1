"""Symbolic sizes and numbers: what they give, what is assumed of them, other sizes."""

from __future__ import annotations

import operator

import pytest
import torch
import torch.nn.functional as F

import graphlift
from graphlift.graph_value import CannotPropagate, DataDependent, MetaError, SymValue
from graphlift.guards.kinds.expressions import evaluate
from graphlift.metadata import MetaRecord, SymbolicMeta


def holds(items, values):
    """Whether a guard holds for inputs given by name."""

    def number(item):
        kind, source = item[:2]
        value = values[source.name()]
        if kind in ("int", "float"):
            return value
        if kind == "offset":
            return value.storage_offset()
        return value.size(item[2]) if kind == "size" else value.stride(item[2])

    return evaluate(items, number)


def all_hold(graph, **values):
    return all(holds(items, values) for items in graph.shape_guards())


def test_a_symbolic_batch(recorder):
    r = recorder(x=torch.randn(6, 8), w=torch.randn(4, 8))
    x = r.dynamic("x", 0)
    assert isinstance(x.meta, SymbolicMeta) and type(x.meta.shape[0]) is torch.SymInt and x.meta.shape[1] == 8
    out = r(F.relu, r(F.linear, x, r["w"]))
    total = r("sum", out)
    assert isinstance(total.meta, MetaRecord)
    graph = r.finish(out, total)
    for size in (6, 9, 2):
        other = torch.randn(size, 8)
        got = graph.forward(*r.values(graph, x=other))
        assert torch.equal(got[0], F.relu(F.linear(other, r.real["w"])))
        assert all_hold(graph, x=other)
    assert not all_hold(graph, x=torch.randn(1, 8))
    assert "Sym" not in graph.readable().splitlines()[-1]


def test_sizes_are_numbers_of_the_graph(recorder):
    r = recorder(x=torch.randn(6, 8))
    x = r.dynamic("x", 0)
    size = r("size", x, 0)
    assert isinstance(size, SymValue)
    assert r("size", x, 1) == 8
    doubled = r(operator.mul, size, 2)
    view = r("view", x, doubled, 4)
    graph = r.finish(view, doubled)
    for rows in (6, 3):
        other = torch.randn(rows, 8)
        got = graph.forward(other)
        assert torch.equal(got[0], other.view(rows * 2, 4)) and got[1] == rows * 2
        assert all_hold(graph, x=other)


def test_branches_on_sizes_are_assumptions(recorder):
    r = recorder(x=torch.randn(6, 8))
    size = r("size", r.dynamic("x", 0), 0)
    large = r(operator.gt, r(operator.mul, size, 3), 15)
    assert isinstance(large, SymValue) and bool(large.sym) is True
    even = r(operator.eq, r(operator.mod, size, 2), 0)
    assert bool(even.sym) is True
    graph = r.finish(size)
    assert all_hold(graph, x=torch.randn(8, 8))
    assert not all_hold(graph, x=torch.randn(7, 8))
    assert not all_hold(graph, x=torch.randn(4, 8))


def test_equal_sizes_are_assumed_only_where_needed(recorder):
    r = recorder(x=torch.randn(6, 8), y=torch.randn(6, 8), z=torch.randn(6, 8))
    x, y, z = (r.dynamic(name, 0) for name in "xyz")
    graph = r.finish(r(operator.add, x, y), r("sin", z))
    a, b, c = torch.randn(5, 8), torch.randn(5, 8), torch.randn(7, 8)
    assert all_hold(graph, x=a, y=b, z=c)
    assert not all_hold(graph, x=a, y=c, z=c)
    got = graph.forward(*r.values(graph, x=a, y=b, z=c))
    assert torch.equal(got[0], a + b) and torch.equal(got[1], c.sin())


def test_a_size_that_must_be_one_number(recorder):
    r = recorder(x=torch.randn(6, 8), y=torch.randn(6, 8))
    x = r.dynamic("x", 0)
    out = r(operator.add, x, r["y"])
    assert isinstance(out.meta, MetaRecord)
    graph = r.finish(out)
    assert not all_hold(graph, x=torch.randn(5, 8))
    assert all_hold(graph, x=torch.randn(6, 8))


def test_ints_and_floats(recorder):
    r = recorder(x=torch.randn(3), n=5, f=2.5)
    x, n, f = r["x"], r["n"], r["f"]
    out = r(operator.mul, r(operator.add, x, n), f)
    made = r(torch.zeros, n, 2)
    third = r(operator.truediv, n, 2)
    graph = r.finish(out, made, third)
    got = graph.forward(*r.values(graph, n=7, f=0.5))
    assert torch.equal(got[0], (r.real["x"] + 7) * 0.5)
    assert got[1].shape == (7, 2) and got[2] == 3.5
    assert out.meta.dtype is torch.float32


def test_arithmetic_errors_are_pythons(recorder):
    r = recorder(n=5)
    with pytest.raises(ZeroDivisionError):
        r(operator.floordiv, r["n"], 0)


def test_strides_follow_sizes(recorder):
    x = torch.randn(6, 8).t()
    r = recorder(x=x)
    value = r.dynamic("x", 0, 1)
    graph = r.finish(r("contiguous", value))
    other = torch.randn(5, 7).t()
    assert all_hold(graph, x=other)
    assert not all_hold(graph, x=torch.randn(7, 5))
    assert torch.equal(graph.forward(other)[0], other)


def test_views_and_identity(recorder):
    r = recorder(x=torch.randn(6, 8))
    x = r.dynamic("x", 0)
    assert r("contiguous", x) is x
    view = r("t", x)
    assert view.base is x
    assert r("add_", view, 1) is view
    first, second = r(torch.chunk, x, 2, 1)
    assert first.piece and second.meta.shape[1] == 4
    with pytest.raises(DataDependent):
        r("nonzero", x)
    with pytest.raises(CannotPropagate):
        r(operator.add, x, r(torch.ones, 3))


def test_a_write_makes_a_dynamic_family_require_grad(recorder):
    r = recorder(x=torch.randn(6, 8), w=torch.ones(8, requires_grad=True))
    x = r.dynamic("x", 0)
    base = r(torch.zeros_like, x)
    view = r(operator.getitem, base, (slice(None), slice(0, 8)))
    mark, length = r.heap.mark(), r.graph.mark()
    r("add_", base, r["w"])
    assert base.meta.requires_grad and view.meta.requires_grad and not view.meta.is_leaf
    r.heap.rollback(mark)
    r.graph.rollback(length)
    assert not base.meta.requires_grad and not view.meta.requires_grad
    assert not r("sin", base).meta.requires_grad


def test_static_values_stay_on_the_static_path(recorder):
    r = recorder(x=torch.randn(6, 8), w=torch.randn(8, 8))
    r.dynamic("x", 0)
    out = r(torch.matmul, r["w"], r["w"])
    assert isinstance(out.meta, MetaRecord) and out.fake is None


def test_nothing_symbolic_no_guards(recorder):
    r = recorder(x=torch.randn(6, 8))
    assert r.finish(r("sin", r["x"])).shape_guards() == []


def test_a_stride_made_of_one_that_stands_behind_it():
    compiled = graphlift.compile(lambda x: x + 1, backend="eager", fullgraph=True)
    for x in (torch.zeros(2, 3)[None], torch.arange(6.0)[::2][None], torch.zeros(1, 10)[:, ::2]):
        assert torch.equal(compiled(x), x + 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int16])
def test_sizes_are_no_values_that_a_narrow_dtype_must_hold(recorder, dtype):
    r = recorder(x=torch.ones(2, 300, dtype=dtype))
    r("view", r["x"], -1, 300)
    r("reshape", r["x"], (600,))
    r(torch.full_like, r["x"], 200)
    assert not any(operation.raises for operation in r.graph.operations)
    try:
        r(torch.full_like, r["x"], 10**39)
    except (CannotPropagate, MetaError):
        return  # known at once
    assert r.graph.operations[-1].raises
