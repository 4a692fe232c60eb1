"""What builtins and classes of the library do at their corners: each expression as plain Python has it."""

from __future__ import annotations

import copy
import functools
import itertools
import re
import types
from collections import deque

import pytest
import torch

import graphlift
from graphlift import events
from graphlift.testing import check

LOG = []


class Counted:
    """An iterator that tells what it is asked."""

    def __init__(self, make=int):
        self.count = 0
        self.make = make

    def __iter__(self):
        LOG.append("iter")
        return self

    def __next__(self):
        self.count += 1
        if self.count > 2:
            raise StopIteration
        return self.make(self.count)

    def __length_hint__(self):
        LOG.append("hint")
        return 2


class Sequence:
    def __len__(self):
        LOG.append("len")
        return 2

    def __getitem__(self, index):
        if index > 1:
            raise IndexError
        return index


class Names(type):
    def __init__(cls, name, bases, body):
        super().__init__(name, bases, body)
        cls.tag = name


class Named(metaclass=Names):
    pass


class Bare:
    __slots__ = ()

    @functools.cached_property
    def value(self):
        return 1


def assigned(values, found):
    values[0:0] = found
    return values


def updated(proxy):
    proxy |= {"c": 3}
    return proxy


EXPRESSIONS = {
    "partial of no callable": lambda x: functools.partial(5),
    "cache of no callable": lambda x: functools.cache(5),
    "union of proxies": lambda x: types.MappingProxyType({"a": 1}) | types.MappingProxyType({"b": 2}),
    "union with a dictionary": lambda x: types.MappingProxyType({"a": 1}) | {"b": 2},
    "union of a dictionary": lambda x: {"b": 2} | types.MappingProxyType({"a": 1}),
    "proxy in place": lambda x: updated(types.MappingProxyType({"a": 1})),
    "tensor's operator": lambda x: [x.__add__("a"), x.__radd__("a"), x.__lt__("a"), x.__eq__("a")],
    "metaclass": lambda x: type("Made", (Named,), {}).tag,
    "reverse": lambda x: sorted([2, 1], reverse="a"),
    "reverse is None": lambda x: [2, 1].sort(reverse=None),
    "items of an alias": lambda x: [*list[int]],
    "membership in an alias": lambda x: 2 in list[int],
    "copy of an alias": lambda x: copy.deepcopy(list[int]) == list[int],
    "cached property without a dictionary": lambda x: Bare().value,
    "format of no text": lambda x: format(1, 5),
    "iterator over a tensor": lambda x: type(iter(x)).__name__,
    "matches": lambda x: (type(re.finditer("a", "aa")), [m.span() for m in re.finditer("a", "aba")]),
    "slice": lambda x: assigned([1], Counted()),
    "arguments of starmap": lambda x: list(itertools.starmap(max, [Counted()])),
    "join": lambda x: ",".join(Counted(str)),
    "reversed": lambda x: list(reversed(Sequence())),
    "by index": lambda x: list(iter(Sequence())),
    "length of a deque": lambda x: deque([1], "a"),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expression(name):
    expression = EXPRESSIONS[name]

    def program(x):
        LOG.clear()
        y = x + 1
        try:
            result = expression(x)
        except (TypeError, AttributeError, ValueError) as error:
            result = type(error), str(error)
        return y, result, list(LOG)

    failed = []
    with events.subscribed(failed.append, events.InternalFailure):
        check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)
    assert not failed


def test_an_error_does_not_end_an_iterator_by_index():
    class Fails:
        def __init__(self):
            self.asked = 0

        def __getitem__(self, index):
            self.asked += 1
            if self.asked == 2:
                raise ValueError("once")
            if index > 2:
                raise IndexError
            return index

    def program(x):
        iterator, told = iter(Fails()), []
        for _ in range(6):
            try:
                told.append(next(iterator, "end"))
            except ValueError as error:
                told.append(str(error))
        return x + 1, told, type(iterator).__name__

    check(program, torch.ones(2), graphs=1, breaks=0)


def test_matches_leave():
    def program(x):
        matches = re.finditer("a", "aba")
        return x + 1, next(matches).span(), matches

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    (_, first, ours), (_, expected, theirs) = compiled(torch.ones(2)), program(torch.ones(2))
    assert first == expected
    assert type(ours) is type(theirs)
    assert [match.span() for match in ours] == [match.span() for match in theirs]


FLOAT8 = torch.ones(2, dtype=torch.float8_e4m3fn)
WEIGHT = torch.ones(2, requires_grad=True)
with torch.inference_mode():
    UNSAVED = torch.ones(2)

FAILING = {
    "a dtype without a kernel": lambda x: FLOAT8 + 1,
    "its sum": lambda x: FLOAT8.sum(),
    "an inference tensor that would be saved": lambda x: WEIGHT * UNSAVED,
    "a histogram of nan": lambda x: torch.histc(x * float("nan")),
}


@pytest.mark.parametrize("name", FAILING)
def test_operations_that_fail_where_rules_know_the_shape(name):
    operation = FAILING[name]

    def caught(x):
        try:
            return operation(x)
        except (RuntimeError, NotImplementedError) as error:
            return type(error)

    def behind_an_effect(x, log):
        y = x + 1
        try:
            operation(x)
            log.append("done")
        finally:
            log.append("end")
        return y

    check(caught, torch.ones(2), graphs=None, breaks=None, recompiles=None)
    check(behind_an_effect, torch.ones(2), [], graphs=None, breaks=None, recompiles=None)


def test_sizes_of_a_gradient_are_none_of_the_inputs():
    def program(w):
        return (w.grad * 2 if w.grad is not None else w * 1).sum(), isinstance(w, torch.nn.Parameter)

    compiled, failed = graphlift.compile(program, backend="eager"), []
    with events.subscribed(failed.append, events.InternalFailure):
        for size in (2, 3, 4):
            weight = torch.nn.Parameter(torch.ones(size))
            for gradient in (None, torch.ones(size)):
                weight.grad = gradient
                assert str(compiled(weight)) == str(program(weight))
    assert not failed
