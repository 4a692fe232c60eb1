"""Generators that captured code began and left suspended, made real.

The generator's code is the user's behind another prologue: the first ``next`` puts locals and stack in place
and enters at the very ``yield`` at which the generator waits, so that ``close``, ``throw`` and what it
delegates to are CPython's own from there on. Knows nothing of trackers.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from graphlift.bytecode.emit import Emitter, Pools
from graphlift.bytecode.instruction import Label
from graphlift.codegen.originals import original
from graphlift.codegen.resume import segment_function
from graphlift.codegen.segment_frame import SegmentFrame, assembled
from graphlift.codegen.shapes import Shape, check_shape


def suspended_code(code: CodeType, shape: Shape) -> CodeType:
    """Code of a generator that waits at the ``yield`` of ``shape.index`` once its first ``next`` is done.

    Arguments:
        shape: the frame without the value that was yielded.
    """
    source = original(code)
    made = source.made.get(("suspended", shape))
    if made is not None:
        return made
    check_shape(source, shape, operands=1, suspends=True)
    frame = SegmentFrame(source, shape)
    landmarks = frame.landmarks(source)
    emitter = Emitter()
    frame.prologue(emitter, landmarks, generator=True)
    entry = Label("entry")
    emitter.load_const(None)
    emitter.jump(entry)
    items = [*emitter.items, *frame.dead_zone(landmarks), *source.body.entered(shape.index, entry)]
    made = assembled(items, frame.header, Pools(frame.header, code.co_consts, code.co_names))
    source.made["suspended", shape] = made
    return made


def new_suspended(code: CodeType, module_globals: dict[str, Any], *values: Any) -> Any:
    """The generator of a code made by `suspended_code` (runs in the compiled program)."""
    made = segment_function(code, module_globals)(*values)
    next(made)
    return made
