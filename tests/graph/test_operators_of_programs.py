"""Operators that the program registers: what they give is asked of their fake function."""

from __future__ import annotations

import itertools

import torch

import graphlift

_numbers = itertools.count()


def operator(asked):
    """A new operator that doubles, and notes in `asked` each call of its fake function."""
    name = f"graphlift_tests::twice_{next(_numbers)}"

    @torch.library.custom_op(name, mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x):
        asked.append(tuple(x.shape))
        return torch.empty_like(x)

    namespace, _, short = name.partition("::")
    return twice, getattr(getattr(torch.ops, namespace), short)


def test_equal_calls_are_asked_for_once_a_capture():
    asked = []
    _, twice = operator(asked)

    def run(x, y):
        for _ in range(4):
            x = twice(x)
        return x, twice(y), twice(x.double())

    x, y = torch.ones(2), torch.ones(3)
    found = graphlift.compile(run, backend="eager", fullgraph=True)(x, y)
    assert [f.tolist() for f in found] == [[16.0] * 2, [2.0] * 3, [32.0] * 2]
    assert found[2].dtype is torch.float64
    assert len(asked) == 3


def test_the_next_capture_asks_anew():
    asked = []
    made, twice = operator(asked)

    def run(x):
        return twice(x) + 1

    x = torch.ones(2)
    assert graphlift.compile(run, backend="eager")(x).tolist() == [3.0, 3.0]
    first = len(asked)
    graphlift.reset()
    assert graphlift.compile(run, backend="eager")(x).tolist() == [3.0, 3.0]
    assert first and len(asked) == 2 * first
