"""What one interpreted frame consists of, and nothing of how it is run."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any

from graphlift.bytecode.decode import Decoded
from graphlift.bytecode.liveness import live_locals
from graphlift.codegen.shapes import Entry, Shape
from graphlift.heap import Handle
from graphlift.protocol import Var
from graphlift.variables.base import VariableTracker


class NullVariable(VariableTracker):
    """The NULL that CPython keeps on the stack beside a callable and in unbound fast locals."""

    __slots__ = ()


#: The one NULL.
NULL = NullVariable()


class HandledVariable(VariableTracker):
    """What PUSH_EXC_INFO leaves below an exception: the one that was handled before it.

    Attributes:
        former: that exception, or None.
        current: the exception that is handled from here on.
    """

    __slots__ = ("current", "former")

    def __init__(self, former: Var | None, current: Var) -> None:
        self.source = None
        self.former = former
        self.current = current


class LastiVariable(VariableTracker):
    """What unwinding leaves below an exception for RERAISE: the instruction that failed.

    Attributes:
        index: its step.
    """

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.source = None
        self.index = index


class Snapshot:
    """A frame as it was before its present instruction.

    Attributes:
        index: the step.
        stack: the value stack.
        keyword_names: names for the call at this step.
        heap, graph: lengths to roll back to.
    """

    __slots__ = ("graph", "heap", "index", "keyword_names", "stack")

    def __init__(self, index: int, frame: FrameState, heap: int, graph: Any) -> None:
        self.index = index
        self.stack = frame.stack.copy()
        self.keyword_names = frame.keyword_names
        self.heap = heap
        self.graph = graph


def entries_of(stack: Sequence[Any]) -> tuple[tuple[Entry, ...], list[Var]]:
    """The kinds of stack entries, and the trackers of those that are passed on when the frame is left."""
    kinds: list[Entry] = []
    values: list[Var] = []
    for at, entry in enumerate(stack):
        if entry is NULL:
            kinds.append("null")
        elif type(entry) is HandledVariable:
            first = stack.index(entry)
            if first < at:
                kinds.append(("copy", first))
            else:
                kinds.append("handled")
                values.append(entry.current)
        elif type(entry) is LastiVariable:
            kinds.append(("lasti", entry.index))
        else:
            kinds.append("value")
            values.append(entry)
    return tuple(kinds), values


class FrameState:
    """Stack, locals and cells of one frame; suspended and resumed as one piece for generators.

    Attributes:
        code: the code object that is interpreted.
        decoded: its decoded form.
        stack: the value stack, its top last.
        symbolic_locals: fast locals by slot name; an unbound local has no entry, a cell or free variable
            has a `CellVariable`.
        module_globals: handle of the namespace that global names are looked up in.
        closure: cells for the code's free variables, in order.
        ip: index of the next step.
        handled: the exception being handled in this frame (what ``except`` blocks see), or None.
        keyword_names: names that a ``KW_NAMES`` left for the next call.
        names: the namespace of a class body, or None in a function.
    """

    __slots__ = (
        "closure",
        "code",
        "decoded",
        "handled",
        "ip",
        "keyword_names",
        "module_globals",
        "names",
        "stack",
        "symbolic_locals",
    )

    def __init__(
        self,
        code: CodeType,
        decoded: Decoded,
        symbolic_locals: dict[str, Var],
        closure: Sequence[Handle],
        module_globals: Handle,
    ) -> None:
        self.code = code
        self.decoded = decoded
        self.stack: list[Any] = []
        self.symbolic_locals = symbolic_locals
        self.closure = closure
        self.module_globals = module_globals
        self.ip = 0
        self.handled: Var | None = None
        self.keyword_names: tuple[str, ...] = ()
        self.names: Var | None = None

    def shape_at(self, index: int, stack: Sequence[Any]) -> tuple[Shape, list[Var]]:
        """What the frame looks like before a step, and the trackers of the shape's parameters."""
        alive = live_locals(self.code).before(index)
        names = tuple(name for name in alive if name in self.symbolic_locals)
        kinds, values = entries_of(stack)
        return Shape(index, names, kinds), [*(self.symbolic_locals[name] for name in names), *values]

    def suspended_shape(self) -> tuple[Shape, list[Var]]:
        """The same for the ``yield`` at which a started generator waits, without the value yielded."""
        return self.shape_at(self.ip - 1, self.stack)

    def copy(self) -> FrameState:
        """A snapshot: contents are shared, containers are not."""
        other = FrameState(
            self.code, self.decoded, dict(self.symbolic_locals), self.closure, self.module_globals
        )
        other.restore(self)
        return other

    def restore(self, snapshot: FrameState) -> None:
        """Go back to a snapshot of the same frame."""
        self.stack = list(snapshot.stack)
        self.symbolic_locals = dict(snapshot.symbolic_locals)
        self.ip = snapshot.ip
        self.handled = snapshot.handled
        self.keyword_names = snapshot.keyword_names
