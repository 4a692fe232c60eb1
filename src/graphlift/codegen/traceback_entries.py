"""Traceback entries for frames of the program that were interpreted and never ran.

An error that a graph raises is shown at the operation's place in the user's source: each frame on the way
there gets an entry of its own, on a frame of a code object that has the user's names and positions.
"""

from __future__ import annotations

import weakref
from inspect import CO_NEWLOCALS, CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType, TracebackType
from typing import Any, NamedTuple

from graphlift import _C
from graphlift.bytecode.decode import decode
from graphlift.bytecode.emit import Emitter, Header, assemble

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
            entry = _entry(code, place.offset)
            rest = TracebackType(rest, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = rest


def _entry(code: CodeType, offset: int) -> TracebackType:
    decoded = decode(code)
    emitter = Emitter()
    emitter.position = decoded.position(decoded.index_at(offset))
    emitter.prologue()
    emitter.load_const(Exception)
    emitter.raise_(1)
    header = Header(
        name=code.co_name,
        qualname=code.co_qualname,
        filename=code.co_filename,
        firstlineno=code.co_firstlineno,
        flags=CO_OPTIMIZED | CO_NEWLOCALS,
    )
    made = assemble(emitter.items, header)
    _C.mark_skip(made)
    raising = FunctionType(made, {})
    try:
        raising()
    except Exception as raised:
        entry = raised.__traceback__
        assert entry is not None and entry.tb_next is not None
        return entry.tb_next
    raise AssertionError("it raises")
