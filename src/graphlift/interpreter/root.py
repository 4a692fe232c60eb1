"""The frame at the door: its inputs become trackers, its end becomes an entry's code."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from graphlift.bytecode.decode import decode
from graphlift.codegen.entry_code import EntryCode, parameters
from graphlift.codegen.pycodegen import PyCodegen
from graphlift.dynamic import DynamicPolicy
from graphlift.interpreter import inline
from graphlift.interpreter.aliases import assume_distinct, assume_storages
from graphlift.interpreter.base import InstructionTranslatorBase
from graphlift.interpreter.capture import Assumption, Capture
from graphlift.interpreter.frame_state import FrameState
from graphlift.output_graph import CapturedGraph
from graphlift.side_effects import SideEffects
from graphlift.sources import FunctionFieldSource, FunctionSource, ParamSource, Source
from graphlift.variables import registered
from graphlift.variables.lazy import LazyVariableTracker
from graphlift.variables.slots.type_lookup import anchor

registered.import_all()


class Translation:
    """What translating one frame gave.

    Attributes:
        graph: the tensor part.
        body: code for results and side effects.
        assumptions: what must hold for it, in the order in which it was first needed.
    """

    def __init__(self, graph: CapturedGraph, body: PyCodegen, assumptions: list[Assumption]) -> None:
        self.graph = graph
        self.body = body
        self.assumptions = assumptions


class InstructionTranslator(InstructionTranslatorBase):
    """Translates the outermost frame.

    Arguments:
        capture: the capture's shared state.
        function: the function whose frame it is.
        params: the values of its parameters, in the order of slots.
    """

    def __init__(self, capture: Capture, function: FunctionType, params: tuple[Any, ...]) -> None:
        code = function.__code__
        root = FunctionSource(None, function.__qualname__)
        namespace = root.child(FunctionFieldSource, "__globals__")
        module_globals = capture.heap.handle_of(function.__globals__, namespace)
        cells = root.child(FunctionFieldSource, "__closure__")
        closure = [
            capture.heap.handle_of(cell, cells.item(index))
            for index, cell in enumerate(function.__closure__ or ())
        ]
        arguments = {
            name: LazyVariableTracker(value, ParamSource(None, (index, name)))
            for index, (name, value) in enumerate(zip(parameters(code), params, strict=True))
        }
        super().__init__(
            capture, FrameState(code, decode(code), dict(arguments), closure, module_globals), None
        )
        self.function_source = root

    def translate(self) -> Translation:
        """Run the frame to its end and emit what must happen at run time.

        Raises:
            ObservedException: the frame ends with an exception.
            Unsupported: it cannot be followed to its end.
        """
        self.run()
        body = PyCodegen(lambda value: anchor(self, value))
        body.emitter.position = self.frame.decoded.position(self.frame.ip - 1)
        body(self.result)
        SideEffects(self.heap, body).emit()
        body.emitter.return_value()
        graph = self.graph.finish(list(body.outputs))
        if graph.operations:
            assume_distinct(self.heap, self.capture.assumptions, self)
            assume_storages(graph, self.capture.assumptions, self)
            self.capture.assumptions.add("torch_state", None, (self.capture.torch_state,), self)
        return Translation(graph, body, self.capture.assumptions.rows)


def new_capture(settings: Any, policy: DynamicPolicy | None = None) -> Capture:
    """The shared state of a capture of one frame."""
    return Capture(settings, inline=inline.inline, resume=inline.resume, policy=policy)


def entry_code(code: CodeType, translation: Translation, product: str | None) -> EntryCode:
    """The code of an entry; `product` is the global name of what the backend made, if there is a graph."""
    inputs: list[Source] = [source for source in translation.graph.input_sources if source is not None]
    line = code.co_firstlineno
    return EntryCode(code, translation.body, product, inputs, (line, line, 0, 0))
