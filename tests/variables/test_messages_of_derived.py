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
