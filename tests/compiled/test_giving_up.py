"""Frames that are cut too often for what their graphs hold run plainly; frames with real graphs never do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import graphlift
from graphlift import _C, config, events
from graphlift.bytecode.decode import decode
from graphlift.compiled.settings import settings_for
from graphlift.testing import CompileCounter, check
from graphlift.testing.forced_breaks import forced_break

ONES = torch.ones(3)


@pytest.fixture
def left() -> Iterator[list[str]]:
    """Names of what is given up."""
    graphlift.reset()
    names: list[str] = []
    with events.subscribed(lambda event: names.append(event.code.co_name), events.LeftToPython):
        yield names


def tiny(x: Any) -> Any:
    return x.sum().item() + 1


def looped(x: Any, turns: int) -> Any:
    total = 0.0
    for _ in range(turns):
        total += x.sum().item()
    return total


def worked(x: Any) -> Any:
    for _ in range(25):
        x = x * 0.5 + 1
    return x


def big_turns(x: Any, turns: int) -> Any:
    for _ in range(turns):
        x = worked(x)
        if x.sum() > 1e9:
            break
        if x.max() > 1e9:
            break
    return x


def big_behind_a_short_loop(x: Any, turns: int) -> Any:
    for _ in range(turns):
        x = x + x.sum().item()
    return worked(x)


def test_a_frame_with_tiny_graphs_is_left_to_python(left: list[str]) -> None:
    compiled = graphlift.compile(tiny, backend="eager")
    for n in range(40):
        assert compiled(ONES * n) == tiny(ONES * n)
    assert left == ["tiny"]


def test_the_report_tells_and_reset_undoes_it(left: list[str]) -> None:
    counter = CompileCounter()
    compiled = graphlift.compile(tiny, backend=counter)
    for _ in range(20):
        compiled(ONES)
    assert all("fewer than 3" in record.left_to_python for record in compiled.report())
    assert "runs plainly since: " in str(compiled.report()[0])
    before = counter.frame_count
    compiled(ONES)
    assert counter.frame_count == before
    graphlift.reset()
    compiled(ONES)
    assert counter.frame_count == 2 * before and compiled.report()[-1].left_to_python is None


def test_a_long_loop_is_left_in_the_middle(left: list[str]) -> None:
    check(looped, ONES, 3000, graphs=None, breaks=None, recompiles=None)
    assert set(left) == {"looped"}


def test_a_loop_that_ends_is_left_after_a_few_calls(left: list[str]) -> None:
    compiled = graphlift.compile(looped, backend="eager")
    for _ in range(20):
        assert compiled(ONES, 3) == 9.0
    cache = _C.cache_of(looped.__code__, settings_for("eager", None, None, False, None))
    assert set(left) == {"looped"} and cache.skip and not cache.entries


def test_big_graphs_stay_whatever_lies_between_them(left: list[str]) -> None:
    check(big_turns, ONES, 100, graphs=None, breaks=None, recompiles=None)
    assert left == []


def test_what_comes_behind_a_loop_is_waited_for(left: list[str]) -> None:
    compiled = graphlift.compile(big_behind_a_short_loop, backend="eager")
    for _ in range(10):
        assert torch.allclose(compiled(ONES, 5), big_behind_a_short_loop(ONES, 5))
    assert left == []


def test_python_that_is_done_at_capture_counts(left: list[str]) -> None:
    def step(n: int) -> int:
        return n + 1

    def busy(x: Any) -> Any:
        first, n = x.sum().item(), 0
        for _ in range(200):
            n = step(n)
        return first + n + x.max().item()

    compiled = graphlift.compile(busy, backend="eager")
    for _ in range(40):
        assert compiled(ONES) == 204.0
    assert left == []


def test_callees_of_a_frame_given_up_keep_their_graphs(left: list[str]) -> None:
    counter = CompileCounter()

    def outer(x: Any) -> Any:
        x.sum().item()
        return helper(x)

    def helper(x: Any) -> Any:
        return graphlift.graph_break() or worked(x)

    compiled = graphlift.compile(outer, backend=counter)
    for _ in range(4):
        compiled(ONES)
    with config.patch(give_up_below=1000):
        for _ in range(60):
            assert torch.equal(compiled(ONES), worked(ONES))
    assert "outer" in left


def test_settings(left: list[str]) -> None:
    with config.patch(give_up_below=0):
        compiled = graphlift.compile(tiny, backend="eager")
        for _ in range(40):
            compiled(ONES)
        assert left == []
    graphlift.reset()
    with config.patch(give_up_after=3):
        compiled = graphlift.compile(tiny, backend="eager")
        for _ in range(3):
            compiled(ONES)
        assert left == []
        compiled(ONES)
        assert left == ["tiny"]


def test_nothing_is_given_up_while_explained_or_cut_by_force(left: list[str]) -> None:
    explanation = graphlift.explain(looped)(ONES, 3000)
    assert explanation.graph_count and left == []
    steps = decode(tiny.__code__)
    step = next(index for index in range(len(steps)) if steps.op(index) == "RETURN_VALUE")
    with forced_break(tiny.__code__, step):
        compiled = graphlift.compile(tiny, backend="eager")
        for _ in range(40):
            assert compiled(ONES) == 4.0
    assert left == []


def test_recursion_through_a_frame_that_is_given_up_meanwhile(left: list[str]) -> None:
    def walk(x: Any, depth: int) -> Any:
        x.sum().item()
        if depth:
            graphlift.graph_break()
            return walk(x, depth - 1) + 1
        return x.sum().item()

    compiled = graphlift.compile(walk, backend="eager")
    for depth in (5, 40, 40, 7):
        assert compiled(ONES, depth) == 3.0 + depth
    assert "walk" in left


def test_what_cannot_be_captured_is_tried_again_after_a_reset() -> None:
    graphlift.reset()
    counter = CompileCounter()

    def sized(x: Any, number: int) -> Any:
        return x * 2 + 1 + len("x" * number)

    compiled = graphlift.compile(sized, backend=counter, dynamic=False)
    for number in range(100):
        assert torch.equal(compiled(ONES, number), sized(ONES, number))
    assert counter.frame_count == config.recompile_limit
    graphlift.reset()
    compiled(ONES, 1)
    assert counter.frame_count == config.recompile_limit + 1
