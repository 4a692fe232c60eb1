"""Opcode handlers, a family a file; importing this package fills `dispatch.HANDLERS`."""

from __future__ import annotations

from graphlift.interpreter.handlers import (
    attributes,
    calls,
    containers,
    exceptions,
    generators,
    imports,
    iteration,
    jumps,
    names,
    operators,
    stack,
    with_blocks,
)

__all__ = [
    "attributes",
    "calls",
    "containers",
    "exceptions",
    "generators",
    "imports",
    "iteration",
    "jumps",
    "names",
    "operators",
    "stack",
    "with_blocks",
]
