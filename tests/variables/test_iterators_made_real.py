"""Iterators that leave captured code are what plain Python's would be, in what `__reduce__` shows, too."""

from __future__ import annotations

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
