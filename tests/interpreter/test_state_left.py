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
