"""Polyfills run as plain Python do what the C code does that they stand for."""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import math
import operator
import random
from collections import Counter

import pytest

from graphlift.polyfills import heaps, itertools_, mappings, reductions


@pytest.fixture
def numbers():
    source = random.Random(1)
    return [[source.randrange(6) for _ in range(source.randrange(9))] for _ in range(200)]


def test_heaps(numbers):
    for found in numbers:
        ours, real = list(found), list(found)
        heaps.heapify(ours), heapq.heapify(real)
        assert ours == real
        heaps.heappush(ours, 3), heapq.heappush(real, 3)
        assert (heaps.heappop(ours), heaps.heappushpop(ours, 2)) == (
            heapq.heappop(real),
            heapq.heappushpop(real, 2),
        )
        assert ours == real
        if ours:
            assert heaps.heapreplace(ours, 5) == heapq.heapreplace(real, 5)
        assert ours == real
    for function in (heaps.heappop, heapq.heappop):
        with pytest.raises(IndexError, match="index out of range"):
            function([])


@pytest.mark.skipif(not hasattr(heapq, "_heapify_max"), reason="this Python has them under other names")
def test_heaps_with_the_largest_on_top(numbers):
    for found in numbers:
        ours, real = list(found), list(found)
        heaps._heapify_max(ours), heapq._heapify_max(real)
        assert ours == real
        while real:
            assert heaps._heapreplace_max(ours, 2) == heapq._heapreplace_max(real, 2)
            assert heaps._heappop_max(ours) == heapq._heappop_max(real)
            assert ours == real


def test_bisection(numbers):
    for found in numbers:
        found = sorted(found)
        for x in range(7):
            assert heaps.bisect_left(found, x, 0, None, None) == bisect.bisect_left(found, x)
            assert heaps.bisect_right(found, x, 0, None, None) == bisect.bisect_right(found, x)
            assert heaps.bisect_right(found, -x, 0, None, operator.neg) == bisect.bisect_right(
                found, -x, key=operator.neg
            )
            for ours, theirs in (
                (heaps.insort_left, bisect.insort_left),
                (heaps.insort_right, bisect.insort_right),
            ):
                one, two = list(found), list(found)
                ours(one, float(x), 0, None, None), theirs(two, float(x))
                assert list(map(repr, one)) == list(map(repr, two))
    with pytest.raises(ValueError, match="lo must be non-negative"):
        heaps.bisect_left([], 1, -1, None, None)


def test_reductions(numbers):
    for found in numbers:
        for values in (found, [value / 7 for value in found], [[value] for value in found]):
            start = [] if values and isinstance(values[0], list) else 0
            assert repr(reductions.sum_(values, start)) == repr(sum(values, start))
        assert reductions.any_(iter(found)) == any(found) and reductions.all_(iter(found)) == all(found)
        assert reductions.product(found, 2) == math.prod(found, start=2)
        assert reductions.reduce(operator.sub, found, 9) == functools.reduce(operator.sub, found, 9)
        for key in (None, lambda value: -value % 4):
            assert reductions.smallest(iter(found), key, None) == min(found, key=key, default=None)
            assert reductions.largest(iter(found), key, None) == max(found, key=key, default=None)


def test_itertools(numbers):
    for found in numbers:
        assert list(itertools_.pairwise(iter(found))) == list(itertools.pairwise(found))
        expected = list(itertools.zip_longest(found, "abc", [], fillvalue=9))
        assert list(itertools_.zip_longest([iter(found), iter("abc"), iter([])], 9)) == expected
        assert [v for batch in itertools_.batched(iter(found), 3) for v in batch] == found
    with pytest.raises(ValueError, match="incomplete batch"):
        list(itertools_.batched(iter([1, 2, 3]), 2, True))


def test_filling_dictionaries(numbers):
    class Mapping:
        def keys(self):
            return iter("ab")

        def __getitem__(self, key):
            return key * 2

    target = {}
    mappings.update_from_mapping(target, Mapping())
    mappings.update_from_pairs(target, ["xy", (1, 2), iter([3, 4])])
    assert target == {"a": "aa", "b": "bb", "x": "y", 1: 2, 3: 4}
    for wrong in ([5], [(1,)], ["abc"]):
        messages = []
        for function in (lambda: mappings.update_from_pairs({}, wrong), lambda: dict(wrong)):
            with pytest.raises((TypeError, ValueError)) as caught:
                function()
            messages.append((type(caught.value), str(caught.value)))
        assert messages[0] == messages[1]
    for found in numbers:
        counted = {}
        mappings.count_elements(counted, found)
        assert counted == dict(Counter(found))
    assert mappings.fromkeys(dict, (1, 2), 0) == {1: 0, 2: 0}
