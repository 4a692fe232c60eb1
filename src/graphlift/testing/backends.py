"""Backends for tests: they run the graph as it is and remember what they were handed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

#: Node kinds that are work, as against inputs, attributes and the output.
_WORK = frozenset({"call_function", "call_method", "call_module"})


def operations(graph_module: GraphModule) -> int:
    """How many operations a graph holds."""
    return sum(node.op in _WORK for node in graph_module.graph.nodes)


class CompileCounter:
    """Counts the graphs it is handed and their operations.

    Attributes:
        frame_count: graphs compiled since the last `clear`.
        op_count: operations in them.
    """

    def __init__(self) -> None:
        self.frame_count = 0
        self.op_count = 0

    def __call__(
        self, graph_module: GraphModule, example_inputs: Sequence[torch.Tensor]
    ) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += operations(graph_module)
        forward: Callable[..., Any] = graph_module.forward
        return forward

    def clear(self) -> None:
        """Count from nought again."""
        self.frame_count = 0
        self.op_count = 0


class EagerAndRecordGraphs:
    """Keeps the graphs it is handed, with their example inputs.

    Attributes:
        graphs: the graph modules, in order.
        example_inputs: what each was handed with.
    """

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []
        self.example_inputs: list[tuple[Any, ...]] = []

    def __call__(
        self, graph_module: GraphModule, example_inputs: Sequence[torch.Tensor]
    ) -> Callable[..., Any]:
        self.graphs.append(graph_module)
        self.example_inputs.append(tuple(example_inputs))
        forward: Callable[..., Any] = graph_module.forward
        return forward

    def clear(self) -> None:
        """Forget the graphs."""
        self.graphs.clear()
        self.example_inputs.clear()
