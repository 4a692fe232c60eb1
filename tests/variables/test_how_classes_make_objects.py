"""``__new__`` as classes have it: found by name, inherited in C, gone again; layouts that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from graphlift.testing import check


def _said(make: Callable[[], Any]) -> object:
    try:
        return type(make()).__name__
    except TypeError as error:
        return str(error)


def test_a_new_of_another_class_takes_no_effect_on_a_class_that_never_looked_it_up() -> None:
    def program(x):
        class Plain:
            __new__ = list.__new__

        class Listed(list):
            __new__ = object.__new__

        return x + 1, _said(Plain), _said(Listed)

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None, warm=False)


def test_a_class_that_had_a_new_goes_on_looking_it_up() -> None:
    def program(x):
        class Base:
            def __new__(cls, *args):
                raise AssertionError

        class Derived(Base):
            __new__ = object.__new__

            def __init__(self, number):
                self.number = number

        first = _said(lambda: Derived(3))
        del Base.__new__

        class Other(Base):
            def __init__(self, number):
                self.number = number

        return x + 1, first, _said(lambda: Other(3)), _said(lambda: Other.__new__(Other))

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None, warm=False)


class Emptied:
    def __new__(cls, *args: object) -> Emptied:
        raise AssertionError


class BehindEmptied(Emptied):
    def __init__(self, number: int) -> None:
        self.number = number


del Emptied.__new__


def test_a_class_that_had_a_new_before_takes_no_arguments() -> None:
    def program(x):
        bare = object.__new__(BehindEmptied)
        return x + 1, _said(lambda: BehindEmptied(3)), _said(lambda: object.__init__(bare, 1))

    check(program, torch.ones(2), graphs=1, breaks=0)


def test_a_new_that_would_not_lay_the_object_out_is_refused() -> None:
    def program(x):
        class Listed(list):
            def __new__(cls):
                return object.__new__(cls)

        return x + 1, _said(Listed), _said(lambda: object.__new__(list)), _said(lambda: list.__new__(dict))

    check(program, torch.ones(2), graphs=1, breaks=0)
