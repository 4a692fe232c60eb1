"""Parameters, buffers and submodules found in tables: what changes is seen, what is written is read."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
from torch import nn

import graphlift
from graphlift.testing import check


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([2.0]))
        self.register_buffer("b", torch.tensor([3.0]))
        self.inner = nn.Linear(1, 1)

    def forward(self, x):
        return x * self.w + self.b + self.inner(x)


def put(model, table, name, value):
    getattr(model, table)[name] = value


CHANGES = {
    "own attribute shadows a parameter": lambda m: m.__dict__.__setitem__("w", torch.tensor([5.0])),
    "own attribute shadows a buffer": lambda m: m.__dict__.__setitem__("b", torch.tensor([5.0])),
    "a parameter shadows a buffer": lambda m: put(m, "_parameters", "b", nn.Parameter(torch.tensor([5.0]))),
    "a parameter shadows a submodule": lambda m: put(m, "_parameters", "inner", lambda x: x * 7),
    "a buffer shadows a submodule": lambda m: put(m, "_buffers", "inner", lambda x: x * 9),
    "another parameter": lambda m: put(m, "_parameters", "w", nn.Parameter(torch.tensor([6.0]))),
    "a parameter deleted": lambda m: m._parameters.pop("w"),
    "a parameter becomes a buffer": lambda m: put(m, "_buffers", "w", m._parameters.pop("w") * 2),
    "a buffer becomes None": lambda m: put(m, "_buffers", "b", None),
    "a submodule replaced": lambda m: put(m, "_modules", "inner", nn.Identity()),
    "a table of another class": lambda m: m.__dict__.__setitem__("_buffers", OrderedDict(b=torch.ones(1))),
    "a table replaced": lambda m: m.__dict__.__setitem__("_parameters", {"w": nn.Parameter(torch.ones(1))}),
    "a table deleted": lambda m: m.__dict__.pop("_buffers"),
    "an earlier table deleted": lambda m: m.__dict__.pop("_parameters"),
    "a class attribute": lambda m: setattr(type(m), "w", 11.0),
    "a property": lambda m: setattr(type(m), "b", property(lambda self: 12.0)),
}


def outcome(function, x):
    try:
        return function(x).tolist()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_calls_is_seen_by_the_next(change):
    model = type("Model", (Holder,), {})().eval()
    plain = model.forward
    compiled = graphlift.compile(model, backend="eager")
    x = torch.tensor([4.0])
    with torch.no_grad():
        for _ in range(3):
            assert outcome(compiled, x) == outcome(plain, x)
        CHANGES[change](model)
        for _ in range(2):
            assert outcome(compiled, x) == outcome(plain, x)


def registers_and_reads(x):
    model = Holder()
    before = model.w * x
    model.w = nn.Parameter(torch.tensor([8.0]))
    model.register_buffer("late", torch.tensor([1.0]))
    return before, model.w * x, model.late, model.inner is model._modules["inner"]


EXISTING = Holder()


def reads_by_name_and_by_table(x):
    names = (EXISTING.w is EXISTING._parameters["w"], EXISTING._buffers["b"] is EXISTING.b)
    return x + EXISTING.w, names, sorted(EXISTING._parameters), len(EXISTING._modules)


def writes_to_the_tables(x):
    former = EXISTING.b
    EXISTING._buffers["b"] = former * 2
    first = EXISTING.b + x
    EXISTING._parameters["fresh"] = None
    second = EXISTING.fresh
    del EXISTING._parameters["fresh"]
    EXISTING._buffers["b"] = former
    return first, second, hasattr(EXISTING, "fresh"), EXISTING.b is former


def shadows_in_its_own_dictionary(x):
    EXISTING.__dict__["b"] = x
    shadowed = EXISTING.b
    del EXISTING.__dict__["b"]
    return shadowed, EXISTING.b + x


@pytest.mark.parametrize(
    "function",
    [registers_and_reads, reads_by_name_and_by_table, writes_to_the_tables, shadows_in_its_own_dictionary],
)
def test_what_is_written_is_read(function):
    check(function, torch.tensor([4.0]), graphs=None, breaks=None)


def test_a_module_with_an_entry_that_nobody_looks_into_is_watched():
    model = Holder()

    def has(x):
        return x + (1 if hasattr(model, "w") else 0)

    compiled = graphlift.compile(has, backend="eager")
    x = torch.ones(1)
    assert compiled(x).tolist() == [2.0]
    del model.w
    assert compiled(x).tolist() == [1.0]
