"""Forced breaks: a function runs with the graph cut before one of its instructions, each in turn.

Results, effects, exceptions and tracebacks must not change. Works on the outermost frame and on the
functions it calls that are inlined.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType

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
