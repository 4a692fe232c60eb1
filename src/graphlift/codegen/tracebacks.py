"""Tracebacks of exceptions that captured code raised and caught: what they show is what plain Python shows.

A traceback's entry needs a frame. It is the frame of a tiny function with the name, file and positions of the
user's code that has run to its end: nothing of the program's is kept by it. Knows nothing of trackers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from inspect import CO_NEWLOCALS, CO_OPTIMIZED
from opcode import opname
from types import CodeType, FunctionType, TracebackType
from typing import Any

from graphlift import _C
from graphlift.bytecode.decode import scan
from graphlift.bytecode.emit import Emitter, Header, Pools, assemble
from graphlift.codegen.originals import original

#: An entry to be: code whose frame stands for the user's, the instruction shown, and its line.
Place = tuple[CodeType, int, int]

_TRACEBACK: Any = BaseException.__dict__["__traceback__"]


def place(code: CodeType, index: int, last: int) -> Place:
    """The entry of a traceback that shows a step of the user's code.

    Arguments:
        last: the step at which the frame stands, which is behind the one shown where a ``finally`` or an
            ``except`` that did not match came in between.
    """
    source = original(code)
    made = source.made.get(("place", index, last))
    position = source.decoded.position(index)
    if made is None:
        made = source.made["place", index, last] = _frame_code(code, position, source.decoded.position(last))
        _C.mark_skip(made)
    shown = next(raw.offset for raw in scan(made.co_code) if opname[raw.number] == "NOP")
    return made, shown, -1 if position[0] is None else position[0]


def _frame_code(code: CodeType, position: Any, last: Any) -> CodeType:
    """Code that gives its own frame, which stands at `last`, and has a NOP at the position to be shown."""
    header = replace(
        Header.of(code),
        flags=CO_OPTIMIZED | CO_NEWLOCALS,
        argcount=0,
        posonlyargcount=0,
        kwonlyargcount=0,
        varnames=(
            *code.co_varnames,
            *code.co_cellvars,
        ),  # unbound, but suggestions for misspelt names look there
        cellvars=(),
        freevars=(),
    )
    emitter = Emitter()
    emitter.position = position
    emitter.prologue()
    emitter.emit("NOP")
    emitter.position = last
    emitter.prepare_call()
    emitter.load_const(sys._getframe)
    emitter.callable_ready()
    emitter.call(0)
    emitter.return_value()
    return assemble(emitter.items, header, Pools(header))


# --- in the compiled program ------------------------------------------------------------------------


def entry(place: Place, module_globals: dict[str, Any], rest: TracebackType | None) -> TracebackType:
    """A traceback whose first entry shows `place`, before the entries of `rest`."""
    code, instruction, line = place
    return TracebackType(rest, _C.call_on_top(FunctionType(code, module_globals)), instruction, line)


def extend(error: BaseException, places: Sequence[Place], *namespaces: dict[str, Any]) -> BaseException:
    """Put entries in front of an exception's traceback; `namespaces` are the globals of their frames."""
    _TRACEBACK.__set__(error, entries(_TRACEBACK.__get__(error), places, *namespaces))
    return error


def entries(
    trace: TracebackType | None, places: Sequence[Place], *namespaces: dict[str, Any]
) -> TracebackType | None:
    """A traceback with entries in front; `namespaces` are the globals of their frames."""
    for place, module_globals in zip(reversed(places), reversed(namespaces), strict=True):
        trace = entry(place, module_globals, trace)
    return trace


def without(error: BaseException, count: int) -> TracebackType | None:
    """An exception's traceback, less its outermost `count` entries."""
    trace: TracebackType | None = _TRACEBACK.__get__(error)
    for _ in range(count):
        trace = None if trace is None else trace.tb_next
    return trace
