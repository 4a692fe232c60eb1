"""The facts about the Python that is running; the only place that asks which one it is."""

from __future__ import annotations

import sys
from importlib import import_module
from opcode import opmap

from graphlift.bytecode.opcodes import Layout, Row, Rows, by_number
from graphlift.bytecode.versions import py311

SUPPORTED = ((3, 11), (3, 12), (3, 13))

VERSION = sys.version_info[:2]

if VERSION not in SUPPORTED or sys.implementation.name != "cpython":
    raise ImportError(
        f"graphlift knows the bytecode of CPython {', '.join(f'{a}.{b}' for a, b in SUPPORTED)}; "
        f"this is {sys.implementation.name} {VERSION[0]}.{VERSION[1]}"
    )

_module = import_module(f"graphlift.bytecode.versions.py{VERSION[0]}{VERSION[1]}")

OPCODES: Rows = _module.OPCODES
LAYOUT: Layout = _module.LAYOUT

#: The verbs of emission; the first version's class stands for all of them.
Emitter: type[py311.Emitter] = _module.Emitter

#: Rows by opcode number, for the 256 numbers that fit in a byte.
ROWS: list[Row | None] = by_number(OPCODES, opmap)
