"""Sets: what captured programs do to them is what plain Python does."""

from __future__ import annotations

import pytest
import torch

import graphlift
from graphlift.testing.check import check


def build(x):
    s = {3, 1, 2}
    t = set("hello") | {"z"}
    s.add(10)
    s.add(1)
    return (
        x + len(s),
        s,
        sorted(t),
        list(s),
        [v for v in {8, 0, 16}],
        frozenset([1, 2]),
        set(),
        {x.dtype} == {torch.float32},
    )


def operators(x, s):
    t = {2, 3, 9}
    return (
        x + len(s),
        s | t,
        s & t,
        s - t,
        s ^ t,
        s == {1, 2, 3},
        s < {1, 2, 3, 4},
        s >= {1},
        s != t,
        {1} <= s,
        s.union([7], (8,)),
        s.intersection(range(3)),
        s.difference([1]),
        s.symmetric_difference([1, 99]),
        s.isdisjoint([55]),
        s.issubset(range(10)),
        s.issuperset([1]),
        2 in s,
        "a" not in s,
        frozenset(s) == s,
    )


def change(x, s):
    s.add(4)
    s.discard(1)
    s.discard(77)
    s.remove(2)
    s.update([5, 6], {7})
    s |= {8}
    s &= {3, 4, 5, 8}
    s -= {5}
    s ^= {3, 100}
    return x + len(s)


def change_more(x, s):
    s.intersection_update([1, 2, 5])
    s.difference_update([5], {1})
    s.symmetric_difference_update({2, 6})
    c = s.copy()
    s.clear()
    s.add("only")
    return x + 1, c, sorted(c)


def iterate(x, s):
    total = 0
    for v in s:
        total += v
    return x + total, [v for v in s], list(s), sum(s), max(s), min(s), any(s), tuple(s)


def of_generators(x, s, words):
    s.update(map(int, words), (i * 10 for i in range(2)))
    return x + len(s), sorted(s), {w for w in words} == set(words)


def orders(x):
    s = set()
    for v in (8, 0, 16, 24, 5):
        s.add(v)
    a = list(s)
    s.discard(0)
    s.add(32)
    b = list(s)
    p = s.pop()
    return (
        x + 1,
        a,
        b,
        p,
        list(s),
        list(s | {40, 48}),
        list(s & {8, 16}),
        list({"x": 1, "y": 2}.keys() | {"q"}),
    )


def nested(x):
    s = {frozenset([1, 2]), frozenset()}
    return x + 1, {1, 2} in s, len(s), {(1, 2), (3,)} == {(3,), (1, 2)}


def types_inside(x):
    return x + 1, type(x) in {torch.Tensor, int}, int in {int, str}, isinstance(1, tuple({int, str}))


@pytest.mark.parametrize("fn", [operators, change, change_more, iterate], ids=lambda fn: fn.__name__)
def test_set(fn):
    check(fn, torch.ones(2), {1, 2, 3}, fullgraph=True)


@pytest.mark.parametrize("fn", [build, orders, nested], ids=lambda fn: fn.__name__)
def test_made_inside(fn):
    check(fn, torch.ones(2), fullgraph=True)


def test_order_that_is_not_known_breaks():
    check(types_inside, torch.ones(2), graphs=None, breaks=None)


def test_updated_by_generators():
    check(of_generators, torch.ones(2), {3}, ["1", "2", "1"], fullgraph=True)


def test_other_elements_are_noticed():
    def fn(x, s):
        return x + 1 if 3 in s else x - 1

    check(
        fn, torch.ones(2), {1, 3}, then=[(torch.ones(2), {1, 2}), (torch.ones(2), {1, 2, 3})], recompiles=None
    )


def _fails():
    yield 1
    yield 2
    raise ValueError


def test_what_an_iterable_gave_before_it_failed_stays():
    def fn(x, s):
        t, u, v = set(), {1, 2, 3}, {1, 2, 3}
        for change in (s.update, t.update, u.difference_update, v.symmetric_difference_update):
            try:
                change(_fails())
            except ValueError:
                pass
        return x + 1, t, u, v

    check(fn, torch.ones(2), {5}, fullgraph=True)


def test_no_more_is_taken_than_decides():
    def fn(x, s):
        taken = []
        for check_it in (s.isdisjoint, s.issuperset, {1: 1}.keys().isdisjoint, frozenset(s).issuperset):
            iterator = iter([2, 1, 3, []])
            taken.append((check_it(iterator), list(iterator)))
        return x + 1, taken

    check(fn, torch.ones(2), {1}, fullgraph=True)


def test_a_set_that_another_was_made_of_may_change_behind_the_capture():
    def fn(x, s):
        made = set()
        made.update(s)
        other = {9}
        other |= s
        left = {9, "a"}
        left.difference_update(s)
        return x + 1, made, other, left, set(s), frozenset(s) | {3}

    first = {"a", "b", 5}
    compiled = graphlift.compile(fn, backend="eager", fullgraph=True)
    compiled(torch.ones(2), first)
    first.clear()
    assert compiled(torch.ones(2), {"a", "b", 5})[1:] == fn(torch.ones(2), {"a", "b", 5})[1:]


class Derived(frozenset):
    pass


def test_a_copy_of_a_derived_frozenset_is_another_object():
    check(
        lambda x, s: (x + 1, s.copy() is s, s.copy()), torch.ones(2), Derived([1]), graphs=None, breaks=None
    )


def test_a_pop_without_a_choice_moves_the_place_of_the_next():
    """CPython begins to look behind the place where the last element was taken."""

    def existing(x, values):
        taken = values.pop()
        return x * 2, taken

    def made(x):
        values = {7}
        taken = [values.pop()]
        values.update([1, 2, 3])
        return x * 2, [*taken, values.pop()], values

    def left(values):
        values.update([1, 2, 3])
        return [values.pop() for _ in range(3)]

    compiled, x = graphlift.compile(existing, backend="eager", fullgraph=True), torch.ones(2)
    for number in (2, 4, 2):
        ours, theirs = {number}, {number}
        assert compiled(x, ours)[1] == existing(x, theirs)[1]
        assert left(ours) == left(theirs)
    ours, theirs = graphlift.compile(made, backend="eager", fullgraph=True)(x), made(x)
    assert ours[1:] == theirs[1:]
    assert left(ours[2]) == left(theirs[2])


def test_the_place_of_the_next_pop_outlives_clear():
    def program(x):
        values, taken = {1, 2, 3}, []
        for _ in range(3):
            taken.append(values.pop())
            values.clear()
            values.update([1, 2, 3])
        return x * 2, taken, values.pop()

    check(program, torch.ones(2), graphs=1, breaks=0)
