"""The stack machine: one frame run on trackers, step by step.

Owns the loop and what handlers and slots ask of the translator. It must not know which frame it runs
(`root.py` and `inline.py` do) nor how any opcode works (`handlers/`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import CodeType
from typing import Any, ClassVar, Final, NamedTuple, NoReturn

from graphlift import events
from graphlift.bytecode import liveness, versions
from graphlift.bytecode.by_code import ByCode
from graphlift.errors import ObservedException, Unsupported
from graphlift.guards.guard import Guard
from graphlift.heap import Handle
from graphlift.interpreter import exposure, handlers, known_reads, operations, unwind
from graphlift.interpreter.capture import Capture, exact
from graphlift.interpreter.dispatch import HANDLERS, Handler, Translator
from graphlift.interpreter.frame_state import FrameState, Snapshot
from graphlift.protocol import Var, Where
from graphlift.reasons import Reason
from graphlift.rules import files
from graphlift.sources import Source
from graphlift.user_frames import Place, UserFrame
from graphlift.variables import exceptions, mappings, sets
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.methods import BoundMethodVariable
from graphlift.variables.sequences import TupleVariable
from graphlift.variables.slots import calls, items, iteration

# Importing the package is what fills `HANDLERS`.
assert handlers is not None

#: Makes a named tuple without the call of its class.
_new: Final = tuple.__new__

_FUSED: dict[tuple[Handler, ...], Handler] = {}

#: A handler, its operand, and the index of the next step.
Step = tuple[Handler, Any, int]

#: What `_carefully` made.
_careful_steps: ByCode[list[Step]] = ByCode()


def fuse(handlers: tuple[Handler, ...]) -> Handler:
    """One handler for a fused opcode; its operand is the tuple of its parts' operands."""
    made = _FUSED.get(handlers)
    if made is None:

        def run(tx: InstructionTranslatorBase, operands: tuple[Any, ...]) -> None:
            for part, operand in zip(handlers, operands, strict=True):
                part(tx, operand)

        made = _FUSED[handlers] = run
    return made


def opcode_table(named: Mapping[str, Handler]) -> list[Handler]:
    """The handler of each of the 256 opcode numbers of the running Python.

    Raises:
        KeyError: a real opcode has no handler.
    """
    missing = named["UNEXPECTED_OPCODE"]
    table = [missing] * 256
    for number, row in enumerate(versions.ROWS):
        if row is not None:
            parts = tuple(named[name] for name in row.handlers)
            table[number] = parts[0] if len(parts) == 1 else fuse(parts)
    return table


class LastCall(NamedTuple):
    """A call after which nothing but a known rest of the caller's instruction is left to do.

    Attributes:
        function: what is called.
        finish: the rest, by its name in `codegen.continuations`.
        values: what the rest needs.
    """

    function: Var
    finish: str
    values: tuple[Var, ...]


class InstructionTranslatorBase(Translator):
    """Runs one frame.

    Attributes:
        parent: the translator of the calling frame, or None.
        depth: how many frames of the program are below this one.
        function: whose frame it is, where that was called by captured code.
        last: where the caller's instruction ends with this call: what is left to do there (see `LastCall`).
        snapshot: the frame before its present instruction, in a careful capture.
        dispatch_table: handlers by opcode number, 256 entries.
    """

    dispatch_table: ClassVar[list[Handler]] = opcode_table(HANDLERS)

    null_before_callable: ClassVar[bool] = not versions.LAYOUT.null_after_callable
    send_keeps_receiver: ClassVar[bool] = versions.LAYOUT.send_keeps_receiver

    # What most frames never set.
    result: Any = None
    #: The caller's place, which stays the same while this frame runs.
    _caller: Where | None = None
    bare_function: tuple[Var, CodeType, dict[str, Var]] | None = None
    function: Var | None = None
    operation: tuple[str, Any] | None = None
    last: LastCall | None = None
    _announced_last: LastCall | None = None
    snapshot: Snapshot | None = None

    def __init__(self, capture: Capture, frame: FrameState, parent: InstructionTranslatorBase | None) -> None:
        self.capture = capture
        self.heap = capture.heap
        self.make = capture.maker(self)
        self.graph = capture.graph
        self.assumptions = capture.assumptions
        self.reads = capture.reads
        self.frame = frame
        self.code = frame.code
        self.stack = frame.stack
        self.symbolic_locals = frame.symbolic_locals
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1

    # --- the loop --------------------------------------------------------------------------

    def run(self) -> int:
        """Run steps until the frame returns or yields (see `dispatch`); the value is in `result`.

        Raises:
            ObservedException: an exception of the program leaves the frame.
            Unsupported: the program cannot be followed further; this frame is added to its stack.
        """
        frame = self.frame
        steps = frame.decoded.bind(HANDLERS, fuse)
        if events.listening(events.Step):
            steps = self._announced(steps)
        if self.capture.careful:
            steps = self._carefully(steps)
        looking = self.capture.known_reads.looking
        if looking is not None:
            steps = known_reads.steps_of(self, looking, steps)
        rest: Any = iter(steps)  # a list's iterator can be put anywhere, which is the fastest way to jump
        rest.__setstate__(frame.ip)
        while True:
            try:
                for handler, operand, frame.ip in rest:
                    moved = handler(self, operand)
                    if moved is not None:
                        if moved < 0:
                            return moved  # type: ignore[no-any-return]
                        rest.__setstate__(moved)
                raise AssertionError("code that runs past its end")
            except ObservedException as error:
                rest.__setstate__(unwind.enter_handler(self, error))
            except RecursionError:
                break  # so that the cut does not hold, as its context, the frames that were too many
            except Unsupported as error:
                self._leaves(error)
                raise
        cut = Unsupported(Reason.RECURSION, "values nested deeper than the interpreter follows")
        self._leaves(cut)
        try:
            raise cut
        finally:
            del cut  # as in `InstructionTranslator._body_of_cut`

    def _leaves(self, cut: Unsupported) -> None:
        """The frame cannot be followed past its present step: it takes its part in the cut."""
        self.note_place(cut)
        if self.snapshot is not None:
            self._take_part(cut)

    def note_place(self, error: Unsupported) -> None:
        """Add this frame, as it stands, to the user's stack of an error."""
        code = self.code
        position = self.frame.decoded.position(max(self.frame.ip - 1, 0))
        frame = UserFrame(code.co_filename, self.line(), code.co_name)
        error.leaves(Place(frame, position), files.is_machinery(code.co_filename))

    def _carefully(self, steps: list[Step]) -> list[Step]:
        """The steps, each taking a snapshot first; made once a code, where nobody watches or forces cuts."""
        forced, decoded = self.capture.forced, self.frame.decoded
        shared = forced is None and not events.listening(events.Step)
        known = _careful_steps if shared else self.capture.careful_steps
        made = known.get(decoded.code)
        if made is not None:
            return made

        def careful(index: int, handler: Handler) -> Handler:
            read = operations.reader(decoded, index)

            def run(tx: InstructionTranslatorBase, operand: Any) -> int | None:
                tx.snapshot = Snapshot(index, tx.frame, tx.heap.mark(), tx.graph.mark())
                tx.operation = None if read is None else read(tx.stack)
                tx._announced_last = None
                if forced is not None and forced(tx.code, index):
                    tx.fail(Reason.USER_BREAK, "a forced break")
                return handler(tx, operand)

            return run

        made = [(careful(behind - 1, handler), operand, behind) for handler, operand, behind in steps]
        known[decoded.code] = made
        return made

    def _take_part(self, cut: Unsupported) -> None:
        """Add this frame to those that go on behind a cut.

        Where the frame that was called is not to be gone on with, because nobody knows what is left to do
        here when it comes back, this frame's whole instruction is run for real. Where this frame itself must
        stay one frame, that is for the one above to do.
        """
        if cut.reason is Reason.DEBUGGER:
            return  # all frames are looked at, and must be whole
        again = versions.LAYOUT.frame_keeps_locals and liveness.asks_again(self.code)
        if again or liveness.keeps_frame(self.code):
            cut.frames.clear()
            return
        if cut.frames and cut.frames[-1].last is None:
            cut.frames.clear()
        cut.frames.append(self)

    def _announced(self, steps: list[Step]) -> list[Step]:
        decoded = self.frame.decoded

        def announce(index: int, handler: Handler) -> Handler:
            def run(tx: InstructionTranslatorBase, operand: Any) -> int | None:
                events.emit(
                    events.Step(0, decoded.op(index), decoded.shown(index), [repr(v) for v in tx.stack])
                )
                return handler(tx, operand)

            return run

        return [(announce(behind - 1, handler), operand, behind) for handler, operand, behind in steps]

    # --- places ----------------------------------------------------------------------------

    def offset(self) -> int:
        """Byte offset of the present instruction."""
        return self.frame.decoded.offsets[self.frame.ip - 1]

    def line(self) -> int:
        """The user's source line of the present instruction."""
        return self.frame.decoded.line(max(self.frame.ip - 1, 0)) or self.code.co_firstlineno

    def where(self) -> Where:
        """See `protocol.Tx.where`."""
        frame = self.frame
        caller = self._caller
        if caller is None and self.parent is not None:
            caller = self._caller = self.parent.where()
        return (frame.code, frame.decoded.offsets[frame.ip - 1], caller)

    # --- what handlers ask -----------------------------------------------------------------

    def code_constant(self, value: object) -> Var:
        """The tracker of an entry of ``co_consts``; the same one for the same object."""
        if type(value) not in (tuple, frozenset):
            return ConstantVariable(value)
        known = self.capture.constants
        if id(value) not in known:
            known[id(value)] = self._container(value)
        made: Var = known[id(value)]
        return made

    def _container(self, value: Any) -> Var:
        items = [self.code_constant(item) for item in value]
        if type(value) is tuple:
            return TupleVariable(items, existing=value)
        made: Var = sets.in_the_order_of(value, self.make.set(items, frozenset))
        return made

    def call(self, function: Var, args: Sequence[Var], kwargs: Mapping[str, Var] | None = None) -> Var:
        """Call a tracker."""
        result: Var = calls.call(self, function, args, kwargs or {})
        return result

    def keyword_arguments(self, mapping: Var) -> dict[str, Var]:
        """See `dispatch.Translator.keyword_arguments`."""
        entries = mappings.named_entries(self, mapping.realize(self))
        if entries is not None:
            return {name: value for name, (_, value) in entries}
        found: dict[str, Var] = {}
        for key in iteration.unpack(self, calls.call_method(self, mapping, "keys", [], {})):
            name = key.realize(self)
            if not name.is_constant() or not isinstance(name.as_constant(), str):
                self.raise_(TypeError, "keywords must be strings")
            found[name.as_constant()] = items.getitem(self, mapping, name)
        return found

    def callable_name(self, function: Var) -> str:
        """The name of a callable as error messages give it."""
        return calls.callable_name(self, function)

    def named(self, value: Var, name: str) -> None:
        """The program stored `value` under `name`: a graph node without a name takes it."""
        if value.name_hint is not None:
            value.name_hint(self, name)

    def missing(self, what: str) -> NoReturn:
        """Break: an opcode whose work is not modelled."""
        self.fail(Reason.MISSING_HANDLER, what)

    def builtins_handle(self) -> Handle:
        """See `dispatch.Translator.builtins_handle`."""
        handle: Handle = self.capture.builtins_of(self.frame.module_globals)
        return handle

    def turn(self) -> None:
        """See `dispatch.Translator.turn`."""
        self.capture.turn(self)

    def look_up_once(self, key: tuple[Any, ...], look_up: Callable[[], Any]) -> Any:
        """See `protocol.Tx.look_up_once`."""
        return self.capture.known_reads.get(self, key, look_up)

    def is_watched(self) -> bool:
        """See `protocol.Tx.is_watched`."""
        return exposure.is_watched(self)

    def handled_exception(self) -> Var | None:
        """See `dispatch.Translator.handled_exception`."""
        return unwind.handled_exception(self)

    def raise_var(self, value: Var) -> NoReturn:
        """See `dispatch.Translator.raise_var`."""
        unwind.raise_var(self, value)

    # --- protocol.Tx -----------------------------------------------------------------------

    def guard(self, kind: str, source: Source, *payload: object) -> None:
        """See `protocol.Tx.guard`; as `Assumptions.add`, without its call."""
        key: tuple[Hashable, ...]
        if len(payload) == 1:  # nearly always
            part = payload[0]
            cls = type(part)
            key = (kind, source, part if cls is str or cls is type else exact(part))
        else:
            key = (kind, source, *map(exact, payload))
        known = self.assumptions.known
        if key not in known:
            frame = self.frame
            caller = self._caller
            if caller is None and self.parent is not None:
                caller = self._caller = self.parent.where()
            where = (frame.code, frame.decoded.offsets[frame.ip - 1], caller)
            known[key] = _new(Guard, (kind, source, payload, where))

    def present(self, source: Source) -> None:
        """See `protocol.Tx.present`."""
        self.assumptions.presence.append((source, self.where()))

    def globals_handle(
        self, module_globals: dict[str, object], source: Source | None, otherwise: Source | None = None
    ) -> Handle:
        """See `protocol.Tx.globals_handle`."""
        handle = self.heap.known(module_globals)
        if handle is None:
            source = source or self.capture.module_source(module_globals) or otherwise
            handle = self.heap.handle_of(module_globals, source)
        return handle

    def fail(self, reason: Reason, context: str = "") -> NoReturn:
        """See `protocol.Tx.fail`."""
        raise Unsupported(reason, context)

    def recorded(self, index: int) -> None:
        """See `protocol.Tx.recorded`."""
        exposure.recorded(self, index)

    def entering(self, leave: Var) -> None:
        """See `dispatch.Translator.entering`."""
        self.capture.entered[leave] = self.graph.state_key

    def raise_(self, cls: type[BaseException], *args: object) -> NoReturn:
        """See `protocol.Tx.raise_`."""
        trackers = [arg if isinstance(arg, Var) else self.make.constant(arg) for arg in args]
        unwind.raise_var(self, self.make.exception(cls, trackers))

    def raise_real(self, error: BaseException) -> NoReturn:
        """See `protocol.Tx.raise_real`."""
        unwind.raise_var(self, exceptions.of_real(self, error))

    def reraise(self, value: Var) -> NoReturn:
        """Let an exception go on as it is."""
        raise ObservedException(value)

    def inline(
        self,
        function: Var,
        code: CodeType,
        bound: dict[str, Var],
        closure: Sequence[Handle],
        module_globals: Handle,
    ) -> Var:
        """See `protocol.Tx.inline`."""
        result: Var = self.capture.inline(self, function, code, bound, closure, module_globals)
        return result

    def run_body(self, code: CodeType, names: Var, closure: Sequence[Handle], module_globals: Handle) -> Var:
        """See `protocol.Tx.run_body`."""
        result: Var = self.capture.run_body(self, code, names, closure, module_globals)
        return result

    def takes(self, name: str, operand: Var) -> bool:
        """See `protocol.Tx.takes`."""
        operation = self.operation
        if operation is None or operation[0] != name:
            return False
        if operation[1] is not operand and operation[1].realize(self) is not operand:
            return False
        self.operation = None
        return True

    def last_call(self, function: Var, finish: str = "push", *values: Var) -> None:
        """See `protocol.Tx.last_call`."""
        called = function.realize(self)
        if type(called) is BoundMethodVariable:
            called = called.function.realize(self)
        self._announced_last = LastCall(called, finish, values)

    def begin_call(self, function: Var) -> LastCall | None:
        """A function's frame begins: what is left to do when it ends, if that is known."""
        last = self._announced_last
        if self.operation is not None and self.takes("__call__", function):
            last = LastCall(function, "push", ())
        self.operation = self._announced_last = None
        return last if last is not None and last.function is function else None

    def run_host(
        self, function: Callable[..., Any], args: Sequence[Var], kwargs: Mapping[str, Var] | None = None
    ) -> Var:
        """See `protocol.Tx.run_host`."""
        return self.call(self.make.from_value(function, None), args, kwargs)

    def suspend(self) -> FrameState:
        """The frame as it stands now, for a generator object."""
        return self.frame

    def resume_generator(
        self, frame: FrameState, sent: Var | None, error: Var | None = None
    ) -> tuple[bool, Var]:
        """See `protocol.Tx.resume_generator`."""
        resumed: tuple[bool, Var] = self.capture.resume(self, frame, sent, error)
        return resumed

    def enter_handler(self, error: ObservedException) -> int:
        """Unwind to the handler of the present step; raises `error` when there is none."""
        try:
            return unwind.enter_handler(self, error)
        finally:
            del error  # an error that leaves would hold itself through its traceback
