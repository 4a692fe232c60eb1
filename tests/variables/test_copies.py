"""`copy` and `deepcopy` of user objects: dictionaries, slots, builtin bases, own methods."""

from __future__ import annotations

import copy
import dataclasses
import functools

import pytest
import torch

from graphlift.testing.check import check

X = torch.arange(3.0)


class Slotted:
    __slots__ = ("a", "__b", "c")

    def __init__(self):
        self.a = [1]
        self.__b = 3

    def b(self):
        return self.__b


class Both(Slotted):
    def __init__(self):
        super().__init__()
        self.z = {1: 2}


class Stated:
    def __getstate__(self):
        return 5

    def __setstate__(self, state):
        self.state = state


class Empty:
    pass


class Pair(tuple):
    pass


class Items(list):
    pass


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: int
    b: list


def slotted(x):
    both = Both()
    flat, deep = copy.copy(both), copy.deepcopy(both)
    same = flat.a is both.a, deep.a is both.a, flat.z is both.z, deep.z is both.z
    return (
        x + 1,
        same,
        deep.b(),
        hasattr(flat, "c"),
        flat,
        deep,
        both.__reduce_ex__(2)[2],
        Slotted().__reduce_ex__(4),
    )


def with_methods(x):
    return (
        x + 1,
        copy.copy(Stated()).state,
        copy.deepcopy(Stated()),
        copy.copy(Empty()),
        Empty().__reduce_ex__(2)[2],
    )


def of_builtins(x):
    pair, items = Pair([1, [2]]), Items([1, [2]])
    pair.q, items.w = 3, 4
    deep = copy.deepcopy(items)
    return x + 1, copy.copy(pair), copy.deepcopy(pair), copy.copy(pair).q, deep, deep[1] is items[1], deep.w


def frozen(x):
    one = Frozen(1, [2])
    deep = copy.deepcopy(one)
    return x + 1, copy.copy(one), copy.copy(one).b is one.b, deep, deep.b is one.b


@pytest.mark.parametrize("program", [slotted, with_methods, of_builtins, frozen], ids=lambda f: f.__name__)
def test_program(program):
    check(program, X)


class Bound(functools.partial):
    """A class made from one in C that has fields and a `__reduce__` of its own."""


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy], ids=lambda how: how.__name__)
def test_objects_with_fields_in_c(how):
    def program(x, how):
        made = Bound(int, "11", base=2)
        made.note = []
        same = how(made)
        return x + 1, same(), same.args, same.keywords, same.note is made.note, same.note

    check(program, torch.ones(2), how, graphs=None, breaks=None, recompiles=None, warm=False)


def test_the_state_of_objects_with_fields_in_c():
    def program(x):
        made = Bound(int, "11")
        return x + 1, made.__reduce_ex__(4)[:2], made.__reduce__()[:2]

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None, warm=False)
