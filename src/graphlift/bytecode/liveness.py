"""Which locals may still be needed before each instruction.

Owns the backward search over decoded steps, exception edges included. A cell or free variable is a local like
any other: its slot holds the cell. Knows what each handler does to a slot and nothing else of handlers.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType

from graphlift.bytecode.by_code import ByCode
from graphlift.bytecode.decode import Decoded, decode

_READS = frozenset(
    {
        "LOAD_FAST",
        "LOAD_FAST_CHECK",
        "LOAD_FAST_AND_CLEAR",
        "DELETE_FAST",  # raises if the local is unbound
        "MAKE_CELL",  # the cell takes over what the slot holds
        "LOAD_CLOSURE",
        "LOAD_CLASSDEREF",
        "LOAD_FROM_DICT_OR_DEREF",
        "LOAD_DEREF",
        "STORE_DEREF",  # writes into the cell, so the cell is needed
        "DELETE_DEREF",
    }
)
_WRITES = frozenset({"STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR", "MAKE_CELL"})

#: What reads all locals of the frame that calls it: builtins, and attributes of modules.
FRAME_READERS = frozenset({"locals", "vars", "dir", "eval", "exec"})
FRAME_READING_ATTRIBUTES = frozenset({"locals", "_getframe", "currentframe"})

#: What gives a frame as an object, and what of a frame is the same in all parts of a frame that was cut.
_FRAME_GIVERS = frozenset({"_getframe", "currentframe"})
_SAME_IN_ALL_PARTS = frozenset({"f_code", "f_lineno", "f_back", "f_globals", "f_builtins"})
_BEFORE_CALL = frozenset({"PUSH_NULL", "PRECALL"})

#: Those of them by which the dictionary of the locals gets other entries.
LOCALS_WRITERS = frozenset({"locals", "exec"})

_LEAVE = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"})
_JUMP = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})


class Liveness:
    """Live locals of one code object.

    A local is live before a step if some path from there reads it before writing it. Where the code can
    look at its own frame behind the compiler's back (it names a frame reader), every local is live
    everywhere; where it has ``__class__`` as a free variable, that and the first argument are, for a call of
    ``super`` reads them so.
    """

    def __init__(self, decoded: Decoded, code: CodeType) -> None:
        self.slots = decoded.slots
        self._bits = {name: 1 << at for at, name in enumerate(decoded.slots)}
        self._always = self._always_live(decoded, code)
        reads, writes = self._accesses(decoded)
        self._live = self._search(decoded, reads, writes)

    def _always_live(self, decoded: Decoded, code: CodeType) -> int:
        if _reads_frame(decoded, code):
            return (1 << len(self.slots)) - 1
        if "__class__" in code.co_freevars:
            return self._mask(["__class__", *code.co_varnames[:1]])
        return 0

    def _mask(self, names: Iterable[str]) -> int:
        mask = 0
        for name in names:
            mask |= self._bits[name]
        return mask

    def _accesses(self, decoded: Decoded) -> tuple[list[int], list[int]]:
        """What each step reads before it writes, and what it writes."""
        reads, writes = [0] * len(decoded), [0] * len(decoded)
        for at, operand in enumerate(decoded.operands):
            handlers = decoded.handlers(at)
            if handlers == ("COPY_FREE_VARS",):
                writes[at] = self._mask(operand)
                continue
            parts = (operand,) if len(handlers) == 1 else operand
            for handler, name in zip(handlers, parts, strict=True):
                if handler in _READS:
                    reads[at] |= self._bits[name] & ~writes[at]
                if handler in _WRITES:
                    writes[at] |= self._bits[name]
        return reads, writes

    def _search(self, decoded: Decoded, reads: list[int], writes: list[int]) -> list[int]:
        """Repeat the backward pass until nothing is added; loops need a second one, seldom more."""
        live = [0] * (len(decoded) + 1)
        handler = [-1] * len(decoded)
        for region in decoded.regions:
            handler[region.start : region.end] = [region.target] * (region.end - region.start)
        successors = [_successors(decoded, at) for at in range(len(decoded))]
        changed = True
        while changed:
            changed = False
            for at in range(len(decoded) - 1, -1, -1):
                after = 0
                for successor in successors[at]:
                    after |= live[successor]
                before = reads[at] | after & ~writes[at]
                if handler[at] >= 0:
                    before |= live[handler[at]]
                if before != live[at]:
                    live[at], changed = before, True
        return live

    def mask(self, index: int) -> int:
        """The live locals before a step as bits, in the order of `slots`."""
        return self._live[index] | self._always

    def before(self, index: int) -> tuple[str, ...]:
        """Names of the live locals before a step, in the order of the slots."""
        mask = self.mask(index)
        return tuple(name for name, bit in self._bits.items() if mask & bit)


def _reads_frame(decoded: Decoded, code: CodeType) -> bool:
    """Whether the code names something that looks at the locals of its frame."""
    if not FRAME_READING_ATTRIBUTES.isdisjoint(code.co_names):
        return True
    if FRAME_READERS.isdisjoint(code.co_names):
        return False
    return any(
        decoded.op(at) == "LOAD_GLOBAL" and operand[0] in FRAME_READERS
        for at, operand in enumerate(decoded.operands)
    )


def asks_again(code: CodeType) -> bool:
    """Whether a frame of the code can find again what it put into the dictionary of its locals: it names one
    of `LOCALS_WRITERS`, and another of `FRAME_READERS` or a loop."""
    if LOCALS_WRITERS.isdisjoint(code.co_names):
        return False
    decoded = decode(code)
    sites = [
        operand[0]
        for at, operand in enumerate(decoded.operands)
        if decoded.op(at) == "LOAD_GLOBAL" and operand[0] in FRAME_READERS
    ]
    loops = any(decoded.op(at).startswith("JUMP_BACKWARD") for at in range(len(decoded)))
    return not LOCALS_WRITERS.isdisjoint(sites) and (len(sites) > 1 or loops)


def keeps_frame(code: CodeType) -> bool:
    """Whether a frame of the code asks for itself as an object, and for more of it than is the same in all
    parts of a frame that was cut: what it finds then is to be the frame that goes on."""
    if _FRAME_GIVERS.isdisjoint(code.co_names):
        return False
    decoded = decode(code)
    return any(_keeps_what_it_gives(decoded, at) for at in range(len(decoded)) if _gives_frame(decoded, at))


def _gives_frame(decoded: Decoded, at: int) -> bool:
    operand = decoded.operands[at]
    names = operand if isinstance(operand, tuple) else (operand,)
    return decoded.op(at).startswith("LOAD_") and not _FRAME_GIVERS.isdisjoint(names)


def _keeps_what_it_gives(decoded: Decoded, at: int) -> bool:
    """Whether the frame that a call of what is loaded at a step gives is kept; another one's is not asked
    about."""
    steps = [step for step in range(at + 1, len(decoded)) if decoded.op(step) not in _BEFORE_CALL][:3]
    if len(steps) == 3 and decoded.op(steps[0]) == "LOAD_CONST" and decoded.op(steps[1]) == "CALL":
        depth = decoded.operands[steps[0]]
        if isinstance(depth, int) and depth > 0:
            return False
        del steps[0]
    if len(steps) < 2 or decoded.op(steps[0]) != "CALL" or decoded.op(steps[1]) != "LOAD_ATTR":
        return True
    return decoded.operands[steps[1]][0] not in _SAME_IN_ALL_PARTS


def _successors(decoded: Decoded, at: int) -> tuple[int, ...]:
    handler = decoded.handlers(at)[-1]
    if handler in _LEAVE:
        return ()
    if decoded.jumps(at):
        target: int = decoded.operands[at]
        return (target,) if handler in _JUMP else (target, at + 1)
    return (at + 1,)


_known: ByCode[Liveness] = ByCode()


def live_locals(code: CodeType) -> Liveness:
    """The liveness of a code object; worked out at the first call, kept as long as the code lives."""
    found = _known.get(code)
    if found is None:
        found = _known[code] = Liveness(decode(code), code)
    return found
