"""What all translators of one capture share: heap, graph, guards, objects met, and the end of it.

Owns the lifetime of a capture; it must not know opcodes or how frames run.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Hashable
from types import CodeType, ModuleType
from typing import Any, Final, cast

import torch

from graphlift import _C, config
from graphlift.backends import writes_of
from graphlift.bytecode.by_code import ByCode
from graphlift.dynamic import DynamicPolicy
from graphlift.graph_value import GraphValue, SymValue
from graphlift.guards.guard import Guard, Where
from graphlift.heap import Handle, Heap
from graphlift.interpreter.known_reads import KnownReads
from graphlift.output_graph import OutputGraph
from graphlift.profile import FunctionClock
from graphlift.protocol import Make, Tx, Var
from graphlift.reasons import Reason
from graphlift.rules.tensor_members import class_version
from graphlift.sources import GlobalSource, ModuleDictSource, ObjectSource, Source
from graphlift.variables.builder import Builder


class Assumptions:
    """Everything that a capture assumed, each thing once, in the order it was first needed."""

    def __init__(self) -> None:
        self.known: dict[tuple[Hashable, ...], Guard] = {}
        #: Places that were there, whatever is in them: mostly something else is assumed of them, too.
        self.presence: list[tuple[Source, Where]] = []

    def add(self, kind: str, source: Source | None, payload: tuple[Any, ...], tx: Tx) -> None:
        """Assume `kind` of `source`, unless it was assumed already."""
        key: tuple[Hashable, ...]
        if len(payload) == 1:  # nearly always
            part = payload[0]
            cls = type(part)
            key = (kind, source, part if cls is str or cls is type else exact(part))
        else:
            key = (kind, source, *map(exact, payload))
        if key not in self.known:
            self.known[key] = Guard(kind, source, payload, tx.where())


_BY_VALUE: Final = frozenset({int, bool, type(None), bytes})


def exact(part: Any) -> Hashable:
    """A key that tells 1, 1.0 and True apart, and objects by identity."""
    kind = type(part)
    if kind is str:
        return cast(Hashable, part)  # equal to nothing but a string
    if kind in _BY_VALUE:
        return (kind, part)
    if kind is tuple:
        return tuple(map(exact, part))
    return (kind, id(part))


#: ``predicate(code, step)``: whether to cut the graph before that step.
ForcedBreaks = Callable[[CodeType, int], bool]

_forced: ForcedBreaks | None = None


def forced_breaks() -> ForcedBreaks | None:
    """Where graphs are to be cut although they need not be."""
    return _forced


def force_breaks(predicate: ForcedBreaks | None) -> ForcedBreaks | None:
    """Cut graphs where `predicate` says so, in every capture from now on; gives the former predicate."""
    global _forced
    former, _forced = _forced, predicate
    return former


def module_of(module_globals: dict[str, Any]) -> ModuleType | None:
    """The loaded module whose namespace it is; None for that of code run by ``exec`` and the like."""
    name = module_globals.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    found = isinstance(module, ModuleType) and module.__dict__ is module_globals
    return module if found else None


class Capture:
    """The shared state of one capture.

    Arguments:
        settings: the capture settings (backend, dynamic, fullgraph, …).
        inline: ``inline(tx, function, code, bound, closure, module_globals)`` runs a called function.
        resume: ``resume(tx, frame, sent, error)`` runs a suspended frame on.
        run_body: ``run_body(tx, code, names, closure, module_globals)`` runs the body of a class.
        policy: decides which numbers and sizes become symbolic.

    Attributes:
        careful: whether frames keep a snapshot of themselves before each instruction.
        forced: asked before each instruction whether the graph is to be cut there (for tests), or None.
        torch_state: torch's global state at the beginning.
        tensor_class: the version of `torch.nn.Parameter`, and so of its bases, at the beginning.
        grad_mode: whether grad mode was on at the beginning.
        entered: torch's global state at the beginning of each ``with`` block, by what leaves it.
        known_reads: what look-ups of attributes by methods of the program's gave.
        writes: when what the backend makes of the graph writes to its inputs.
        clock: adds up time by function in the profile mode, else None.
        calls: Python functions called so far.
        turns: turns of loops so far.
    """

    def __init__(
        self,
        settings: Any,
        *,
        inline: Callable[..., Var],
        resume: Callable[..., tuple[bool, Var]],
        run_body: Callable[..., Var],
        policy: DynamicPolicy | None = None,
        careful: bool = False,
    ) -> None:
        self.settings = settings
        self.heap = Heap()
        self.graph = OutputGraph(self.heap)
        self.assumptions = Assumptions()
        #: Generators that the program made.
        self.generators: list[Any] = []
        self.reads: dict[tuple[int, Hashable], Any] = {}
        self.objects: dict[int, tuple[object, Var]] = {}
        #: Trackers of containers among the constants of code, by address: their code keeps them alive.
        self.constants: dict[int, Var] = {}
        self.inline = inline
        self.resume = resume
        self.run_body = run_body
        self._policy = policy
        self.forced = forced_breaks()
        self.careful = careful or self.forced is not None
        #: The steps of each code, each taking a snapshot first.
        self.careful_steps: ByCode[Any] = ByCode()
        self.torch_state = _C.torch_state()
        self.tensor_class = class_version()
        self.grad_mode = torch.is_grad_enabled()
        self.entered: dict[Var, Any] = {}
        self.known_reads = KnownReads()
        self.writes = writes_of(settings.backend)
        self._builders: list[Builder] = []
        self.clock: FunctionClock | None = None
        self.calls = 0
        self.turns = 0

    def maker(self, tx: Tx) -> Make:
        """The makers of trackers for one translator."""
        builder = Builder(tx, self.objects)
        self._builders.append(builder)
        return cast(Make, builder)

    def is_symbolic(self, source: Source, number: float) -> bool:
        """Whether a number of the program is not to be fixed by this capture."""
        return self._policy is not None and self._policy.number(source, number)

    def symbolic_sizes(self, source: Source, tensor: torch.Tensor) -> tuple[bool, ...] | None:
        """For each dimension of an input whether its size is not to be fixed; None for none."""
        return None if self._policy is None else self._policy.sizes(source, tensor)

    def moves(self, source: Source, position: object) -> bool:
        """Whether an iterator is not to be followed from its present position."""
        return self._policy is not None and self._policy.moves(source, position)

    def varies(self, source: Source, state: object) -> bool:
        """Whether contents of an object of the program are not to be fixed by this capture."""
        return self._policy is not None and self._policy.contents(source, state)

    def turn(self, tx: Tx) -> None:
        """Count a turn of a loop; breaks when there are more than any capture should follow."""
        self.turns += 1
        if self.turns > config.turn_limit:
            self.turns = 0
            tx.fail(Reason.TOO_LONG, f"more than {config.turn_limit} turns of loops in one capture")

    def close(self) -> None:
        """Put torch's state back, and take apart what holds itself in circles."""
        met = [getattr(var, "value", None) for _, var in self.objects.values()]
        for value in (*met, *(operation.value for operation in self.graph.operations)):
            if type(value) in (GraphValue, SymValue):
                value.var = None
        for builder in self._builders:
            builder.__dict__.clear()
        self._builders.clear()
        self.heap.clear()
        self.objects.clear()
        self.generators.clear()
        self.reads.clear()
        self.known_reads.clear()
        self.entered.clear()
        self.graph.restore_state()

    def module_source(self, module_globals: dict[str, object]) -> Source | None:
        """The source of a loaded module's namespace, or None for graphlift's own and unknown ones."""
        module = module_of(module_globals)
        if module is None or module.__name__.startswith("graphlift."):
            return None
        return self.object_source(module.__name__).child(ModuleDictSource, "__dict__")

    def builtins_of(self, module_globals: Handle) -> Handle:
        """The namespace in which code of a module looks up what its globals lack.

        Nearly always the process's; but code may bring its own (`exec`, the methods of named tuples).
        """
        made: Handle | None = self.reads.get((id(module_globals), "builtins"))
        if made is not None:  # of a dictionary that the program made, see `builtins/execution.py`
            return made
        own = module_globals.real.get("__builtins__", builtins)
        if isinstance(own, dict) and own is not builtins.__dict__:
            source = module_globals.source
            place = None if source is None else source.child(GlobalSource, "__builtins__")
            found = self.heap.known(own) or self.heap.handle_of(own, place)
        else:
            name = own.__name__ if isinstance(own, ModuleType) else "builtins"
            namespace = vars(own) if isinstance(own, ModuleType) else builtins.__dict__
            place = self.object_source(name).child(ModuleDictSource, "__dict__")
            found = self.heap.known(namespace) or self.heap.handle_of(namespace, place)
        self.reads[(id(module_globals), "builtins")] = found
        return found

    def object_source(self, name: str) -> Source:
        """The source of a loaded module; one object a module and capture."""
        key = (0, ("module", name))
        source: Source | None = self.reads.get(key)
        if source is None:
            source = self.reads[key] = ObjectSource(None, name)
        return source
