"""torch's functions in captured code."""

import collections

import pytest
import torch
import torch.nn.functional as F

import graphlift
from graphlift.testing import check

X = torch.arange(12.0).reshape(3, 4)


def functional(x):
    return (
        F.relu(x),
        F.gelu(x),
        F.layer_norm(x, (4,)),
        F.softmax(x, dim=-1),
        F.linear(x, x),
        F.pad(x, (1, 1)),
        F.max_pool2d(x[None, None], 2),
        F.normalize(x),
        F.mse_loss(x, x + 1),
        F.dropout(x, 0.5, training=False),
    )


def families(x):
    return (
        torch.linalg.norm(x),
        torch.einsum("ij,kj->ik", x, x),
        torch.fft.fft(x).real,
        torch.special.erf(x),
        torch.ops.aten.add(x, 1),
        torch.ops.aten.mul.Tensor(x, x),
        torch.matmul(x, x.t()),
        torch.where(x > 2, x, 0),
    )


def lists(x):
    pair = [x, x + 1]
    return (
        torch.cat(pair),
        torch.stack((x, x), dim=0),
        torch.cat(tensors=pair, dim=1),
        torch.broadcast_tensors(x, x[0]),
    )


def factories(x):
    return (
        torch.zeros(3),
        torch.ones(x.shape),
        torch.arange(x.size(1)),
        torch.tensor([1, 2, 3]),
        torch.tensor([[1.0, 2], [3, 4]]),
        torch.full((2,), 3),
        torch.zeros_like(x),
        x.new_zeros(2),
        torch.linspace(0, 1, 5),
    )


def passed_around(x):
    table = {"sin": torch.sin, "relu": F.relu}
    return [table[name](x) for name in ("sin", "relu")], max(map(torch.sum, (x, x)), key=lambda t: 0)


def answers(x):
    assert torch.is_tensor(x) and not torch.is_tensor(3)
    assert torch.is_floating_point(x) and torch.numel(x) == 12
    assert torch.get_default_dtype() is torch.float32 and torch.is_grad_enabled()
    assert torch.finfo(x.dtype).bits == 32 and torch.iinfo(torch.int32).max == 2**31 - 1
    assert torch.promote_types(torch.int32, torch.float16) is torch.float16
    assert torch.result_type(x, 1.5) is torch.float32
    assert not torch.jit.is_scripting() and not torch.jit.is_tracing()
    assert torch.broadcast_shapes((3, 1), (1, 4)) == (3, 4)
    assert str(x.dtype) == "torch.float32" and torch.device("cpu").index is None
    return x + torch.tensor(torch.finfo(x.dtype).eps)


@pytest.mark.parametrize(
    "program", [functional, families, lists, factories, passed_around, answers], ids=lambda p: p.__name__
)
def test_program(program):
    check(program, X)


def test_random_draws_come_in_the_same_order():
    def f(x):
        return torch.rand(3), F.dropout(x, 0.5), torch.randn(2), x.bernoulli(0.5)

    check(f, X)


def test_captured_code_knows_that_it_is_captured():
    def f(x):
        return x + (1 if torch.compiler.is_compiling() and graphlift.is_compiling() else 0)

    assert torch.equal(graphlift.compile(f, backend="eager")(X), X + 1)
    assert torch.equal(f(X), X)


def test_a_break_on_demand():
    def f(x):
        y = x + 1
        graphlift.graph_break("here")
        return y * 2

    checked = check(f, X, graphs=2, breaks=1)
    assert "here" in checked.captured.breaks[0]


def test_a_callable_kept_whole():
    def whole(x):
        return x.sin() + 1

    graphlift.allow_in_graph(whole)

    def f(x):
        return whole(x) * 2

    checked = check(f, X)
    assert "sin" not in checked.captured.graphs[0]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.manual_seed(3) and x + torch.rand(4),
        lambda x: x + torch.from_numpy(x.numpy()),
        lambda x: torch.unique(x),
        lambda x: torch.equal(x, x),
    ],
)
def test_what_no_graph_holds_breaks(program):
    check(program, X, graphs=None, breaks=None)


class Taking(list):
    """An object of a derived class that takes operations over."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return args[0] * 7


class TakingNumber(int):
    __torch_function__ = Taking.__dict__["__torch_function__"]


class TakingPair(collections.namedtuple("TakingPair", "a b")):
    __torch_function__ = Taking.__dict__["__torch_function__"]


@pytest.mark.parametrize("make", [lambda: Taking([1]), lambda: TakingNumber(2), lambda: TakingPair(1, 2)])
def test_an_object_of_a_derived_class_takes_an_operation_over(make):
    check(lambda x: torch.mul(x + 1, make()) + 1, torch.ones(3), graphs=None, breaks=None, recompiles=None)
    value = make()
    check(lambda x: torch.mul(x + 1, value) + 1, torch.ones(3), graphs=None, breaks=None, recompiles=None)
