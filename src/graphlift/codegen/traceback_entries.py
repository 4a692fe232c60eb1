"""Traceback entries for frames of the program that were interpreted and never ran.

An error that a graph raises is shown at the operation's place in the user's source: each frame on the way
there gets an entry of its own (`tracebacks`).
"""

from __future__ import annotations

import weakref
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, NamedTuple

from graphlift.bytecode.decode import decode
from graphlift.codegen import tracebacks

_OURS = str(Path(__file__).resolve().parent.parent)


class Place(NamedTuple):
    """A place in the user's program.

    Attributes:
        code: the code, held weakly, for it may hold what keeps the place.
        offset: byte offset of the instruction.
    """

    code: weakref.ref[CodeType]
    offset: int


def places_of(where: Any) -> tuple[Place, ...]:
    """The frames on the way to a place of a capture, outermost first; polyfills are not among them."""
    found = []
    while where is not None:
        code, offset, where = where
        if not code.co_filename.startswith(_OURS):
            found.append(Place(weakref.ref(code), offset))
    return tuple(reversed(found))


def show_at(error: BaseException, places: tuple[Place, ...], rest: TracebackType | None) -> None:
    """Give an error the traceback that leads to `places`, and on to `rest`."""
    for place in reversed(places):
        code = place.code()
        if code is not None:
            index = decode(code).index_at(place.offset)
            rest = tracebacks.entry(tracebacks.place(code, index, index), {}, rest)
    error.__traceback__ = rest
