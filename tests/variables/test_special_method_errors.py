"""What Python says of special methods that give the wrong thing, are None, or are missing."""

from __future__ import annotations

import operator

import pytest
import torch

from graphlift.testing.check import check

X = torch.arange(3.0)


class Odd:
    def __len__(self):
        return -1

    def __bool__(self):
        return 3

    def __iter__(self):
        return 3

    def __index__(self):
        return "a"

    __str__ = __repr__ = __format__ = __float__ = lambda self, *args: 3
    __hash__ = __int__ = __index__

    def __contains__(self, item):
        return [1]


class NoneOf:
    __iter__ = __contains__ = __hash__ = __add__ = __len__ = __getitem__ = None


class Bare:
    pass


class OnlyNew:
    def __new__(cls, *args):
        return super().__new__(cls)


class OnlyInit:
    def __init__(self, *args):
        super().__init__(*args)


def outcomes(x, uses):
    found = []
    for use in uses:
        try:
            found.append(use())
        except Exception as error:
            found.append((type(error), str(error)))
    return x + 1, found


def odd_results(x):
    odd = Odd()
    uses = (len, bool, iter, str, repr, hash, format, int, float, operator.index, [1].__getitem__, list)
    return outcomes(x, [lambda use=use: use(odd) for use in uses] + [lambda: 1 in odd, lambda: f"{odd}"])


def none_for_a_method(x):
    none = NoneOf()
    uses = (iter, hash, list, len)
    further = (lambda: 1 in none, lambda: none + 1, lambda: none[0], lambda: operator.add(*none))
    return outcomes(x, [lambda use=use: use(none) for use in uses] + list(further))


def nothing_at_all(x):
    def unpacked():
        a, b = Bare()

    def starred():
        return [*Bare()]

    uses = (lambda: 1 in Bare(), unpacked, starred, lambda: max(Bare()), lambda: dict(Bare()))
    return outcomes(x, uses)


def arguments_too_many(x):
    return outcomes(
        x,
        (
            lambda: Bare(42),
            lambda: Bare().__init__(42),
            lambda: Bare.__new__(Bare, 42),
            lambda: object.__init__(Bare(), 42),
            lambda: OnlyInit(42),
            lambda: OnlyInit().__init__(42),
            lambda: OnlyNew(42).__class__,
        ),
    )


class Failing:
    @property
    def plain(self):
        raise AttributeError("inner")

    @property
    def missing(self):
        return self.nothing


class FailingBehind(Failing):
    def __getattr__(self, name):
        raise AttributeError(name)


def told_what_was_looked_for(x):
    found = []
    for made in (Failing(), FailingBehind()):
        for use in (lambda o: o.plain(), lambda o: o.missing(), lambda o: o.other(), lambda o: o.other):
            try:
                use(made)
            except AttributeError as error:
                found.append((str(error), error.name, error.obj is made))
    return x + 1, found


def chained_descriptors(x):
    class Made:
        @classmethod
        @property
        def both(cls):
            return cls.__name__

        static = classmethod(staticmethod(lambda: 3))

    try:
        return x + 1, Made.both, Made().both, Made.static()
    except TypeError as error:
        return x + 1, str(error)


@pytest.mark.parametrize(
    "program",
    [
        odd_results,
        none_for_a_method,
        nothing_at_all,
        arguments_too_many,
        told_what_was_looked_for,
    ],
    ids=lambda f: f.__name__,
)
def test_program(program):
    check(program, X)


def test_class_methods_of_descriptors():
    # From Python 3.13 on a class method binds what it wraps as a method, which here cannot be called: a cut.
    check(chained_descriptors, X, graphs=None, breaks=None, recompiles=None, warm=False)


def test_a_look_up_without_end():
    class Endless:
        pass

    Endless.__call__ = Endless()

    def program(x):
        try:
            Endless()()
        except RecursionError:
            return x + 1

    check(program, X, graphs=None, breaks=None)
