"""What a program only finds to be there, without looking into it, is an assumption like any other."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import graphlift

X = torch.arange(4.0)

PRESENT = 1


class Slotted:
    __slots__ = ("mark",)


class Plain:
    mark: int


def _marked(owner: Any) -> Any:
    owner.mark = 1
    return owner


def _has(x: torch.Tensor, owner: Any) -> Any:
    return x * 2, hasattr(owner, "mark")


def _tried(x: torch.Tensor, owner: Any) -> Any:
    try:
        owner.mark  # noqa: B018
    except AttributeError:
        return x * 3, False
    return x * 2, True


MAKERS: list[Callable[[], Any]] = [
    Slotted,
    Plain,
    lambda: torch.ones(3),
    lambda: ModuleType("module"),
    lambda: lambda: None,
]


@pytest.mark.parametrize("make", MAKERS, ids=["slots", "dict", "tensor", "module", "function"])
@pytest.mark.parametrize("program", [_has, _tried])
def test_an_attribute_that_nobody_looks_into(program: Callable[..., Any], make: Callable[[], Any]) -> None:
    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    for owner in (_marked(make()), make(), _marked(make())):
        assert compiled(X, owner)[1] == hasattr(owner, "mark")


@pytest.mark.parametrize("value", [1, [1], torch.ones(1)])
def test_a_key_that_nobody_looks_into(value: Any) -> None:
    def program(x: torch.Tensor, table: dict[str, Any]) -> torch.Tensor:
        try:
            table["key"]
        except KeyError:
            return x * 3
        return x * 2

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X, {"key": value}), X * 2)
    assert torch.equal(compiled(X, {}), X * 3)
    assert torch.equal(compiled(X, {"key": value}), X * 2)


def test_a_global_that_nobody_looks_into() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        try:
            PRESENT  # noqa: B018
        except NameError:
            return x * 3
        return x * 2

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), X * 2)
    former = globals().pop("PRESENT")
    try:
        assert torch.equal(compiled(X), X * 3)
    finally:
        globals()["PRESENT"] = former
    assert torch.equal(compiled(X), X * 2)


def test_a_free_variable_that_nobody_looks_into() -> None:
    variable = 1

    def empty() -> None:
        nonlocal variable
        del variable

    def program(x: torch.Tensor) -> torch.Tensor:
        try:
            variable  # noqa: B018
        except NameError:
            return x * 3
        return x * 2

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), X * 2)
    empty()
    assert torch.equal(compiled(X), X * 3)
