"""torch's global state that a captured function leaves changed, whatever the backend makes of its graph."""

from __future__ import annotations

import pytest
import torch

import graphlift

BACKENDS = ["eager", "aot_eager"]


def leaves_grad_mode(x):
    y = x * 2
    torch.set_grad_enabled(False)
    return y


def leaves_grad_mode_at_a_break(x):
    torch.set_grad_enabled(False)
    graphlift.graph_break()
    return x * 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [leaves_grad_mode, leaves_grad_mode_at_a_break], ids=lambda p: p.__name__)
def test_grad_mode(program, backend):
    compiled = graphlift.compile(program, backend=backend)
    x = torch.ones(3, requires_grad=True)
    try:
        for _ in range(3):
            torch.set_grad_enabled(True)
            compiled(x)
            assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def leaves_autocast(x):
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_enabled("cuda", False)
    return x * 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_setting_of_each_device(backend):
    compiled = graphlift.compile(leaves_autocast, backend=backend)
    try:
        for _ in range(2):
            torch.set_autocast_enabled("cpu", False)
            torch.set_autocast_enabled("cuda", True)
            compiled(torch.ones(3))
            assert torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda")
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.set_autocast_enabled("cuda", False)


def turns_grad_mode_on(x, w):
    y = x @ w
    torch.set_grad_enabled(True)
    return y, x @ w


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiler_starts_in_the_state_that_the_graph_starts_in(backend):
    compiled = graphlift.compile(turns_grad_mode_on, backend=backend, fullgraph=True)
    w = torch.ones(3, 3, requires_grad=True)
    try:
        for start in (False, True, False):
            torch.set_grad_enabled(start)
            before, after = compiled(torch.ones(2, 3), w)
            assert (before.requires_grad, after.requires_grad) == (start, True)
    finally:
        torch.set_grad_enabled(True)


def breaks_under_no_grad(x, w):
    with torch.no_grad():
        y = x @ w
        graphlift.graph_break()
        z = y @ w
    return y, z, z @ w


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_computed_under_no_grad_behind_a_break_needs_no_gradient(backend):
    compiled = graphlift.compile(breaks_under_no_grad, backend=backend)
    w = torch.ones(3, 3, requires_grad=True)
    for _ in range(2):
        assert [r.requires_grad for r in compiled(torch.ones(2, 3), w)] == [False, False, True]
