"""Calls that are answered from a memo see every change, the very next one as well."""

from __future__ import annotations

import abc
import builtins
import collections
import gc
import weakref

import pytest
import torch
from torch import nn

import graphlift
from graphlift import _C
from graphlift.testing import CompileCounter

X = torch.ones(2, 3)
SCALE = 2.0


#: Entries of other tests, kept so that no address of theirs is given to another.
OTHERS = []


def entries():
    """Those that this test has made."""
    others = set(map(id, OTHERS))
    return [entry for entry in gc.get_objects() if type(entry) is _C.Entry and id(entry) not in others]


def programs():
    """Their guard programs."""
    return [entry.guards for entry in entries()]


def memos():
    """How many runs are remembered."""
    return sum(program.memos()[0] for program in programs())


class Shape(abc.ABC):  # noqa: B024
    """Classes are registered with it."""


class Layer(nn.Module):
    """Reads of every kind on the way to its parameters."""

    factor = 3.0

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.norm = nn.LayerNorm(3)
        self.items = [1.0, 2.0]
        self.table = {"a": 1.0}
        self.order = collections.OrderedDict(a=1.0, b=2.0)
        self.bias = 0.5
        self.register_buffer("seen", torch.ones(3))

    def helper(self, x, by=1.0):
        return x * by

    def forward(self, x):
        x = self.norm(self.inner(x)) * self.factor + self.bias + self.seen
        x = x * SCALE if self.training else x - SCALE
        x = x * self.items[1] + self.table["a"] + next(iter(self.order.values()))
        if hasattr(self, "extra"):
            x = x + self.extra
        if isinstance(self, Shape):
            x = x + 1000
        return self.helper(x) * abs(-2)


class Deep(nn.Module):
    """Some of them, so that what changes lies behind much that does not."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(type("Layer", (Layer,), {})() for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def swapped(layer):
    new = nn.Parameter(torch.full((3, 3), 0.25))
    torch.utils.swap_tensors(layer.inner.weight, new)


def of_another_class(layer):
    layer.__class__ = type("Other", (type(layer),), {"forward": lambda self, x: x - 1})


def with_another_dictionary(layer):
    layer.__dict__ = {**layer.__dict__, "bias": 9.0}


def reordered(layer):
    layer.inner.register_forward_hook(lambda module, args, out: out * 2)
    layer.inner.register_forward_hook(lambda module, args, out: out + 2, prepend=True)


CHANGES = {
    "eval": lambda layer: layer.eval(),
    "an inner one is evaluated": lambda layer: layer.norm.eval(),
    "attribute set": lambda layer: setattr(layer, "bias", 4.0),
    "attribute set to an equal object": lambda layer: setattr(layer, "bias", float("0.5")),
    "attribute set and set back": lambda layer: (setattr(layer, "bias", 4.0), setattr(layer, "bias", 0.5)),
    "attribute set below": lambda layer: layer.__dict__.update(bias=4.0),
    "attribute deleted": lambda layer: delattr(layer, "bias"),
    "attribute of the instance before the class's": lambda layer: setattr(layer, "factor", 7.0),
    "absent name appears": lambda layer: setattr(layer, "extra", 5.0),
    "forward in the instance": lambda layer: setattr(layer, "forward", lambda x: x * 5),
    "name of a parameter in the instance": lambda layer: layer.inner.__dict__.update(
        weight=torch.zeros(3, 3)
    ),
    "parameter replaced": lambda layer: setattr(layer.inner, "weight", nn.Parameter(torch.ones(3, 3))),
    "parameter replaced below": lambda layer: layer.inner._parameters.update(
        weight=nn.Parameter(torch.full((3, 3), 2.0))
    ),
    "parameter deleted": lambda layer: layer.inner._parameters.update(bias=None),
    "data of another shape": lambda layer: setattr(layer.inner.bias, "data", torch.ones(1)),
    "data of the same shape": lambda layer: setattr(layer.inner.bias, "data", torch.full((3,), 4.0)),
    "set_": lambda layer: layer.inner.bias.data.set_(torch.full((6,), 3.0)[::2]),
    "values": lambda layer: layer.inner.bias.data.fill_(8.0),
    "swap_tensors": swapped,
    "requires_grad_": lambda layer: layer.inner.weight.requires_grad_(False),
    "to": lambda layer: layer.inner.to(torch.float64).to(torch.float32),
    "to another dtype": lambda layer: (layer.seen.data.zero_(), layer.to(torch.float64)),
    "class": of_another_class,
    "dictionary": with_another_dictionary,
    "class attribute": lambda layer: setattr(type(layer), "factor", 11.0),
    "base class attribute": lambda layer: setattr(Layer, "factor", 13.0),
    "method of the class": lambda layer: setattr(type(layer), "helper", lambda self, x: x + 77),
    "default of a method": lambda layer: setattr(Layer.helper, "__defaults__", (6.0,)),
    "register": lambda layer: Shape.register(type(layer)),
    "global": lambda layer: globals().update(SCALE=5.0),
    "builtin shadowed": lambda layer: globals().update(abs=lambda value: 21.0),
    "builtin replaced": lambda layer: setattr(builtins, "abs", lambda value: 22.0),
    "hook registered": lambda layer: layer.inner.register_forward_hook(lambda module, args, out: out + 1),
    "hooks in another order": reordered,
    "hook of all modules": lambda layer: nn.modules.module.register_module_forward_hook(
        lambda module, args, out: out * 1.5
    ),
    "item of a list": lambda layer: layer.items.__setitem__(1, 6.0),
    "list shorter": lambda layer: layer.items.insert(0, 1.0),
    "item of a dictionary": lambda layer: layer.table.update(a=3.0),
    "item of a dictionary by another way": lambda layer: layer.table.__ior__({"a": 3.5}),
    "dictionary cleared": lambda layer: layer.table.clear() or layer.table.update(a=9.0),
    "order": lambda layer: layer.order.move_to_end("a"),
    "module replaced": lambda layer: setattr(layer, "inner", nn.Linear(3, 3)),
    "module replaced below": lambda layer: layer._modules.update(inner=nn.Identity()),
    "buffer replaced": lambda layer: setattr(layer, "seen", torch.full((3,), 6.0)),
    "state loaded by assignment": lambda layer: layer.inner.load_state_dict(
        {"weight": torch.eye(3), "bias": torch.zeros(3)}, assign=True
    ),
}


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """Put back what changes do to the process."""
    graphlift.reset()
    gc.collect()
    OTHERS[:] = entries()
    factor, helper, defaults = Layer.factor, Layer.helper, Layer.helper.__defaults__
    hooks = nn.modules.module._global_forward_hooks
    monkeypatch.setattr(builtins, "abs", abs)
    yield
    OTHERS.clear()
    hooks.clear()
    Layer.factor, Layer.helper, Layer.helper.__defaults__ = factor, helper, defaults
    globals().update(SCALE=2.0)
    globals().pop("abs", None)


def outcome(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error)


def same(left, right):
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    return left is right


def agree(function, compiled, *args):
    expected, found = outcome(function, *args), outcome(compiled, *args)
    assert same(expected, found), (expected, found)


@pytest.mark.parametrize("calls", [1, 20])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen_by_the_next_call(name, calls):
    model = Deep()
    with torch.no_grad():
        compiled = graphlift.compile(lambda x: model(x), backend="eager")
        for _ in range(calls):
            agree(model, compiled, X)
        assert memos() >= 1
        CHANGES[name](model.layers[1])
        for _ in range(2):
            agree(model, compiled, X)


@pytest.mark.parametrize("name", CHANGES)
def test_both_faces_agree_behind_a_change(name):
    model = Deep()
    with torch.no_grad(), graphlift.config.patch(check_guards=True):
        compiled = graphlift.compile(model, backend="eager")
        for _ in range(3):
            agree(model, compiled, X)
        CHANGES[name](model.layers[1])
        for _ in range(3):
            agree(model, compiled, X)


def test_a_closure_cell_is_seen():
    by = 2.0
    layer = Layer()

    def program(x):
        return layer(x) * by

    compiled = graphlift.compile(program, backend="eager")
    for value in (3.0, 3.0, 4.0, 2.0, 3.0, 4.0):
        by = value
        agree(program, compiled, X)
        agree(program, compiled, X)


def test_each_object_is_told_from_the_others():
    """Two objects of one class share an entry, and no memo speaks for another one."""
    first, *others = models = [Layer() for _ in range(40)]
    graphs = CompileCounter()
    compiled = graphlift.compile(lambda layer, x: layer(x), backend=graphs)
    for _ in range(4):
        for model in models:
            agree(model.__class__.__call__, compiled, model, X)
    assert graphs.frame_count == 1
    assert 2 <= memos() <= 32
    others[3].bias = 8.0
    for model in (first, *others):
        agree(model.__class__.__call__, compiled, model, X)


def test_objects_that_are_new_at_each_call_take_no_memory():
    weight = nn.Linear(3, 3)

    class Holder:
        def __init__(self):
            self.layer = weight
            self.by = 2.0

    def program(holder, x):
        return holder.layer(x) * holder.by

    compiled = graphlift.compile(program, backend="eager")
    for _ in range(300):
        agree(program, compiled, Holder(), X)
    assert memos() <= 32


def test_what_changes_at_each_call_is_no_reason_to_remember_anew():
    """A counter among the attributes, and globals of a script that is running."""
    layer = Layer()
    names = {"layer": layer, "steps": 0}
    exec(
        "def program(x):\n"
        "    layer.steps = layer.steps + 1 if hasattr(layer, 'steps') else 0\n"
        "    return layer(x)",
        names,
    )
    compiled = graphlift.compile(names["program"], backend="eager", dynamic=True)
    for step in range(60):
        names["steps"] = step
        agree(lambda x: Layer.forward(layer, x), compiled, X)
    assert layer.steps == 59
    facts = [program.memos() for program in programs()]
    for step in range(20):
        names["steps"] = -step
        compiled(X)
    assert [program.memos() for program in programs()] == facts


def test_many_entries_of_one_function_each_have_theirs():
    layer = Layer()

    def program(x, mode):
        return layer(x) * mode

    compiled = graphlift.compile(program, backend="eager", dynamic=False)
    for _ in range(5):
        for mode in range(6):
            layer.bias = float(mode)
            agree(program, compiled, X, mode)
            agree(program, compiled, X, 5 - mode)


def test_a_memo_owns_nothing():
    layer = Layer()
    compiled = graphlift.compile(lambda layer, x: layer(x), backend="eager")
    for _ in range(3):
        compiled(layer, X)
    assert memos() == 1
    gone = weakref.ref(layer), weakref.ref(layer.inner), weakref.ref(layer.inner.weight)
    del layer
    gc.collect()
    assert [each() for each in gone] == [None, None, None]
    fresh = Layer()
    agree(fresh, lambda x: compiled(fresh, x), X)


def test_objects_at_addresses_of_others_that_are_gone():
    compiled = graphlift.compile(lambda layer, x: layer(x), backend="eager")
    for round in range(60):
        layer = Layer()
        layer.bias = float(round % 3)
        for _ in range(round % 4):
            agree(layer, lambda x, layer=layer: compiled(layer, x), X)
        del layer


def test_costs_are_those_of_what_is_asked():
    """What nobody asks any more costs nothing."""
    layer = Deep()
    compiled = graphlift.compile(layer, backend="eager")
    for _ in range(3):
        compiled(X)
    (program,) = [program for program in programs() if len(program) > 40]
    (entry,) = [entry for entry in entries() if entry.guards is program]
    costs = program.profile(entry.function, (layer, X), 3)
    assert len(costs) == len(program)
    assert costs.count(0.0) > len(costs) / 4  # fewer on 3.13.0, where less is covered by versions


class Item:
    """Its finalizer calls what it is told to."""

    hook = None

    def __init__(self, n):
        self.n = n

    def __del__(self):
        if Item.hook is not None:
            Item.hook()


@pytest.mark.parametrize("names", [1, 40])
def test_a_finalizer_of_the_former_value_sees_the_new_one(names):
    """CPython's quick store lets go of the value before the dictionary has another version."""

    class Owner:
        pass

    def program(owner, x):
        return x + owner.item.n

    def store(owner, value):
        owner.item = value

    def run(function):
        owner, seen = Owner(), []
        for number in range(names):
            setattr(owner, f"name{number}", number)
        for number in range(300):
            store(owner, number)
        store(owner, Item(7))
        for _ in range(40):
            function(owner, X)
        Item.hook = lambda: seen.append(function(owner, X).tolist())
        try:
            store(owner, Item(8))
        finally:
            Item.hook = None
        return seen

    assert run(graphlift.compile(program, backend="eager")) == run(program) == [(X + 8).tolist()]


class Again:
    """A key whose hash calls what it is told to."""

    hook = None

    def __hash__(self):
        hook, Again.hook = Again.hook, None
        if hook is not None:
            hook()
        return 7


def test_a_hash_that_calls_the_compiled_function_while_its_guards_run():
    names = ["a%d" % number for number in range(40)]

    def program(table, owner, x):
        total = 0
        for key in table:
            total += 1 if type(key) is str else 100
        for name in names:
            total = total + getattr(owner, name)
        return x + total

    def run(function):
        owner, table = Item(0), collections.OrderedDict(a=1, b=2)
        other = collections.OrderedDict(table)
        for name in names:
            setattr(owner, name, torch.ones(2, 3))
        for _ in range(40):
            function(table, owner, X)
        kept = []

        def hook():
            for step in range(8):
                owner.more = step
                function(other, owner, X)
                kept.extend(b"\xff" * size for size in range(64, 4096, 64))

        table.clear()
        table[Again()] = 1
        table[Again()] = 1
        Again.hook = hook
        return function(table, owner, X).tolist()

    assert run(graphlift.compile(program, backend="eager")) == run(program)


def test_a_key_that_is_no_string_becomes_equal_to_one():
    class Key:
        def __hash__(self):
            return hash("x")

    def program(owner, x):
        return x + getattr(owner, "x", 0)

    def run(function):
        owner = Item(0)
        owner.__dict__[Key()] = 5
        found = [function(owner, X).tolist() for _ in range(4)]
        Key.__eq__ = lambda self, other: other == "x"
        found.append(function(owner, X).tolist())
        del Key.__eq__
        return found

    assert run(graphlift.compile(program, backend="eager")) == run(program)
