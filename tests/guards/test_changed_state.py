"""What changes between calls is seen by the very next one, wherever it is kept."""

from __future__ import annotations

import builtins
import importlib
import sys
import types

import pytest
import torch

import graphlift

X = torch.ones(2)


def agree(program, *changes, arguments=lambda: (X,)):
    """Compare plain and compiled calls before and after each of some changes."""
    compiled = graphlift.compile(program, backend="eager")
    for change in (lambda: None, *changes):
        change()
        expected = program(*arguments())
        found = compiled(*arguments())
        again = compiled(*arguments())
        for result in (found, again):
            assert torch.equal(expected, result), (expected, result)


class Thing:
    scale = 2
    __slots__ = ("__dict__", "slot")

    def __init__(self):
        self.bias = 1
        self.slot = 5

    def f(self, x):
        return x * self.scale + self.bias + self.slot

    @property
    def p(self):
        return 3


def fresh_class():
    return type("Fresh", (Thing,), {"__slots__": ()})


def test_attributes_of_an_instance():
    thing = Thing()
    agree(
        lambda x: thing.f(x),
        lambda: setattr(thing, "bias", 7),
        lambda: setattr(thing, "slot", 1),
        lambda: setattr(thing, "scale", 9),
        lambda: delattr(thing, "scale"),
        lambda: setattr(thing, "f", lambda x: x - 1),
        lambda: thing.__dict__.clear() or thing.__dict__.update(bias=4),
    )


def test_attributes_of_a_class():
    cls = fresh_class()
    thing = cls()
    agree(
        lambda x: thing.f(x) + thing.p,
        lambda: setattr(cls, "scale", 5),
        lambda: setattr(cls, "f", lambda self, x: x - self.bias),
        lambda: setattr(cls, "f", staticmethod(lambda x: x + 100)),
        lambda: setattr(cls, "p", property(lambda self: 30)),
        lambda: delattr(cls, "f"),
        lambda: delattr(cls, "p"),
        lambda: setattr(
            cls,
            "__getattribute__",
            lambda self, name: 8 if name == "p" else object.__getattribute__(self, name),
        ),
        lambda: delattr(cls, "__getattribute__"),
    )


def test_the_class_of_an_instance():
    cls = fresh_class()
    other = fresh_class()
    other.scale = 11
    thing = cls()
    agree(lambda x: thing.f(x) * isinstance(thing, other), lambda: setattr(thing, "__class__", other))


def test_bases():
    class One:
        def f(self, x):
            return x + 1

    class Two:
        def f(self, x):
            return x + 2

    class Low(One):
        pass

    low = Low()
    agree(lambda x: low.f(x) + isinstance(low, Two), lambda: setattr(Low, "__bases__", (Two,)))


def test_special_methods():
    class Number:
        def __add__(self, x):
            return x + 1

        def __bool__(self):
            return True

    number = Number()
    agree(
        lambda x: number + x if number else x,
        lambda: setattr(Number, "__add__", lambda self, x: x + 2),
        lambda: setattr(Number, "__bool__", lambda self: False),
        lambda: delattr(Number, "__bool__"),
        lambda: setattr(Number, "__len__", lambda self: 0),
    )


def test_metaclasses():
    class Meta(type):
        scale = 2

    class Made(metaclass=Meta):
        pass

    agree(
        lambda x: x * Made.scale,
        lambda: setattr(Meta, "scale", 3),
        lambda: setattr(Made, "scale", 4),
        lambda: setattr(Meta, "scale", property(lambda cls: 5)),
    )


def test_descriptors():
    class Described:
        def __get__(self, instance, owner):
            return 2

    class Holder:
        v = Described()

    holder = Holder()
    agree(
        lambda x: x * holder.v,
        lambda: setattr(Described, "__get__", lambda self, instance, owner: 3),
        lambda: holder.__dict__.update(v=4),
        lambda: setattr(Described, "__set__", lambda self, instance, value: None),
    )


def test_closures_defaults_and_code():
    cell = 2

    def inner(x, by=3, *, plus=1):
        return x * by + plus + cell

    def set_cell(value):
        nonlocal cell
        cell = value

    agree(
        lambda x: inner(x),
        lambda: set_cell(7),
        lambda: setattr(inner, "__defaults__", (4,)),
        lambda: setattr(inner, "__kwdefaults__", {"plus": 9}),
        lambda: inner.__kwdefaults__.update(plus=10),
        lambda: setattr(inner, "__code__", replaced(cell).__code__),
    )


def replaced(cell):
    def inner(x, by=3, *, plus=1):
        return x - by - plus - cell

    return inner


def test_globals_and_builtins(monkeypatch):
    module = types.ModuleType("changed")
    monkeypatch.setitem(sys.modules, "changed", module)
    monkeypatch.setattr(builtins, "number_of_all", 5, raising=False)
    exec("value = 2\ndef program(x): return x * value + number_of_all", module.__dict__)
    agree(
        module.program,
        lambda: setattr(module, "value", 3),
        lambda: setattr(builtins, "number_of_all", 6),
        lambda: setattr(module, "number_of_all", 7),
        lambda: delattr(module, "number_of_all"),
    )


@pytest.fixture
def on_disk(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path / "reloaded_module.py"
    sys.modules.pop("reloaded_module", None)


def test_a_module_that_is_reloaded(on_disk):
    on_disk.write_text("def f(x):\n    return x + 1\n")
    module = importlib.import_module("reloaded_module")

    def reload():
        on_disk.write_text("def f(x):\n    return x + 20\n\n# longer\n")
        importlib.reload(module)

    agree(lambda x: module.f(x), reload)


def test_arguments():
    kept = [Thing()]
    kept.append(fresh_class()())

    def swap():
        kept.reverse()
        kept[0].scale = 6

    agree(
        lambda x, things: things[0].f(x) + len(things), swap, lambda: kept.pop(), arguments=lambda: (X, kept)
    )
