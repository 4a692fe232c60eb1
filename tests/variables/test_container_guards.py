"""What was read of containers is guarded: other contents give other results, at the next call already."""

from __future__ import annotations

from collections import OrderedDict, defaultdict

import pytest
import torch

from graphlift.testing.check import check

X = torch.ones(2)


def first(x, c):
    return x * c[0]


def last(x, c):
    return x * c[-1]


def size(x, c):
    return x * len(c)


def truth(x, c):
    return x + 1 if c else x - 1


def deep(x, c):
    return x * c[0][1]["k"]


def has(x, c):
    return x + 1 if "k" in c else x - 1


def get(x, c):
    return x * c.get("k", 7)


def keys(x, c):
    return x + 1, list(c), [*c.values()]


def total(x, c):
    return x * sum(c)


def equal(x, c):
    return x + 1 if c == [1, 2] else x - 1


def same(x, c):
    return x + 1 if c[0] is c[1] else x - 1


def kinds(x, c):
    return x + 1, [type(v).__name__ for v in c], c


def aliases(x, c, d):
    c.append(1)
    return x * len(d)


def missing(x, c):
    return x + c["k"], len(c)


SHARED = [1]
CASES = [
    (first, [[1, 2], [3, 2], [1, 5], [1], [2.0], [True], [1, 2]]),
    (first, [(1, 2), [1, 2], (3,), (1, 2)]),
    (last, [[1, 2], [1, 2, 3], [5, 2]]),
    (size, [[1], [], [1, 2], (1,), {1}, {"a": 1}, "abc", range(4)]),
    (truth, [[1], [], (), {}, {1: 1}, set(), "", "a", 0, None, 1.5]),
    (deep, [[(0, {"k": 2})], [(0, {"k": 3})], [(0, {"k": 2, "z": 1})], [[0, {"k": 2}]]]),
    (has, [{"k": 1}, {}, {"k": None}, ["k"], {"k"}, "k", OrderedDict(k=1)]),
    (get, [{"k": 1}, {}, {"k": 2}, {"z": 1}, defaultdict(int), {"k": 2.5}]),
    (
        keys,
        [
            {"a": 1, "b": 2},
            {"b": 2, "a": 1},
            {"a": 1},
            {"a": 1, "b": 3},
            OrderedDict(b=2, a=1),
            {1: 1},
            {True: 1},
            {1.0: 1},
        ],
    ),
    (total, [[1, 2], [1, 3], (1, 2), {1, 2}, {1, 5}, frozenset([4]), {3: 0}, range(3), [1.5, 2]]),
    (equal, [[1, 2], [1, 3], [1, 2, 3], (1, 2), None, [1.0, 2.0]]),
    (same, [[SHARED, SHARED], [[1], [1]], [SHARED, [1]]]),
    (kinds, [[1, "a"], [1.0, "a"], [True, b"a"], [None, ()], [[], {}]]),
    (missing, [defaultdict(lambda: 3), defaultdict(lambda: 4), defaultdict(int, k=1), {"k": 5}]),
]


@pytest.mark.parametrize(("fn", "values"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_contents(fn, values):
    further = [(X, value) for value in values[1:]]
    check(fn, X, values[0], then=further, recompiles=None, graphs=None)


def test_aliasing_of_arguments():
    c = [0]
    check(aliases, X, c, c, then=[(X, [0], [0]), (X, c, c)], recompiles=None, graphs=None)
    check(aliases, X, [0], [0], then=[(X, c, c)], recompiles=None, graphs=None)


def test_contents_that_change_between_calls():
    import graphlift

    state = {"list": [1, 2], "set": {1}, "dict": {"a": 1}}

    def fn(x):
        return x * len(state["list"]) + sum(state["list"]), sorted(state["set"]), list(state["dict"].items())

    compiled = graphlift.compile(fn, backend="eager")
    changes = [
        lambda: None,
        lambda: state["list"].append(3),
        lambda: state["list"].__setitem__(0, 9),
        lambda: state["set"].add(5),
        lambda: state["dict"].update(b=2),
        lambda: state["dict"].pop("a"),
        lambda: state.update(list=[4]),
        lambda: state["set"].clear(),
    ]
    for change in changes:
        change()
        for expected, got in zip(fn(X), compiled(X), strict=True):
            assert torch.equal(expected, got) if isinstance(expected, torch.Tensor) else expected == got
