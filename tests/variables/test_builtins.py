"""Builtin functions, constants and their methods: captured programs compute what plain Python computes."""

from __future__ import annotations

import bisect
import collections.abc
import copy
import functools
import heapq
import math
import numbers
import operator
import typing

import pytest
import torch

import graphlift
from graphlift.testing.check import check


def arithmetic(x, n):
    return (
        x * n,
        n + 1,
        n - 5,
        n * 2.5,
        n / 2,
        n // 2,
        n % 2,
        n**3,
        -n,
        +n,
        ~n,
        n << 2,
        n >> 1,
        n & 2,
        n | 8,
        n ^ 1,
        7 // -2,
        -7 % 3,
        1.5 // 0.5,
        2**-1,
        2j * n,
        divmod(n, 2),
        pow(n, 2),
        pow(3, 4, 5),
        abs(-n),
        round(2.567, 2),
        round(2.5),
        n == 3,
        n != 3,
        n < 4.0,
        n >= 3,
        True + n,
        not n,
        n and "yes",
        n or "no",
        -0.0,
        1e308 * 10,
        float("inf"),
        complex(1, 2),
        (1 + 2j).imag,
    )


def chained(x, n):
    return x + (1 < n < 5), 0 < n > 10, n in (1, 2, 3), n is not None, None is None, n == n is True


def strings(x, s):
    return (
        x + len(s),
        s.upper(),
        s.split(","),
        s[1],
        s[-2:],
        s[::-1],
        "b" in s,
        s + "!",
        s * 2,
        s.replace("a", "x"),
        s.find("c"),
        "-".join([s, "z"]),
        "-".join(c for c in s),
        s.startswith(("a", "q")),
        s.encode(),
        b"ab"[0],
        s.partition(","),
        f"{s:>8}|{s!r}|{3.14159:.2f}|{7:03d}",
        "%s-%d-%5.1f" % (s, 3, 2.5),
        "%(k)s" % {"k": s},
        "{} {0!r} {k[0]}".format if 0 else "{} {k[0]}".format(s, k=[1]),
        s.zfill(9),
        s.title(),
        s < "b",
        ord("a"),
        chr(98),
        hex(255),
        bin(5),
        oct(8),
        ascii("é"),
        repr("it's"),
        str(1.0),
        str(None),
        [c for c in s],
        s.isalpha(),
        str.upper("q"),
        s.count("a"),
        "ab",
        s.strip("a"),
        "{:>{w}}".format("q", w=4),
        str(b"x", "utf8"),
        list(map(str.strip, [" a "])),
        "x".join(map(str, [1, 2])),
    )


def conversions(x, n):
    return (
        x + int("12"),
        int(3.9),
        int("ff", 16),
        int(True),
        float("2.5"),
        float(n),
        bool([]),
        bool("a"),
        bool(n),
        str(n),
        complex(n),
        list("ab"),
        tuple([1]),
        int.from_bytes(b"\x01\x00", "big"),
        (5).bit_length(),
        (2.5).is_integer(),
        (0.5).as_integer_ratio(),
        n.real,
        n.numerator,
        float.fromhex("0x1p3"),
        (258).to_bytes(2, "big"),
        bytes([1, 2]),
        list(b"ab"),
        int(),
        str(),
        float(),
        list(),
        dict(),
        tuple(),
        set(),
    )


def type_checks(x, v):
    return (
        x + isinstance(v, int),
        isinstance(v, (str, int)),
        isinstance(v, (str, (list, float))),
        isinstance(True, int),
        isinstance(x, torch.Tensor),
        type(v) is int,
        type(v) == int,  # noqa: E721
        type(v).__name__,
        issubclass(bool, int),
        issubclass(int, (str, object)),
        isinstance(v, int | str),
        isinstance(None, type(None)),
        isinstance(v, numbers.Number),
        isinstance([], collections.abc.Sequence),
        isinstance({}, collections.abc.Mapping),
        isinstance(v, collections.abc.Iterable),
        callable(len),
        callable(v),
        callable(lambda: 0),
        isinstance(int, type),
        isinstance(v, object),
        isinstance(x, torch.nn.Parameter),
        isinstance((1,), tuple),
        type([]) is list,
        type(type) is type,
        type(x) is torch.Tensor,
    )


class Thing:
    kind = "thing"

    def __init__(self, v):
        self.v = v

    def __len__(self):
        return self.v

    def __getitem__(self, i):
        if i >= self.v:
            raise IndexError(i)
        return i * 10

    def __eq__(self, other):
        return isinstance(other, Thing) and self.v == other.v

    def __hash__(self):
        return hash(self.v)

    def __add__(self, other):
        return ("add", other)

    def __radd__(self, other):
        return ("radd", other)

    def __iadd__(self, other):
        self.v += other
        return self

    def __lt__(self, other):
        return self.v < other.v

    def __contains__(self, item):
        return item == "magic"

    def __index__(self):
        return self.v

    def __bool__(self):
        return self.v != 3

    def __repr__(self):
        return f"Thing({self.v})"

    def __neg__(self):
        return Thing(-self.v)

    def __call__(self, a):
        return a + self.v


class Reflecting(Thing):
    def __radd__(self, other):
        return "first"


def user_operators(x, t):
    l = [t, Thing(1)]
    u = Thing(5)
    u += 2
    return (
        x + len(t),
        list(t),
        t == Thing(2),
        t != Thing(3),
        t + 1,
        1 + t,
        [1] + t,
        t + Reflecting(1),
        sorted([Thing(3), Thing(1)])[0].v,
        "magic" in t,
        5 in t,
        [10, 20, 30][t],
        "ab" * t,
        list(range(t)),
        bool(t),
        not Thing(3),
        repr(t),
        f"{t}",
        str([t]),
        (-t).v,
        t(1),
        Thing(2) in l,
        l.index(Thing(1)),
        max(l).v,
        u.v,
        min(Thing(2), Thing(1)).v,
        list(reversed(t)),
        l.count(Thing(2)),
        [Thing(1)] == [Thing(1)],
        list(map(t, [1])),
    )


def attributes_of(x, t):
    setattr(t, "extra", x + 1)
    got = (
        getattr(t, "extra"),
        getattr(t, "zz", "default"),
        hasattr(t, "v"),
        hasattr(t, "zz"),
        getattr(t, "kind"),
        vars(t)["v"],
    )
    delattr(t, "v")
    return got, hasattr(t, "v")


def mathematics(x, n):
    return (
        x * math.sqrt(4),
        math.pi,
        math.floor(2.7),
        math.ceil(2.1),
        math.trunc(-2.5),
        math.log(n),
        math.gcd(12, 18),
        math.prod([1, 2, 3]),
        math.isclose(0.1 + 0.2, 0.3),
        math.inf,
        math.isnan(math.nan),
        math.factorial(5),
        math.comb(5, 2),
        math.hypot(3, 4),
        math.fsum([0.1] * 3),
        math.copysign(1, -0.0),
        math.pow(2, 3),
    )


def heaps(x, l):
    h = list(l)
    heapq.heapify(h)
    heapq.heappush(h, 0)
    a = heapq.heappop(h), heapq.heappushpop(h, 9), heapq.heapreplace(h, 4)
    b = [1, 3, 3, 5]
    bisect.insort(b, 4)
    return (
        x + 1,
        h,
        a,
        heapq.nlargest(2, l),
        heapq.nsmallest(2, l, key=lambda v: -v),
        b,
        bisect.bisect(b, 3),
        bisect.bisect_left(b, 3),
    )


def compared_by_function(x, l):
    return x + 1, sorted(l, key=functools.cmp_to_key(lambda a, b: b - a))


def copies(x):
    a = {"k": [1, {2}], "t": (x + 1, [3])}
    b = copy.copy(a)
    c = copy.deepcopy(a["k"])
    return a, b["k"] is a["k"], c, c is not a["k"]


CASES = [
    (arithmetic, 3),
    (chained, 3),
    (strings, "a,b,c"),
    (conversions, 3),
    (type_checks, 5),
    (user_operators, Thing(2)),
    (attributes_of, Thing(2)),
    (mathematics, 3),
    (heaps, [5, 2, 8]),
    (compared_by_function, [1, 3, 2]),
]


@pytest.mark.parametrize(("fn", "value"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_builtin(fn, value):
    check(fn, torch.ones(2), value, fullgraph=True)


def test_copies():
    check(copies, torch.ones(2), fullgraph=True)


@pytest.mark.parametrize(
    "source",
    [
        "print(x)",
        "open('/nonexistent') if 0 else print(x)",
        "id(x) == 5",
        "dir(x)",
        "hash(x)",
        "len('a' * 10**7)",
        "(1 << 10**7) > 0",
        "len('%5000000d' % 3)",
        "len(f'{3:>5000000}')",
        "'a'.ljust(5000000)",
    ],
)
def test_breaks(source):
    names = {}
    exec(f"def fn(x):\n    y = x + 1\n    {source}\n    return y * 2", names)
    check(names["fn"], torch.ones(2), graphs=2, breaks=1)


def changing_numbers(x, n, f):
    return (
        x * n + f,
        n % 2,
        sum([n, 1]),
        max(n, 2),
        [0] * 2,
        divmod(n, 3),
        f"{n}",
        n in (4, 5),
        min(f, 1.0),
        math.sqrt(n),
        hash(n),
        {n: 1}[n],
        "%d" % n,
    )


def indices(x, n, f):
    l = [1, 2, 3, 4, 5, 6, 7]
    return (
        x + f,
        l[n],
        l[:n],
        range(n)[-1],
        "abcdefgh"[n],
        [0] * n,
        list(range(n)),
        l.pop(n),
        (n, 1)[0],
        enumerate(l, n).__next__(),
    )


@pytest.mark.parametrize("fn", [changing_numbers, indices])
def test_numbers_that_change(fn):
    calls = [(torch.ones(2), n, n / 2) for n in (4, 5, 6, 4)]
    done = check(fn, torch.ones(2), 3, 1.5, then=calls, recompiles=None, fullgraph=True)
    assert not done.captured.failures and len(done.captured.graphs) > 1


LIMIT = 3


def test_globals():
    def fn(x):
        g = globals()
        return x * g["LIMIT"], "nothing" in g, g.get("LIMIT")

    check(fn, torch.ones(2), fullgraph=True)


def test_parameters_that_can_be_named():
    def fn(x, numbers, half):
        return (
            x + 1,
            sum(numbers, start=10),
            round(number=half, ndigits=1),
            pow(base=2, exp=3),
            pow(2, 3, mod=5),
            bisect.bisect_left(a=numbers, x=2),
            math.prod(numbers, start=4),
            functools.partial(pow, exp=2)(base=3),
        )

    check(fn, torch.ones(2), [1, 2], 1.567, fullgraph=True)


def test_none_in_place_of_arguments_is_not_what_fails():
    def fn(x):
        try:
            return x + 1, max(), sum(1, 2, 3)
        except TypeError as error:
            return x + 2, str(error)

    check(fn, torch.ones(2), fullgraph=True)


class Checks:
    def __instancecheck__(self, instance):
        return instance == 1

    def __subclasscheck__(self, cls):
        return cls is str


def test_checks_against_what_is_no_class():
    def fn(x, checks):
        found = [isinstance(value, checks) for value in (1, 2)] + [isinstance(2, (checks, int))]
        found += [issubclass(cls, checks) for cls in (str, int)]
        for kind in (typing.Sequence, typing.Mapping, typing.Callable, typing.Optional[list], 5, "int"):
            for value in ([1], {}, 1, len):
                try:
                    found.append(isinstance(value, kind))
                except TypeError as error:
                    found.append(str(error))
        return x + 1, found

    check(fn, torch.ones(2), Checks(), graphs=None, breaks=None, recompiles=None)


class Word(str):
    pass


class Count(int):
    def __index__(self):
        return 7


def test_texts_and_numbers_of_derived_classes():
    def fn(x, word, count):
        found = [int(word), float(word), complex(word), "a" + word, word + "a", word in "456"]
        return x + 1, found, [10, 20, 30][count], list(range(count)), "abc"[count], operator.index(count)

    check(fn, torch.ones(2), Word("5"), Count(2), graphs=None, breaks=None, recompiles=None)


def test_an_id_among_numbers():
    def fn(x, seen, by_id, value):
        pairs = {(id(value), 1): 2}
        key = next(iter(by_id))
        return x + 1, id(value) in seen, by_id.get(id(value)), pairs.get((key, 1)), key in {id(value)}

    value = [1]
    for compiled in (fn, graphlift.compile(fn, backend="eager")):
        for other in (value, [2]):
            for seen in (value, other):
                found = compiled(torch.ones(2), {id(seen)}, {id(seen): 3}, other)[1:]
                same = seen is other
                assert found == (same, 3 if same else None, 2 if same else None, same)


def test_methods_of_builtin_objects_are_compared():
    def fn(x, a, b):
        return x + 1, a.append == a.append, a.append == b.append, a.append != a.append, a.append == a.extend

    check(fn, torch.ones(2), [1], [1], fullgraph=True)


class OwnNext:
    def __next__(self):
        return "of the class"


def test_next_is_looked_up_on_the_class():
    a = OwnNext()
    a.__next__ = lambda: "of the instance"
    check(lambda x, a: (x + 1, next(a), next(a, None)), torch.ones(2), a, fullgraph=True)


class NotedIndex:
    def __init__(self, noted, value):
        self.noted, self.value = noted, value

    def __index__(self):
        self.noted.append(self.value)
        return self.value


def test_parts_of_a_slice_are_asked_in_order():
    def fn(x, items, noted):
        start, stop, step = (NotedIndex(noted, value) for value in (0, 3, 2))
        return x + 1, items[start:stop:step]

    check(fn, torch.ones(2), [1, 2, 3, 4], [], fullgraph=True, recompiles=None, warm=False)
