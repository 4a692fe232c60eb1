"""Parameters, buffers and submodules found in tables: what changes is seen, what is written is read."""

from __future__ import annotations

import functools
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


class Key:
    """Hashes like a name, and counts how often it is compared."""

    asked = 0

    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        Key.asked += 1
        return other == self.name


def test_tables_with_other_keys_than_names():
    model = nn.Module()
    model.w = nn.Parameter(torch.ones(2))
    model._parameters[Key("b")] = torch.full((2,), 3.0)

    def read(x):
        return x + 1, model.w, model.b

    compiled = graphlift.compile(read, backend="eager", fullgraph=True)
    for _ in range(3):
        assert [t.tolist() for t in compiled(torch.ones(2))] == [t.tolist() for t in read(torch.ones(2))]


def test_a_second_name_of_a_table_is_another_place():
    model = nn.Module()
    model.w = nn.Parameter(torch.ones(2))
    model.tables = [model._parameters]
    holder = {"namespace": vars(model), "table": model._parameters}

    def read(x, table):
        return x + model.w, holder["table"]["w"], model.tables[0]["w"], table["w"], "w" in holder["namespace"]

    compiled = graphlift.compile(read, backend="eager")
    x = torch.zeros(2)

    def same(table):
        found, expected = compiled(x, table), read(x, table)
        assert [str(part) for part in found] == [str(part) for part in expected]

    same(model._parameters)
    same(model._parameters)
    holder["table"] = {"w": torch.full((2,), 7.0)}
    same(model._parameters)
    model.tables[0] = {"w": torch.full((2,), 8.0)}
    same(model._parameters)
    same({"w": torch.full((2,), 9.0)})
    holder["namespace"] = {"w": 1}
    same(model._parameters)


class Named:
    """A key that equals a name."""

    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return other == self.name


def test_a_key_that_equals_a_name():
    model = Holder()
    model._parameters[Named("b")] = torch.tensor([9.0])
    x = torch.ones(1)

    def run(x):
        return x * model.b, hasattr(model, "b"), hasattr(model, "none")

    assert str(graphlift.compile(run, backend="eager")(x)) == str(run(x)) == "(tensor([9.]), True, False)"


class Slotted(nn.Module):
    __slots__ = ("q",)

    def __init__(self):
        super().__init__()
        self._buffers["q"] = torch.full((1,), 4.0)


def beside_a_sum(function):
    """What a function gives or raises, after a tensor operation in the same frame: so it is no frame without
    a graph, nor one that an exception leaves."""

    def run(x):
        y = x + 1
        try:
            return function(x), y
        except Exception as error:
            return type(error).__name__, str(error), y

    return run


def same_each_time(function):
    x = torch.ones(1)
    run = beside_a_sum(function)
    compiled = graphlift.compile(run, backend="eager")
    for _ in range(2):
        assert str(compiled(x)) == str(run(x))


def test_an_empty_slot_leaves_the_name_to_the_tables():
    model = Slotted()
    same_each_time(lambda x: x * model.q)


class Failing(nn.Module):
    """Descriptors of each kind whose reading fails, three of them with an entry of the same name."""

    def __init__(self):
        super().__init__()
        for name in ("lazy", "computed", "described"):
            self._buffers[name] = torch.full((1,), 4.0)

    lazy = functools.cached_property(lambda self: self.missing)
    computed = property(lambda self: self.missing)
    lone_lazy = functools.cached_property(lambda self: self.missing)
    lone_computed = property(lambda self: self.missing)

    class _Descriptor:
        def __get__(self, obj, cls):
            raise AttributeError("of its own")

    described = _Descriptor()
    lone_described = _Descriptor()


@pytest.mark.parametrize(
    "name", ["lazy", "computed", "described", "lone_lazy", "lone_computed", "lone_described"]
)
def test_a_descriptor_that_fails_leaves_the_name_to_the_tables(name):
    model = Failing()
    same_each_time(lambda x: x * getattr(model, name))


@pytest.mark.parametrize("hook", ["__getattr__", "__getattribute__"])
def test_ways_to_attributes_that_a_class_is_given_inside(hook):
    class Changing(Holder):
        pass

    model = Changing()
    model.w.requires_grad_(False)

    def with_getattr(x):
        before = model.w * 1, hasattr(model, "none")
        Changing.__getattr__ = lambda self, name: ("own", name)
        between = model.w, hasattr(model, "none"), model.none
        del Changing.__getattr__
        return before, between, model.w * 1, hasattr(model, "none")

    def with_getattribute(x):
        before = model.w * 1
        Changing.__getattribute__ = lambda self, name: ("own", name)
        between = model.w
        del Changing.__getattribute__
        return before, between, model.w * 1

    same_each_time(with_getattr if hook == "__getattr__" else with_getattribute)


def test_global_hooks_in_a_dictionary_of_their_own():
    module, model = nn.modules.module, nn.Identity()
    former = module._global_forward_hooks

    def replace(x):
        before = model(x)
        module._global_forward_hooks = {3: lambda module, args, out: out * 15}
        try:
            between = model(x)
        finally:
            module._global_forward_hooks = former
        return before, between, model(x)

    same_each_time(replace)
    assert module._global_forward_hooks is former
