"""Forced breaks: a function runs with the graph cut before one of its instructions, each in turn.

Results, effects, exceptions and tracebacks must not change. Works on the outermost frame and on the
functions it calls that are inlined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

import graphlift
from graphlift import events
from graphlift.bytecode.decode import decode
from graphlift.interpreter.capture import force_breaks

#: Steps that no segment can begin at: what sets a frame up, and what suspends it.
_NOWHERE = frozenset(
    {
        *("RESUME", "COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "YIELD_VALUE", "SEND", "KW_NAMES"),
        "SET_FUNCTION_ATTRIBUTE",  # a function is made in several steps, the first of which is not whole
    }
)


def breakable_steps(code: CodeType) -> Iterator[int]:
    """The steps of a code before which a graph can be cut."""
    decoded = decode(code)
    started = False
    for index in range(len(decoded)):
        op = decoded.op(index)
        started = started or op == "RESUME"
        if started and op not in _NOWHERE:
            yield index


@contextmanager
def forced_break(code: CodeType, index: int) -> Iterator[None]:
    """Captures inside the block cut the graph before this step of this code."""
    former = force_breaks(lambda at, step: at is code and step == index)
    try:
        yield
    finally:
        force_breaks(former)


def check_forced_breaks(
    program: Callable[..., Any], codes: Iterable[CodeType], outcome: Callable[[Callable[..., Any]], Any]
) -> int:
    """Compile `program` with the graph cut before each step of each of `codes`, and run it twice each time.

    Arguments:
        program: what is compiled, with the eager backend.
        codes: the program's own and those of functions that it calls.
        outcome: calls what it is given and tells all that is to agree, by value.

    Returns:
        At how many places the graph was cut.

    Raises:
        AssertionError: an outcome differs from the plain program's, or graphlift failed within.
    """
    expected = outcome(program)
    places = 0
    failures: list[events.InternalFailure] = []
    with events.subscribed(failures.append, events.InternalFailure):
        for code in codes:
            for step in breakable_steps(code):
                graphlift.reset()
                with forced_break(code, step):
                    compiled = graphlift.compile(program, backend="eager")
                    for _ in range(2):
                        found = outcome(compiled)
                        assert found == expected, f"{code.co_name}, step {step}: {found} is not {expected}"
                    assert not failures, f"{code.co_name}, step {step}: {failures[0].error!r}"
                places += 1
    return places
