"""Imports inside captured code, and builtins that are not the process's."""

from __future__ import annotations

import builtins
import sys
import types

import pytest
import torch

import graphlift
from graphlift.testing import check


def scaled(x):
    import math

    return x * math.pi


def test_an_import():
    check(scaled, torch.ones(2))


def test_a_replaced_import_is_seen_by_the_next_call(monkeypatch):
    compiled = graphlift.compile(scaled, backend="eager")
    x = torch.ones(2)
    assert torch.equal(compiled(x), scaled(x))
    plain = builtins.__import__

    class Replaced:
        pi = 2.0

    monkeypatch.setattr(
        builtins, "__import__", lambda name, *a: Replaced if name == "math" else plain(name, *a)
    )
    assert torch.equal(compiled(x), x * 2.0)


def own_builtins(source):
    namespace = {"__builtins__": {**vars(builtins), "len": lambda _: 7}}
    exec(source, namespace)
    return namespace["f"]


def test_a_function_with_builtins_of_its_own():
    function = own_builtins("def f(x, items):\n    return x * len(items)\n")
    assert torch.equal(
        graphlift.compile(function, backend="eager")(torch.ones(2), [1]), torch.full((2,), 7.0)
    )


def test_a_called_function_with_builtins_of_its_own():
    inner = own_builtins("def f(x, items):\n    return x * len(items)\n")

    def outer(x, items):
        return inner(x, items) + len(items)

    assert torch.equal(graphlift.compile(outer, backend="eager")(torch.ones(2), [1]), torch.full((2,), 8.0))


def test_builtins_of_ones_own_are_guarded():
    function = own_builtins("def f(x, items):\n    return x * len(items)\n")
    compiled = graphlift.compile(function, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.ones(2), [1]), torch.full((2,), 7.0))
    function.__builtins__["len"] = lambda _: 9
    assert torch.equal(compiled(torch.ones(2), [1]), torch.full((2,), 9.0))


@pytest.fixture
def package(monkeypatch):
    """A package with a `__getattr__` that notes what it is asked for."""
    made, asked = types.ModuleType("noted_package"), []

    def getattr_(name):
        asked.append(name)
        if name == "lazy":
            return 7
        raise AttributeError(name)

    made.__path__, made.__getattr__ = [], getattr_
    submodule = types.ModuleType("noted_package.submodule")
    submodule.v = 3
    monkeypatch.setitem(sys.modules, "noted_package", made)
    monkeypatch.setitem(sys.modules, "noted_package.submodule", submodule)
    return asked


def test_a_package_s_getattr_is_asked_as_often_as_python_asks(package):
    def program(x):
        from noted_package import lazy, submodule

        return x + lazy + submodule.v

    compiled = graphlift.compile(program, backend="eager")
    counts = []
    for run in (program, compiled, compiled):
        package.clear()
        assert torch.equal(run(torch.ones(2)), torch.full((2,), 11.0))
        counts.append(sorted(package))
    assert counts[0] == counts[1] == counts[2]
