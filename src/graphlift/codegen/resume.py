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
from dataclasses import replace
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CellType, CodeType, FunctionType
from typing import Any

from graphlift import _C
from graphlift.bytecode.decode import scan
from graphlift.bytecode.emit import Emitter, Header, Pools, assemble
from graphlift.bytecode.instruction import Instruction, Item, Label, Position, TryBegin, TryEnd
from graphlift.bytecode.operands import unique_slot_names
from graphlift.bytecode.verbs import Verbs
from graphlift.bytecode.versions import LAYOUT, OPCODES
from graphlift.codegen.originals import Original, original
from graphlift.codegen.shapes import (
    ALWAYS_JUMP,
    Entry,
    Exit,
    Shape,
    check_shape,
    find_exits,
    operands_of,
    pushes_pair,
    range_around,
)
from graphlift.errors import InternalError

__all__ = [
    "Entry",
    "Exit",
    "Shape",
    "call_code",
    "exits_of",
    "operands_of",
    "resume_code",
    "segment_function",
    "step_code",
]

INNER, INNER_VALUES = ".inner", ".inner_values"

#: Stands for the exception being handled while that one is taken out of the thread's state.
_NOBODY = Exception()


def exits_of(code: CodeType, shape: Shape, operands: int | None = None) -> list[Exit]:
    """The ways out of the step at ``shape.index``, at most one of a kind.

    Arguments:
        operands: for a call of an inner segment (`call_code`), how many entries the step takes from above
            ``shape.stack``; None for an ordinary step.

    Raises InternalError if a frame of `code` cannot look like that.
    """
    return find_exits(original(code), shape, operands)


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
    code: CodeType, shape: Shape, operands: int, exits: Sequence[Exit], targets: Sequence[str]
) -> CodeType:
    """Code that calls an inner frame's segment in the place of a call of `code`.

    Takes, behind the parameters of `shape`, the inner segment and the tuple of its values.

    Arguments:
        operands: how many stack entries the instruction takes; they lie above the shape's stack, and are not
            passed.
    """
    source = original(code)
    check_shape(source, shape, operands)
    segment = _Leaving(source, shape, exits, targets, (INNER, INNER_VALUES))
    return segment.code(segment.call)


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


# --- slots and prologue ---------------------------------------------------------------------------


class _Offset:
    """A constant to be: the offset of an instruction, in code units."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction


class _Frame:
    """The slots of a segment and how they and the stack are filled from its parameters.

    Slots have the user's names and kinds. A free variable stays one, for ``super()`` and the words of
    NameError depend on it; its cell is passed under another name and put in place.

    Attributes:
        header: of the segment's code.
    """

    def __init__(self, source: Original, shape: Shape, extra: Sequence[str] = ()) -> None:
        code = source.code
        free = set(source.decoded.slots[len(source.decoded.slots) - len(code.co_freevars) :])
        self._shape = shape
        self._free = {name: f".free_{name}" for name in shape.live if name in free}
        params = (*(self._free.get(name, name) for name in shape.live), *shape.passed(), *extra)
        taken = {*params, *code.co_cellvars}
        self.header = replace(
            Header.of(code),
            flags=code.co_flags & ~(CO_VARARGS | CO_VARKEYWORDS),
            argcount=len(params),
            posonlyargcount=0,
            kwonlyargcount=0,
            varnames=(*params, *(name for name in code.co_varnames if name not in taken)),
        )
        _check_super(code, shape)

    def prologue(self, emitter: Verbs, lasti: dict[int, Instruction]) -> None:
        """Emit: put cells and stack in place, all before the frame counts as begun.

        Arguments:
            lasti: instructions that stand for the steps of ``lasti`` entries.
        """
        header = self.header
        if header.freevars:
            slots = unique_slot_names(header.varnames, header.cellvars, header.freevars)
            emitter.emit("COPY_FREE_VARS", slots[len(slots) - len(header.freevars) :])
        for name, param in self._free.items():
            _take(emitter, param)
            emitter.store_fast(name)
        for at, entry in enumerate(self._shape.stack):
            if entry == "null":
                emitter.push_null()
            elif entry == "value":
                _take(emitter, f".stack{at}")
            elif entry == "handled":
                _take(emitter, f".stack{at}")
                emitter.push_exc_info()
                emitter.pop()
            elif entry[0] == "lasti":
                emitter.load_const(_Offset(lasti[entry[1]]))
            else:
                emitter.copy(at - entry[1])

    def landmarks(self, source: Original) -> dict[int, Instruction]:
        """Instructions never executed, at the positions of the steps of ``lasti`` entries."""
        steps = {entry[1] for entry in self._shape.stack if isinstance(entry, tuple) and entry[0] == "lasti"}
        return {step: Instruction("NOP", None, source.decoded.position(step)) for step in steps}

    def dead_zone(self, landmarks: dict[int, Instruction]) -> list[Item]:
        """What is jumped over: landmarks, and the making of the cells.

        Up to 3.12, CPython takes a cell variable's slot for filled with its cell only if an instruction that
        does so stands somewhere before the present one; else ``locals()`` gives the cell itself.
        """
        return [*(Instruction("MAKE_CELL", name) for name in self.header.cellvars), *landmarks.values()]


def _check_super(code: CodeType, shape: Shape) -> None:
    """Raise InternalError where ``super()`` would take a segment's first parameter for the function's."""
    if "__class__" not in code.co_freevars or "super" not in code.co_names:
        return
    if not code.co_argcount or shape.live[:1] != code.co_varnames[:1]:
        raise InternalError(f"super() in {code.co_qualname} would find another first argument")


#: Whether one instruction can load a local and unbind it.
_LOADS_AND_CLEARS = "LOAD_FAST_AND_CLEAR" in OPCODES


def _take(emitter: Verbs, name: str) -> None:
    """Move a local to the stack: the frame must not keep it alive, nor ``locals()`` show it."""
    if _LOADS_AND_CLEARS:
        emitter.emit("LOAD_FAST_AND_CLEAR", name)
    else:
        emitter.load_fast(name)
        emitter.delete_fast(name)


def _shown_position(source: Original, index: int) -> Position:
    """A position with a line for a step: its own, or that of the last step before it that has one."""
    for at in range(index, -1, -1):
        position = source.decoded.position(at)
        if position[0] is not None:
            return position
    return Header.of(source.code).first_position


def _assembled(items: list[Item], header: Header, pools: Pools) -> CodeType:
    """Assemble, with numbers put in for the `_Offset` constants."""
    items = _with_reachable_slots(items, header)
    made = assemble(items, header, pools)
    if not any(type(value) is _Offset for value in made.co_consts):
        return made
    instructions = [item for item in items if isinstance(item, Instruction)]
    units = {id(i): raw.offset >> 1 for i, raw in zip(instructions, scan(made.co_code), strict=True)}
    consts = (units[id(value.instruction)] if type(value) is _Offset else value for value in made.co_consts)
    return made.replace(co_consts=tuple(consts))


def _with_reachable_slots(items: list[Item], header: Header) -> list[Item]:
    """The list with instructions fused for two locals taken apart where a local now lies too far back."""
    slots = unique_slot_names(header.varnames, header.cellvars, header.freevars)
    near = set(slots[:16])
    if len(near) == len(slots):
        return items
    result: list[Item] = []
    for item in items:
        handlers = OPCODES[item.op].handlers if isinstance(item, Instruction) else ()
        if isinstance(item, Instruction) and len(handlers) == 2 and not near.issuperset(item.operand):
            parts = zip(handlers, item.operand, strict=True)
            result += (Instruction(op, name, item.position) for op, name in parts)
        else:
            result.append(item)
    return result


# --- resume code -----------------------------------------------------------------------------------


def _resume_code(source: Original, shape: Shape) -> CodeType:
    code = source.code
    frame = _Frame(source, shape)
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
    body, at = source.body.items, source.body.entry(enter)
    items = [*emitter.items, *frame.dead_zone(landmarks), *body[:at], entry, *body[at:]]
    return _assembled(items, frame.header, Pools(frame.header, code.co_consts, code.co_names))


def _resume(emitter: Verbs, source: Original, index: int, begin: TryBegin | None) -> None:
    """Emit RESUME inside the step's range: a signal that comes in there is raised at the step."""
    with emitter.at(_shown_position(source, index)):
        if begin is not None:
            emitter.items.append(begin)
        emitter.emit("RESUME", 0)
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
        self._frame = _Frame(source, shape, extra)
        self._exits = {leave.kind: (leave.shape, name) for leave, name in zip(exits, targets, strict=True)}
        self._jump = Label("jump")
        self._handler = Label("handler")
        self.emitter = Emitter()

    def code(self, act: Callable[[], None]) -> CodeType:
        """The segment that does what `act` emits."""
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
        emitter.position = _shown_position(self._source, self._index)
        self._leave_all()
        return _assembled(emitter.items, frame.header, Pools(frame.header))

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

    def call(self) -> None:
        """Emit the call of the inner segment."""
        emitter = self.emitter
        emitter.prepare_call()
        _take(emitter, INNER)
        emitter.callable_ready()
        _take(emitter, INNER_VALUES)
        emitter.call_ex()

    def _leave_all(self) -> None:
        emitter = self.emitter
        if "next" in self._exits:
            self._leave(*self._exits["next"])
        if "jump" in self._exits:
            if self._source.decoded.op(self._index) == "FOR_ITER":
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
            _take(emitter, name.replace(".stack", ".out"))
        emitter.build_tuple(len(shape.live) + len(passed))
        emitter.call(2)
        emitter.return_value()
