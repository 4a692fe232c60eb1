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

import pytest
import torch

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
        "eval('1')",
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
