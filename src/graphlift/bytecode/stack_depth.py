"""How deep the value stack is before each instruction, by following every path.

The effect of a single instruction is asked of CPython itself, so there is no table here that could be
wrong for one version. Serves emission (stack size, depth of handlers) and verification.
"""

from __future__ import annotations

from collections.abc import Sequence
from opcode import HAVE_ARGUMENT, opmap, opname, stack_effect

from graphlift.bytecode.versions import LAYOUT
from graphlift.errors import InternalError

#: Opcodes after which control never goes on to the next instruction.
LEAVES = frozenset(
    number
    for name, number in opmap.items()
    if name.removeprefix("INSTRUMENTED_")
    in {
        "RETURN_VALUE",
        "RETURN_CONST",
        "RAISE_VARARGS",
        "RERAISE",
        "JUMP_FORWARD",
        "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT",
        "INTERPRETER_EXIT",
    }
)

RETURN_GENERATOR = opmap["RETURN_GENERATOR"]

#: Effects met so far, by number and argument in one: of going on to the next instruction, and of jumping.
_going_on: dict[int, int] = {}
_jumping: dict[int, int] = {}


def effect(number: int, arg: int, jump: bool = False) -> int:
    """By how much an instruction changes the depth; `jump`: when it jumps, not when it goes on."""
    known = _jumping if jump else _going_on
    key = arg << 8 | number
    found = known.get(key)
    if found is None:
        found = stack_effect(number, arg if number >= HAVE_ARGUMENT else None, jump=jump)
        if number == RETURN_GENERATOR:
            found += LAYOUT.return_generator_pushes
        known[key] = found
    return found


class Guarded:
    """A protected range as the search of depths sees it.

    Attributes:
        start: first instruction.
        target: instruction at which the handler begins.
        lasti: whether the handler finds the failing offset below the exception.
        depth: depth to unwind to; None until the depth at `start` is known.
    """

    __slots__ = ("depth", "entered", "lasti", "start", "target")

    def __init__(self, start: int, target: int, lasti: bool, depth: int | None) -> None:
        self.start = start
        self.target = target
        self.lasti = lasti
        self.depth = depth
        self.entered = False


class Flow:
    """The depth of the stack before each instruction of a code.

    Arguments:
        numbers, args: opcode numbers and arguments.
        targets: where an instruction may jump to, by its index.
        guards: the range in force at each instruction, or None where there is none; empty when no
            instruction has one.

    Attributes:
        depths: depth before each instruction; None for what no path reaches.
        size: the greatest depth that occurs.

    Raises InternalError where paths disagree, the stack would run empty or control runs off the end.
    """

    def __init__(
        self,
        numbers: Sequence[int],
        args: Sequence[int],
        targets: dict[int, int],
        guards: Sequence[Guarded | None] = (),
    ) -> None:
        self.numbers = numbers
        self.args = args
        self.targets = targets
        self.guards = guards
        self.depths: list[int | None] = [None] * len(numbers)
        self.size = 0
        self._pending: list[tuple[int, int]] = [(0, 0)]
        self._waiting: set[Guarded] = set()
        while self._pending:
            self._follow(*self._pending.pop())
            if not self._pending:
                self._enter_waiting()
        if self._waiting:
            raise InternalError("a protected range is entered only in its middle; give its depth")

    def _follow(self, start: int, depth: int) -> None:
        """Walk one path until it ends or joins what is known."""
        numbers, args, targets, depths, guards = (
            self.numbers,
            self.args,
            self.targets,
            self.depths,
            self.guards,
        )
        deepest = self.size
        for at in range(start, len(numbers)):
            known = depths[at]
            if known is not None:
                if known != depth:
                    raise InternalError(f"{self._name(at)} is reached at depths {known} and {depth}")
                break
            depths[at] = depth
            if guards and (guard := guards[at]) is not None and not guard.entered:
                self._enter(guard, at, depth)
            number, arg = numbers[at], args[at]
            if at in targets:
                self._jump(at, depth)
            change = _going_on.get(arg << 8 | number)
            depth += effect(number, arg) if change is None else change
            if depth > deepest:
                deepest = depth
            elif depth < 0:
                raise InternalError(f"{self._name(at)} finds too few values on the stack")
            if number in LEAVES:
                break
        else:
            raise InternalError("control runs off the end of the code")
        self.size = max(self.size, deepest)

    def _name(self, at: int) -> str:
        return f"instruction {at} ({opname[self.numbers[at]]})"

    def _jump(self, at: int, depth: int) -> None:
        """Note a jump's target as one more place to walk from."""
        depth += effect(self.numbers[at], self.args[at], True)
        if depth < 0:
            raise InternalError(f"{self._name(at)} finds too few values on the stack")
        self.size = max(self.size, depth)
        self._pending.append((self.targets[at], depth))

    def _enter(self, guard: Guarded, at: int, depth: int) -> None:
        """Note that a range was reached; follow its handler as soon as its depth is known."""
        if guard.depth is None:
            if at != guard.start:
                self._waiting.add(guard)
                return
            guard.depth = depth
        self._waiting.discard(guard)
        guard.entered = True
        entry = guard.depth + guard.lasti + 1
        self.size = max(self.size, entry)
        self._pending.append((guard.target, entry))

    def _enter_waiting(self) -> None:
        """Ranges first reached in their middle get the depth of their start, if that is known by now."""
        for guard in list(self._waiting):
            depth = self.depths[guard.start]
            if depth is not None:
                self._enter(guard, guard.start, depth)
