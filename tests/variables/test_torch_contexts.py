"""Grad mode and autocast inside captured code."""

import contextlib

import pytest
import torch

import graphlift
from graphlift.testing import check

W = torch.ones(3, requires_grad=True)


def no_grad(w):
    with torch.no_grad():
        inside = w * 2
        assert not torch.is_grad_enabled()
        with torch.enable_grad():
            deeper = w * 3
    assert torch.is_grad_enabled()
    return inside, deeper, w * 4


def set_grad_enabled(w):
    with torch.set_grad_enabled(False):
        inside = w * 2
    return inside, w * 3


@torch.no_grad()
def decorated(w):
    return w * 2


def calls_decorated(w):
    return decorated(w), w * 2


def left_by_exception(w):
    try:
        with torch.no_grad():
            raise ValueError("out")
    except ValueError:
        pass
    return w * 2


def left_by_return(w):
    def inner():
        with torch.no_grad():
            return w * 2

    return inner(), w * 2


def reused_context(w):
    context = torch.no_grad()
    with context:
        first = w * 2
    with context:
        second = w * 3
    return first, second, w * 4


@pytest.mark.parametrize(
    "program",
    [no_grad, set_grad_enabled, calls_decorated, left_by_exception, left_by_return, reused_context],
    ids=lambda p: p.__name__,
)
def test_grad_mode(program):
    check(program, W)


def test_grad_mode_changed_for_good():
    def f(w):
        torch.set_grad_enabled(False)
        return w * 2

    try:
        check(f, W, warm=False)
    finally:
        torch.set_grad_enabled(True)


def test_grad_mode_at_a_break():
    import graphlift

    def f(w):
        with torch.no_grad():
            y = w * 2
            graphlift.graph_break()
            z = y * w
        return y, z, w * 3

    check(f, W, graphs=2, breaks=1)


def test_autocast():
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = x @ x.T
            with torch.autocast("cpu", enabled=False):
                full = x @ x
        return inside, full, x @ x.T

    check(f, torch.ones(4, 4))


def test_the_mode_around_the_call_counts():
    def f(w):
        return w * 2

    with torch.no_grad():
        checked = check(f, W)
    assert not checked.result.requires_grad
    assert checked.compiled(W).requires_grad


def test_inference_mode():
    def f(x):
        with torch.inference_mode():
            y = x * 2
        return y

    check(f, torch.ones(3), graphs=None, breaks=None)


def test_a_function_mode_sees_nothing_of_the_capture():
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return function(*args, **(kwargs or {}))

    def around(x):
        return x + 1

    def within(x):
        y = x * 2
        with Mode():
            z = y + 1
        return z * 3

    x = torch.ones(2)
    for function in (around, within):
        compiled = graphlift.compile(function, backend="eager")
        for each in (compiled, compiled, function):
            seen.clear()
            with Mode() if function is around else contextlib.nullcontext():
                each(x)
            assert seen == ["add"]
