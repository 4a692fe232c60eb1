"""Objects that note what they are asked: graphlift itself asks them nothing."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

import graphlift
from graphlift.testing import check, check_fresh


class Noting:
    """What it was asked for that a program of these tests does not ask for."""

    asked: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            Noting.asked.append(name)
        return object.__getattribute__(self, name)

    def __get__(self, instance: object, owner: type) -> int:
        return 3

    def __set__(self, instance: object, value: object) -> None:
        pass


class NotingModule(ModuleType):
    __getattribute__ = Noting.__getattribute__


class NotingList(list):
    __getattribute__ = Noting.__getattribute__


class NotingDict(dict):
    __getattribute__ = Noting.__getattribute__


class Holder:
    plain = [Noting()]
    descriptor = Noting()


def _program(x: torch.Tensor, value: Any, listed: Any, table: Any) -> Any:
    y = x + 1
    table[value] = listed
    table["name"] = value
    listed.append(value)
    holder = Holder()
    holder.descriptor = 1
    graphlift.graph_break()
    found = value in listed, value is Holder.plain[0], type(value) is Noting, holder.descriptor
    return y * 2, found, [value, table], {1: value}


def test_neither_capture_nor_guards_nor_reports_ask_an_object_for_its_class() -> None:
    compiled = graphlift.compile(_program, backend="eager")
    inputs: tuple[Any, ...] = Noting(), NotingModule("noting"), Noting()
    Noting.asked.clear()
    for value in inputs * 2:
        compiled(torch.ones(2), value, NotingList(), NotingDict())
        compiled(torch.ones(2), value, [], {})
        str(graphlift.explain(_program)(torch.ones(2), value, NotingList(), {}))
    assert Noting.asked == []


def test_a_proxy_made_inside_is_what_it_claims_to_be() -> None:
    def program(x):
        class Proxy:
            def __init__(self, target):
                self._target = target

            def __getattribute__(self, name):
                if name == "_target":
                    return object.__getattribute__(self, name)
                return getattr(self._target, name)

        class Target:
            pass

        proxy = Proxy(Target())
        return x + 1, isinstance(proxy, Target), isinstance(proxy, int), isinstance(Proxy(3), int)

    check(program, torch.ones(2), graphs=1, breaks=0)


def test_a_class_with_names_that_are_no_strings_is_left_to_python() -> None:
    def build():
        seen = []

        class Key:
            def __hash__(self):
                return hash("wanted")

            def __eq__(self, other):
                seen.append(other)
                return False

        Made = type("Made", (), {Key(): 5, "other": 7})

        def program(x):
            return x + 1, hasattr(Made, "wanted"), Made.other, list(seen)

        return program, (torch.ones(2),)

    check_fresh(build, graphs=None, breaks=None, recompiles=None)


def test_a_class_that_the_frame_holds_is_found_among_the_subclasses_of_its_bases() -> None:
    def program(x):
        class First:
            pass

        class Second:
            pass

        class Both(First, Second):
            pass

        class Other(First, Second):
            pass

        class Last(Both, Other):
            pass

        y = x + 1
        try:
            Both.__bases__ = (Second, First)
        except TypeError as error:
            return y * 2, str(error)

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None, warm=False)
