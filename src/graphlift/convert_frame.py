"""One frame from the door to the cache: may it be captured, translate it, compile, emit, publish.

The gatekeeper between the C core and the translator. An error of graphlift's own ends here: the frame runs
plainly, and the error is logged once, unless the settings ask for it.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from graphlift import _C, config, events
from graphlift.backends import compile_graph
from graphlift.bytecode.verify import verify_code
from graphlift.errors import ObservedException, SkipFrame, Unsupported
from graphlift.guards.compile import CompiledGuards, compile_guards, guard_costs
from graphlift.guards.explain import failed_guard
from graphlift.guards.guard import Guard
from graphlift.guards.holding import NotGuardableError
from graphlift.interpreter.capture import Assumptions, Capture, forced_breaks
from graphlift.interpreter.graph_break import Cut, SegmentName
from graphlift.interpreter.root import InstructionTranslator, Translation, entry_code, new_capture
from graphlift.meta_propagation.state import changes_state
from graphlift.output_graph import CapturedGraph
from graphlift.profile import FunctionClock, GuardCost, Profile
from graphlift.quiet import capturing, collector_paused, on_roomy_stack
from graphlift.reasons import Reason
from graphlift.segments import Segment, Segments
from graphlift.sources import PRODUCT_PREFIX, Source
from graphlift.user_frames import Place, UserFrame

_product_numbers = itertools.count()

#: So many calls and turns of loops that are done at capture save about as much time as one operation takes.
_PYTHON_STEPS = 16


def _computing(graph: CapturedGraph) -> int:
    """How many operations of a graph do more than change torch's state."""
    return sum(not changes_state(operation) for operation in graph.operations)


class Published:
    """What an entry keeps: its guards for explanation, and the global names of what its code calls.

    The names are taken out of the user's module when the entry dies.

    Attributes:
        guards: the compiled guards.
        segments: those that the entry's code jumps to.
        worth: operations of the graph that compute something, and Python work that is done beforehand.
        capture_id: of the capture.
    """

    def __init__(
        self,
        guards: CompiledGuards,
        names: Sequence[str],
        namespace: dict[str, Any],
        segments: list[Segment],
        worth: int,
        capture_id: int,
    ) -> None:
        self.worth = worth
        self.capture_id = capture_id
        self.guards = guards
        self.segments = segments
        self._names = tuple(names)
        self._namespace = namespace

    def __del__(self) -> None:
        for name in self._names:
            self._namespace.pop(name, None)


def recompile_reasons(cache: _C.Cache, function: FunctionType, params: tuple[Any, ...]) -> list[str]:
    """For each entry of a cache the sentence that tells which guard failed, newest first."""
    sentences = []
    for entry in cache.entries:
        published = entry.data
        if isinstance(published, Published):
            failure = failed_guard(published.guards, function, params)
            captured: Any = entry.function
            if failure is not None:
                sentences.append(failure[1])
            elif captured is not None and captured.__globals__ is not function.__globals__:
                sentences.append(f"`{function.__qualname__}` was a function with other global names")
    return sentences


class Conversion:
    """The capture of one frame.

    Arguments:
        function: whose frame it is.
        params: its parameters' values, in the order of slots.
        settings: the capture settings.
        owner: the compiled object on whose behalf it happens.
        log: the owner's list of records, or None.
        policy: decides what becomes dynamic, or None.
        segments: makes what goes on behind a cut; None: a frame that must be cut runs plainly.
    """

    def __init__(
        self,
        function: FunctionType,
        params: tuple[Any, ...],
        settings: Any,
        owner: object,
        log: Any = None,
        policy: Any = None,
        segments: Segments | None = None,
    ) -> None:
        self.function = function
        self.code = function.__code__
        self.params = params
        self.settings = settings
        self.owner = owner
        self.log = log
        self.policy = policy
        self.segments = segments
        self.id = events.new_capture_id()
        self.seconds: dict[str, float] = {}
        self._clock = FunctionClock() if events.listening(events.CaptureProfiled) else None
        self._costs: Sequence[GuardCost] = ()

    def run(self, recompiling: Sequence[str] = ()) -> _C.Entry | None:
        """Capture the frame; None when CPython is to run it and it was not even looked at.

        Raises:
            Unsupported: under ``fullgraph=True``, where the graph would be cut.
            RecursionError: no room is left on the stack; CPython is to run the frame.
        """
        events.emit(events.CaptureStarted(self.id, self.code, self.log))
        if recompiling:
            events.emit(events.Recompiling(self.id, self.code, recompiling))
        outcome: events.Outcome = "failed"
        try:
            entry = on_roomy_stack(self._entry)
            outcome = "captured" if entry is not None and entry.function is not None else "skipped"
            return entry
        except Unsupported:
            outcome = "skipped"
            raise
        except RecursionError:
            outcome = "skipped"
            if self.settings.fullgraph:
                raise Unsupported(Reason.RECURSION, "no room is left on the stack for a capture") from None
            raise
        except Exception as error:
            events.emit(events.InternalFailure(self.id, self.code, error))
            if self.settings.fullgraph or not config.suppress_errors:
                raise
            return None
        finally:
            profile = self._profile()
            events.emit(events.CaptureFinished(self.id, self.code, outcome, self.seconds, profile))

    def _profile(self) -> Profile | None:
        if self._clock is None:
            return None
        profile = Profile(self._clock.functions(), self._costs)
        events.emit(events.CaptureProfiled(self.id, self.code, profile))
        return profile

    def _entry(self) -> _C.Entry | None:
        with collector_paused():
            if forced_breaks() is None:
                try:
                    return self._attempt(careful=False)
                except Unsupported as cut:
                    self._announce(cut)
                    if self.settings.fullgraph:
                        raise
                    cut.__traceback__ = None  # it leads to the frames that were interpreted
            return self._attempt(careful=True)

    def _attempt(self, careful: bool) -> _C.Entry | None:
        """Capture the frame: in one piece, or carefully up to where it must be cut.

        Snapshots before each instruction cost time, so they are taken only when a first attempt has shown
        that they will be needed.
        """
        capture = new_capture(self.settings, self.policy, careful)
        capture.clock = self._clock
        try:
            return self._tried(capture, careful)
        except NotGuardableError as error:
            self._unguarded(error)
            return None
        finally:
            capture.close()

    def _tried(self, capture: Capture, careful: bool) -> _C.Entry | None:
        used: list[Segment] = []
        try:
            with capturing(), self._phase("translate"):
                translator = InstructionTranslator(capture, self.function, self.params)
                translation = self._translated(translator, self._namer(used) if careful else None)
            capture.graph.restore_state()  # a compiler starts where the graph starts
            return self._captured_entry(translation, used, capture.calls + capture.turns)
        except ObservedException:
            return self._plain_entry(capture.assumptions)
        except SkipFrame:
            return None
        except Unsupported as cut:
            cut.frames.clear()
            if not careful:
                raise
            return self._plain_entry(capture.assumptions)

    def _unguarded(self, error: NotGuardableError) -> None:
        """A frame whose assumptions cannot be guarded, not even those before a cut: CPython runs it."""
        cut = Unsupported(Reason.UNSUPPORTED_VALUE, str(error))
        code = self.code
        cut.leaves(Place(UserFrame(code.co_filename, code.co_firstlineno, code.co_name)))
        self._announce(cut)
        if self.settings.fullgraph:
            raise cut from None

    @staticmethod
    def _translated(translator: InstructionTranslator, name: SegmentName | None) -> Translation:
        """The translation; an error that comes when the frame has been run through gets its last place."""
        try:
            return translator.translate(name)
        except Unsupported as error:
            if not error.stack:
                translator.note_place(error)
            raise

    def _namer(self, used: list[Segment]) -> SegmentName | None:
        segments = self.segments
        if segments is None:
            return None

        def name(cut: Cut, namespace: dict[str, Any]) -> str:
            segment = segments.at(cut)
            used.append(segment)
            return segment.name_in(namespace)

        return name

    def _announce(self, cut: Unsupported) -> None:
        cut.leaves_capture()
        events.emit(
            events.GraphBroken(self.id, cut.reason, cut.context, tuple(cut.stack), cut.message, cut.place)
        )

    def _plain_entry(self, assumptions: Assumptions) -> _C.Entry:
        compiled = self._guards(assumptions, [], ())
        return _C.Entry(compiled.program, None, None, self.owner, Published(compiled, (), {}, [], 0, self.id))

    def _captured_entry(self, translation: Translation, used: list[Segment], absorbed: int) -> _C.Entry:
        graph = translation.graph
        if not graph.operations and not used:  # nothing that a backend could do better than CPython
            return self._plain_entry(translation.assumptions)
        name, failure = None, None
        globals_: dict[str, Any] = {}
        if graph.operations:
            events.emit(events.GraphFinished(self.id, self.code, graph))
            name = f"{PRODUCT_PREFIX}{next(_product_numbers)}_{uuid.uuid4().hex}"
            with self._phase("backend"):
                globals_[name] = compile_graph(graph, self.settings)
            if graph.may_raise:
                failure = f"{name}_failed", translation.failing.of(graph)
                globals_.update([failure])
        with self._phase("emit"):
            emitted = entry_code(self.code, translation, name, failure)
            code = emitted.as_function()
            if config.verify_bytecode:
                verify_code(code)
        with self._phase("guards"):
            relations = [Guard("expression", None, items) for items in graph.shape_guards()]
            guards = self._guards(translation.assumptions, relations, emitted.bound)
        namespace = self.function.__globals__
        namespace.update(globals_)
        worth = absorbed // _PYTHON_STEPS + _computing(graph)
        published = Published(guards, tuple(globals_), namespace, used, worth, self.id)
        if events.listening(events.BytecodeMade):
            events.emit(events.BytecodeMade(self.id, self.code, code))
        function = FunctionType(code, namespace, self.function.__name__)
        entry = _C.Entry(guards.program, function, emitted.as_swap(code), self.owner, published)
        entry.worthwhile = worth >= config.give_up_below
        if used:
            entry.review_at = config.give_up_after
        return entry

    def _guards(
        self, assumptions: Assumptions, relations: list[Guard], outputs: Sequence[Source]
    ) -> CompiledGuards:
        guards = [*assumptions.known.values(), *relations]
        compiled = compile_guards(guards, outputs, assumptions.presence, check=config.check_guards)
        if self._clock is not None:
            self._costs = guard_costs(compiled, self.function, self.params)
        if events.listening(events.EntryAdded):
            guards += [Guard("there", source, (), where) for source, where in assumptions.presence]
            events.emit(events.EntryAdded(self.id, self.code, guards, compiled.lines))
        return compiled

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
