"""What a call was given is let go with the call, without help from the garbage collector."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import graphlift


class Table(dict[str, Any]):
    pass


class Holder:
    def __init__(self) -> None:
        self.table = Table()


def _listed(x: torch.Tensor, holder: Any) -> torch.Tensor:
    parts = [x, holder]
    return parts[0] + 1


def _keyed(x: torch.Tensor, holder: Any) -> torch.Tensor:
    table = {"x": x, 1: holder}
    return table["x"] + 1


def _closed_over(x: torch.Tensor, holder: Any) -> torch.Tensor:
    kept = lambda: holder  # noqa: E731
    kept()
    return x + 1


def _iterated(x: torch.Tensor, holder: Any) -> torch.Tensor:
    for _, _ in zip(range(2), [x, holder], strict=True):
        pass
    return x + 1


def _handled(x: torch.Tensor, holder: Any) -> torch.Tensor:
    with contextlib.suppress(ValueError):
        holder.x = x
        raise ValueError(holder)
    return x + 1


def _raising(x: torch.Tensor, holder: Any) -> None:
    raise KeyError("always")


def _of_a_derived_table(x: torch.Tensor, holder: Any) -> torch.Tensor:
    table = Table(x=x)
    table["holder"] = holder
    holder.table["name"] = x
    return table["x"] + 1


@pytest.mark.parametrize(
    "program", [_listed, _keyed, _closed_over, _iterated, _handled, _raising, _of_a_derived_table]
)
def test_what_a_capture_met_is_let_go(program: Callable[..., Any]) -> None:
    compiled = graphlift.compile(program, backend="eager")
    x, holder = torch.ones(3), Holder()
    kept = weakref.ref(x), weakref.ref(holder), weakref.ref(holder.table)
    gc.disable()
    try:
        with contextlib.suppress(KeyError):
            compiled(x, holder)
        del x, holder
        assert [reference() for reference in kept] == [None, None, None]
    finally:
        gc.enable()


def cut(x):
    if x.sum() > 100:
        return x * 2
    return x + 1


def test_the_input_of_a_frame_that_is_cut():
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(3)
        watched = weakref.ref(x)
        graphlift.compile(cut, backend="eager")(x)
        del x
        assert watched() is None
    finally:
        gc.enable()
