"""What a frame looks like between two instructions, and where an instruction leads.

Owns the kinds of stack entries and how each opcode changes them; how many entries it takes is asked of
CPython. It must not know how segments are emitted.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_NEWLOCALS, CO_OPTIMIZED
from types import CodeType
from typing import Any, Literal, NamedTuple

from graphlift.bytecode.decode import Decoded, decode
from graphlift.bytecode.exception_table import Region
from graphlift.bytecode.stack_depth import effect
from graphlift.bytecode.versions import LAYOUT
from graphlift.codegen.originals import Original
from graphlift.errors import InternalError

#: A stack entry.
#:
#: * ``"value"``: an object, passed as a parameter.
#: * ``"null"``: the NULL of a call being prepared, or of a local that was unbound.
#: * ``"handled"``: what PUSH_EXC_INFO leaves, the exception handled before. Its parameter is the exception
#:   that is being handled *from there on*, which need not be on the stack any more.
#: * ``("lasti", step)``: the instruction that failed, as a range with `lasti` leaves it for RERAISE.
#: * ``("copy", at)``: the same as the "handled" entry at depth `at` from the bottom, for POP_EXCEPT to take.
Entry = Literal["value", "null", "handled"] | tuple[Literal["lasti", "copy"], int]
Stack = tuple[Entry, ...]

#: The kinds of entries that are passed.
PASSED = frozenset({"value", "handled"})

_YIELDS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_FUNCTION = CO_OPTIMIZED | CO_NEWLOCALS


class Shape(NamedTuple):
    """What a frame looks like before a step.

    Attributes:
        index: the step, as in `Decoded`; behind the code's prologue.
        live: slots that are bound and may still be read, in slot order; cells and free variables stand for
            their cell objects.
        stack: the value stack, bottom first.
    """

    index: int  # type: ignore[assignment]  # tuples have a method of that name
    live: tuple[str, ...]
    stack: Stack = ()

    def passed(self) -> tuple[str, ...]:
        """Parameters for the stack entries that are passed."""
        return tuple(f".stack{at}" for at, entry in enumerate(self.stack) if entry in PASSED)

    @property
    def parameters(self) -> tuple[str, ...]:
        """What a segment of this shape is given, in order: live slots, then stack entries."""
        return (*self.live, *self.passed())


class Exit(NamedTuple):
    """One way out of a step: how it is left, and what the frame looks like there."""

    kind: Literal["next", "jump", "handler"]
    shape: Shape


def check_shape(original: Original, shape: Shape, operands: int = 0, suspends: bool = False) -> None:
    """Raise InternalError unless a frame of that code can look like that.

    Arguments:
        operands: how many more entries are on the stack.
        suspends: whether it is a generator's frame.
    """
    code = original.code
    where = f"{code.co_qualname}, step {shape.index}"
    if code.co_flags & _YIELDS != (CO_GENERATOR if suspends else 0) or code.co_flags & _FUNCTION != _FUNCTION:
        raise InternalError(f"{where}: only the code of plain functions can be cut into segments")
    if not original.first <= shape.index < len(original.decoded):
        raise InternalError(f"{where}: a segment begins behind the prologue, at step {original.first}")
    depth = original.depths[shape.index]
    if depth != len(shape.stack) + operands:
        raise InternalError(f"{where}: the stack is {depth} deep, not {len(shape.stack) + operands}")
    if not set(original.alive.before(shape.index)).issuperset(shape.live):
        raise InternalError(f"{where}: live are {original.alive.before(shape.index)}, not {shape.live}")


# --- where a step leads ---------------------------------------------------------------------------

_ENDS = frozenset({"RAISE_VARARGS", "RERAISE", "RETURN_VALUE", "RETURN_CONST"})
ALWAYS_JUMP = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})


def find_exits(original: Original, shape: Shape) -> list[Exit]:
    """The ways out of the step at ``shape.index``, in the order next, jump, handler."""
    check_shape(original, shape)
    decoded = original.decoded
    index = shape.index
    exits = []
    bound = _bound_after(decoded, shape)
    op = decoded.op(index)
    if op not in _ENDS and op not in ALWAYS_JUMP:
        exits.append(leave("next", original, index + 1, bound, _stack_after(decoded, shape, jump=False)))
    if decoded.jumps(index):
        stack = _stack_after(decoded, shape, jump=True)
        exits.append(leave("jump", original, decoded.operands[index], bound, stack))
    return [*exits, *handler_exits(original, shape)]


def handler_exits(original: Original, shape: Shape) -> list[Exit]:
    """The way to the handler of what the step raises, if it has one."""
    region = range_around(original, shape)
    if region is None:
        return []
    stack = shape.stack[: region.depth]
    if region.lasti:
        stack += (_failed(original, shape),)
    return [leave("handler", original, region.target, set(shape.live), (*stack, "value"))]


#: What cannot fail, and may stand in a range that does not know of the exception being handled: the depth of
#: the range speaks of the stack before it was handled or after.
_BESIDE_HANDLERS = frozenset({"PUSH_EXC_INFO", "POP_EXCEPT", "COPY", "SWAP", "POP_TOP"})


def range_around(original: Original, shape: Shape) -> Region | None:
    """The protected range that an exception at the step would find; None where none can come."""
    decoded = original.decoded
    op, region = decoded.op(shape.index), decoded.region(shape.index)
    if region is None or op == "PUSH_EXC_INFO":
        return None
    if "handled" not in shape.stack[region.depth :]:
        return region
    if op not in _BESIDE_HANDLERS:
        raise InternalError(f"{decoded.text(shape.index)} would leave a handler without POP_EXCEPT")
    return None


def leave(
    kind: Literal["next", "jump", "handler"], original: Original, index: int, bound: set[str], stack: Stack
) -> Exit:
    """An exit to the step at `index`; `bound` are the slots that are bound there."""
    live = tuple(name for name in original.alive.before(index) if name in bound)
    return Exit(kind, Shape(index, live, stack))


def _failed(original: Original, shape: Shape) -> Entry:
    """The `lasti` that an exception of the step leaves: RERAISE puts back the one that it finds.

    All that can be seen of it is the line, so the steps of a line share one, and handlers have fewer shapes.
    """
    step = original.decoded.step(shape.index)
    if step.op == "RERAISE" and step.operand:
        entry: Entry = shape.stack[-1 - step.operand]
        if _is(entry, "lasti"):
            return entry
    first: int = original.first_of_line(shape.index)
    return "lasti", first


def _is(entry: Entry, kind: Literal["lasti", "copy"]) -> bool:
    return isinstance(entry, tuple) and entry[0] == kind


def _bound_after(decoded: Decoded, shape: Shape) -> set[str]:
    """The live slots of `shape` and those that the step binds, without those that it unbinds."""
    bound = set(shape.live)
    stack: list[Entry] = list(shape.stack)
    handlers = decoded.handlers(shape.index)
    operand = decoded.operands[shape.index]
    for handler, name in zip(handlers, (operand,) if len(handlers) == 1 else operand, strict=True):
        if handler == "LOAD_FAST":
            stack.append("value")
        elif handler == "MAKE_CELL" or (handler == "STORE_FAST" and stack.pop() != "null"):
            bound.add(name)
        elif handler in ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
            bound.discard(name)
    return bound


def callee_at(code: CodeType, shape: Shape) -> int:
    """Which of the shape's parameters the step calls; -1 if it is no call."""
    decoded = decode(code)
    step = decoded.step(shape.index)
    if step.op not in BESIDE:
        return -1
    at = len(shape.stack) - BESIDE[step.op] - int(step.operand)
    # The callable stands below its object, or beside a NULL.
    at += shape.stack[at] == "null"
    name, parameters = f".stack{at}", shape.parameters
    return parameters.index(name) if name in parameters else -1


# --- how a step changes the stack -----------------------------------------------------------------

_STORES = """
    STORE_FAST STORE_FAST_STORE_FAST STORE_DEREF STORE_GLOBAL STORE_NAME STORE_ATTR STORE_SUBSCR STORE_SLICE
    DELETE_FAST DELETE_DEREF DELETE_GLOBAL DELETE_NAME DELETE_ATTR DELETE_SUBSCR
    LIST_APPEND SET_ADD MAP_ADD LIST_EXTEND SET_UPDATE DICT_MERGE DICT_UPDATE
    """
_NO_EFFECTS = "NOP RESUME KW_NAMES MAKE_CELL COPY_FREE_VARS POP_TOP END_FOR SETUP_ANNOTATIONS"

#: What pushes nothing, jumps aside.
_PUSHES_NOTHING = frozenset(_STORES.split() + _NO_EFFECTS.split())
_PUSHES_TWO = frozenset({"LOAD_FAST_LOAD_FAST", "BEFORE_WITH", "CHECK_EG_MATCH"})

#: What calls take beside their counted arguments: the callable and its NULL (or self), and more.
BESIDE = {"CALL": 2, "CALL_KW": 3, "CALL_FUNCTION_EX": 3}

#: What a load of a method leaves.
PAIR: Stack = ("value", "null") if LAYOUT.null_after_callable else ("null", "value")


def _stack_after(decoded: Decoded, shape: Shape, jump: bool) -> Stack:
    """The stack behind the step, when it jumps or when it goes on."""
    step = decoded.step(shape.index)
    special = _SPECIAL.get(step.op)
    if special is not None:
        return special(shape, step.operand)
    if step.op == "FOR_ITER":
        return shape.stack[:-1] if jump else (*shape.stack, "value")
    beside = BESIDE.get(step.op)
    if beside is not None:  # on 3.11 a part of a call's effect is PRECALL's
        return (*shape.stack[: len(shape.stack) - beside - int(step.operand)], "value")
    change = effect(decoded.numbers[shape.index], step.arg, jump)
    pair = pushes_pair(step.handlers[-1], step.operand)
    pushed = 0 if decoded.jumps(shape.index) else 2 if pair else _pushed(step.op, change)
    kept = len(shape.stack) + change - pushed
    for entry in shape.stack[kept:]:
        # POP_TOP drops what a handler leaves for RERAISE; all else works on objects.
        if entry not in ("value", "null") and not (step.op == "POP_TOP" and _is(entry, "lasti")):
            raise InternalError(f"{decoded.text(shape.index)} takes a stack entry of the kind {entry}")
    values: list[Entry] = ["value"] * pushed
    return (*shape.stack[:kept], *(PAIR if pair else values))


def _pushed(op: str, change: int) -> int:
    """How many objects a step puts on top of the entries that it leaves alone."""
    if op in _PUSHES_NOTHING:
        return 0
    if op in ("UNPACK_SEQUENCE", "UNPACK_EX"):
        return change + 1
    return 2 if op in _PUSHES_TWO else 1


def pushes_pair(handler: str, operand: Any) -> bool:
    """Whether a load leaves a callable ready to be called: with a NULL, or as a method with its object."""
    return handler in ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_SUPER_ATTR") and bool(operand[1])


def _swap(shape: Shape, depth: int) -> Stack:
    stack = list(shape.stack)
    if any(_is(entry, "copy") for entry in stack):
        raise InternalError("SWAP among entries that depend on each other")
    stack[-1], stack[-depth] = stack[-depth], stack[-1]
    return tuple(stack)


def _copy(shape: Shape, depth: int) -> Stack:
    at = len(shape.stack) - depth
    entry = shape.stack[at]
    return (*shape.stack, ("copy", at) if entry == "handled" else entry)


def _pop_except(shape: Shape, operand: None) -> Stack:
    """The exception state is put back; an entry that was only copied for that is an object from now on."""
    *rest, top = shape.stack
    if isinstance(top, tuple) and top[0] == "copy":
        rest[top[1]] = "value"
    elif top != "handled":
        raise InternalError(f"POP_EXCEPT takes a stack entry of the kind {top}")
    return tuple(rest)


_SPECIAL: dict[str, Callable[[Shape, Any], Stack]] = {
    "SWAP": _swap,
    "COPY": _copy,
    "POP_EXCEPT": _pop_except,
    "PUSH_NULL": lambda shape, _: (*shape.stack, "null"),
    "PUSH_EXC_INFO": lambda shape, _: (*shape.stack[:-1], "handled", "value"),
    "LOAD_FAST_AND_CLEAR": lambda shape, name: (*shape.stack, "value" if name in shape.live else "null"),
}
