"""The frame at the door: its inputs become trackers, its end becomes an entry's code."""

from __future__ import annotations

import sys
from types import CellType, CodeType, FunctionType
from typing import Any

import torch

from graphlift.bytecode.decode import decode
from graphlift.codegen.entry_code import EntryCode, parameters
from graphlift.codegen.failure import Failure
from graphlift.codegen.pycodegen import PyCodegen
from graphlift.dynamic import DynamicPolicy
from graphlift.errors import Unsupported
from graphlift.heap import Handle
from graphlift.interpreter import inline
from graphlift.interpreter.aliases import assume_distinct, assume_storages
from graphlift.interpreter.base import InstructionTranslatorBase
from graphlift.interpreter.capture import Assumptions, Capture
from graphlift.interpreter.failing import Failing
from graphlift.interpreter.frame_state import NULL, FrameState, HandledVariable, LastiVariable
from graphlift.interpreter.graph_break import SegmentName, emit_jump, emit_state, frames_at
from graphlift.interpreter.resumed import Resumed, resumed
from graphlift.output_graph import CapturedGraph
from graphlift.reasons import Reason
from graphlift.side_effects import SideEffects
from graphlift.sources import FunctionFieldSource, FunctionSource, HandledSource, ParamSource, Source
from graphlift.variables import cells as closure_cells
from graphlift.variables import registered, weak_references
from graphlift.variables.lazy import LazyVariableTracker
from graphlift.variables.slots.type_lookup import anchor

registered.import_all()


class Translation:
    """What translating one frame gave.

    Attributes:
        graph: the tensor part.
        body: code for results and side effects.
        assumptions: what must hold for it, in the order in which it was first needed.
        function: where the function is found whose frame it is.
        failing: what is known of the ways in which the graph can fail.
    """

    def __init__(
        self,
        graph: CapturedGraph,
        body: PyCodegen,
        assumptions: Assumptions,
        function: Source,
        failing: Failing,
    ) -> None:
        self.graph = graph
        self.body = body
        self.assumptions = assumptions
        self.function = function
        self.failing = failing


class InstructionTranslator(InstructionTranslatorBase):
    """Translates the outermost frame, from its start or from where it goes on behind a cut.

    Arguments:
        capture: the capture's shared state.
        function: the function whose frame it is.
        params: the values of its parameters, in the order of slots.
    """

    def __init__(self, capture: Capture, function: FunctionType, params: tuple[Any, ...]) -> None:
        root = FunctionSource(None, function.__qualname__)
        self.function_source = root
        namespace = root.child(FunctionFieldSource, "__globals__")
        module_globals = capture.heap.handle_of(function.__globals__, namespace)
        arguments = {
            name: LazyVariableTracker(value, ParamSource(None, (index, name)))
            for index, (name, value) in enumerate(zip(parameters(function.__code__), params, strict=True))
        }
        rest = resumed(function.__code__)
        if rest is None:
            frame = self._frame_at_start(capture, function, arguments, module_globals)
        else:
            frame = _frame_behind_cut(capture, rest, arguments, module_globals)
        self.handled_outside = LazyVariableTracker(sys.exception(), HandledSource(None, "sys.exception()"))
        super().__init__(capture, frame, None)

    def _frame_at_start(
        self,
        capture: Capture,
        function: FunctionType,
        arguments: dict[str, LazyVariableTracker],
        module_globals: Handle,
    ) -> FrameState:
        cells = self.function_source.child(FunctionFieldSource, "__closure__")
        closure = [
            capture.heap.handle_of(cell, cells.item(index))
            for index, cell in enumerate(function.__closure__ or ())
        ]
        code = function.__code__
        return FrameState(code, decode(code), dict(arguments), closure, module_globals)

    def translate(self, segment_name: SegmentName | None = None) -> Translation:
        """Run the frame to its end or to a cut, and emit what must happen at run time.

        Arguments:
            segment_name: gives the names of segments; None: the graph may not be cut.

        Raises:
            ObservedException: the frame ends with an exception.
            Unsupported: it cannot be followed to its end, nor cut.
        """
        body = PyCodegen(lambda value: anchor(self, value))
        try:
            clock = self.capture.clock
            self.run() if clock is None else clock.run(self.code, self.run)
        except Unsupported as cut:
            if segment_name is None:
                raise
            cut.__traceback__ = None  # it leads to the frames that were interpreted
            body = self._body_of_cut(cut, segment_name)
            cut.frames.clear()
        else:
            body.emitter.position = self.frame.decoded.position(self.frame.ip - 1)
            self._emit_state(body)
            body(self.result)
            SideEffects(self.heap, body).emit()
            body.emitter.return_value()
            self._check_dropped(body)
        return self._finish(body)

    def _body_of_cut(self, cut: Unsupported, segment_name: SegmentName) -> PyCodegen:
        """The code that leaves for the innermost frame that can be gone on with.

        Where something cannot be made real that a frame needs, the instruction by which it was called is run
        for real as a whole.

        Raises:
            Unsupported: this frame itself cannot be gone on with.
        """
        while cut.frames and not cut.whole:
            body = PyCodegen(lambda value: anchor(self, value))
            try:
                frames = frames_at(cut, self)
                body.emitter.position = self.frame.decoded.position(frames[0].shape.index)
                self._emit_state(body)
                emit_jump(body, frames, segment_name, SideEffects(self.heap, body).emit)
                self._check_dropped(body)
                weak_references.check_none_made(self, body)
            except Unsupported:
                if cut.frames[-1] is not self or len(cut.frames) == 1:
                    raise
                del cut.frames[0]
            else:
                return body
        try:
            raise cut
        finally:
            del cut  # or the traceback, which keeps this frame, would keep the whole capture in a circle

    def _check_dropped(self, body: PyCodegen) -> None:
        """Break where plain Python would run cleanup code of a generator that nothing refers to any more."""
        for generator in self.capture.generators:
            if generator.must_close() and not body.has_made(generator):
                raise Unsupported(Reason.GENERATOR, "a generator that is dropped inside `try` or `with`")

    def _emit_state(self, body: PyCodegen) -> None:
        emit_state(body, self.graph.operations, self.capture.grad_mode)

    def _finish(self, body: PyCodegen) -> Translation:
        self.graph.balance_counters()
        failing = Failing(self.capture)
        graph = self.graph.finish(list(body.outputs), self.capture.writes != "in order")
        assumptions = self.capture.assumptions
        assume_distinct(self.heap, assumptions, self)
        if graph.operations:
            assume_storages(graph, assumptions, self)
        if self.graph.operations:  # also what is left out of the graph: its metadata may have been read
            assumptions.add("torch_state", None, (self.capture.torch_state,), self)
            assumptions.add("class_version", None, (torch.nn.Parameter, self.capture.tensor_class), self)
        return Translation(graph, body, assumptions, self.function_source, failing)


def _frame_behind_cut(
    capture: Capture, rest: Resumed, arguments: dict[str, LazyVariableTracker], module_globals: Handle
) -> FrameState:
    code, shape = rest
    decoded = decode(code)
    passed = iter(arguments.values())
    slots: dict[str, Any] = {name: next(passed) for name in shape.live}
    cells = {*code.co_cellvars, *code.co_freevars}
    for name, value in slots.items():
        if type(value.value) is CellType and name.removesuffix(".free") in cells:
            slots[name] = closure_cells.of(capture.heap.handle_of(value.value, value.source))
    frame = FrameState(code, decoded, slots, (), module_globals)
    frame.ip = shape.index
    for kind in shape.stack:
        if kind == "null":
            frame.stack.append(NULL)
        elif kind == "handled":
            current = next(passed)
            frame.stack.append(HandledVariable(frame.handled, current))
            frame.handled = current
        elif kind == "value":
            frame.stack.append(next(passed))
        else:
            word, number = kind
            frame.stack.append(LastiVariable(number) if word == "lasti" else frame.stack[number])
    return frame


def new_capture(settings: Any, policy: DynamicPolicy | None = None, careful: bool = False) -> Capture:
    """The shared state of a capture of one frame."""
    return Capture(
        settings,
        inline=inline.inline,
        resume=inline.resume,
        run_body=inline.run_body,
        policy=policy,
        careful=careful,
    )


def entry_code(
    code: CodeType, translation: Translation, product: str | None, failure: tuple[str, Failure] | None = None
) -> EntryCode:
    """The code of an entry.

    Arguments:
        product: the global name of what the backend made, or None when there is no graph.
        failure: what is asked when the graph fails, with its global name; None: it cannot fail by values.
    """
    inputs: list[Source] = [source for source in translation.graph.input_sources if source is not None]
    line = code.co_firstlineno
    name, saves = (None, False) if failure is None else (failure[0], failure[1].saves)
    position, segment = (line, line, 0, 0), resumed(code) is not None
    function = translation.function
    return EntryCode(code, translation.body, product, inputs, position, function, name, saves, segment)
