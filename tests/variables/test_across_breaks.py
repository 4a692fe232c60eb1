"""Containers and iterators that are alive when the graph breaks come out as in plain Python."""

from __future__ import annotations

import collections
import functools
import itertools

import pytest
import torch

import graphlift
from graphlift.testing.check import check


def noted(v):
    graphlift.graph_break()
    print("b", v)
    return v


def enumerated(x, l):
    out = []
    for i, v in enumerate(l):
        out.append(noted(v) * 2)
        x = x + i
    return x, out


def comprehended(x, l):
    return x + 1, [noted(v) for v in l], x * 2


def mapped(x, l):
    m = map(noted, l)
    a = next(m)
    x = x + a
    return x * 2, list(m)


def sorted_by_key(x, l):
    s = sorted(l, key=lambda v: noted(-v))
    return x + s[0], s


def dictionary_written(x, d):
    for k, v in d.items():
        noted(k)
        d[k] = v + 1
        x = x * 2
    return x, d


def iterated_by_hand(x, l):
    it = iter(l)
    next(it)
    noted(0)
    x = x + next(it)
    noted(1)
    return x, list(it)


def zipped(x, l):
    z = zip(l, itertools.count(5))
    a = next(z)
    noted(a)
    x = x + next(z)[1]
    return x, list(itertools.islice(z, 1))


def reduced(x, l):
    t = sum(noted(v) for v in l)
    return x + t, any(noted(v) > 1 for v in l), max(l, key=noted)


def set_filled(x, l):
    s = set()
    for v in l:
        s.add(v)
        noted(len(s))
        x = x + 1
    return x, sorted(s), s


def set_iterated(x, l):
    for v in {8, 0, 16}:
        noted(v)
        x = x + v
    return x


def cycled(x, l):
    c = itertools.cycle(l)
    o = [next(c) for _ in range(4)]
    noted(o)
    x = x + next(c)
    return x, [next(c) for _ in range(3)]


def grouped(x, l):
    g = itertools.groupby([1, 1, 2])
    r = []
    for k, v in g:
        r.append((k, list(v)))
        noted(k)
        x = x + k
    return x, r


def default_dict(x, l):
    d = collections.defaultdict(list)
    d["a"].append(x)
    noted(1)
    d["b"].append(x + 1)
    return d, x * 2


def deque(x, l):
    d = collections.deque(l, maxlen=3)
    d.append(9)
    noted(d[0])
    x = x + d.popleft()
    return x, d


class K:
    def __init__(s, v):
        s.v = v

    def __lt__(s, o):
        noted("lt")
        return s.v < o.v

    def __eq__(s, o):
        noted("eq")
        return s.v == o.v

    def __len__(s):
        noted("len")
        return 2

    def __bool__(s):
        noted("bool")
        return False

    def __getitem__(s, i):
        noted(i)
        return s.v[i]

    def __contains__(s, i):
        noted(i)
        return True

    def __iter__(s):
        noted("iter")
        return iter([1, 2])

    def __add__(s, o):
        noted("add")
        return s.v


def compared_objects(x, l):
    y = x * 2
    a = [K(3), K(1)]
    s = min(a).v
    y = y + s
    return y * 2, [k.v for k in sorted(a)], K(1) in a, a == [K(3), K(1)]


def objects_with_protocols(x, l):
    k = K([5, 6])
    y = x + len(k)
    y = y * 2 if k else y * 3
    a, b = k
    y = y + a
    return y, k[1], 3 in k, list(k), k + 1, not k, [*k], bool(k) or 5


def partial_and_filter(x, l):
    p = functools.partial(noted, 3)
    y = x + p()
    r = functools.reduce(lambda a, b: noted(a + b), l)
    return y + r, list(filter(lambda v: noted(v) > 1, l))


def half_used(x, l):
    e = enumerate(l, 1)
    next(e)
    noted(1)
    y = x + next(e)[0]
    r = reversed(l)
    next(r)
    noted(2)
    return y, next(e, "end"), list(r)


def called_until(x, l):
    i = iter(lambda: noted(l.pop()), 1)
    y = x + 1
    o = list(i)
    return y * 2, o, l


def shared_list(x, l):
    m = {"a": [x]}
    v = m["a"]
    noted(1)
    v.append(x + 1)
    return m["a"] is v, len(m["a"]), m


def raised_in_a_loop(x, l):
    try:
        for v in l:
            if v == 2:
                raise KeyError(v)
            x = x + noted(v)
    except KeyError as e:
        return x * 3, e.args


def aliases(x, l):
    a = l
    b = [l, l]
    noted(1)
    b[0].append(x)
    return a is b[1], len(a), b[0] is b[1], x + 1


def tuple_of_containers(x, l):
    t = (x, [x, l])
    noted(1)
    t[1].append(t[0] + 1)
    u, v = t
    return v, u is v[0], v[1] is l


def many_kinds(x, l):
    s = slice(1, None)
    r = range(3)
    k = {"a": 1}.keys()
    it = iter(k)
    z = frozenset([1])
    noted(1)
    return x + 1, l[s], list(r), list(k), list(it), z, s, r


def chained(x, l):
    ch = itertools.chain(l, [9])
    y = x + next(ch)
    noted(1)
    return y, list(ch)


PROGRAMS = [
    enumerated,
    comprehended,
    mapped,
    sorted_by_key,
    dictionary_written,
    iterated_by_hand,
    zipped,
    reduced,
    set_filled,
    set_iterated,
    cycled,
    grouped,
    default_dict,
    deque,
    compared_objects,
    objects_with_protocols,
    partial_and_filter,
    half_used,
    called_until,
    shared_list,
    raised_in_a_loop,
    aliases,
    tuple_of_containers,
    many_kinds,
    chained,
]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_across_breaks(fn):
    values = {"a": 1, "b": 2} if fn is dictionary_written else [3, 2, 1]
    done = check(fn, torch.ones(2), values, graphs=None, breaks=None, recompiles=None)
    assert done.captured.breaks and not done.captured.failures


@pytest.mark.parametrize("values", [range(40), list(range(40)), tuple(range(40)), dict.fromkeys(range(40))])
def test_a_loop_with_a_break_in_each_turn_settles(values):
    def fn(x, values):
        for i in values:
            graphlift.graph_break()
            x = (x + i).sin() * 2 + 1
        return x

    done = check(fn, torch.ones(2), values, graphs=None, breaks=None, recompiles=None)
    assert len(done.captured.graphs) <= 4
