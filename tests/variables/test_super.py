"""`super()` in its forms: what it finds, what it is, and how it fails."""

from __future__ import annotations

import pytest
import torch

from graphlift.testing.check import check, check_fresh

X = torch.arange(3.0)


def forms(x):
    class Base:
        def f(self):
            return ["Base"]

        @classmethod
        def c(cls):
            return [cls.__name__]

        @staticmethod
        def s():
            return 1

        @property
        def p(self):
            return 2

    class Left(Base):
        def f(self):
            return ["Left", *super().f()]

        @classmethod
        def c(cls):
            return ["Left", *super().c()]

    class Right(Base):
        def f(self):
            return ["Right", *super().f()]

    class Low(Left, Right):
        def f(self):
            return ["Low", *super().f()]

        @classmethod
        def c(cls):
            return ["Low", *super(Low, cls).c()]

        @staticmethod
        def s():
            return super(Low, Low).s() + 1

        @property
        def p(self):
            return super().p + 1

        def about(self):
            bound = super()
            return (
                bound.__class__,
                bound.__thisclass__ is Low,
                bound.__self__ is self,
                bound.__self_class__ is Low,
            )

    low = Low()
    return x + low.p, low.f(), low.c(), Low.c(), Low.s(), super(Left, low).f(), low.about()


def wrong_uses(x):
    found = []

    def without_arguments():
        super()

    def deleted(self):
        del self
        super()

    class Emptied:
        def f(self):
            nonlocal __class__
            del __class__
            super()

    class Missing:
        def f(self):
            return super().missing

        def g(self):
            return super(1, self).f()

    for use in (
        without_arguments,
        lambda: deleted(1),
        Emptied().f,
        Missing().f,
        Missing().g,
        lambda: super(int, int, int),
        lambda: super(1, int),
        lambda: super(int, ""),
        lambda: super(int, k=1),
    ):
        try:
            use()
        except Exception as error:
            found.append((type(error), str(error)))
    return x + 1, found


def of_another_name(x):
    class super:
        text = "quite super"

    class Low:
        def f(self):
            return super().text

    return x + 1, Low().f()


@pytest.mark.parametrize("program", [forms, wrong_uses, of_another_name], ids=lambda f: f.__name__)
def test_program(program):
    check(program, X)


def test_what_stands_for_super_globally_is_called_as_it_was_written():
    def make():
        scope = {}
        exec(
            "class Other:\n"
            "    text = 'other'\n"
            "    def __init__(self, *args): self.args = args\n"
            "class Low:\n"
            "    def f(self): return super().text, super().args\n"
            "    def g(self): return super(1, 2).text, super(1, 2).args\n"
            "super = Other\n"
            "def program(x): return x + 1, Low().f(), Low().g()\n",
            scope,
        )
        return scope["program"], (X,)

    check_fresh(make)
