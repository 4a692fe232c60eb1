"""Errors of what is unpacked: at assignments, in displays, at calls."""

from __future__ import annotations

import pytest
import torch

from graphlift.testing.check import check


class Nothing:
    pass


class ByIndex:
    def __getitem__(self, index):
        if index > 1:
            raise IndexError
        return index


class Broken:
    def __iter__(self):
        raise TypeError("mine")


class Keyed:
    def keys(self):
        return ["a"]

    def __getitem__(self, key):
        if key == 2:
            raise IndexError
        return key * 2


class KeysFail:
    def keys(self):
        return self.missing


def f(*args, **kwargs):
    return args, kwargs


def two(value):
    a, b = value
    return a, b


def starred(value):
    a, *b = value
    return a, b


PROGRAMS = {
    "two": two,
    "starred": starred,
    "list": lambda value: [*value],
    "tuple": lambda value: (1, *value),
    "set": lambda value: {*value},
    "dict": lambda value: {"z": 1, **value},
    "call": lambda value: f(*value),
    "call with more": lambda value: f(1, *value, *[2]),
    "call of a method": lambda value: [].append(*value),
    "call of a constant": lambda value: None(*value),
    "keywords": lambda value: f(**value),
    "keywords twice": lambda value: f(a=1, **value),
}
VALUES = {
    "number": 7,
    "none": None,
    "nothing": Nothing(),
    "by index": ByIndex(),
    "broken": Broken(),
    "keyed": Keyed(),
    "keys fail": KeysFail(),
    "function": f,
    "class": Nothing,
    "text": "xy",
    "one": (1,),
    "number keys": {1: 2},
    "mapping": {"a": 2},
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_unpacking(program, value):
    def run(x):
        y = x + 1
        try:
            result = program(value)
        except Exception as error:
            result = type(error), str(error), type(error.__context__), type(error.__cause__)
        return y, result

    check(run, torch.ones(2), graphs=None, breaks=None, recompiles=None)


def test_keys_that_are_no_names_meet_first_in_the_merge():
    def program(x, first, second):
        y = x + 1
        try:
            f(**first, **second)
        except TypeError as error:
            return y, str(error)

    x = torch.ones(2)
    for first, second in (({1: 3}, {1: 5}), ({1: 3}, {2: 5}), ({"a": 1}, {2: 2, "a": 3}), ({"a": 1}, {2: 2})):
        check(program, x, first, second, graphs=None, breaks=None, recompiles=None)
