"""Compiled modules: one state and class with the original, copies, and nothing left on the original."""

from __future__ import annotations

import abc
import copy
import gc
import io
import pickle
import weakref

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

import graphlift
from graphlift.testing import CompileCounter

X = torch.randn(2, 3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("shift", torch.ones(3))
        self.scale = 2
        self.seen = []

    def forward(self, x):
        return self.layer(x) * self.scale + self.shift

    def other(self, x):
        return self.layer(x)


class Noting(Net):
    def forward(self, x):
        self.seen.append(self)
        return super().forward(x)


class Doubled(Net):
    def forward(self, x):
        return x * 7

    def other(self, x):
        return x * 8


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight + weight.T


@pytest.fixture
def made():
    graphlift.reset()
    torch.manual_seed(0)
    module, counter = Net(), CompileCounter()
    return module, graphlift.compile(module, backend=counter), counter


def test_same_class_for_isinstance_and_a_subclass_of_its_own(made):
    module, twin, _ = made
    assert isinstance(twin, Net) and twin.__class__ is Net
    assert issubclass(type(twin), Net) and type(twin) is not Net
    assert type(twin) is not type(graphlift.compile(module, backend="eager"))
    assert repr(twin) == repr(module)


def test_calls_are_compiled(made):
    module, twin, counter = made
    for _ in range(2):
        assert torch.equal(twin(X), Net.forward(module, X))
    assert counter.frame_count == 1 and len(twin.report()) == 1


def test_self_inside_forward_is_the_original():
    module = Noting()
    graphlift.compile(module, backend="eager")(X)
    assert module.seen == [module] and module.seen[0] is module


def test_state_is_shared_both_ways(made):
    module, twin, _ = made
    assert twin.__dict__ is module.__dict__
    twin.scale, module.fresh = 5, 1
    assert module.scale == 5 and twin.fresh == 1
    twin.added = nn.Linear(1, 1)
    assert module.added is twin.added and "added" in module._modules
    del twin.added
    assert not hasattr(module, "added")
    assert [*map(id, twin.parameters())] == [*map(id, module.parameters())]
    assert [*map(id, twin.buffers())] == [*map(id, module.buffers())]
    assert torch.equal(twin(X), Net.forward(module, X))


def test_training_moves_with_the_original(made):
    module, twin, _ = made
    assert twin.training and twin.eval() is twin
    assert not module.training and not module.layer.training
    module.train()
    assert twin.training


def test_to_and_apply_reach_the_original(made):
    module, twin, _ = made
    assert twin.double() is twin and module.layer.weight.dtype is torch.float64
    assert twin(X.double()).dtype is torch.float64
    twin(X.double()).sum().backward()
    assert module.layer.weight.grad is not None
    twin.zero_grad()
    assert module.layer.weight.grad is None


def test_hooks_of_either_run(made):
    module, twin, _ = made
    plain, met = twin(X), []
    handles = [
        twin.register_forward_hook(lambda m, args, result: met.append(m) or result * 2),
        module.register_forward_pre_hook(lambda m, args: (args[0] + 1,)),
    ]
    expected = Net.forward(module, X + 1) * 2
    assert torch.equal(twin(X), expected) and torch.equal(module(X), expected)
    assert all(m is module for m in met) and len(met) == 2
    for handle in handles:
        handle.remove()
    assert torch.equal(twin(X), plain)


def test_state_dict_and_names_know_nothing_of_the_twin(made):
    module, twin, _ = made
    twin(X)
    assert list(twin.state_dict()) == list(module.state_dict()) == ["shift", "layer.weight", "layer.bias"]
    assert [name for name, _ in twin.named_modules()] == ["", "layer"]
    twin.load_state_dict(Net().state_dict())
    inside = nn.Sequential(twin)
    assert list(inside.state_dict()) == ["0.shift", "0.layer.weight", "0.layer.bias"]


def test_orig_mod(made):
    module, twin, _ = made
    assert twin._orig_mod is module
    assert "_orig_mod" not in twin.__dict__ and not hasattr(module, "_orig_mod")


def test_the_original_is_left_as_it_was():
    module = Net()
    before, cls_before = dict(module.__dict__), dict(vars(Net))
    twin = graphlift.compile(module, backend="eager")
    twin(X)
    assert type(module) is Net and module.__dict__ == before and dict(vars(Net)) == cls_before


def test_the_class_follows_when_the_originals_changes(made):
    module, twin, _ = made
    twin(X)
    module.__class__ = Doubled
    assert torch.equal(twin.other(X), X * 8) and torch.equal(twin(X), X * 7)
    assert isinstance(twin, Doubled) and twin.__class__ is Doubled and issubclass(type(twin), Doubled)
    assert twin._orig_mod is module


def test_a_class_given_to_the_twin_reaches_the_original(made):
    module, twin, _ = made
    twin.__class__ = Doubled
    assert type(module) is Doubled and issubclass(type(twin), Doubled) and torch.equal(twin(X), X * 7)


@pytest.mark.parametrize("on_twin", [False, True])
def test_parametrizations(on_twin):
    layer = nn.Linear(3, 3)
    twin = graphlift.compile(layer, backend="eager")
    before = twin(X)
    target = twin if on_twin else layer
    parametrize.register_parametrization(target, "weight", Symmetric())
    assert torch.equal(twin(X), layer(X)) and not torch.equal(twin(X), before)
    assert torch.equal(twin.weight, layer.weight) and parametrize.is_parametrized(twin)
    assert isinstance(twin, type(layer)) and type(layer) is not nn.Linear
    assert list(twin.state_dict()) == list(layer.state_dict())
    parametrize.remove_parametrizations(target, "weight", leave_parametrized=False)
    assert torch.equal(twin(X), before) and type(layer) is nn.Linear and twin.__class__ is nn.Linear


def saved(twin):
    file = io.BytesIO()
    torch.save(twin, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize(
    "way", [copy.copy, copy.deepcopy, lambda twin: pickle.loads(pickle.dumps(twin)), saved], ids=range(4)
)
def test_copies_are_compiled_copies_of_the_original(way):
    module = Noting()
    twin = graphlift.compile(module, backend="eager", dynamic=True)
    twin(X)
    module.seen.clear()
    copied = way(twin)
    assert copied is not twin and copied._orig_mod is not module and type(copied._orig_mod) is Noting
    assert copied.__dict__ is copied._orig_mod.__dict__ and copied.report() == []
    assert not any("compiled" in name for name in copied.__dict__)
    assert torch.equal(copied(X), Net.forward(module, X))
    assert copied.seen[-1] is copied._orig_mod
    copied.scale = 9
    assert module.scale == 2


def test_copies_keep_who_is_whose():
    module = Net()
    twin = graphlift.compile(module, backend="eager")
    module.seen.append(twin)
    first, second, original = copy.deepcopy([twin, twin, module])
    assert first is second and first._orig_mod is original and original.seen == [first]
    copied = pickle.loads(pickle.dumps(twin))
    assert copied.seen[0] is copied


def test_members_kept_in_c_are_the_originals():
    class Slotted(nn.Module):
        __slots__ = ("factor",)

        def forward(self, x):
            return x * self.factor

    module = Slotted()
    module.factor = 3
    twin = graphlift.compile(module, backend="eager")
    assert twin.factor == 3 and torch.equal(twin(X), X * 3)
    twin.factor = 4
    assert module.factor == 4 and torch.equal(twin(X), X * 4)
    del twin.factor
    assert not hasattr(module, "factor")


def test_hooks_of_class_creation_do_not_run():
    defined = []

    class Meta(abc.ABCMeta):
        def __init__(cls, name, bases, body):
            super().__init__(name, bases, body)
            defined.append(cls)

    class Base(nn.Module, metaclass=Meta):
        def __init_subclass__(cls, *, key, **kwargs):
            super().__init_subclass__(**kwargs)
            defined.append(key)

        def forward(self, x):
            return x + 1

    Base.__init_subclass__ = classmethod(Base.__init_subclass__.__func__)
    module, before = Base(), list(defined)
    twin = graphlift.compile(module, backend="eager")
    assert torch.equal(twin(X), X + 1) and isinstance(twin, Base) and defined == before


def test_a_twin_and_its_original_die_together():
    module = nn.Linear(3, 3)
    module.own_twin = [graphlift.compile(module, backend="eager")]
    module.own_twin[0](X)
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None


def test_methods_called_on_a_twin(made):
    module, twin, _ = made
    assert torch.equal(twin.other(X), module.layer(X)) and torch.equal(
        twin.forward(X), Net.forward(module, X)
    )


def test_inside_another_module(made):
    module, twin, counter = made
    outer_counter = CompileCounter()
    outer = graphlift.compile(nn.Sequential(twin, nn.ReLU()), backend=outer_counter, fullgraph=True)
    for _ in range(2):
        assert torch.equal(outer(X), torch.relu(Net.forward(module, X)))
    assert outer_counter.frame_count == 1 and counter.frame_count == 0


@pytest.mark.parametrize("changed", [False, True])
def test_a_dropped_model_is_freed_at_once(changed):
    """Also where its class changed in between; without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        watched = weakref.ref(model), weakref.ref(model[0].weight)
        compiled = graphlift.compile(model, backend="eager")
        compiled(torch.ones(1, 2))
        if changed:

            class Other(torch.nn.Sequential):
                pass

            model.__class__ = Other
            compiled(torch.ones(1, 2))
            assert not compiled[1].inplace and type(compiled).__mro__[2] is Other
        del model, compiled
        assert [ref() for ref in watched] == [None, None]
    finally:
        gc.enable()
