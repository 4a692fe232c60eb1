"""staticmethod and classmethod objects as values: what they take over from what they wrap."""

from __future__ import annotations

import torch

from graphlift.testing import check


def test_attributes_are_taken_over_when_the_wrapper_is_made() -> None:
    def program(x):
        def function(a: int):
            "What it does."

        wrappers = staticmethod(function), classmethod(function)
        function.__name__ = "renamed"
        shown = [(w.__name__, w.__doc__, w.__qualname__, w.__module__, dict(w.__dict__)) for w in wrappers]
        return x + 1, shown, wrappers[0].__annotations__ is function.__annotations__

    check(program, torch.ones(2), graphs=1, breaks=0)


def test_what_has_no_name_gives_none() -> None:
    def program(x):
        wrapper = staticmethod(None)
        shown = dict(wrapper.__dict__)
        wrapper.more = 42
        return x + 1, shown, dict(wrapper.__dict__), hasattr(staticmethod(3), "__name__")

    check(program, torch.ones(2), graphs=1, breaks=0)


def test_a_wrapper_that_is_handed_out_has_its_own_attributes() -> None:
    def program(x):
        def function(self, a=2):
            return a

        wrapper = staticmethod(function)
        del wrapper.__doc__
        wrapper.__name__ = "other"
        return x + 1, wrapper, vars(wrapper), wrapper.__wrapped__ is function

    check(program, torch.ones(2), graphs=1, breaks=0)


def test_those_that_a_class_statement_makes_have_none() -> None:
    def program(x):
        class Made:
            def __new__(cls):
                return object.__new__(cls)

            def __init_subclass__(cls):
                pass

            @staticmethod
            def named():
                pass

        return x + 1, [list(vars(vars(Made)[name])) for name in ("__new__", "__init_subclass__", "named")]

    check(program, torch.ones(2), graphs=1, breaks=0)


def test_a_class_method_of_what_cannot_be_called() -> None:
    def program(x):
        class Made:
            number = classmethod(1)

        bound = Made.number
        try:
            bound()
        except TypeError as error:
            return x + 1, str(error), type(bound).__name__

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None, warm=False)
