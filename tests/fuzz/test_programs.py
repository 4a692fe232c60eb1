"""Random programs do compiled what they do plainly; those that once did not are run again."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import running
from fuzz.programs import Settings, program, written
from fuzz.running import Result, run, settle_line
from fuzz.shrinking import shrunk
from graphlift.testing.check import observed

HERE = Path(__file__).parent

#: Programs of the suite: numbers from 0 on, in so many tests of so many programs.
TESTS, PROGRAMS = 10, 50

#: Numbers of programs that were different once.
SEEDS = [int(line.split("#")[0]) for line in (HERE / "seeds").read_text().splitlines() if line.strip()]


def told(number: int, result: Result) -> str:
    """What is said of a program that differs."""
    return "\n".join([f"program {number} (make fuzz SEED={number} COUNT=1 shrinks it):", *result.differences])


@pytest.mark.parametrize("test", range(TESTS))
def test_programs(test: int) -> None:
    numbers = range(test * PROGRAMS, (test + 1) * PROGRAMS)
    results = {number: run(program(number)) for number in numbers}
    different = [told(number, result) for number, result in results.items() if result.differences]
    assert not different, "\n".join(different)
    assert sum(result.graphs > 0 for result in results.values()) > PROGRAMS // 2  # else nothing is proved
    assert sum(result.whole for result in results.values()) > PROGRAMS // 2


def test_programs_that_were_different_once() -> None:
    results = {number: run(program(number)) for number in SEEDS}
    different = [told(number, result) for number, result in results.items() if result.differences]
    assert not different, "\n".join(different)


@settings(max_examples=10, derandomize=True, database=None, deadline=None)
@given(st.randoms(use_true_random=False))
def test_programs_of_hypothesis(chance: random.Random) -> None:
    """Where Hypothesis chooses, it can also make smaller what it found."""
    result = run(written(chance))
    assert not result.differences, result.differences


def test_a_program_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PATIENCE", 0.3)
    text = """\
import torch

def main(x):
    while True:
        try:
            x = x + 1
        except Exception:
            pass

def steps():
    yield (torch.ones(2),)
"""
    result = run(text)
    assert result.endless == 1 and not result.differences and not result.calls


def test_a_number_always_gives_the_same_program() -> None:
    assert program(7) == program(7)
    assert program(7) != program(8)


def test_the_settings_are_read_from_the_text() -> None:
    settings = Settings(dynamic=False, guards=True, cut=10, choice=3)
    assert Settings.of(settings.line() + "x = 1\n") == settings
    assert Settings.of("x = 1\n") == Settings()


WRONG = """\
import torch

class Box:
    n = 1

items = []

def main(x, box):
    y = x + box.n
    {effect}
    return y

def steps():
    box = Box()
    unused = 3
    yield (torch.ones(3), box)
    box.n = 5
    yield (torch.ones(3), box)
"""

#: Statements that do something else in a compiled run, and where that is to be seen.
EFFECTS = {
    "items.append(3 if torch.compiler.is_compiling() else 4)": "globals",
    "y = y if torch.compiler.is_compiling() else y + 1": "result",
    "Box.n = 7 if torch.compiler.is_compiling() else 8": "Box",
    "box.m = 7 if torch.compiler.is_compiling() else 8": "arguments",
    "print(1 if torch.compiler.is_compiling() else 2)": "printed",
    "assert torch.compiler.is_compiling()": "error",
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_difference_is_seen(effect: str) -> None:
    result = run(WRONG.format(effect=effect))
    assert result.differences
    assert EFFECTS[effect] in result.differences[0]


def test_equal_runs_have_no_differences() -> None:
    result = run(WRONG.format(effect="box.n += 1"))
    assert not result.differences
    assert (result.calls, result.errors) == (2, 0)
    assert result.graphs > 0


def test_a_failing_program_is_made_small() -> None:
    text = WRONG.format(effect="y = y if torch.compiler.is_compiling() else y + 1\n    print(box)")
    small = shrunk(text, seconds=20)
    assert "is_compiling" in small
    assert "items" not in small
    assert "unused" not in small
    assert "print" not in small
    assert run(small).differences


UNBOUND = """\
import torch

def main(x, n):
    if n:
        m = 1
    y = n
    m += x
    return y

def steps():
    for _ in range(20):
        yield (torch.ones(3), 0)
"""


def test_where_an_unbound_local_is_told_does_not_depend_on_how_often_code_has_run() -> None:
    result = run(UNBOUND)
    assert (result.calls, result.errors) == (20, 20)
    assert not result.differences


def test_another_line_of_an_unbound_local_stays_a_difference() -> None:
    namespace: dict[str, Any] = {}
    exec("def program(n):\n    if n:\n        m = 1\n    y = n\n    return y + m", namespace)
    outcome = observed(namespace["program"], (0,))
    assert outcome.frames[-1][1] == 5
    wrong = outcome.frames[-1] = ("<string>", 3, "program")
    settle_line(outcome)
    assert outcome.frames[-1] == wrong
