"""A device is a constant; as a context manager or decorator it changes what factories make."""

from __future__ import annotations

import torch

from graphlift.testing import check

X = torch.ones(2)


def test_a_region():
    def program(x):
        with torch.device("meta"):
            made = torch.ones(2)
        return made.device, torch.ones(2), x + 1

    check(program, X, graphs=None, breaks=None)


def test_a_region_entered_by_hand():
    def program(x):
        region = torch.device("meta")
        region.__enter__()
        made = torch.ones(2).device
        region.__exit__(None, None, None)
        return made, torch.ones(2), x + 1

    check(program, X, graphs=None, breaks=None)


def test_a_decorator():
    def program(x):
        @torch.device("meta")
        def make():
            return torch.ones(2).device

        return make(), x + 1

    check(program, X, graphs=None, breaks=None)
