"""Lists and tuples: what captured programs do to them is what plain Python does."""

from __future__ import annotations

from collections import namedtuple
from typing import NamedTuple

import pytest
import torch

import graphlift
from graphlift.testing.check import check

Point = namedtuple("Point", "x y")


class Typed(NamedTuple):
    a: int
    b: str = "b"

    def total(self):
        return self.a + len(self.b)


def build(x):
    l = [1, 2, x, (3, [4])]
    return l, l[3][1], x + 1


def append_extend(x, l):
    l.append(5)
    l.extend([6, 7])
    l.extend(v * 2 for v in l[:2])
    l += (8, 9)
    l.insert(0, "first")
    l.insert(-1, "almost")
    l.insert(100, "last")
    return x * len(l)


def remove_pop(x, l):
    a = l.pop()
    b = l.pop(0)
    l.remove(2)
    return x + a + b, l.count(3), [3].index(3)


def slices(x, l):
    a = l[1:], l[:-1], l[::2], l[::-1], l[5:2:-1], l[-3:], l[100:], l[2:2]
    l[1:3] = "abc"
    l[::2] = [0] * len(l[::2])
    del l[0]
    del l[1:3]
    l[2:0] = [True]
    del l[::-2]
    return x + 1, a


def negative(x, l):
    l[-1] = l[-2] * 10
    return x + l[-1], l


def in_place_operators(x, l):
    m = l
    l += [1]
    l *= 2
    return x + 1, m is l, l


def plus_times(x, l):
    return x + 1, l + [1], l * 2, 2 * l, l * 0, l * -1, (1, 2) + (3,), (1,) * 3, [x] * 2


def comparison(x, l):
    return (
        x + 1,
        l == [1, 2, 3],
        l != [1],
        l < [1, 3],
        l <= l,
        [1, 2] > [1],
        (1, "a") < (1, "b"),
        [1] == (1,),
        l == None,
    )


def contains(x, l):
    return x + 1, 2 in l, "a" in l, 9 not in l, (1, 2) in [(1, 2)], 1.0 in l, True in l


def sorting(x, l):
    l.sort(reverse=True)
    a = list(l)
    l.sort(key=lambda v: v % 3)
    b = sorted(l), sorted(["b", "a"], key=str.upper), sorted([(2, "a"), (1, "b")])
    l.reverse()
    return x + 1, a, b


def torch_result(x):
    r = torch.max(x, 1)
    values, indices = r
    return r.values, indices, r[0] is values, type(r).__name__, len(r)


def mutate_while_iterating(x, l):
    seen = []
    for v in l:
        seen.append(v)
        if v < 4:
            l.append(v + 2)
        if v == 2:
            l.pop(0)
    return x + sum(seen), seen


def clear_copy(x, l):
    c = l.copy()
    d = l[:]
    l.clear()
    c.append(x)
    return x + 1, c, d, c is not l


def nested_alias(x, l):
    row = [0, x + 1]
    grid = [row, row]
    grid[0][0] = 5
    row.append(1)
    return grid, row, grid[0] is grid[1]


def unpacking(x, l):
    a, b, *c = l
    (d, e), f = (1, 2), 3
    *g, h = l
    first, *mid, last = [1, 2]
    return x + a, b, c, d, e, f, g, h, mid


def self_containing(x):
    l = [x + 1]
    l.append(l)
    return l


def tuples(x, l):
    t = (1, 2, 3, 2)
    return (
        x + 1,
        t.count(2),
        t.index(3),
        t[1:],
        t[-1],
        t[::-1],
        len(t),
        hash((1, "a")) == hash((1, "a")),
        t == (1, 2, 3, 2),
        tuple(l),
        tuple("ab"),
        (),
    )


def named(x, l):
    p = Point(1, y=x)
    q = p._replace(x=2)
    t = Typed(3)
    return (
        p,
        q.x + q.y,
        p._fields,
        p._asdict(),
        t,
        t.total(),
        p[0],
        t == (3, "b"),
        isinstance(p, tuple),
        type(q) is Point,
    )


def named_input(x, p):
    return x * p.x, p.y, p + (1,), p[:1], list(p), p


def star_calls(x, l):
    def f(*a, k=1, **kw):
        return a, k, kw

    return x + 1, f(*l), f(*l, *l, k=3, **{"z": 1}), [*l, *(1, 2)], (*l, 3), {*l, 5} == {1, 2, 3, 5}


def list_of_tensors(x, l):
    parts = []
    for i, v in enumerate(l):
        parts.append(x * v + i)
    return torch.stack(parts), parts[-1]


def comprehension(x, l):
    return (
        x + 1,
        [v * 2 for v in l if v > 1],
        [(a, b) for a in l for b in l if a < b],
        {v: v * v for v in l},
        {v for v in [1, 1]},
    )


def sizes(x):
    s = x.shape
    return (
        x.reshape(s[0] * s[1]),
        s,
        s + (1,),
        s[1:],
        s.numel(),
        len(s),
        s == (2, 3),
        tuple(s),
        list(s),
        repr(s),
        type(s[1:]) is torch.Size,
    )


def texts(x, l):
    return x + 1, str(l), repr((1,)), f"{l} {l[0]:>5} {l!r}", str([x.shape, (1, "a")])


def identity(x, l):
    a = [1]
    return x + 1, a is a, a is [1], l is l, (l, a)[0] is l, a == [1], l is None, () is ()


WITH_LIST = [
    append_extend,
    remove_pop,
    slices,
    negative,
    in_place_operators,
    plus_times,
    comparison,
    contains,
    sorting,
    mutate_while_iterating,
    clear_copy,
    nested_alias,
    unpacking,
    tuples,
    named,
    star_calls,
    list_of_tensors,
    comprehension,
    texts,
    identity,
]


@pytest.mark.parametrize("fn", WITH_LIST, ids=lambda fn: fn.__name__)
def test_list(fn):
    check(fn, torch.ones(2), [1, 2, 3], fullgraph=True)


@pytest.mark.parametrize("fn", [build, self_containing, sizes, torch_result], ids=lambda fn: fn.__name__)
def test_made_inside(fn):
    check(fn, torch.ones(2, 3), fullgraph=True)


def test_named_tuple_input():
    check(named_input, torch.ones(2), Point(2, 3), fullgraph=True)


@pytest.mark.parametrize(
    "source",
    [
        "l[10]",
        "l[-4]",
        "l['a']",
        "l[1.0]",
        "l.pop(9)",
        "[].pop()",
        "l.remove(9)",
        "l.index(9)",
        "(1,).index(2)",
        "l + (1,)",
        "l + 1",
        "(1,) + [1]",
        "l * 'a'",
        "l * 1.5",
        "l < 3",
        "{l: 1}",
        "hash(l)",
        "l()",
        "l.nothing",
        "l[::0]",
        "l.append()",
        "l.append(1, 2)",
        "l.insert(1)",
        "l.sort(1)",
        "l.sort(foo=1)",
        "(1, 2)[5]",
        "len(5)",
        "a, b = l",
        "a, b, c, d = l",
        "a, *b, c, d, e = l",
        "a, b = 5",
        "[1, 'a'].index('b')",
        "sorted([1, 'a'])",
        "for i in 5: pass",
        "l[0:2:2] = [1, 2, 3]",
        "l[0] = 1; l[5] = 2",
        "del l[7]",
        "l[0:1] = 5",
        "-l",
        "list(5)",
        "tuple(1, 2)",
        "list(1, 2)",
        "max([])",
        "min()",
        "max(1, 'a')",
        "sum(['a'], '')",
        "sum([[1]])",
        "any(5)",
        "'a' + 1",
        "1 + 'a'",
        "None + 1",
        "5 in 5",
        "reversed(5)",
        "next(l)",
        "next(iter([]))",
        "zip([1], [1, 2], strict=True).__next__(); list(zip([1], [1, 2], strict=True))",
        "list(zip([1, 2], [1], strict=True))",
        "enumerate()",
        "range('a')",
        "range(1, 2, 0)",
        "int('x')",
        "int([])",
        "float('y')",
        "'abc'['a']",
        "'abc'[5]",
        "{}['k']",
        "{1: 2}.pop(5)",
        "del {}[1]",
        "{}.popitem()",
        "set().pop()",
        "{1}.remove(2)",
        "{[1]}",
        "isinstance(1, 5)",
        "issubclass(1, int)",
        "getattr(l, 'zz')",
        "dict(5)",
        "dict([1])",
        "dict([(1, 2, 3)])",
        "dict(1, 2)",
        "print_ = l.foo",
        "1 // 0",
        "1 % 0",
        "1.0 / 0",
        "2 ** 'a'",
        "1 << -1",
        "divmod(1, 0)",
        "pow(2, 3, 0)",
        "round('a')",
        "abs('a')",
        "chr(-1)",
        "ord('ab')",
        "'%d' % 'a'",
        "'{} {}'.format(1)",
        "'a'.join([1])",
        "'a'.join(5)",
        "' '.join(['a', l])",
    ],
)
def test_errors(source):
    names = {}
    exec(f"def fn(x, l):\n    {source}\n    return x + 1", names)
    check(names["fn"], torch.ones(2), [1, 2, 3], graphs=None, breaks=None)


def error_text(x, l, code):
    try:
        if code == 0:
            l[10]
        elif code == 1:
            l.remove("zz")
        elif code == 2:
            a, b = l
        elif code == 3:
            l + (1,)
        elif code == 4:
            {}["key"]
        elif code == 5:
            "a" + 1
        elif code == 6:
            [].pop()
        elif code == 7:
            int("q")
        elif code == 8:
            l["a"]
        elif code == 9:
            next(iter(()))
    except Exception as e:
        return x + 1, type(e).__name__, str(e), e.args
    return x


@pytest.mark.parametrize("code", range(10))
def test_caught_errors(code):
    check(error_text, torch.ones(2), [1, 2, 3], code, fullgraph=True, recompiles=None)


class Behaves(NamedTuple):
    x: int
    y: int

    def __bool__(self):
        return False

    def __sub__(self, other):
        return "sub", other

    def __neg__(self):
        return "neg"

    def __call__(self):
        return "called"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return "no " + name

    def __index__(self):
        return 1


def test_named_tuples_with_special_methods():
    def program(x, p):
        made = Behaves(3, 4)
        return x + 1, [(bool(q), q - 1, -q, q(), q.z, [5, 6][q], q.x, 4 if q else 5) for q in (p, made)], made

    check(program, torch.ones(2), Behaves(1, 2))


class Vector(tuple):
    def __add__(self, other):
        return Vector(a + b for a, b in zip(self, other, strict=True))

    def __bool__(self):
        return False


class Slotless(tuple):
    __slots__ = ()

    def __len__(self):
        return 7


def test_tuples_of_derived_classes_made_inside():
    def program(x, given):
        a, b = Vector((1, 2)), Slotless((x, 3))
        a.name = "n"
        total = a + Vector((3, 4)) + given
        return x + 1, total, bool(a), type(total) is Vector, a, b, len(b), b[0] is x, a.name, (*b,)

    check(program, torch.ones(2), Vector((5, 6)))


def test_join_of_what_is_no_text():
    def program(x):
        try:
            return ",".join(part for part in ["a", x])
        except TypeError as error:
            return x + 1, str(error)

    check(program, torch.ones(2))


class Derived(tuple):
    pass


def test_a_tuple_that_stays_as_it_is_stays_the_same_object():
    programs = [
        lambda x, p: (p + (), (p + ()) is p, x + 1),
        lambda x, p: (() + p, (() + p) is p, x + 1),
        lambda x, p: (p * 1, (1 * p) is p, x + 1),
        lambda x, p: (p.__add__(()), p.__add__(()) is p, x + 1),
        lambda x, p: (p[:], p[:] is p, p[:] is p[:], x + 1),
        lambda x, p: (p[0:2:1], p[0:2] is p, x + 1),
    ]
    for program in programs:
        for value in ((1, torch.ones(2)), Derived([1, torch.ones(2)])):
            check(program, torch.ones(2), value, recompiles=None)


def test_constants_of_code_are_the_same_objects():
    def constants(x):
        first, second, mixed = (1, 2), (1, 2), (1, "a", (2.0,))
        print("a cut")
        again = (1, 2)
        return first is second, first is again, first, again, mixed, (2.0,), x * 2

    compiled = graphlift.compile(constants, backend="eager")
    got, again, plain = (function(torch.ones(2)) for function in (compiled, compiled, constants))
    assert got[:2] == plain[:2] == (True, True)
    for one, other, third in zip(got[2:6], again[2:6], plain[2:6], strict=True):
        assert one is other is third


@pytest.mark.parametrize("step", [None, -1])
def test_values_for_a_slice_that_change_the_list(step):
    def program(x, step):
        items = [0, 1, 2]

        def values():
            yield from [5, 6, 7]
            items.append(x)

        try:
            items[::step] = values()
            text = None
        except ValueError as error:
            text = str(error)
        return x + 1, text, items

    check(program, torch.ones(2), step, graphs=None, breaks=None, recompiles=None, warm=False)
