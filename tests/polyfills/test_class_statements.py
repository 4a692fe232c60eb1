"""The polyfill of class statements, run without the interpreter beside what it stands for."""

from __future__ import annotations

import builtins
import typing

import pytest

from graphlift.polyfills import class_statements as polyfills


class Meta(type):
    @classmethod
    def __prepare__(mcs, name, bases, **kwargs):
        return {"prepared": (name, bases, kwargs)}

    def __new__(mcs, name, bases, names, **kwargs):
        return super().__new__(mcs, name, bases, names)

    def __init__(cls, name, bases, names, **kwargs):
        super().__init__(name, bases, names)


class Lost(type):
    def __new__(mcs, name, bases, names):
        names.pop("__classcell__", None)
        return super().__new__(mcs, name, bases, names)


class Unmapped(type):
    @classmethod
    def __prepare__(mcs, name, bases):
        return 3


class Entries:
    def __mro_entries__(self, bases):
        return [int]


def body_of_one():
    """The function of a class statement."""
    seen = []

    def build(body, name, *bases, **kwargs):
        seen.append(body)
        return builtins.__build_class__(body, name, *bases, **kwargs)

    scope = {"__builtins__": {**vars(builtins), "__build_class__": build}, "__name__": __name__}
    exec("class One:\n    a = 1\n    def f(self): return __class__", scope)
    return seen[0]


@pytest.mark.parametrize(
    ("bases", "keywords"),
    [
        ((), {}),
        ((int,), {}),
        ((typing.Generic[typing.TypeVar("T")],), {}),
        ((), {"metaclass": Meta, "w": 3}),
        ((Meta("Base", (), {}),), {"w": 4}),
        ((), {"metaclass": lambda name, bases, names: (name, bases, sorted(names))}),
        ((), {"metaclass": Lost}),
        ((), {"metaclass": Unmapped}),
        ((), {"metaclass": 3}),
        ((Entries(),), {}),
        ((Meta("A", (), {}), Lost("B", (), {})), {}),
    ],
)
def test_build_class(bases, keywords):
    def outcome(build):
        try:
            made = build()
        except Exception as error:
            return type(error), str(error)
        if not isinstance(made, type):
            return made
        shown = {name: value for name, value in vars(made).items() if not callable(value)}
        shown = {name: value for name, value in shown.items() if name not in ("__dict__", "__weakref__")}
        return (
            type(made),
            made.__bases__,
            shown,
            made.f(object.__new__(made)) is made if bases != (int,) else 0,
        )

    plain = outcome(lambda: builtins.__build_class__(body_of_one(), "One", *bases, **keywords))
    ours = outcome(lambda: polyfills.build_class(body_of_one(), "One", bases, dict(keywords)))
    assert plain == ours
