"""Programs made at random that write, draw, change things, handle errors, and fail at each place in turn."""

from __future__ import annotations

import linecache
import random
import traceback

import pytest
import torch
import torch.nn.functional as F

import graphlift
from graphlift.testing import Comparison

PARAMETERS = "x, y, n, w, mean, var, table, out, ix, dv, log, box"
WRITES = [
    "x.add_(1)",
    "x[0] = 2.0",
    "x.mul_(y)",
    "torch.add(y, 1, out=out)",
    "x.normal_()",
    "z = z + F.batch_norm(w, mean, var, training=True).sum()",
]
DRAWS = ["z = z + torch.rand(4)", "z = F.dropout(z, 0.5)", "z = z * torch.randn(4)"]
CHANGES = ["log.append({})", "log.append(z)", "box.value = {}", "box.mark = z", "log.clear()"]
FAILING = [
    "z = z + x[ix[{}]].sum()",
    "z = z * F.embedding(ix[{}], table).mean()",
    "z = z + n // dv[{}]",
    "x[ix[{}]] = 3.0",
    "x.index_add_(0, ix[{}], y[:2])",
    "z = z + sum([y[ix[{}]].sum() for _ in range(2)])",
    "y.index_select(0, ix[{}])",
]
QUIET = ["z = z * 2", "z = torch.sin(z) + y", "x = x + 0", "y = x.view(-1)"]
BLOCKS = [
    ["try:", "except (IndexError, RuntimeError) as error:", "log.append(type(error).__name__)"],
    ["try:", "finally:", "log.append('finally')"],
    ["with torch.no_grad():"],
    ["with torch.autocast('cpu'):"],
    ["with Noting(log):"],
    ["for _ in range(2):"],
]


class Box:
    value = 0


class Noting:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")

    def __exit__(self, *error):
        self.log.append(error[0] is None)


class Maker:
    """Makes the source of one program.

    Attributes:
        failing: how many operations can fail.
    """

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.failing = 0
        self.lines = []
        self.functions = 0

    def source(self):
        body = self.body(0, self.random.randint(3, 6))
        return "\n".join([*self.lines, *self.function("program", body)])

    def function(self, name, body):
        return [
            f"def {name}({PARAMETERS}, z=None):",
            "    z = y * 1 if z is None else z",
            *(f"    {x}" for x in body),
            "    return z",
        ]

    def body(self, depth, length):
        lines = []
        for _ in range(length):
            lines += self.statement(depth)
        return lines or ["pass"]

    def statement(self, depth):
        pick = self.random.random()
        choose = self.random.choice
        if pick < 0.2:
            return [choose(WRITES)]
        if pick < 0.32:
            return [choose(DRAWS)]
        if pick < 0.45:
            return [choose(CHANGES).format(self.random.randint(0, 9))]
        if pick < 0.7:
            self.failing += 1
            return [choose(FAILING).format(self.failing - 1)]
        if pick < 0.75 or depth > 1:
            return [choose(QUIET)]
        if pick < 0.83:
            return self.call(depth)
        if pick < 0.85:
            return [f"torch.set_grad_enabled({self.random.random() < 0.5})"]
        first, *rest = choose(BLOCKS)
        lines = [first, *(f"    {x}" for x in self.body(depth + 1, self.random.randint(1, 3)))]
        if rest:
            lines += [rest[0], f"    {rest[1]}"]
        return lines

    def call(self, depth):
        self.functions += 1
        name = f"called_{self.functions}"
        body = self.body(depth + 1, self.random.randint(1, 3))
        self.lines += self.function(name, body)
        return [f"z = {name}({PARAMETERS}, z)"]


def load(seed):
    """The program of a seed, and how many of its operations can fail."""
    maker = Maker(seed)
    source = maker.source()
    filename = f"<program {seed}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = {"torch": torch, "F": F, "Noting": Noting, "__name__": f"program_{seed}"}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["program"], maker.failing, source


def inputs(failing, at, graded):
    torch.manual_seed(7)
    good, bad = torch.tensor([1, 3]), torch.tensor([1, 9])
    return (
        torch.rand(4),
        torch.rand(4),
        torch.tensor([8]),
        torch.rand(3, 2),
        torch.zeros(2),
        torch.ones(2),
        torch.rand(4, 2, requires_grad=graded),
        torch.zeros(4),
        [(bad if k == at else good).clone() for k in range(failing)],
        [torch.tensor([0 if k == at else 2]) for k in range(failing)],
        [],
        Box(),
    )


def outcome(function, arguments):
    """Everything that a call leaves behind."""
    torch.manual_seed(3)
    result = error = places = None
    try:
        result = function(*arguments)
    except Exception as raised:
        error = type(raised), str(raised)
        frames = traceback.extract_tb(raised.__traceback__)
        places = [(x.name, x.lineno) for x in frames if x.filename.startswith("<program")]
    state = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    torch.set_grad_enabled(True)
    left = [x.detach() if isinstance(x, torch.Tensor) else x for x in arguments]
    if result is not None:
        result = result.detach()
    log = [x.detach() if isinstance(x, torch.Tensor) else x for x in arguments[-2]]
    left[-2] = log
    left[-1] = {k: v.detach() if isinstance(v, torch.Tensor) else v for k, v in vars(arguments[-1]).items()}
    return {
        "result": result,
        "error": error,
        "places": places,
        "left": left,
        "state": state,
        "random": torch.get_rng_state(),
    }


def forward_of(module, inputs):
    return module.forward


def differences(seed, backend):
    program, failing, source = load(seed)
    compiled = graphlift.compile(program, backend=backend)
    found = []
    for graded in (False, True):
        for at in (None, *range(failing), None):
            first, second = inputs(failing, at, graded), inputs(failing, at, graded)
            comparison = Comparison(1e-6)
            comparison.compare(outcome(program, first), outcome(compiled, second), f"failing at {at}")
            found += comparison.differences
    return [*found, source] if found else []


@pytest.mark.parametrize("backend", ["eager", "aot_eager", forward_of], ids=["eager", "aot", "callable"])
@pytest.mark.parametrize("seed", range(0, 8))
def test_programs_that_fail_at_each_place_in_turn(seed, backend):
    found = differences(seed, backend)
    assert not found, "\n".join(map(str, found))
