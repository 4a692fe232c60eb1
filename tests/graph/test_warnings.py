"""Operations that warn do so from within a captured graph as they do from plain code."""

from __future__ import annotations

import warnings

import pytest
import torch

import graphlift


def resized(x, out):
    torch.add(x, 1, out=out)
    return out * 2


@pytest.mark.parametrize("action", ["default", "always", "error"])
def test_a_warning_inside_the_graph(action):
    def run(fn):
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            try:
                return fn(torch.ones(2, 3), torch.ones(5))
            except Warning as warning:
                return type(warning)

    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else torch says it once a process, and plain code would have said it
    try:
        actual, expected = run(graphlift.compile(resized, backend="eager")), run(resized)
    finally:
        torch.set_warn_always(always)
    if isinstance(expected, type):
        assert actual is expected
    else:
        assert torch.equal(actual, expected)
