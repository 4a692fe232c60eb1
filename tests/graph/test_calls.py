"""What a call gives: identity, views, containers, constants, errors; memo and order of questions."""

from __future__ import annotations

import operator
import warnings

import pytest
import torch
import torch.nn.functional as F

from graphlift.graph_value import CannotPropagate, DataDependent, GraphValue, MetaError, StructResult
from graphlift.metadata import record_of


def test_a_result_has_the_metadata_of_plain_execution(recorder):
    x, w = torch.randn(4, 8), torch.randn(8, 8, requires_grad=True)
    r = recorder(x=x, w=w)
    out = r(F.linear, r["x"], r["w"])
    assert out.meta is record_of(F.linear(x, w))
    assert out.meta.requires_grad and not out.meta.is_leaf


def test_one_tensor_is_one_input(recorder):
    x = torch.ones(3)
    r = recorder(x=x, y=x, z=torch.ones(3))
    assert r["x"] is r["y"]
    assert r["x"] is not r["z"]


@pytest.mark.parametrize(
    "call",
    [
        lambda r, x: r("contiguous", x),
        lambda r, x: r("to", x, torch.float32),
        lambda r, x: r(F.dropout, x, 0.5, False),
        lambda r, x: r("add_", x, 1),
        lambda r, x: r(operator.iadd, x, 1),
        lambda r, x: r("requires_grad_", x),
    ],
)
def test_a_call_that_returns_its_argument_gives_the_same_value(recorder, call):
    r = recorder(x=torch.ones(3, 4))
    assert call(r, r["x"]) is r["x"]


def test_views_know_their_base(recorder):
    r = recorder(x=torch.ones(4, 6))
    x = r["x"]
    view = r("view", x, 24)
    piece = r(operator.getitem, view, slice(2, 5))
    assert view.base is x and piece.base is x
    assert x.views == [view, piece]
    assert piece.meta.storage_offset == 2
    assert r("clone", piece).base is None


def test_pieces_and_structs(recorder):
    r = recorder(x=torch.randn(4, 6))
    first, second = r(torch.chunk, r["x"], 2)
    assert first.piece and first.base is r["x"]
    top = r("max", r["x"], 1)
    assert isinstance(top, StructResult) and top.cls is torch.return_types.max
    values, indices = top.items
    assert indices.meta.dtype is torch.int64
    graph = r.finish(values, indices, second)
    x = torch.randn(4, 6)
    got = graph.forward(x)
    expected = (*x.max(1), x.chunk(2)[1])
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))


def test_nested_results(recorder):
    lstm = torch.nn.LSTM(3, 5)
    names = [f"w{i}" for i in range(4)]
    r = recorder(
        x=torch.randn(2, 1, 3), h=torch.zeros(1, 1, 5), **dict(zip(names, lstm._flat_weights, strict=True))
    )
    flat = [r[name] for name in names]
    out, h, c = r(torch.lstm, r["x"], (r["h"], r["h"]), flat, True, 1, 0.0, False, False, False)
    graph = r.finish(out, h, c)
    expected = lstm(r.real["x"])
    got = graph.forward(*r.values(graph))
    assert torch.allclose(got[0], expected[0]) and torch.allclose(got[2], expected[1][1])


def test_questions_are_constants_and_no_nodes(recorder):
    r = recorder(x=torch.ones(3, 4))
    x = r["x"]
    assert r("dim", x) == 2
    assert r("size", x) == torch.Size((3, 4))
    assert r("is_contiguous", x) is True
    assert r("stride", x) == (4, 1)
    assert r.graph.operations == []


@pytest.mark.parametrize(
    "target", ["item", "tolist", "numpy", "nonzero", torch.nonzero, torch.unique, "__bool__"]
)
def test_data_dependent(recorder, target):
    r = recorder(x=torch.ones(3))
    with pytest.raises(DataDependent):
        r(target, r["x"])
    assert r.graph.operations == []


def test_data_dependence_found_inside_a_composite(recorder):
    r = recorder(x=torch.ones(3))
    with pytest.raises(DataDependent):
        r(operator.getitem, r["x"], r(operator.gt, r["x"], 0))
    with pytest.raises(DataDependent):
        r(F.one_hot, r("long", r["x"]))


@pytest.mark.parametrize("target", ["data_ptr", "untyped_storage", "backward", "register_hook", "set_"])
def test_what_reaches_past_the_graph(recorder, target):
    r = recorder(x=torch.ones(3))
    with pytest.raises(CannotPropagate):
        r(target, r["x"])


def test_arguments_that_no_graph_can_hold(recorder):
    r = recorder(x=torch.ones(3))
    with pytest.raises(CannotPropagate):
        r(torch.rand, 3, generator=torch.Generator())
    with pytest.raises(CannotPropagate):
        r(torch.add, r["x"], object())


@pytest.mark.parametrize(
    "call",
    [
        lambda f, x, y: f(operator.add, x, y),
        lambda f, x, y: f(F.linear, x, y),
        lambda f, x, y: f("view", x, 7),
        lambda f, x, y: f(torch.cat, [x, y], 1),
        lambda f, x, y: f(torch.matmul, x, y),
        lambda f, x, y: f("no_such_method", x),
        lambda f, x, y: f(torch.sum, x, 5),
        lambda f, x, y: f(torch.add, x),
    ],
)
def test_a_failing_call_fails_as_plain_execution_does(recorder, call):
    x, y = torch.ones(3, 4), torch.ones(5, 7)
    r = recorder(x=x, y=y)

    def plainly(target, *args, **kwargs):
        return (
            getattr(args[0], target)(*args[1:], **kwargs)
            if isinstance(target, str)
            else target(*args, **kwargs)
        )

    with pytest.raises(Exception) as expected:
        call(plainly, x, y)
    with pytest.raises(MetaError) as got:
        call(r, r["x"], r["y"])
    assert type(got.value.error) is type(expected.value)
    assert str(got.value.error) == str(expected.value)
    assert r.graph.operations == []


def test_failures_that_depend_on_values_are_no_metadata_errors(recorder):
    r = recorder(x=torch.eye(3))
    try:
        r(torch.linalg.cholesky, r["x"])
    except CannotPropagate:
        pass
    rows = recorder(i=torch.zeros(2, dtype=torch.int64), w=torch.ones(1, 3))
    out = rows(F.embedding, rows["i"], rows["w"])
    assert rows.graph.may_raise and out.meta.shape == (2, 3)


def test_python_scalars_are_told_apart_by_type(recorder):
    r = recorder(x=torch.ones(3, dtype=torch.int64), b=torch.ones(3, dtype=torch.bool))
    x, b = r["x"], r["b"]
    assert r(operator.add, x, 1).meta.dtype is torch.int64
    assert r(operator.add, x, 1.0).meta.dtype is torch.float32
    assert r(operator.add, b, True).meta.dtype is torch.bool
    assert r(operator.add, b, 1).meta.dtype is torch.int64
    assert r(operator.mul, x, 2**40).meta.dtype is torch.int64
    with pytest.raises(MetaError):
        r(operator.mul, x, 2**70)


def test_the_pattern_of_equal_arguments_is_part_of_the_key(recorder):
    r = recorder(x=torch.ones(3), y=torch.ones(3))
    a = r(torch.broadcast_tensors, r["x"], r["y"])
    b = r(torch.broadcast_tensors, r["x"], r["x"])
    assert a[0] is r["x"] and a[1] is r["y"]
    assert b[0] is r["x"] and b[1] is r["x"]


def test_global_state_is_part_of_the_key(recorder):
    w = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        r = recorder(w=w)
        assert not r(torch.sin, r["w"]).meta.requires_grad
    r = recorder(w=w)
    assert r(torch.sin, r["w"]).meta.requires_grad
    torch.set_default_dtype(torch.float64)
    try:
        r = recorder(x=torch.ones(3, dtype=torch.int64))
        assert r(operator.truediv, r["x"], 2).meta.dtype is torch.float64
        assert r(torch.zeros, 3).meta.dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        r = recorder(x=torch.ones(3, 3))
        assert r(torch.matmul, r["x"], r["x"]).meta.dtype is torch.bfloat16


def test_grad_mode_inside_a_graph(recorder):
    w = torch.ones(3, requires_grad=True)
    r = recorder(w=w)
    mark, length = r.heap.mark(), r.graph.mark()
    r.graph.set_state(torch._C._set_grad_enabled, (False,))
    assert not torch.is_grad_enabled()
    first = r(torch.sin, r["w"])
    r.graph.set_state(torch._C._set_grad_enabled, (True,))
    second = r(torch.sin, r["w"])
    assert not first.meta.requires_grad and second.meta.requires_grad
    graph = r.finish(first, second)
    a, b = graph.forward(w)
    assert not a.requires_grad and b.requires_grad
    r.graph.set_state(torch._C._set_grad_enabled, (False,))
    r.heap.rollback(mark)
    r.graph.rollback(length)
    assert torch.is_grad_enabled() and r.graph.operations == []
    r.graph.set_state(torch._C._set_grad_enabled, (False,))
    r.graph.restore_state()
    assert torch.is_grad_enabled()


def test_random_operations_leave_the_generator_alone_and_stay(recorder):
    r = recorder(x=torch.ones(100))
    before = torch.get_rng_state()
    dropped = r(F.dropout, r["x"], 0.5, True)
    r(torch.randn, 3)
    r(torch.bernoulli, r["x"])
    assert torch.equal(torch.get_rng_state(), before)
    graph = r.finish(dropped)
    assert graph.node_count == 3
    torch.manual_seed(3)
    got = graph.forward(r.real["x"])[0]
    torch.manual_seed(3)
    assert torch.equal(got, F.dropout(r.real["x"], 0.5, True))


def test_large_tensors_are_never_computed(recorder):
    huge = torch.empty(1).expand(1 << 20, 1 << 20)
    r = recorder(x=huge, y=torch.ones(1 << 10, 1 << 10))
    out = r(torch.erfinv, r["x"])
    assert out.meta.shape == huge.shape
    assert r(torch.cdist, r["y"], r["y"]).meta.shape == (1 << 10, 1 << 10)
    assert r(torch.eye, 1 << 20).meta.shape == (1 << 20, 1 << 20)


def test_modes_of_the_user_forbid_foretelling(recorder):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Mode():
        r = recorder(x=torch.ones(3))
        with pytest.raises(CannotPropagate):
            r(torch.sin, r["x"])


def test_default_device(recorder):
    with torch.device("meta"):
        r = recorder()
        assert r(torch.zeros, 3).meta.device.type == "meta"


def test_complex_results_and_conjugates(recorder):
    x = torch.randn(4, dtype=torch.complex64)
    r = recorder(x=x)
    out = r(torch.abs, r("conj", r["x"]))
    graph = r.finish(out)
    assert torch.allclose(graph.forward(x)[0], x.abs())


def test_rehearsals_print_nothing(recorder, capfd):
    r = recorder(x=torch.ones(3), y=torch.ones(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(MetaError):
            r(torch.add, r["x"], r["y"])
    assert capfd.readouterr() == ("", "")


def test_values_are_graph_values(recorder):
    r = recorder(x=torch.ones(3))
    assert isinstance(r(torch.sin, r["x"]), GraphValue)
