"""The code by which a program goes on behind a graph break.

One user frame is cut into *segments*, Python functions of flat positional parameters that end with a jump
(`_C.Jump`) to the next one. All are made from the user's code object:

* the *resume* code runs the rest of the user's code from one step on; it is captured in its turn;
* the *step* code does one instruction for real and jumps to the resume code behind it, wherever the
  instruction leads: to the next step, to where it jumps, or to the handler of what it raises;
* the *call* code does the same for a call whose callee is itself cut: it calls the callee's segment.

Protected ranges, positions and names are the user's, so handlers, ``finally``, ``with`` and tracebacks are
CPython's own. Knows nothing of trackers or captures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from graphlift import _C
from graphlift.bytecode.emit import Emitter, Pools
from graphlift.bytecode.instruction import Label, TryBegin, TryEnd
from graphlift.bytecode.verbs import Verbs
from graphlift.bytecode.versions import LAYOUT
from graphlift.codegen.continuations import PUSH, Finish, Rest, call_exits, operands_of
from graphlift.codegen.originals import Original, original
from graphlift.codegen.segment_frame import SegmentFrame, assembled, say_taken, shown_position, take
from graphlift.codegen.shapes import (
    ALWAYS_JUMP,
    Entry,
    Exit,
    Shape,
    callee_at,
    check_shape,
    find_exits,
    pushes_pair,
    range_around,
)

__all__ = [
    "Entry",
    "Exit",
    "Finish",
    "Shape",
    "call_code",
    "callee_at",
    "exits_of",
    "operands_of",
    "resume_code",
    "segment_function",
    "step_code",
]

INNER = ".inner"

#: Stands for the exception being handled while that one is taken out of the thread's state.
_NOBODY = Exception()


def exits_of(code: CodeType, shape: Shape, operands: int | None = None, finish: Finish = PUSH) -> list[Exit]:
    """The ways out of the step at ``shape.index``, at most one of a kind.

    Arguments:
        operands: for a call of an inner segment (`call_code`), how many entries the step takes from above
            ``shape.stack``; None for an ordinary step.
        finish: for such a call, what is left to do behind it.

    Raises InternalError if a frame of `code` cannot look like that.
    """
    source = original(code)
    return find_exits(source, shape) if operands is None else call_exits(source, shape, operands, finish)


def resume_code(code: CodeType, shape: Shape) -> CodeType:
    """The rest of `code` from a step on; takes the parameters of `shape`.

    The same object for the same `code` and `shape`, as long as `code` lives.
    """
    source = original(code)
    made = source.made.get(shape)
    if made is None:
        check_shape(source, shape)
        made = source.made[shape] = _resume_code(source, shape)
    return made


def step_code(
    code: CodeType,
    shape: Shape,
    exits: Sequence[Exit],
    targets: Sequence[str],
    keyword_names: tuple[str, ...] = (),
) -> CodeType:
    """Code that does the instruction at ``shape.index`` for real; takes the parameters of `shape`.

    Arguments:
        exits: what `exits_of` gives.
        targets: the global names of the segments there, in the same order.
        keyword_names: names for the call, where an instruction of their own (3.11, 3.12) that does not stand
            before it in `code` has said them.
    """
    source = original(code)
    check_shape(source, shape)
    segment = _Leaving(source, shape, exits, targets)
    return segment.code(lambda: segment.step(keyword_names or _pending_names(source, shape.index)))


def call_code(
    code: CodeType,
    shape: Shape,
    operands: int,
    exits: Sequence[Exit],
    targets: Sequence[str],
    finish: Finish = PUSH,
) -> CodeType:
    """Code that calls an inner frame's segment in the place of an instruction of `code` that called it.

    Takes, behind the parameters of `shape`, those of `finish` and the jump to the inner segment.

    Arguments:
        operands: how many stack entries the instruction takes; they lie above the shape's stack, and are not
            passed.
        finish: what is left to do behind the call.
    """
    source = original(code)
    check_shape(source, shape, operands)
    segment = _Leaving(source, shape, exits, targets, (*finish.parameters, INNER))
    return segment.code(lambda: segment.call(finish), own_jump=True)


def segment_function(code: CodeType, namespace: dict[str, Any]) -> FunctionType:
    """A function of a segment's code, which brings the contents of its closure as parameters."""
    closure = tuple(CellType() for _ in code.co_freevars)
    return FunctionType(code, namespace, code.co_name, None, closure)


def _pending_names(source: Original, index: int) -> tuple[str, ...]:
    """The keyword names that the step before has laid ready for a call."""
    names: tuple[str, ...] = ()
    if source.decoded.op(index - 1) == "KW_NAMES":
        names = source.decoded.operands[index - 1]
    return names


# --- resume code -----------------------------------------------------------------------------------


def _resume_code(source: Original, shape: Shape) -> CodeType:
    code = source.code
    frame = SegmentFrame(source, shape)
    landmarks = frame.landmarks(source)
    emitter = Emitter()
    frame.prologue(emitter, landmarks)
    enter = shape.index
    if source.decoded.op(enter) == "PUSH_EXC_INFO":
        # From behind it on the handler has a range of its own, which RESUME is to stand in.
        emitter.push_exc_info()
        enter += 1
        shape = Shape(enter, shape.live, (*shape.stack[:-1], "handled", "value"))
    elif _pending_names(source, enter):
        # Names for a call that is being prepared are lost between segments, so they are said again.
        enter -= 1
    begin = source.body.range(shape.index) if range_around(source, shape) else None
    _resume(emitter, source, shape.index, begin and TryBegin(begin.handler, begin.lasti, begin.depth))
    entry = Label("entry")
    emitter.jump(entry)
    items = [*emitter.items, *frame.dead_zone(landmarks), *source.body.entered(enter, entry)]
    return assembled(items, frame.header, Pools(frame.header, code.co_consts, code.co_names))


def _resume(emitter: Verbs, source: Original, index: int, begin: TryBegin | None) -> None:
    """Emit the beginning inside the step's range: a signal that comes in there is raised at the step."""
    with emitter.at(shown_position(source, index)):
        if begin is not None:
            emitter.items.append(begin)
        emitter.emit("RESUME", 0)
        say_taken(emitter)
        if begin is not None:
            emitter.items.append(TryEnd(begin))


# --- step and call code ----------------------------------------------------------------------------


class _Leaving:
    """A segment that does one thing and leaves by one of its exits."""

    def __init__(
        self,
        source: Original,
        shape: Shape,
        exits: Sequence[Exit],
        targets: Sequence[str],
        extra: Sequence[str] = (),
    ) -> None:
        self._source = source
        self._index = shape.index
        self._frame = SegmentFrame(source, shape, extra)
        self._exits = {leave.kind: (leave.shape, name) for leave, name in zip(exits, targets, strict=True)}
        self._jump = Label("jump")
        self._handler = Label("handler")
        self.emitter = Emitter()

    def code(self, act: Callable[[], None], own_jump: bool = False) -> CodeType:
        """The segment that does what `act` emits; `own_jump`: a jump of its, not of the step itself."""
        emitter, frame = self.emitter, self._frame
        landmarks = frame.landmarks(self._source)
        frame.prologue(emitter, landmarks)
        region = self._source.decoded.region(self._index)
        begin = None
        if region is not None and "handler" in self._exits:
            begin = TryBegin(self._handler, region.lasti, region.depth)
        _resume(emitter, self._source, self._index, begin)
        dead = frame.dead_zone(landmarks)
        if dead:
            over = Label("over")
            emitter.jump(over)
            emitter.items += dead
            emitter.place(over)
        emitter.position = self._source.decoded.position(self._index)
        if begin is not None:
            begin = TryBegin(begin.handler, begin.lasti, begin.depth)
            emitter.items.append(begin)
        act()
        if begin is not None:
            emitter.items.append(TryEnd(begin))
        emitter.position = shown_position(self._source, self._index)
        self._leave_all(own_jump)
        return assembled(emitter.items, frame.header, Pools(frame.header))

    def step(self, keyword_names: tuple[str, ...]) -> None:
        """Emit the step itself, its result in the one form that the exits' shapes speak of."""
        emitter = self.emitter
        op, handlers, operand, _, _ = self._source.decoded.step(self._index)
        if op in ("RESUME", "KW_NAMES") or op in ALWAYS_JUMP:
            return
        if op == "CALL":
            emitter.call(operand, keyword_names)
        elif op == "FOR_ITER":
            emitter.for_iter(self._jump)
        elif handlers[-1].startswith("POP_JUMP_IF_"):
            test: Any = handlers[-1].removeprefix("POP_JUMP_IF_")
            emitter.conditional_jump(test, self._jump)
        elif self._source.decoded.jumps(self._index):
            emitter.emit(op, self._jump)
        elif op != "LOAD_GLOBAL" and pushes_pair(handlers[-1], operand):
            emitter.emit("LOAD_ATTR" if op == "LOAD_METHOD" else op, (operand[0], False, *operand[2:]))
            emitter.push_null()
            if not LAYOUT.null_after_callable:
                emitter.swap(2)
        else:
            emitter.emit(op, operand)

    def call(self, finish: Finish) -> None:
        """Emit the call of the inner segment, and what is left to do behind it."""
        Rest(self.emitter, self._source, self._index, finish, self._call_inner, self._jump).emit()

    def _call_inner(self) -> None:
        emitter = self.emitter
        emitter.prepare_call()
        emitter.load_const(_C.enter)
        emitter.callable_ready()
        take(emitter, INNER)
        emitter.call(1)

    def _leave_all(self, own_jump: bool) -> None:
        emitter = self.emitter
        if "next" in self._exits:
            self._leave(*self._exits["next"])
        if "jump" in self._exits:
            if not own_jump and self._source.decoded.op(self._index) == "FOR_ITER":
                emitter.end_for(self._jump)
            else:
                emitter.place(self._jump)
            self._leave(*self._exits["jump"])
        if "handler" in self._exits:
            emitter.place(self._handler)
            self._leave(*self._exits["handler"])

    def _leave(self, shape: Shape, target: str) -> None:
        """Emit: take the stack apart, the thread's exception state with it, and return the jump."""
        emitter = self.emitter
        for at in range(len(shape.stack) - 1, -1, -1):
            entry = shape.stack[at]
            if entry == "value":
                emitter.store_fast(f".out{at}")
            elif entry == "null":
                # POP_TOP cannot take it.
                emitter.store_fast(".null")
            elif entry == "handled":
                emitter.load_const(_NOBODY)
                emitter.push_exc_info()
                emitter.pop()
                emitter.store_fast(f".out{at}")
                emitter.pop_except()
            else:
                emitter.pop()
        emitter.prepare_call()
        emitter.load_const(_C.Jump)
        emitter.callable_ready()
        emitter.load_global(target)
        for name in shape.live:
            emitter.load_fast(name)
        passed = shape.passed()
        for name in passed:
            # A traceback may keep the frame, and the frame would keep the exception.
            take(emitter, name.replace(".stack", ".out"))
        emitter.build_tuple(len(shape.live) + len(passed))
        emitter.call(2)
        emitter.return_value()
