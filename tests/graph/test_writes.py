"""Operations that write: what they do to the metadata of their argument and of all that shares its memory."""

from __future__ import annotations

import operator
import traceback

import pytest
import torch

import graphlift
from graphlift.graph_value import CannotPropagate, MetaError


def requires(value):
    return value.meta.requires_grad, value.meta.is_leaf


def test_a_write_can_make_the_whole_family_require_grad(recorder):
    r = recorder(p=torch.ones(4, requires_grad=True))
    base = r(torch.zeros, 4)
    first, second = r(operator.getitem, base, slice(0, 2)), r(operator.getitem, base, slice(1, 3))
    r("add_", first, r(operator.getitem, r["p"], slice(0, 2)))
    real_p = r.real["p"]
    real_base = torch.zeros(4)
    real = [real_base, real_base[0:2], real_base[1:3]]
    real[1].add_(real_p[0:2])
    assert [requires(v) for v in (base, first, second)] == [(t.requires_grad, t.is_leaf) for t in real]


def test_setitem_makes_the_target_require_grad(recorder):
    r = recorder(p=torch.ones((), requires_grad=True))
    base = r(torch.zeros, 4)
    r(operator.setitem, base, 0, r["p"])
    assert requires(base) == (True, False)


def test_rollback_restores_metadata(recorder):
    r = recorder(p=torch.ones(4, requires_grad=True), x=torch.ones(2, 3))
    base = r(torch.zeros, 4)
    view = r(operator.getitem, base, slice(0, 2))
    mark, length = r.heap.mark(), r.graph.mark()
    r("add_", base, r["p"])
    r("t_", r["x"])
    extra = r("view", base, 2, 2)
    assert requires(view) == (True, False) and r["x"].meta.shape == (3, 2)
    r.heap.rollback(mark)
    r.graph.rollback(length)
    assert requires(view) == (False, True) and requires(base) == (False, True)
    assert r["x"].meta.shape == (2, 3)
    assert extra not in base.views
    assert len(r.graph.operations) == length[0]


def test_shape_changes_in_place(recorder):
    x = torch.arange(6.0).reshape(2, 3)
    r = recorder(x=x)
    r("t_", r["x"])
    r("unsqueeze_", r["x"], 0)
    assert r["x"].meta.shape == (1, 3, 2) and r["x"].meta.stride == (3, 1, 3)
    graph = r.finish(r["x"])
    assert graph.writes_inputs
    twin = x.clone()
    graph.forward(twin)
    assert torch.equal(twin, x.t().unsqueeze(0))


def test_out_arguments(recorder):
    r = recorder(x=torch.arange(3.0), y=torch.zeros(3))
    assert r(torch.add, r["x"], 1, out=r["y"]) is r["y"]
    graph = r.finish()
    assert graph.node_count == 1 and graph.writes_inputs
    y = torch.zeros(3)
    graph.forward(*r.values(graph, y=y))
    assert torch.equal(y, torch.arange(3.0) + 1)


def test_a_write_to_memory_that_is_read_is_refused(recorder):
    r = recorder(x=torch.arange(5.0), y=torch.ones(4))
    low, high = r(operator.getitem, r["x"], slice(None, -1)), r(operator.getitem, r["x"], slice(1, None))
    with pytest.raises(CannotPropagate):
        r(torch.addcmul, low, r["y"], r["y"], out=high)


def test_a_write_to_memory_that_another_input_shares_is_refused_where_it_matters(recorder):
    memory = torch.arange(6.0)
    r = recorder(a=memory[:4], b=memory[2:])
    with pytest.raises(CannotPropagate):
        r("add_", r["a"], r["b"])


def test_apart_in_one_memory(recorder):
    memory = torch.arange(6.0)
    r = recorder(a=memory[:3], b=memory[3:])
    r("add_", r["a"], r["b"])
    assert r.finish().writes_inputs


def test_leaves_that_require_grad_are_not_written_to(recorder):
    r = recorder(p=torch.ones(4, requires_grad=True))
    with pytest.raises(MetaError, match="leaf Variable"):
        r("add_", r["p"], 1)
    with pytest.raises(CannotPropagate):
        r("add_", r("view", r["p"], 2, 2), 1)


def test_pieces_are_protected_by_autograd(recorder):
    r = recorder(p=torch.ones(4, requires_grad=True))
    first, _ = r(torch.chunk, r(operator.mul, r["p"], 2), 2)
    with pytest.raises(CannotPropagate):
        r("add_", first, 1)


def test_written_through_an_overlapping_view(recorder):
    r = recorder(x=torch.ones(1))
    spread = r("expand", r["x"], 3)
    with pytest.raises(MetaError):
        r("add_", spread, 1)
    r(operator.setitem, spread, -1, 3.0)
    graph = r.finish(spread)
    assert torch.equal(graph.forward(torch.ones(1))[0], torch.full((3,), 3.0))


def test_detached_memory_does_not_come_to_require_grad(recorder):
    r = recorder(p=torch.ones(4, requires_grad=True))
    base = r(torch.zeros, 4)
    apart = r("detach", base)
    r("add_", base, r["p"])
    assert requires(base) == (True, False) and requires(apart) == (False, True)
    part = r(operator.getitem, apart, 0)
    r("add_", part, 1)
    assert requires(part) == (False, True)


def test_views_made_without_grad_mode_are_protected(recorder):
    p = torch.ones(4, requires_grad=True) * 1
    with torch.no_grad():
        view = p.view(2, 2)
    r = recorder(view=view)
    with pytest.raises(CannotPropagate):
        r("add_", r["view"], 1)
    assert r.graph.operations == []


def test_gradients_through_writes_to_views(recorder):
    p = torch.arange(6.0, requires_grad=True)
    w = torch.full((3,), 2.0, requires_grad=True)

    def program(v, w):
        v.mul_(w)
        u = v.t()
        u[0] += 3
        return (v * v).sum() + u[1].sum()

    v = (p * 1).view(2, 3)
    r = recorder(v=v, w=w)
    r("mul_", r["v"], r["w"])
    u = r("t", r["v"])
    row = r(operator.getitem, u, 0)
    r(operator.setitem, u, 0, r(operator.iadd, row, 3))
    loss = r(operator.add, r("sum", r(operator.mul, r["v"], r["v"])), r("sum", r(operator.getitem, u, 1)))
    graph = r.finish(loss)
    expected = program((p * 1).view(2, 3), w)
    got = graph.forward((p * 1).view(2, 3), w)[0]
    assert torch.equal(got, expected)
    for a, b in zip(torch.autograd.grad(got, (p, w)), torch.autograd.grad(expected, (p, w)), strict=True):
        assert torch.equal(a, b)


def test_running_statistics_are_written(recorder):
    r = recorder(x=torch.rand(3, 2), mean=torch.zeros(2), var=torch.ones(2))
    norm = torch.nn.functional.batch_norm
    r(norm, r["x"], r["mean"], r["var"], None, None, True)
    r(norm, r["x"], r["mean"], r["var"], None, None, False)
    first, second = r.graph.operations
    assert set(first.written) == {r["mean"], r["var"]} and first.keep
    assert second.written == ()


def _in_no_grad():
    base = torch.ones(4)
    with torch.no_grad():
        view = base[0]
    return base, view, torch.ones(4, requires_grad=True)


def _one_of_many():
    base = torch.ones(4, 2)
    return base, base.unbind(0)[0], torch.ones(4, 2, requires_grad=True)


def _ordinary():
    base = torch.ones(4)
    return base, base[0], torch.ones(4, requires_grad=True)


def _used_behind_a_write(base, view, weight):
    base.mul_(weight)
    try:
        return str(view.sin())
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("first", [_in_no_grad, _one_of_many, _ordinary])
def test_a_view_that_autograd_protects_is_used_behind_a_write(first):
    """The use fails, where the program may expect it."""

    compiled = graphlift.compile(_used_behind_a_write, backend="eager")
    for _ in range(2):
        assert compiled(*first()) == _used_behind_a_write(*first())


def test_an_ordinary_view_becomes_a_protected_one():
    compiled = graphlift.compile(_used_behind_a_write, backend="eager")
    for make in (_ordinary, _in_no_grad, _ordinary, _one_of_many):
        assert compiled(*make()) == _used_behind_a_write(*make())


@pytest.mark.parametrize("leaf", [True, False])
def test_a_protected_view_behind_a_write_without_grad_mode(leaf):
    def program(base, view):
        with torch.no_grad():
            base.mul_(2)
        try:
            return str(view + 1)
        except RuntimeError as error:
            return str(error)

    def made(protects):
        base = torch.ones(4, requires_grad=True)
        base = base if leaf else base * 1
        with torch.set_grad_enabled(not protects):
            return base, base[:2]

    compiled = graphlift.compile(program, backend="eager")
    for protects in (False, True, False, True):
        assert compiled(*made(protects)) == program(*made(protects))


def _said(program, *args):
    """What a call gives or raises, and the lines of the program that the error names."""
    try:
        return program(*args)
    except RuntimeError as error:
        frames = traceback.extract_tb(error.__traceback__)
        return str(error), [frame.lineno for frame in frames if frame.filename == __file__][1:]


def test_a_view_whose_history_lags_behind_a_write_stays_as_it_was():
    """Whoever asks such a view whether it is a leaf makes it writable."""

    def make():
        base = torch.arange(3.0)
        view = base[None].add_(4)
        base += torch.ones(3, requires_grad=True)
        return view

    def write(view):
        view *= 1.5
        return str(view.requires_grad)

    def read_first(view):
        rows = len(view), view.requires_grad, str(view + 1)
        view *= 1.5
        return rows, str(view.requires_grad)

    def ask_first(view):
        leaf = view.is_leaf
        view *= 1.5
        return leaf, str(view.requires_grad)

    for program in (write, read_first, ask_first):
        compiled = graphlift.compile(program, backend="eager")
        compiled(torch.arange(3.0))
        assert _said(compiled, make()) == _said(program, make())
        assert _said(compiled, make()) == _said(program, make())
    assert "leaf" in _said(graphlift.compile(write, backend="eager"), make())[0]


def test_a_view_of_many_that_was_written_behind_fails_at_its_own_line():
    seen = torch.zeros(3)

    def program(base, view):
        seen.add_(1)
        try:
            base.copy_(1.0 * view + base * 2)
        except ValueError:
            base += 1
        return str(base)

    def run(function):
        base = torch.ones(3) * torch.ones(3, requires_grad=True)
        view = torch.split(base, 1, -1)[0]
        return [_said(function, base, view) for _ in range(3)]

    expected = run(program)
    assert len(expected[1]) == 2 and "Split" in expected[1][0]
    assert run(graphlift.compile(program, backend="eager")) == expected


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("through_a_view", [True, False])
def test_a_leaf_in_the_place_of_a_tensor_with_a_history(first, through_a_view):
    def program(x):
        try:
            (x[:1] if through_a_view else x).mul_(2.0)
        except RuntimeError as error:
            return str(error)
        return str(x)

    def make(leaf):
        x = torch.ones(3, requires_grad=True)
        return x if leaf else x * 1

    compiled = graphlift.compile(program, backend="eager")
    for leaf in (first, not first, first, not first):
        assert compiled(make(leaf)) == program(make(leaf))
