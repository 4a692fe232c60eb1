"""Modules made in captured code, after torch's own front end has wrapped ``Module.__init__``."""

from __future__ import annotations

import pytest
import torch

from graphlift.testing import check


@pytest.fixture(autouse=True)
def _wrapped() -> None:
    torch.compile(lambda x: x, backend="eager")(torch.ones(1))
    assert torch.nn.Module.__init__.__name__ == "patched_init"


class Scale(torch.nn.Module):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.by


def test_a_module_made_inside() -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
        module = Scale(2.0)
        return module(x), module.training

    check(program, torch.ones(3))


def test_a_slice_of_a_module_list() -> None:
    layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(4))

    def program(x: torch.Tensor) -> torch.Tensor:
        for layer in layers[:2]:
            x = layer(x)
        return x

    check(program, torch.ones(2, 3))
