"""``inspect.signature`` inside captured code, for functions and methods as they come."""

from __future__ import annotations

import functools
import inspect

import pytest
import torch

import graphlift
from graphlift.testing import check


def plain(a, b: int, /, c=1, *rest: str, d, e: "x" = 2, **more) -> float:  # noqa: F821
    pass


def nothing():
    pass


class Model:
    def method(self, x: int, y=2, *, z=3):
        pass

    @classmethod
    def made(cls, q=(1,)):
        pass

    @staticmethod
    def still(q):
        pass

    def all_of(*args):
        pass

    def without_self():
        pass


@functools.wraps(plain)
def wrapped(*args):
    pass


MODEL = Model()
SUBJECTS = [
    plain, nothing, MODEL.method, Model.made, Model.still, Model.method, MODEL.all_of, MODEL.without_self,
    wrapped, functools.partial(plain, 1), lambda x, y=None: 0, Model, torch.nn.Linear(2, 2).forward, len, 3,
]  # fmt: skip


def ask(x, subject):
    try:
        found = inspect.signature(subject)
    except (TypeError, ValueError) as error:
        return x + 1, type(error), str(error)
    parameters = [
        (p.name, p.kind, p.default, p.annotation, type(p), str(p)) for p in found.parameters.values()
    ]
    return (
        x + len(found.parameters),
        str(found),
        parameters,
        found.return_annotation,
        type(found.parameters),
        found == inspect.signature(subject),
        hash(found) == hash(inspect.signature(subject)),
        list(found.bind_partial().arguments),
    )


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_it_is_that_of_plain_python(subject):
    x = torch.ones(2)
    expected = ask(x, subject)
    found = graphlift.compile(ask, backend="eager")(x, subject)
    assert str(found) == str(expected)
    assert found[1:] == expected[1:] or callable(expected[1])


def test_a_signature_leaves_captured_code():
    def leave(x):
        return x + 1, inspect.signature(plain)

    found = graphlift.compile(leave, backend="eager")(torch.ones(1))[1]
    assert found == inspect.signature(plain) and repr(found) == repr(inspect.signature(plain))
    assert found.bind(1, 2, d=3).arguments == {"a": 1, "b": 2, "d": 3}


def test_a_method_is_captured_in_one_graph():
    def count(x):
        return x + len(inspect.signature(MODEL.method).parameters)

    check(count, torch.ones(1), fullgraph=True)


def test_what_a_signature_follows_from_may_change_between_calls():
    def subject(a, b):
        pass

    def read(x):
        return x + 1, str(inspect.signature(subject))

    def with_code():
        subject.__code__ = (lambda a: 0).__code__

    def with_signature():
        subject.__signature__ = inspect.signature(plain)

    def with_wrapped():
        del subject.__signature__
        subject.__wrapped__ = nothing

    def with_defaults():
        del subject.__wrapped__
        subject.__defaults__ = (5,)

    def with_other_defaults():
        subject.__defaults__ = (6,)

    def with_annotations():
        subject.__annotations__["a"] = int

    def with_other_annotations():
        subject.__annotations__ = {"a": str, "return": None}

    def with_too_many_defaults():
        subject.__defaults__ = (1, 2, 3)

    compiled = graphlift.compile(read, backend="eager")
    x = torch.ones(1)
    changes = [
        with_code, with_signature, with_wrapped, with_defaults, with_other_defaults, with_annotations,
        with_other_annotations, with_too_many_defaults,
    ]  # fmt: skip
    assert compiled(x) == read(x)
    for change in changes:
        change()
        assert compiled(x) == read(x), change.__name__


def test_what_the_program_wrote_inside_counts():
    def subject(p, q=2) -> int:
        pass

    def without_annotations(x):
        del subject.__annotations__
        return x + 1, str(inspect.signature(subject))

    def with_many_defaults(x):
        subject.__defaults__ = (1, 2, 3, 4)
        try:
            return x + 1, str(inspect.signature(subject))
        finally:
            subject.__defaults__ = (2,)

    for run in (without_annotations, with_many_defaults):
        subject.__annotations__ = {"return": int}
        expected = run(torch.ones(1))
        subject.__annotations__ = {"return": int}
        assert graphlift.compile(run, backend="eager")(torch.ones(1)) == expected


def test_annotations_that_are_taken_away():
    def subject(p) -> int:
        pass

    def run(x, how):
        if how == "deleted":
            del subject.__annotations__
        else:
            subject.__annotations__ = None
        found = subject.__annotations__
        found["p"] = str
        return x + 1, dict(subject.__annotations__), found is subject.__annotations__

    for how in ("deleted", "none"):
        expected = run(torch.ones(1), how)
        assert graphlift.compile(run, backend="eager")(torch.ones(1), how) == expected
        assert subject.__annotations__ == {"p": str}


class Answering(dict):
    def get(self, key, default=None):
        return "mine"


def test_dictionaries_with_ways_of_their_own():
    def keyed(*, p=1):
        pass

    keyed.__kwdefaults__ = Answering(p=1)

    def run(x):
        return x + 1, str(inspect.signature(keyed))

    assert graphlift.compile(run, backend="eager")(torch.ones(1)) == run(torch.ones(1))


def test_parts_of_the_module_that_are_replaced(monkeypatch):
    def subject(p: int, q):
        pass

    class Other(inspect.Parameter):
        def __str__(self):
            return "other"

    def run(x):
        return x + 1, str(inspect.signature(subject))

    compiled = graphlift.compile(run, backend="eager")
    x = torch.ones(1)
    assert compiled(x) == run(x)
    monkeypatch.setattr(inspect.Signature, "_parameter_cls", Other)
    assert compiled(x) == run(x) == (x + 1, "(other, other)")
    monkeypatch.undo()
    monkeypatch.setattr(inspect, "get_annotations", lambda *args, **kwargs: {"p": "patched"})
    assert compiled(x) == run(x)
    monkeypatch.undo()
    assert compiled(x) == run(x)


@pytest.mark.parametrize("name", ["if", "1x", "a b"])
def test_names_that_no_parameter_may_have(name):
    def subject(a, b):
        pass

    subject.__code__ = subject.__code__.replace(co_varnames=(name, "b"))

    def run(x):
        try:
            return x + 1, str(inspect.signature(subject))
        except ValueError as error:
            return x + 1, str(error)

    assert graphlift.compile(run, backend="eager")(torch.ones(1)) == run(torch.ones(1))


@pytest.mark.parametrize("name", ["_POSITIONAL_OR_KEYWORD", "_empty"])
def test_constants_of_the_module_that_are_replaced(monkeypatch, name):
    def subject(a, b=2):
        pass

    def run(x):
        return x + 1, str(inspect.signature(subject))

    compiled = graphlift.compile(run, backend="eager")
    assert compiled(torch.ones(1)) == run(torch.ones(1))
    other = inspect._POSITIONAL_ONLY if name[1] == "P" else type("Other", (), {})
    monkeypatch.setattr(inspect, name, other)
    assert compiled(torch.ones(1)) == run(torch.ones(1))
    monkeypatch.undo()
    assert compiled(torch.ones(1)) == run(torch.ones(1))
