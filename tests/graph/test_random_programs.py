"""Random programs over tensors: after every operation all metadata are those of plain execution.

Views, writes, shape changes in place, grad mode, gradients: what the graph says of every value, which
operations fail and how, and what the finished function computes, compared with the same program run plainly.
"""

from __future__ import annotations

import operator
import random
import warnings

import pytest
import torch
import torch.nn.functional as F

from graphlift.backends import compile_graph
from graphlift.graph_value import CannotPropagate, GraphValue, MetaError
from graphlift.metadata import record_of

warnings.filterwarnings("ignore", "An output with one or more elements was resized")


class Settings:
    mode = options = dynamic = None

    def __init__(self, backend):
        self.backend = backend


def inputs(chance):
    def floats(*shape):
        return torch.rand(shape, generator=torch.Generator().manual_seed(chance.randrange(100))) + 0.5

    tensors = {
        "a": floats(3, 4),
        "b": floats(3, 4).requires_grad_(),
        "c": floats(4),
        "d": floats(4, 3).t(),
        "e": torch.nn.Parameter(floats(4, 4)),
        "f": floats(2, 3, 4),
        "g": torch.arange(12).reshape(3, 4),
        "h": floats(3, 4) > 1,
        "i": floats(1, 4),
        "j": (floats(3, 4).requires_grad_() * 1),
    }
    memory = floats(24)
    tensors["k"] = memory[:12].view(3, 4)
    if chance.random() < 0.3:
        tensors["l"] = memory[6:18].view(3, 4)
    return tensors


def steps(chance):
    """One operation: target and a function that chooses its arguments from the tensors at hand."""
    pick = chance.choice
    number = pick([2, 0.5, -1, True, 3.0])
    dim = pick([0, 1, -1])
    return pick(
        [
            (pick([operator.add, operator.sub, operator.mul, operator.truediv, torch.maximum]), 2, (), {}),
            (
                pick([operator.add, operator.mul, operator.truediv, operator.gt, operator.eq]),
                1,
                (number,),
                {},
            ),
            (pick([torch.sin, torch.exp, F.relu, torch.neg, "abs", "sigmoid", "sqrt"]), 1, (), {}),
            (pick(["t", "contiguous", "clone", "detach", "squeeze"]), 1, (), {}),
            (pick(["transpose", "movedim"]), 1, (0, dim), {}),
            (
                pick(["view", "reshape"]),
                1,
                (pick([(12,), (-1,), (4, 3), (2, 6), (3, 4), (1, -1), (-1, 4)]),),
                {},
            ),
            ("expand", 1, (pick([(3, 4), (2, 3, 4), (-1, 4), (3, -1)]),), {}),
            ("unsqueeze", 1, (dim,), {}),
            (pick([torch.sum, torch.mean, "amax", "cumsum"]), 1, (dim,), {}),
            (torch.matmul, 2, (), {}),
            (F.linear, 2, (), {}),
            (torch.softmax, 1, (dim,), {}),
            (torch.chunk, 1, (2, dim), {}),
            ("unbind", 1, (), {}),
            (
                operator.getitem,
                1,
                (pick([0, slice(1, 3), (slice(None), 1), (Ellipsis, None), (0, slice(None, 2))]),),
                {},
            ),
            ("to", 1, (pick([torch.float64, torch.float32, torch.int64]),), {}),
            (torch.where, 3, (), {}),
            ("masked_fill", 2, (0.0,), {}),
            (pick(["add_", "mul_", "sub_", "copy_"]), 2, (), {}),
            (pick(["add_", "mul_", "div_", "fill_"]), 1, (number,), {}),
            (pick([operator.iadd, operator.imul]), 2, (), {}),
            (pick(["relu_", "exp_", "zero_", "t_", "squeeze_"]), 1, (), {}),
            ("unsqueeze_", 1, (dim,), {}),
            (operator.setitem, 1, (pick([0, slice(0, 2), (slice(None), 0)]), number), {}),
            ("setitem of a tensor", 2, (pick([0, slice(0, 2), (slice(None), 0)]),), {}),
            (torch.add, 2, (), {"out": True}),
            (torch.cat, 2, (), {"as list": True}),
            (torch.zeros_like, 1, (), {}),
            (torch.zeros, 0, (3, 4), {}),
            ("grad", 0, (pick([True, False]),), {}),
        ]
    )


def arguments(step, tensors):
    target, _, rest, extra = step
    if target == "setitem of a tensor":
        return operator.setitem, (tensors[0], *rest, tensors[1]), {}
    if extra.get("as list"):
        return target, (list(tensors),), {}
    if extra.get("out"):
        return target, (tensors[0], 1), {"out": tensors[1]}
    return target, (*tensors, *rest), {}


def plainly(target, args, kwargs):
    """The call on plain tensors."""
    if isinstance(target, str):
        return getattr(args[0], target)(*args[1:], **kwargs)
    return target(*args, **kwargs)


def flat(result):
    if isinstance(result, (tuple, list)):
        return [x for item in result for x in flat(item)]
    return [result] if isinstance(result, (torch.Tensor, GraphValue)) else []


class Program:
    """One random program, run plainly and recorded side by side."""

    def __init__(self, recorder, seed):
        self.chance = random.Random(seed)
        self.plain = inputs(self.chance)
        self.start = copied(self.plain)
        self.twin = copied(self.plain)
        self.r = recorder(**self.twin)
        self.pairs = [(self.plain[name], self.r[name]) for name in self.plain]
        self.done = []

    def step(self):
        step = steps(self.chance)
        if step[0] == "grad":
            self.r.graph.set_state(torch._C._set_grad_enabled, step[2])
            self.done.append(step)
            return
        chosen = [self.chance.randrange(len(self.pairs)) for _ in range(step[1])]
        given = arguments(step, [self.pairs[i][0] for i in chosen])
        recorded = arguments(step, [self.pairs[i][1] for i in chosen])
        self.done.append((step, chosen))
        try:
            value = self.r(recorded[0], *recorded[1], **recorded[2])
        except CannotPropagate:
            return
        except MetaError as error:
            with pytest.raises(type(error.error)) as caught:
                plainly(*given)
            assert str(caught.value) == str(error.error), self.done
            return
        self.compare(plainly(*given), value)

    def compare(self, result, value):
        reals, values = flat(result), flat(value)
        assert len(reals) == len(values), self.done
        known = {id(real): v for real, v in self.pairs}
        for real, v in zip(reals, values, strict=True):
            if id(real) in known:
                assert known[id(real)] is v, self.done
            else:
                assert all(v is not other for _, other in self.pairs), self.done
                self.pairs.append((real, v))
        for real, v in self.pairs:
            assert v.meta is record_of(real), (self.done, v.meta.fields(), record_of(real).fields())

    def run_graph(self, backend):
        """Run the finished graph on fresh inputs; gives these and the results, in the order of `pairs`."""
        made = [v for _, v in self.pairs[len(self.plain) :]]
        outputs = list(dict.fromkeys(made))
        graph = self.r.graph.finish(outputs)
        self.r.graph.restore_state()
        run = compile_graph(graph, Settings(backend))
        fresh = copied(self.start)
        with torch.enable_grad():
            results = run(*[fresh[value.source.name()] for value in graph.inputs])
        return fresh, dict(zip(outputs, results, strict=True))


def copied(tensors):
    """The same tensors again, sharing memory as they do."""
    memories = {}
    out = {}
    for name, t in tensors.items():
        place = t.untyped_storage()._cdata
        if place not in memories:
            memories[place] = torch.empty(0, dtype=t.dtype).set_(t.detach().untyped_storage().clone())
        if t._base is None or t.requires_grad:
            storage = memories[place].untyped_storage()
            made = torch.empty(0, dtype=t.dtype).set_(storage, t.storage_offset(), t.shape, t.stride())
        else:  # views of one base share what autograd knows of writes
            made = memories[place].as_strided(t.shape, t.stride(), t.storage_offset())
        if isinstance(t, torch.nn.Parameter):
            made = torch.nn.Parameter(made)
        elif t.requires_grad:
            made.requires_grad_()
            if not t.is_leaf:
                made = made * 1
        out[name] = made
    return out


def gradients(tensors, leaves):
    """Gradients of everything that requires grad, or the error that plain execution gives."""
    try:
        total = sum((t.double().nan_to_num().sum() for t in tensors if t.requires_grad and not t.is_leaf), 0)
    except RuntimeError as error:  # a view that autograd does not let anybody look at any more
        assert "created in no_grad" in str(error)
        return "protected"
    if not isinstance(total, torch.Tensor) or not total.requires_grad:
        return None
    try:
        return torch.autograd.grad(total, leaves, allow_unused=True)
    except RuntimeError as error:
        return str(error).partition(":")[0]


def same(a, b, what):
    assert a.dtype == b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad, what
    torch.testing.assert_close(
        a.detach(), b.detach(), rtol=1e-4, atol=1e-5, equal_nan=True, msg=lambda m: f"{what}: {m}"
    )


def check(recorder, seed, backend="eager", length=14):
    program = Program(recorder, seed)
    before = torch.is_grad_enabled()
    try:
        for _ in range(length):
            program.step()
    finally:
        program.r.graph.restore_state()
        torch._C._set_grad_enabled(before)
    try:
        fresh, results = program.run_graph(backend)
    finally:
        torch._C._set_grad_enabled(before)
    what = (seed, backend, program.done)
    for name, t in program.plain.items():
        same(t, fresh[name], (name, *what))
    reals = program.pairs[len(program.plain) :]
    for real, v in reals:
        same(real, results[v], what)
    leaves = ["b", "e"]
    expected = gradients([real for real, _ in reals], [program.plain[n] for n in leaves])
    got = gradients([results[v] for _, v in reals], [fresh[n] for n in leaves])
    if expected == "protected":
        return
    if expected is None or isinstance(expected, str):
        assert backend != "eager" or got == expected, what
        return
    for a, e in zip(got, expected, strict=True):
        assert (a is None) == (e is None), what
        if a is not None:
            torch.testing.assert_close(a, e, rtol=1e-3, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("block", range(8))
def test_random_programs(recorder, block):
    for seed in range(block * 40, block * 40 + 40):
        check(recorder, seed)
