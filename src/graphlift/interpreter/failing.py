"""What a capture knows of the ways in which its graph can fail, and the `Failure` that is made of it."""

from __future__ import annotations

from typing import Any

import torch

from graphlift.codegen.failure import Failure, Traces
from graphlift.codegen.traceback_entries import places_of
from graphlift.interpreter.capture import Capture
from graphlift.meta_propagation.state import COUNTERS
from graphlift.output_graph import CapturedGraph
from graphlift.output_graph.drawing import devices_of, generators_of
from graphlift.output_graph.forward import FIRST_LINE
from graphlift.output_graph.record import writes_input


class Failing:
    """Taken from a capture at its end, before it is closed.

    Arguments:
        capture: the capture.
    """

    def __init__(self, capture: Capture) -> None:
        self._writes = capture.writes
        self._exposed = bool(capture.graph.exposed)
        self._settings = capture.graph.settings_at_first()

    def of(self, graph: CapturedGraph) -> Failure:
        """What is asked when the product of `graph` fails; to be made after the product."""
        operations = list(enumerate(graph.operations))
        write = next((index for index, x in operations if writes_input(x)), None)
        draw = next((index for index, x in operations if x.random), None)
        counters = {i: (COUNTERS[x.target], x.args) for i, x in operations if x.target in COUNTERS}
        traces = Traces(write, draw, self._settings, counters)
        places = {index: places_of(x.where) for index, x in operations if x.raises}
        forward = graph.made_forward
        code: Any = None if forward is None else getattr(forward, "__code__", None)
        return Failure(
            traces,
            places,
            self._writes,
            None if code is None else (code, FIRST_LINE),
            self._generators(graph),
        )

    def _generators(self, graph: CapturedGraph) -> list[torch.Generator]:
        """The generators whose states each call must keep.

        Only where a failure could be told from one at its own place. It always could where products write
        last, for writes before it are missing then, and nobody knows which operation it was.
        """
        if not self._exposed and self._writes != "last":
            return []
        drawn = {device for x in graph.operations if x.random for device in devices_of(x)}
        return generators_of(drawn) or []
