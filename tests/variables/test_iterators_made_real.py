"""Iterators that leave captured code are what plain Python's would be, in what `__reduce__` shows, too."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
import torch

import graphlift
from graphlift.testing import check

TEXTS = ["xyz", "\u1234x", b"abc", ""]


def _shown(iterator: Any) -> Any:
    return type(iterator), iterator.__reduce__()


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("gone", [0, 1, 3, 9])
def test_over_texts(text, gone):
    def program(x, text):
        iterator = iter(text)
        for _ in range(gone):
            next(iterator, None)
        return x + 1, iterator, type(iterator)

    plain, compiled = program, graphlift.compile(program, backend="eager", fullgraph=True)
    x = torch.ones(2)
    assert _shown(compiled(x, text)[1]) == _shown(plain(x, text)[1])
    check(program, x, text, graphs=1, breaks=0, recompiles=None)


@pytest.mark.parametrize("gone", [0, 2, 3, 5])
def test_over_ranges(gone):
    def program(x):
        found = [iter(range(1, 10, 4)), iter(range(2**70, 2**70 + 9, 3)), reversed(range(0, 9, 3))]
        for iterator in found:
            for _ in range(gone):
                next(iterator, None)
        return x + 1, found, [type(iterator) for iterator in found]

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    x = torch.ones(2)
    (_, ours, kinds), (_, theirs, expected) = compiled(x), program(x)
    assert [_shown(iterator) for iterator in ours] == [_shown(iterator) for iterator in theirs]
    assert kinds == expected


def test_ranges_with_more_items_than_a_c_integer_counts():
    def program(x):
        ends = (2**64 - 2, 2**64 + 10, 3), (-(2**64), 2**64, 2**31), (0, 2**64, 1), (2**64, 0, -1)
        whole = [range(*numbers) for numbers in ends]
        first = [[n for n, _ in zip(numbers, range(4), strict=False)] for numbers in whole]
        last = [[n for n, _ in zip(reversed(numbers), range(4), strict=False)] for numbers in whole]
        return x + 1, first, last, iter(whole[2])

    check(program, torch.ones(2), graphs=1, breaks=0)


def test_reversed_asks_for_the_length_once():
    def program(x):
        asked = []

        class Sequence:
            def __len__(self):
                asked.append("len")
                return 3

            def __getitem__(self, index):
                return index * 2

        fresh, begun = reversed(Sequence()), reversed(Sequence())
        first = next(begun)
        return x + 1, asked, fresh, begun, first

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    _, asked, fresh, begun, first = compiled(torch.ones(2))
    assert asked == ["len", "len"] and first == 4
    assert fresh.__reduce__()[2] == 2 and begun.__reduce__()[2] == 1
    assert list(fresh) == [4, 2, 0] and list(begun) == [2, 0]


@pytest.mark.parametrize("make", [list, tuple, deque])
@pytest.mark.parametrize("gone", [0, 1, 2, 3])
def test_over_sequences_and_back(make, gone):
    """Where the last item was taken, and where the end has been told, CPython shows different things."""

    def program(x):
        found = [make, make, lambda values: make(values[:1]), lambda values: make()]
        iterators = [iter(f([1, 2])) for f in found] + [reversed(f([1, 2])) for f in found]
        for iterator in iterators:
            for _ in range(gone):
                next(iterator, None)
        return x + 1, iterators

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    ours, theirs = compiled(torch.ones(2))[1], program(torch.ones(2))[1]
    assert [_shown(iterator) for iterator in ours] == [_shown(iterator) for iterator in theirs]


@pytest.mark.parametrize("direction", [iter, reversed])
@pytest.mark.parametrize("gone", [0, 1, 2, 3])
def test_a_deque_changes_under_its_iterator(direction, gone):
    def program(x):
        items, told = deque([1, 2]), []
        iterator = direction(items)
        for _ in range(gone):
            next(iterator, None)
        items.append(3)
        for _ in range(3):
            try:
                told.append(next(iterator, "end"))
            except RuntimeError as error:
                told.append(str(error))
        return x + 1, told

    check(program, torch.ones(2), graphs=1, breaks=0, recompiles=None)


def test_reversed_lets_go_at_any_error():
    class Fails:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            if index == 1:
                raise ValueError("one")
            return index

    def program(x):
        iterator, told = reversed(Fails()), []
        for _ in range(4):
            try:
                told.append(next(iterator, "end"))
            except ValueError as error:
                told.append(str(error))
        return x + 1, told

    check(program, torch.ones(2), graphs=1, breaks=0)
