"""Objects of classes derived from builtin containers: contents, attributes, overridden methods."""

from __future__ import annotations

import collections
import dataclasses

import pytest
import torch

from graphlift.testing.check import check

X = torch.arange(3.0)


class Ordered(collections.OrderedDict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.tag = 1

    def __getitem__(self, k):
        return super().__getitem__(k) if isinstance(k, str) else list(self.values())[k]

    def __setitem__(self, k, v):
        super().__setitem__(k, v)
        super().__setattr__(k, v)


def ordered(x, o):
    n = Ordered(a=1)
    n["b"] = x
    o["z"] = n["b"] + o["k"]
    o.tag = 4
    n.update({"u": 1}, v=2)
    n.move_to_end("a")
    return (
        n,
        n.b,
        n[0],
        len(n),
        "b" in n,
        list(n),
        list(n.items()),
        o.z,
        o[0],
        dict(n),
        n.get("q", 8),
        n == o,
        bool(n),
    )


class Items(list):
    def twice(self):
        return [a * 2 for a in self]


def lists(x, l):
    n = Items([1, 2])
    n.append(x)
    l.append(7)
    l.extra = 1
    m = Items(a for a in (3, 4))
    same = m
    m += [5]
    m *= 1
    assert same is m
    m.pop()
    return (
        n,
        n.twice()[2],
        l[0],
        len(l),
        l.twice(),
        isinstance(n, list),
        l + [1],
        type(l[:1]) is list,
        sorted(m),
        7 in l,
        m == [3, 4],
    )


class Default(collections.defaultdict):
    def extra(self):
        return len(self)


class Missing(dict):
    def __missing__(self, k):
        self[k] = k + 1
        return k + 1


class Loud(dict):
    def __getitem__(self, k):
        return ("loud", super().__getitem__(k))

    def __contains__(self, k):
        return k == "everything" or super().__contains__(k)

    def get(self, k, default=None):
        return "got"


class Iterating(list):
    def __iter__(self):
        return iter(["own"])

    def __len__(self):
        return 5


def dicts(x, m):
    d = Default(list)
    d["a"].append(x)
    loud = Loud(a=1)
    return (
        x + 1,
        d,
        d.extra(),
        d.default_factory is list,
        m[3],
        m,
        m.get(9),
        loud["a"],
        "everything" in loud,
        loud.get("z"),
        {**loud},
        list(loud.items()),
        dict(loud),
        loud.pop("a"),
    )


def overriding(x, it):
    a, *rest = it
    return x + len(it), list(it), [v for v in it], a, rest, tuple(it), it[0], bool(it)


@dataclasses.dataclass
class Output(collections.OrderedDict):
    """As the outputs of model libraries."""

    first: object = None
    second: object = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                self[field.name] = value

    def __getitem__(self, k):
        if isinstance(k, str):
            return dict(self.items())[k]
        return self.to_tuple()[k]

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def to_tuple(self):
        return tuple(self[k] for k in self.keys())


def outputs(x, given):
    made = Output(first=x + 1)
    made.second = 3
    made["first"] = x * 2
    given.second = made.first
    return (
        made,
        made[0],
        made["first"],
        made.to_tuple(),
        made.second,
        given[:],
        list(given),
        isinstance(made, dict),
        len(given),
    )


class Pair(tuple):
    def first(self):
        return self[0]


class Names(set):
    def longest(self):
        return max(self, key=len)


def tuples(x, p):
    a, b = p
    return x * p.first() + a, b, len(p), p == (2, 3), p + (1,), p[::-1]


class Holder(collections.UserDict):
    pass


def user_dict(x, h):
    h["b"] = x
    return x + h["a"], h["b"], len(h), list(h), "a" in h, h.get("q", 3), h.data


@pytest.mark.parametrize(
    ("program", "make"),
    [
        (ordered, lambda: Ordered(k=3)),
        (lists, lambda: Items([3])),
        (dicts, Missing),
        (overriding, lambda: Iterating([1])),
        (outputs, lambda: Output(first=1)),
        (tuples, lambda: Pair((2, 3))),
        (user_dict, lambda: Holder(a=1)),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_program(program, make):
    check(program, X, make())


def test_keys_are_guarded():
    def program(x, d):
        return x * len(d)

    check(program, X, Missing(a=1), then=[(X, Missing(a=1)), (X, Missing(a=1, b=2))], recompiles=1)
