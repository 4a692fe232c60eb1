"""Errors of operations that a class does not have: the same text, naming the same class, as plain Python."""

from __future__ import annotations

import operator
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
import torch

import graphlift


class Tuple(tuple):
    __slots__ = ()


class Text(str):
    __slots__ = ()


class Integer(int):
    pass


class Real(float):
    pass


class Complex(complex):
    pass


class Listed(list):
    pass


class Table(dict):
    pass


class Deque(deque):
    pass


class Plain:
    pass


class OnlySets:
    def __setitem__(self, key, value):
        pass


class OnlyDeletes:
    def __delitem__(self, key):
        pass


class OnlyGets:
    def __getitem__(self, key):
        return key


Pair = namedtuple("Pair", "first")

OBJECTS = [
    Tuple((1,)), Text("a"), Integer(3), Real(2.5), Complex(1j), Listed([1]), Table(a=1), Deque([1]), Plain(),
    OnlySets(), OnlyDeletes(), Pair(1), (1,), "a", b"a", 3, 2.5, None, range(2), frozenset({1}), {1}, Plain,
    int, len, iter([1]), MappingProxyType({1: 2}), {1: 2}.keys(), operator, slice(1), ..., 1j, [1], {},
    OrderedDict(a=1), bytearray(b"a"),
]  # fmt: skip

#: It can be iterated over without end.
ENDLESS = OnlyGets()

KEYS = [0, slice(0, 1), "k", None, 1.5, True, (0,), 10**30, ..., Plain()]


def outcome(operation: Callable[..., Any], *operands: Any) -> tuple[Any, ...]:
    try:
        result = operation(*operands)
    except Exception as error:
        return type(error), str(error)
    return type(result), None


def delete(holder, key):
    del holder[key]


def store(holder, key):
    holder[key] = 1


def read(holder, key):
    return holder[key]


def item(x, operation, holder, key):
    return x + 1, outcome(operation, holder, key)


def fresh(holder):
    return type(holder)(holder) if isinstance(holder, (list, dict, set, deque, bytearray)) else holder


@pytest.mark.parametrize("operation", [delete, store, read])
@pytest.mark.parametrize("holder", [*OBJECTS, ENDLESS], ids=lambda holder: type(holder).__name__)
def test_items(operation, holder):
    compiled = graphlift.compile(item, backend="eager")
    x = torch.ones(1)
    for key in KEYS:
        expected = item(x, operation, fresh(holder), key)[1]
        assert compiled(x, operation, fresh(holder), key)[1] == expected, key


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "len": len,
    "iter": lambda o: list(iter(o)),
    "neg": operator.neg,
    "invert": operator.invert,
    "pos": operator.pos,
    "abs": abs,
    "next": next,
    "in": lambda o: "zz" in o,
    "index": operator.index,
    "add": lambda o: o + Plain(),
    "radd": lambda o: None + o,
    "matmul": lambda o: o @ 1,
    "less": lambda o: o < None,
    "greater": lambda o: 3 >= o,
    "shift": lambda o: o << "a",
    "ror": lambda o: "a" | o,
    "pow": lambda o: pow(o, "a"),
    "divmod": lambda o: divmod(o, "a"),
    "equal": lambda o: (o == None, o != "a"),  # noqa: E711
    "sum": sum,
    "sorted": lambda o: sorted([o, None]),
    "format": lambda o: format(o, "zz"),
    "well formatted": lambda o: format(o, ""),
    "max": max,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operators(name):
    def run(x, holder):
        return x + 1, outcome(OPERATIONS[name], holder)

    x = torch.ones(1)
    for holder in OBJECTS:
        graphlift.reset()
        assert graphlift.compile(run, backend="eager")(x, fresh(holder))[1] == run(x, fresh(holder))[1], (
            holder
        )


class Measured(list):
    """A list that is an index, too."""

    def __index__(self):
        return 1


class Rated(float):
    def __index__(self):
        return 1


class Paired(tuple):
    def __index__(self):
        return 1


@pytest.mark.parametrize(
    "index", [Measured([1, 0]), Rated(1.5), Paired((1, 0))], ids=lambda index: type(index).__name__
)
@pytest.mark.parametrize("x", [torch.tensor(2.0), torch.ones(3, 4)], ids=["scalar", "matrix"])
def test_index_of_a_derived_class_in_a_tensor_operation(index, x):
    operations = [
        lambda y: y[index:],
        lambda y: y[::index],
        lambda y: y[index],
        lambda y: y[..., :index],
        lambda y: y.narrow(0, index, 1),
        lambda y: y.select(0, index),
        lambda y: y.unsqueeze(index),
        lambda y: y.chunk(index),
    ]

    def run(x, operation):
        y = x * 1
        try:
            return y, operation(y)
        except Exception as error:
            return y, type(error), str(error)

    compiled = graphlift.compile(run, backend="eager")
    for operation in operations:
        assert str(compiled(x, operation)) == str(run(x, operation))


IN_PLACE = ["+=", "-=", "*=", "/=", "//=", "%=", "**=", "@=", "<<=", ">>=", "&=", "|=", "^="]
OPERANDS = [1, 2.5, True, "a", None, (1,), 1j, b"a", [1], {1: 2}, {1}, Integer(2), Real(2.5)]


@pytest.mark.parametrize("sign", IN_PLACE)
def test_in_place(sign):
    names: dict[str, Any] = {}
    text = (
        f"def run(x, a, b):\n try:\n  a {sign} b\n except Exception as e:\n  return x + 1, type(e), str(e)\n"
    )
    exec(text + " return x + 1, a, type(a)", names)
    run = names["run"]
    x = torch.ones(1)
    for left in OPERANDS:
        for right in OPERANDS:
            if type(left) is bytes and isinstance(right, (Integer, Real)):
                continue  # the error of bytes names the builtin class
            expected = run(x, fresh(left), fresh(right))
            graphlift.reset()
            found = graphlift.compile(run, backend="eager")(x, fresh(left), fresh(right))
            assert str(found) == str(expected), (left, right)


def test_in_place_with_numbers_that_are_not_fixed():
    def run(x, a, b):
        try:
            a |= b
        except TypeError as error:
            return x + 1, str(error)
        return x + a, ""

    compiled = graphlift.compile(run, backend="eager")
    x = torch.ones(1)
    for a, b in ((1.5, 2.5), (2.5, 3.5), (3.5, 4.5), (1, 2), (4, 8), (5, 16), (1, 2.5)):
        assert compiled(x, a, b) == run(x, a, b)


class Ordered(int):
    def __lt__(self, other):
        return NotImplemented

    def __add__(self, other):
        return NotImplemented


class Shown(int):
    def __repr__(self):
        return "shown"


def test_numbers_of_derived_classes_beside_plain_ones():
    three, half = Integer(3), Real(0.5)

    def run(x, n):
        found = [three * n, n * three, three % n, three < n, n > three, max(three, n), half < n, three == n]
        found += [divmod(2.5, three), divmod(three, 2.5), divmod(three, n)]
        try:
            found.append(Ordered(5) < n)
            found.append(Ordered(5) + n)
        except TypeError as error:
            found.append(str(error))
        return x + 1, found, f"{Shown(1)} {Shown(1):3}", format(Shown(2)), f"{three}", f"{half:.2f}"

    compiled = graphlift.compile(run, backend="eager")
    x = torch.ones(1)
    for n in (5, 6, 7, 2):
        assert compiled(x, n) == run(x, n)


class AsInt(float):
    def __int__(self):
        return 99


class AsIndex(float):
    def __index__(self):
        return 98


class AsFloat(int):
    def __float__(self):
        return 1.5


class Indexed:
    def __index__(self):
        return 2


FORMATTED = [
    ("%d", AsInt(2.5)), ("%5i", AsInt(2.5)), ("%x", AsIndex(2.5)), ("%c", AsIndex(2.5)), ("%.1f", AsFloat(2)),
    ("%g", AsFloat(2)), ("%x", Real(2.5)), ("%d", Integer(3)), ("%.1f", Real(2.5)), ("%s", AsInt(2.5)),
]  # fmt: skip


@pytest.mark.parametrize(("template", "value"), FORMATTED)
def test_formats_ask_numbers_of_derived_classes(template, value):
    def run(x):
        try:
            return x + 1, template % value, (template + "!") % (value,), f"%(k){template[1:]}" % {"k": value}
        except TypeError as error:
            return x + 1, str(error)

    assert graphlift.compile(run, backend="eager")(torch.ones(1)) == run(torch.ones(1))


@pytest.mark.parametrize("start", [Integer(3), Indexed(), AsIndex(2.5), Real(1.0), True])
def test_enumerate_counts_from_an_index(start):
    def run(x):
        try:
            return x + 1, [(i, type(i).__name__) for i, _ in enumerate("ab", start)]
        except TypeError as error:
            return x + 1, str(error)

    assert graphlift.compile(run, backend="eager")(torch.ones(1)) == run(torch.ones(1))
