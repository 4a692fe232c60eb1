"""The frame of a segment: its slots, its prologue, and its assembly.

Owns how parameters become locals, cells and the value stack, exception state included. It must not know
what a segment does then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType

from graphlift import _C
from graphlift.bytecode.decode import scan
from graphlift.bytecode.emit import Header, Pools, assemble
from graphlift.bytecode.instruction import Instruction, Item, Position
from graphlift.bytecode.operands import unique_slot_names
from graphlift.bytecode.verbs import Verbs
from graphlift.bytecode.versions import OPCODES
from graphlift.codegen.originals import Original
from graphlift.codegen.shapes import Shape
from graphlift.errors import InternalError


class _Offset:
    """A constant to be: the offset of an instruction, in code units."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction


class SegmentFrame:
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

    def prologue(self, emitter: Verbs, lasti: dict[int, Instruction], generator: bool = False) -> None:
        """Emit: put cells and stack in place, all before the frame counts as begun.

        Arguments:
            lasti: instructions that stand for the steps of ``lasti`` entries.
            generator: the code is a generator's, of which all that follows is the first ``next``.
        """
        header = self.header
        slots = unique_slot_names(header.varnames, header.cellvars, header.freevars)
        free = slots[len(slots) - len(header.freevars) :]
        if generator:
            emitter.generator_prologue(free=free)
        elif free:
            emitter.emit("COPY_FREE_VARS", free)
        for name, param in self._free.items():
            take(emitter, param)
            emitter.store_fast(name)
        for at, entry in enumerate(self._shape.stack):
            if entry == "null":
                emitter.push_null()
            elif entry == "value":
                take(emitter, f".stack{at}")
            elif entry == "handled":
                take(emitter, f".stack{at}")
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


def say_taken(emitter: Verbs) -> None:
    """Emit: whoever jumped here need not hold the parameters any longer."""
    emitter.prepare_call()
    emitter.load_const(_C.taken)
    emitter.callable_ready()
    emitter.call(0)
    emitter.pop()


def take(emitter: Verbs, name: str) -> None:
    """Move a local to the stack: the frame must not keep it alive, nor ``locals()`` show it."""
    if _LOADS_AND_CLEARS:
        emitter.emit("LOAD_FAST_AND_CLEAR", name)
    else:
        emitter.load_fast(name)
        emitter.delete_fast(name)


def shown_position(source: Original, index: int) -> Position:
    """A position with a line for a step: its own, or that of the last step before it that has one."""
    for at in range(index, -1, -1):
        position = source.decoded.position(at)
        if position[0] is not None:
            return position
    return Header.of(source.code).first_position


def assembled(items: list[Item], header: Header, pools: Pools) -> CodeType:
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
