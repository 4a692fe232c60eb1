"""Iterators of `itertools` as objects: their classes, derived ones, where they stand when they leave; ids."""

from __future__ import annotations

import itertools

import pytest
import torch

import graphlift
from graphlift.testing import check

MADE = [
    lambda: itertools.product("ab", (1, 2)),
    lambda: itertools.product("ab", repeat=2),
    lambda: itertools.permutations("abc", 2),
    lambda: itertools.combinations("abc", 2),
    lambda: itertools.combinations_with_replacement("ab", 2),
]


@pytest.mark.parametrize("gone", [0, 1, 99])
@pytest.mark.parametrize("number", range(len(MADE)))
def test_combinations_leave_as_what_they_are(number, gone):
    make = MADE[number]

    def program(x):
        iterator = make()
        for _ in range(gone):
            next(iterator, None)
        return x + 1, iterator, type(iterator)

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    x = torch.ones(2)
    (_, ours, kind), (_, theirs, expected) = compiled(x), program(x)
    assert type(ours) is type(theirs) is kind is expected
    assert list(ours) == list(theirs)


@pytest.mark.parametrize("cls", [itertools.repeat, itertools.chain, itertools.product, itertools.count])
def test_derived_classes(cls):
    class Derived(cls):
        pass

    def program(x):
        made = Derived((1, 2)) if cls is not itertools.count else Derived(3)
        return x + 1, next(made), isinstance(made, Derived), type(made) is Derived

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)


def test_from_iterable_of_a_derived_class():
    class Derived(itertools.chain):
        pass

    def program(x):
        made = Derived.from_iterable([[1], [2]])
        return x + 1, list(made), type(made) is Derived

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)


def test_ids_of_objects_that_lived_at_once_differ():
    def program(x):
        ids = [id(pair) for pair in list(zip("abc", "def", strict=True))]
        return x + 1, ids

    compiled = graphlift.compile(program, backend="eager")
    assert len({*compiled(torch.ones(2))[1]}) == 3
