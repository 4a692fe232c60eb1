"""The text of each event, as the logs print it. Pure functions from event to string."""

from __future__ import annotations

import dis
import io
from types import CodeType

from graphlift import events


def place(code: CodeType, line: int | None = None) -> str:
    """Where a function is, in one form everywhere."""
    return f"{code.co_qualname} ({code.co_filename}:{line or code.co_firstlineno})"


def of_step(event: events.Step) -> str:
    """``TRACE LOAD_FAST x []``: the instruction, its argument, the stack before it."""
    return f"TRACE {event.opname} {event.argument} [{', '.join(map(str, event.stack))}]"


def of_break(event: events.GraphBroken | events.LeftToPython) -> str:
    """The whole explanation of a break, or that a frame has too many."""
    if isinstance(event, events.LeftToPython):
        return f"LEFT TO PYTHON: {place(event.code)}: {event.why}"
    return f"GRAPH BREAK: {event.message()}"


def of_guards(event: events.EntryAdded) -> str:
    """The guards of a new entry, one a line."""
    lines = [f"GUARDS of {place(event.code)}: {len(event.guards)}"]
    return "\n  ".join((*lines, *event.lines()))


def of_recompile(event: events.Recompiling | events.GaveUp) -> str:
    """Why earlier entries would not do, or why there will be no more."""
    if isinstance(event, events.GaveUp):
        return "\n  ".join((f"GAVE UP on {place(event.code)}: {event.why}", *event.reasons))
    return "\n  ".join((f"RECOMPILING {place(event.code)}, because", *event.failures))


def of_bytecode(event: events.BytecodeMade) -> str:
    """Original and modified code, disassembled."""
    original, modified = disassembly(event.original), disassembly(event.modified)
    where = place(event.original)
    return f"ORIGINAL BYTECODE of {where}\n{original}\nMODIFIED BYTECODE of {where}\n{modified}"


def of_graph(event: events.GraphFinished) -> str:
    """A graph with its annotated values."""
    return f"GRAPH of {place(event.code)}: {event.graph.node_count} operations\n{event.graph.readable()}"


def of_times(event: events.CaptureFinished | events.CaptureProfiled) -> str:
    """Time by phase, in milliseconds; or by function, with the costs of guards."""
    if isinstance(event, events.CaptureProfiled):
        return "\n  ".join((f"PROFILE of {place(event.code)}", *event.profile.lines()))
    total = sum(event.seconds.values())
    phases = ", ".join(f"{name} {seconds * 1e3:.2f}" for name, seconds in event.seconds.items())
    text = f"TIME {place(event.code)}: {total * 1e3:.2f} ms, {event.outcome}"
    return f"{text} ({phases})" if phases else text


def of_failure(event: events.InternalFailure) -> str:
    """What a user is told about graphlift's own failure."""
    error = f"{type(event.error).__name__}: {event.error}"
    return f"graphlift failed on {place(event.code)} and left it to plain Python: {error}"


def disassembly(code: CodeType) -> str:
    """A code object's instructions without those of the functions inside it."""
    out = io.StringIO()
    dis.dis(code, file=out, depth=0)
    return out.getvalue().rstrip()
