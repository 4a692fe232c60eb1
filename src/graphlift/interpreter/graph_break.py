"""Cutting the graph: what a frame looks like before the instruction that no graph can hold, and how the
program goes on from there.

Everything from the entry up to the cut becomes this capture's graph and effects. Then the outermost frame's
segment is entered (a tail jump); it calls the segment of the frame it had called, and so on down to the
innermost, which runs the hard instruction for real and jumps on (`codegen/resume.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NamedTuple

import torch

from graphlift import _C
from graphlift.bytecode.verbs import Verbs
from graphlift.codegen.pycodegen import PyCodegen
from graphlift.codegen.resume import Finish, Shape, operands_of
from graphlift.errors import Unsupported
from graphlift.interpreter.base import InstructionTranslatorBase
from graphlift.interpreter.capture import module_of
from graphlift.meta_propagation.state import SETTERS, WITHOUT_TRACE, changes_state, moved_counters
from graphlift.protocol import Var
from graphlift.reasons import Reason
from graphlift.variables.cells import CellVariable


class Cut(NamedTuple):
    """One frame at a cut.

    Attributes:
        code: its code.
        module_globals: its namespace.
        shape: which locals and stack entries it goes on with.
        values: their trackers, in the order of the shape's parameters; then those of `finish`.
        keyword_names: names for the call at the cut.
        operands: how many stack entries the call of the next inner frame takes; None for the innermost.
        finish: what is left to do behind that call; None for the innermost.
        dropped: what only locals hold that are not read any more, and the program may find in another way.
    """

    code: CodeType
    module_globals: dict[str, Any]
    shape: Shape
    values: list[Var]
    keyword_names: tuple[str, ...]
    operands: int | None
    finish: Finish | None
    dropped: list[Var]


#: Gives the global name, in a namespace, of the segment that goes on at a cut.
SegmentName = Callable[[Cut, dict[str, Any]], str]


def frames_at(cut: Unsupported, root: InstructionTranslatorBase) -> list[Cut]:
    """The frames that go on behind a cut, outermost first; the capture is rolled back to it.

    Raises:
        Unsupported: a frame cannot be gone on with.
    """
    frames: list[InstructionTranslatorBase] = cut.frames
    innermost = frames[0].snapshot
    if frames[-1] is not root or innermost is None:
        try:
            raise cut
        finally:
            del cut, frames  # as in `InstructionTranslator._body_of_cut`
    root.heap.rollback(innermost.heap)
    root.graph.rollback(innermost.graph)
    inner = [None, *frames[:-1]]
    outermost = root.frame.module_globals.real
    return [_cut_of(frame, called, outermost) for frame, called in zip(frames, inner, strict=True)][::-1]


def _cut_of(
    frame: InstructionTranslatorBase,
    inner: InstructionTranslatorBase | None,
    outermost: dict[str, Any] | None,
) -> Cut:
    """A frame at a cut, and what is left to do in it when the frame `inner` that it called has ended.

    Arguments:
        outermost: the global names of the outermost frame.
    """
    snapshot = frame.snapshot
    assert snapshot is not None
    operands, finish = None, None
    needed: tuple[Var, ...] = ()
    if inner is not None:
        assert inner.last is not None
        _, kind, needed = inner.last
        operands, finish = operands_of(frame.frame.decoded, snapshot.index), Finish(kind, len(needed))
    stack = snapshot.stack[: len(snapshot.stack) - operands] if operands else snapshot.stack
    namespace = frame.frame.module_globals.real
    if namespace is None:
        raise Unsupported(Reason.UNSUPPORTED_OPERATION, "a function whose globals are not known")
    if namespace is not outermost and module_of(namespace) is None:
        # A function of the same code may come with other globals next time; this one's segments run in these.
        raise Unsupported(Reason.UNSUPPORTED_OPERATION, "a function whose globals are no module's")
    shape, values = frame.frame.shape_at(snapshot.index, stack)
    values += needed
    return Cut(
        frame.code, namespace, shape, values, snapshot.keyword_names, operands, finish, _dropped(frame, shape)
    )


def _dropped(frame: InstructionTranslatorBase, shape: Shape) -> list[Var]:
    found = []
    for name, local in frame.frame.symbolic_locals.items():
        value = local.handle.value if type(local) is CellVariable else local
        if name not in shape.live and value is not None and getattr(value, "found_otherwise", False):
            found.append(value)
    return found


def emit_jump(body: PyCodegen, cuts: Sequence[Cut], name: SegmentName, effects: Callable[[], None]) -> None:
    """Emit: make all live values real, do the effects, and leave for the outermost frame's segment.

    Arguments:
        cuts: the frames, outermost first.
        name: gives the global names of segments.
        effects: emits the side effects.
    """
    namespace = cuts[0].module_globals
    emitter = body.emitter
    _emit_values(body, cuts, name, namespace)
    values = body.temporary()
    emitter.store_fast(values)
    for cut in cuts:
        for value in cut.dropped:
            body(value)
            emitter.pop()
    effects()
    _load_jump(emitter, name(cuts[0], namespace))
    emitter.load_fast(values)
    emitter.call(2)
    emitter.return_value()


def _load_jump(emitter: Verbs, target: str) -> None:
    """Begin the making of a jump: what is to follow are the tuple of its values and ``call(2)``."""
    emitter.prepare_call()
    emitter.load_const(_C.Jump)
    emitter.callable_ready()
    emitter.load_global(target)


def emit_state(body: PyCodegen, operations: Sequence[Any], grad_mode: bool) -> None:
    """Emit code that leaves torch's global state as the captured code did: a backend need not have set it.

    Arguments:
        operations: the graph's.
        grad_mode: grad mode at the beginning, which the guards keep.
    """
    changes = [operation for operation in operations if changes_state(operation)]
    last: dict[Any, tuple[Any, tuple[Any, ...]]] = {}
    for operation in changes:
        if operation.target in SETTERS:
            # All but the last argument say what is set, e.g. for which device.
            last[operation.target, operation.args[:-1]] = operation.target, operation.args
    calls = [call for call in last.values() if call != (torch._C._set_grad_enabled, (grad_mode,))]
    calls += [(function, ()) for function in moved_counters(changes)]
    calls += [(function, ()) for function in {x.target for x in changes} & WITHOUT_TRACE]
    for function, args in calls:
        emitter = body.emitter
        emitter.prepare_call()
        emitter.load_const(function)
        emitter.callable_ready()
        for arg in args:
            emitter.load_const(arg)
        emitter.call(len(args))
        emitter.pop()


def _emit_values(body: PyCodegen, cuts: Sequence[Cut], name: SegmentName, namespace: dict[str, Any]) -> None:
    """Push the tuple of values that the outermost of `cuts` goes on with."""
    cut, inner = cuts[0], cuts[1:]
    for value in cut.values:
        body(value)
    count = len(cut.values)
    if inner:
        _load_jump(body.emitter, name(inner[0], namespace))
        _emit_values(body, inner, name, namespace)
        body.emitter.call(2)
        count += 1
    body.emitter.build_tuple(count)
