"""Sorting by comparisons of the program's own: each is asked for as CPython asks. (PYTEST_DONT_REWRITE)"""

from __future__ import annotations

import random

import pytest
import torch

from graphlift.testing.check import check

X = torch.arange(3.0)
ASKED = []


class Asks:
    """Is compared by ``<`` only, and one part of it only."""

    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        ASKED.append((self.value, other.value))
        if self.value < 0:
            raise ValueError(self.value)
        return self.value // 2 < other.value // 2


def numbers(count, seed):
    source = random.Random(seed)
    return [source.randrange(6) for _ in range(count)]


@pytest.mark.parametrize("reverse", [False, True])
def test_every_comparison_is_made_in_order(reverse):
    def program(x, values):
        ASKED.clear()
        found = sorted([Asks(value) for value in values], reverse=reverse)
        keyed = sorted(values, key=Asks, reverse=reverse)
        return x + 1, [each.value for each in found], keyed, list(ASKED)

    for count in (0, 1, 2, 3, 9, 40):
        check(program, X, numbers(count, count), graphs=1, recompiles=None)
    check(program, X, [1, 2, 3, 4, 5], graphs=1, recompiles=None)
    check(program, X, [5, 4, 3, 2, 1], graphs=1, recompiles=None)


def test_a_comparison_that_fails_leaves_the_order_reached():
    def program(x, values):
        ASKED.clear()
        items = [Asks(value) for value in values]
        kept = sorted(items[:2], key=lambda each: each.value)
        try:
            items.sort()
        except ValueError as e:
            return x + 1, [each.value for each in items], e.args, list(ASKED), [each.value for each in kept]

    check(program, X, [5, 3, 4, 1, -2, 0, 2], graphs=1, recompiles=None)
    check(program, X, [1, -1], graphs=1, recompiles=None)
