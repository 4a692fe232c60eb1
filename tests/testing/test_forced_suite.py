"""Forced breaks beside checks: every place is tried, and what goes wrong at one is told."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

import graphlift
from graphlift.interpreter.capture import forced_breaks
from graphlift.testing import check
from graphlift.testing.forced_breaks import breakable_steps
from graphlift.testing.forced_suite import ForcedBreaks

X = torch.ones(2)


def helper(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def program(x: torch.Tensor) -> torch.Tensor:
    y = helper(x)
    return y + 1


def tried(forced: ForcedBreaks, **options: Any) -> ForcedBreaks:
    with forced.beside_checks():
        check(program, X, **options)
    return forced


def test_every_place_of_every_frame_is_tried_once() -> None:
    forced = tried(ForcedBreaks())
    places = [*breakable_steps(program.__code__), *breakable_steps(helper.__code__)]
    assert (forced.programs, forced.places) == (1, len(places))
    assert not forced.differences
    assert not forced.whole
    assert tried(forced).places == len(places)


def test_a_sample() -> None:
    assert tried(ForcedBreaks(3)).places == 3


def test_breaks_are_forced_where_none_may_be() -> None:
    assert not tried(ForcedBreaks(), fullgraph=True).differences


def test_what_differs_is_told_with_its_place() -> None:
    def engine(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        compiled = graphlift.compile(fn, **options)
        first = next(breakable_steps(helper.__code__))

        def wrong_in_helper(x: torch.Tensor) -> Any:
            at = forced_breaks()
            return compiled(x) + (at is not None and at(helper.__code__, first))

        return wrong_in_helper

    forced = tried(ForcedBreaks(), engine=engine)
    assert len(forced.differences) == 1
    (text,) = forced.differences
    assert "program" in text
    assert "of helper at" in text
    assert f":{helper.__code__.co_firstlineno + 1}\n" in text
    assert "tensor's values differ" in text


def test_frames_that_cannot_be_cut_are_counted() -> None:
    def cut_beside_a_weak_reference(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
        class Thing: ...

        thing = Thing()
        reference = weakref.ref(thing)
        return x + 1, reference() is thing

    forced = ForcedBreaks()
    with forced.beside_checks():
        check(cut_beside_a_weak_reference, X, graphs=None, breaks=None)
    assert forced.whole
    assert not forced.differences
    assert f"{len(forced.whole)} ran plainly as a whole" in forced.summary()
