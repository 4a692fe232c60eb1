"""Iterators: made inside, partly used, given from outside, returned."""

from __future__ import annotations

import functools
import itertools as it
import operator
from collections import deque

import pytest
import torch

from graphlift.testing.check import check, check_fresh


def lazy_ones(x, l):
    return (
        x + 1,
        list(enumerate(l)),
        list(enumerate(l, 5)),
        list(enumerate(l, start=2)),
        list(zip(l, "abc")),
        list(zip()),
        list(zip(l, l[1:], strict=False)),
        list(map(str, l)),
        list(map(lambda a, b: a + b, l, l)),
        list(filter(None, [0, 1, ""])),
        list(filter(lambda v: v > 1, l)),
        list(reversed(l)),
        list(reversed(range(4))),
        list(reversed("abc")),
        list(iter(l)),
    )


def partly_used(x, l):
    r = reversed(l)
    next(r)
    again = iter(r)
    m = map(lambda v: v + 1, l)
    next(m)
    e = enumerate(l, 5)
    next(e)
    d = iter({"a": 1, "b": 2, "c": 3}.items())
    next(d)
    z = zip(l, l[1:])
    return (
        x + 1,
        again is r,
        next(again),
        list(r),
        iter(m) is m,
        list(m),
        list(m),
        list(e),
        list(d),
        next(z),
        next(iter(z)),
    )


def next_default(x, l):
    i = iter(l)
    return x + next(i), next(i), next(i), next(i, "end"), next(i, None), next(iter({}), 5), list(i)


def sentinel(x, l):
    state = list(l)
    return x + 1, list(iter(state.pop, 1)), state


def stop_iteration(x, l):
    i = iter(l)
    n = 0
    while True:
        try:
            n += next(i)
        except StopIteration as e:
            return x + n, e.args


def returned(x, l):
    a = iter(l)
    next(a)
    b = zip(l, range(3))
    next(b)
    c = map(abs, [-1, -2])
    d = enumerate("ab", 3)
    e = reversed(l)
    next(e)
    f = iter({"k": 1, "q": 2})
    next(f)
    g = filter(None, [0, 1])
    h = iter(range(2, 8, 2))
    next(h)
    i = it.count(3, 2)
    next(i)
    j = it.repeat("r", 2)
    k = it.chain([1], [2])
    return x + 1, tuple(map(list, (a, b, c, d, e, f, g, h, j, k))), next(i)


def really_returned(x, l):
    a = iter(l)
    next(a)
    c = it.cycle([1, 2])
    next(c)
    return x + 1, a, zip(l, l), map(abs, l), enumerate(l), reversed(l), it.chain(l, [1]), it.repeat(3), c


def test_really_returned():
    compiled = __import__("graphlift").compile(really_returned, backend="eager", fullgraph=True)
    for _ in range(2):
        plain, ours = really_returned(torch.ones(2), [1, 2, 3]), compiled(torch.ones(2), [1, 2, 3])
        for p, o in zip(plain[1:], ours[1:]):
            assert type(p) is type(o)
            assert list(it.islice(p, 5)) == list(it.islice(o, 5))


def grows(x, l):
    out = []
    for v in l:
        out.append(v)
        if len(l) < 6:
            l.append(v * 10)
    i = iter(l)
    list(i)
    l.append("late")
    return x + 1, out, list(i)


def tour(x, data):
    a, b = it.tee(iter(data), 2)
    next(a)
    cyc = it.cycle("ab")
    cnt = it.count(5, 2)
    out = [
        list(it.chain([1], (2,), {3: 0})),
        list(it.chain.from_iterable([data, [9]])),
        list(it.accumulate(data)),
        list(it.accumulate(data, operator.mul, initial=2)),
        list(it.product([1, 2], "ab")),
        list(it.product([0, 1], repeat=2)),
        list(it.combinations(data, 2)),
        list(it.permutations([1, 2, 3], 2))[:3],
        list(it.combinations_with_replacement("ab", 2)),
        [(k, list(g)) for k, g in it.groupby([1, 1, 2, 1])],
        [k for k, _ in it.groupby("aabbc")],
        list(it.islice(cnt, 1, 6, 2)),
        next(cnt),
        list(it.islice(data, 2)),
        list(it.islice(data, 1, None)),
        list(it.islice(data, None, None, 2)),
        [next(cyc) for _ in range(3)],
        list(it.zip_longest([1, 2], [3], fillvalue="-")),
        list(it.pairwise(data)),
        list(it.takewhile(lambda v: v < 3, data)),
        list(it.dropwhile(lambda v: v < 2, data)),
        list(it.filterfalse(lambda v: v % 2, data)),
        list(it.starmap(pow, [(2, 3), (3, 2)])),
        list(it.compress("abc", [1, 0, 1])),
        list(it.repeat(7, 2)),
        (next(b), list(a), list(b)),
    ]
    return list(it.accumulate([x, x, x])), out, x * sum(it.chain(data, data))


def reductions(x, l):
    return (
        x + sum(l),
        sum([0.1] * 10),
        sum([[1], [2]], []),
        sum(v for v in l),
        sum([x, x]),
        sum((x,), x),
        any(v > 2 for v in l),
        all([]),
        all(v for v in l),
        min(l),
        max(l),
        min(3, 1, 2),
        max("abc", key=ord),
        min([], default=4),
        max(l, key=lambda v: -v),
        functools.reduce(lambda a, b: a * b, l),
        functools.reduce(operator.add, l, 10),
        functools.reduce(torch.add, [x, x, x]),
        sorted(l, reverse=True),
        sorted(l, key=lambda v: -v),
        min((1, "b"), (1, "a")),
    )


def deques(x, l):
    d = deque(l, maxlen=4)
    d.append(5)
    d.appendleft(0)
    d.extend([7, 8])
    d.rotate(1)
    p, q = d.pop(), d.popleft()
    d.insert(1, "i")
    d.reverse()
    return (
        x + len(d),
        d,
        p,
        q,
        d.maxlen,
        list(d),
        7 in d,
        d[0],
        d == deque([1]),
        d.count(7),
        list(reversed(d)),
        deque("ab") + deque("c"),
    )


def operator_module(x, l):
    get, attr, call = operator.itemgetter(1), operator.attrgetter("shape"), operator.methodcaller("index", 2)
    return (
        operator.add(x, 1),
        operator.mul(x, x),
        get(l),
        operator.itemgetter(0, 2)(l),
        attr(x),
        call(l),
        operator.neg(3),
        operator.contains(l, 2),
        operator.getitem(l, 0),
        operator.not_(0),
        operator.truth([]),
        operator.is_(None, None),
        operator.iadd([1], [2]),
        operator.index(True),
        sorted([(1, "b"), (0, "c")], key=operator.itemgetter(1)),
    )


def ranges(x, n):
    r = range(2, 20, 3)
    return (
        x + len(r),
        r[1],
        r[-1],
        r[1:3],
        5 in r,
        6 in r,
        list(r),
        r == range(2, 18, 3),
        r.index(8),
        r.count(3),
        r.start,
        r.stop,
        r.step,
        range(n)[::-1],
        list(range(3, 0, -1)),
        sum(range(n)),
        bool(range(0)),
        r,
        repr(r),
        tuple(range(2)),
    )


@pytest.mark.parametrize(
    "fn",
    [
        lazy_ones,
        partly_used,
        next_default,
        sentinel,
        stop_iteration,
        returned,
        grows,
        tour,
        reductions,
        deques,
        operator_module,
    ],
    ids=lambda fn: fn.__name__,
)
def test_iterator(fn):
    check(fn, torch.ones(2), [1, 2, 3], fullgraph=True)


def test_ranges():
    check(ranges, torch.ones(2), 4, fullgraph=True)


def outside(x, i):
    a = next(i)
    return x + a, list(i) if a > 100 else next(i)


@pytest.mark.parametrize(
    "make",
    [
        lambda: iter([1, 2, 3, 4]),
        lambda: iter((1, 2, 3, 4)),
        lambda: iter(range(1, 9, 2)),
        lambda: iter({1: 0, 2: 0, 3: 0, 4: 0}),
        lambda: iter({"a": 1, "b": 2, "c": 3, "d": 4}.values()),
    ],
)
def test_iterators_from_outside_are_moved(make):
    compiled = __import__("graphlift").compile(outside, backend="eager", fullgraph=True)
    for used in (0, 1, 0):
        plain, ours = make(), make()
        for _ in range(used):
            next(plain), next(ours)
        for expected, got in zip(outside(torch.ones(1), plain), compiled(torch.ones(1), ours)):
            assert expected == got
        assert list(plain) == list(ours)


def test_generators_of_tensors():
    def fn(x):
        return sum(x * i for i in range(3)), torch.cat([x + i for i in range(2)]), [*map(torch.neg, [x, x])]

    check(fn, torch.ones(2), fullgraph=True)


def test_sum_is_inlined():
    def g(x):
        scale = 2
        parts = []
        for i in range(3):
            parts.append(x * (scale + i))
        return sum(parts)

    graph = check(g, torch.ones(2), fullgraph=True).captured.graphs[0]
    assert graph.count(" * ") == 3 and graph.count(" + ") == 3 and " = 0 + " in graph


def test_existing_deques_can_be_added_to():
    def fn(x, d):
        y = x + 1
        d.append(y)
        d.appendleft("first")
        d.extend([1, 2])
        d += [3]
        return y * 2

    check(fn, torch.ones(2), deque([0], maxlen=5), then=[(torch.ones(2), deque())], fullgraph=True)


def _stops(n):
    if n == 2:
        raise StopIteration("value")
    return n


def test_a_function_that_raises_stop_iteration_ends_its_iterator():
    def fn(x):
        return (
            x + 1,
            list(map(_stops, [1, 2, 3])),
            [n for n in map(_stops, [1, 2, 3])],
            list(filter(_stops, [1, 2, 3])),
            list(it.filterfalse(_stops, [1, 2])),
            sum(map(_stops, [1, 2])),
        )

    check(fn, torch.ones(2), fullgraph=True)


class Overrides(list):
    def __getitem__(self, index):
        raise AssertionError


def test_iterators_of_derived_lists_look_beneath():
    def fn(x, items):
        iterator, inner = items
        return x + 1, next(iterator), [*iterator], [*iter(inner)]

    def make():
        return fn, (torch.ones(2), [iter(Overrides([1, 2])), Overrides([3])])

    check_fresh(make, fullgraph=True)


def _fails(items):
    yield len(items)
    yield len(items)
    raise ValueError


def test_deques_are_extended_one_by_one():
    def fn(x, existing):
        made, left = deque([0]), deque([0])
        for extend, items in ((made.extend, made), (left.extendleft, left), (existing.extend, ())):
            try:
                extend(_fails(items))
            except ValueError:
                pass
        return x + 1, made, left

    check(fn, torch.ones(2), deque([0]), fullgraph=True)


class Restarts:
    """An iterator whose ``__iter__`` begins again, and says so."""

    def __init__(self):
        self.log = []

    def __iter__(self):
        self.at = 0
        self.log.append("iter")
        return self

    def __next__(self):
        self.at += 1
        if self.at > 3:
            raise StopIteration
        return self.at


def test_an_iterator_is_asked_for_its_iterator_as_often_as_by_c():
    programs = [
        lambda x, c: (x + 1, sum(c), sum(c, 1.5)),
        lambda x, c: (x + 1, functools.reduce(operator.add, c), functools.reduce(operator.add, c, 1)),
        lambda x, c: (x + 1, list(it.chain(c, [1])), list(it.chain.from_iterable([c, c]))),
        lambda x, c: (x + 1, list(it.accumulate(c)), list(it.pairwise(c))),
        lambda x, c: (x + 1, list(it.takewhile(lambda v: v < 3, c))),
        lambda x, c: (x + 1, list(it.dropwhile(lambda v: v < 3, c))),
        lambda x, c: (x + 1, list(it.compress(c, [1, 0, 1])), list(it.zip_longest(c, [1]))),
        lambda x, c: (x + 1, any(v > 2 for v in c), all(c), max(c), sorted(c), 2 in c),
    ]
    for program in programs:
        check(program, torch.ones(2), Restarts())


def stop_at_two(item):
    if item == 2:
        raise StopIteration(7)
    return item


def ended_by_what_they_call(x):
    def delegating():
        return (yield from it.starmap(stop_at_two, [(1,), (2,)]))

    pairs = it.starmap(stop_at_two, [(1,), (2,), (3,)])
    seen = [next(pairs)]
    for iterator in (pairs, delegating()):
        try:
            seen += [next(iterator), next(iterator)]
        except StopIteration as error:
            seen.append(error.value)
    return (
        seen,
        list(it.starmap(stop_at_two, [(1,), (2,), (3,)])),
        list(it.takewhile(stop_at_two, [1, 2, 3])),
        list(it.accumulate([1, 2, 3], lambda total, item: stop_at_two(item))),
        list(it.filterfalse(stop_at_two, [0, 1, 2, 3])),
        x + 1,
    )


def test_a_stop_iteration_of_what_they_call_ends_them():
    check(ended_by_what_they_call, torch.ones(2))


def stops_with(value):
    raise StopIteration(value)


class Ends:
    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration("user")

    def __bool__(self):
        raise StopIteration("truth")


def test_the_value_of_the_stop_beneath_is_kept():
    def counted():
        yield 1
        return "generator"

    def delegates(iterator):
        return (yield from iterator)

    def fn(x):
        made = [
            lambda: map(stops_with, [1]),
            lambda: filter(stops_with, [2]),
            lambda: filter(None, [Ends()]),
            lambda: map(abs, map(stops_with, [3])),
            lambda: enumerate(counted()),
            lambda: enumerate(Ends()),
            lambda: zip([1, 2, 3], counted()),
            lambda: zip([], map(stops_with, [4]), strict=True),
            lambda: it.cycle(map(stops_with, [5])),
            lambda: filter(None, map(lambda item: item, Ends())),
        ]
        seen = [list(make()) for make in made]
        for make in made:
            for iterator in (make(), delegates(make())):
                try:
                    for _ in range(4):
                        seen.append(next(iterator))
                except StopIteration as error:
                    seen.append((error.value, next(iterator, "no more")))
        return seen, x + 1

    check(fn, torch.ones(2), fullgraph=True)
