"""What the tests of the graph share: a recorder that captures by hand what a program would do."""

from __future__ import annotations

import pytest
import torch

from graphlift.graph_value import GraphValue, SymValue
from graphlift.heap import Heap
from graphlift.output_graph import OutputGraph
from graphlift.sources import ParamSource


class Recorder:
    """A graph in the making over named inputs."""

    def __init__(self, **inputs):
        self.heap = Heap()
        self.graph = OutputGraph(self.heap)
        self.real = inputs
        self.sources = {name: ParamSource(None, (i, name)) for i, name in enumerate(inputs)}

    def __getitem__(self, name):
        real = self.real[name]
        if isinstance(real, torch.Tensor):
            return self.graph.add_tensor_input(real, self.sources[name])
        return self.graph.add_symbol_input(real, self.sources[name])

    def dynamic(self, name, *dims):
        real = self.real[name]
        flags = tuple(dim in dims for dim in range(real.dim()))
        return self.graph.add_tensor_input(real, self.sources[name], flags)

    def __call__(self, target, *args, **kwargs):
        return self.graph.call(target, args, kwargs, method=isinstance(target, str))

    def finish(self, *outputs):
        return self.graph.finish(list(outputs))

    def values(self, graph, **other):
        """The inputs of a finished graph, by name, perhaps others than at capture."""
        given = {**self.real, **other}
        return [given[value.source.name()] for value in graph.inputs]


@pytest.fixture
def recorder():
    return Recorder


def is_value(x):
    return isinstance(x, (GraphValue, SymValue))
