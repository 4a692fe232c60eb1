"""The profile mode: where capture time went, by phase and function, and what each guard costs."""

from __future__ import annotations

import logging

import pytest
import torch

import graphlift
from graphlift import _C
from graphlift.profile import FunctionClock


@pytest.fixture(autouse=True)
def nothing_known():
    graphlift.reset()


@pytest.fixture
def profiling():
    graphlift.set_logs("time")
    yield
    graphlift.set_logs()


def inner(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n


def program(x: torch.Tensor, n: int) -> torch.Tensor:
    for _ in range(3):
        x = inner(x, n)
    return x


def test_report_tells_functions_and_guards(profiling: None) -> None:
    compiled = graphlift.compile(program, backend="eager")
    compiled(torch.ones(3), 2)
    (record,) = compiled.report()
    profile = record.profile
    by_name = {row.function: row for row in profile.functions}
    assert set(by_name) == {"program", "inner"}
    assert (by_name["inner"].calls, by_name["program"].calls) == (3, 1)
    assert (by_name["inner"].file, by_name["inner"].line) == (__file__, inner.__code__.co_firstlineno)
    whole = by_name["program"].whole
    assert 0 < whole <= record.seconds["translate"]
    assert sum(row.own for row in profile.functions) == pytest.approx(whole)
    assert by_name["inner"].own == by_name["inner"].whole, "it calls nobody"
    assert sorted(row.guard for row in profile.guards) == sorted(record.guards)
    costs = [row.nanoseconds for row in profile.guards]
    assert costs == sorted(costs, reverse=True)
    assert all(0 < cost < 1e6 for cost in costs)
    said = str(record)
    assert "capture time by phase: translate" in said
    assert "inner (" in said and f"guards at each call ({sum(costs):.0f} ns, {len(costs)} guards)" in said


def test_without_the_mode_nothing_is_measured() -> None:
    compiled = graphlift.compile(program, backend="eager")
    compiled(torch.ones(3), 2)
    (record,) = compiled.report()
    assert record.profile is None
    assert record.seconds["translate"] > 0


def test_the_log_says_it(profiling: None, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "graphlift.time"):
        graphlift.compile(program, backend="eager")(torch.ones(3), 2)
    profile, times, *_ = caplog.messages
    assert profile.startswith(f"PROFILE of program ({__file__}:")
    assert "inner (" in profile and " ns  " in profile
    assert times.startswith("TIME program")


def test_explain_tells_it_too() -> None:
    explained = graphlift.explain(program)(torch.ones(3), 2)
    (profile,) = explained.profiles
    assert {row.function for row in profile.functions} == {"program", "inner"}
    assert "capture time by function" in str(explained)
    assert "capture time by function" in explained.to_html()


def test_a_generator_and_a_cut_are_counted(profiling: None) -> None:
    def numbers(x):
        for i in range(3):
            yield x + i

    def broken(x):
        total = 0
        for item in numbers(x):
            total = total + item
        print(total.sum().item())
        return total * 2

    compiled = graphlift.compile(broken, backend="eager")
    compiled(torch.ones(3))
    first = compiled.report()[0].profile.functions
    calls = {row.function.rpartition(".")[2]: row.calls for row in first}
    assert calls["broken"] == 2, "the attempt in one piece, and the one that is cut"
    assert calls["numbers"] >= 8, "each step of the generator"


def test_a_clock_tells_own_time_from_that_of_callees_when_something_is_raised() -> None:
    clock = FunctionClock()

    def follow_inner() -> int:
        raise KeyError

    def follow() -> int:
        with pytest.raises(KeyError):
            clock.run(inner.__code__, follow_inner)
        return 5

    assert clock.run(program.__code__, follow) == 5
    rows = {row.function: row for row in clock.functions()}
    assert rows["program"].whole == pytest.approx(rows["program"].own + rows["inner"].whole)


def test_nodes_are_timed_up_to_one_that_fails() -> None:
    nodes = [("param", -1, 0), ("type_is", 0, int), ("param", -1, 1), ("type_is", 2, str)]
    compiled = _C.GuardProgram(nodes)
    assert len(compiled.profile(program, (1, "a"), 10)) == 4
    assert len(compiled.profile(program, (1, 2), 10)) == 3
    assert all(ns > 0 for ns in compiled.profile(program, (1, "a"), 10))
