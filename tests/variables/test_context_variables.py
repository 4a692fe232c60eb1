"""Context variables: read under a guard, set at their place."""

from __future__ import annotations

import contextvars
import threading
from typing import Any

import torch

import graphlift
from graphlift.testing.check import check

SCALE: contextvars.ContextVar[Any] = contextvars.ContextVar("scale", default=3)
UNSET: contextvars.ContextVar[Any] = contextvars.ContextVar("unset")
X = torch.arange(3.0)


def scaled(x: Any) -> Any:
    return x * SCALE.get() + SCALE.get()


def test_a_read_is_captured() -> None:
    check(scaled, X, graphs=1)


def test_each_context_has_its_own() -> None:
    compiled = graphlift.compile(scaled, backend="eager", fullgraph=True)
    for value in (3, 4, 3):
        context = contextvars.copy_context()
        context.run(SCALE.set, value)
        assert torch.equal(context.run(compiled, X), context.run(scaled, X))
    assert torch.equal(compiled(X), scaled(X))
    results = []
    thread = threading.Thread(target=lambda: results.append(compiled(X)))
    thread.start()
    thread.join()
    assert torch.equal(results[0], scaled(X))


def test_a_tensor_in_a_context_variable_is_an_input() -> None:
    def program(x: Any) -> Any:
        return x + SCALE.get()

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    for value in (1.0, 2.0):
        context = contextvars.copy_context()
        context.run(SCALE.set, torch.full((3,), value))
        assert torch.equal(context.run(compiled, X), X + value)
    assert len(compiled.report()) == 1


def test_setting_and_reading_what_is_not_set() -> None:
    def program(x: Any) -> Any:
        token = SCALE.set(5)
        try:
            inside = x * SCALE.get()
        finally:
            SCALE.reset(token)
        try:
            UNSET.get()
        except LookupError:
            inside = inside + 1
        return inside, SCALE.get(), UNSET.get("default"), SCALE.get(7)

    check(program, X, graphs=None, breaks=None)
