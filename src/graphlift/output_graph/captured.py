"""A finished graph: what the backend gets, in whichever form it asks for.

Everything is made when first asked for: the plain function, the FX graph, names, fake tensors, text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

import torch
from torch.fx import Graph, GraphModule

from graphlift.graph_value import GraphValue, SymValue
from graphlift.output_graph.fixed_floats import FixedFloats
from graphlift.output_graph.forward import make_forward
from graphlift.output_graph.fx_bulk import build
from graphlift.output_graph.lazy_meta import Fakes, LazyMeta
from graphlift.output_graph.lazy_module import lazy_module
from graphlift.output_graph.naming import Names, input_name, target_name
from graphlift.output_graph.readable import Printer
from graphlift.output_graph.record import Operation, writes_input
from graphlift.output_graph.symbols import Symbols
from graphlift.sources import Source

Product = Callable[..., Any]


class CapturedGraph:
    """The graph of one segment.

    Attributes:
        inputs: its inputs, in the order in which it takes them.
        operations: its operations, in order.
        outputs: the values of the tuple that it gives.
        fakes: fake tensors that stand for its values.
    """

    def __init__(
        self,
        inputs: Sequence[GraphValue | SymValue],
        operations: Sequence[Operation],
        outputs: tuple[GraphValue | SymValue, ...],
        symbols: Symbols | None = None,
        uses: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        self.inputs: Final = tuple(inputs)
        self.operations: Final = tuple(operations)
        self.outputs: Final = outputs
        self.fakes: Final = Fakes(None if symbols is None else symbols.mode)
        self._symbols: Final = symbols
        #: The operands of each operation, where somebody asked for them already.
        self._uses: Final = uses
        self._fixed: list[tuple[Any, ...]] = []

    def shape_guards(self) -> list[tuple[Any, ...]]:
        """What is assumed of symbolic sizes and numbers; ask when the backend is done, for it may add."""
        return [] if self._symbols is None else [*self._symbols.guards(), *self._fixed]

    def with_fixed_floats(self) -> tuple[CapturedGraph, Callable[[Product], Product]]:
        """This graph with its symbolic float inputs replaced by their present values.

        The values become assumptions of this graph.

        Returns:
            the graph without those inputs and without what follows from them alone, and a function that
            makes of its product a product of this graph.
        """
        fixed = FixedFloats(self.inputs, self.operations, self.outputs)
        self._fixed += fixed.guards
        if self._symbols is not None:
            self._symbols.forget_floats()
        graph = CapturedGraph(fixed.inputs, fixed.operations, fixed.outputs, self._symbols)
        return graph, fixed.restored

    @property
    def has_symbolic_floats(self) -> bool:
        """Whether an input is a float that this capture did not fix."""
        return any(isinstance(x, SymValue) and isinstance(x.sym, torch.SymFloat) for x in self.inputs)

    @property
    def input_sources(self) -> tuple[Source | None, ...]:
        """Where each input comes from."""
        return tuple(value.source for value in self.inputs)

    @property
    def node_count(self) -> int:
        """How many operations there are (inputs and output not counted)."""
        return len(self.operations)

    @property
    def may_raise(self) -> bool:
        """Whether running it can fail by the values of tensors."""
        return any(operation.raises for operation in self.operations)

    @property
    def writes_inputs(self) -> bool:
        """Whether running it changes memory of an input, so that it matters which inputs share memory."""
        return any(map(writes_input, self.operations))

    @property
    def made_forward(self) -> Callable[..., Any] | None:
        """`forward` if somebody asked for it."""
        return self.__dict__.get("forward")

    def release(self) -> None:
        """Let go of the program's tensors; to be called when the backend is done with them."""
        for value in self.inputs:
            if isinstance(value, GraphValue):
                value.real = None

    @property
    def fake_mode(self) -> Any:
        """The mode of the graph's fake tensors; made when first asked for."""
        return self.fakes.mode

    def op_counts(self) -> dict[str, int]:
        """How often each operation occurs, by name."""
        return dict(Counter(target_name(operation.target) for operation in self.operations))

    @property
    def has_fake_mode(self) -> bool:
        """Whether the mode was made already."""
        return self.fakes.has_mode

    def example_inputs(self, *, fake: bool = False) -> list[Any]:
        """The inputs of the capture: the real tensors, or their fakes; symbolic numbers as they are."""
        return [self.fakes.of(x) if fake or isinstance(x, SymValue) else x.real for x in self.inputs]

    @cached_property
    def forward(self) -> Callable[..., tuple[Any, ...]]:
        """A plain function of the flat inputs that gives a tuple of the outputs."""
        return make_forward(self.inputs, self.operations, self.outputs, self._uses)

    @cached_property
    def _nodes(self) -> _Nodes:
        return _Nodes(self.inputs, self.operations, self.outputs, self.fakes)

    @cached_property
    def graph_module(self) -> GraphModule:
        """The graph as an FX module that takes the flat inputs."""
        return lazy_module(self._nodes.graph, self.forward, "CapturedGraph")

    def readable(self) -> str:
        """The graph as text: names, metadata, and the user's lines."""
        _, inputs, calls = self._nodes.names
        printer = Printer(dict(zip(self.inputs, inputs, strict=True)))
        lines = [printer.head(list(self.inputs))]
        lines += printer.lines(list(zip(self.operations, calls, strict=True)))
        lines.append(f"    return {printer.atom(self.outputs)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"CapturedGraph({len(self.inputs)} inputs, {self.node_count} operations)"


class _Nodes:
    """The nodes of a graph, made when asked for. A module that waits for its graph holds this and no more."""

    def __init__(self, inputs: Any, operations: Sequence[Operation], outputs: Any, fakes: Fakes) -> None:
        self._inputs = inputs
        self._operations = operations
        self._outputs = outputs
        self._fakes = fakes

    @cached_property
    def names(self) -> tuple[Names, list[str], list[str]]:
        """All names given out, those of the inputs, those of the operations."""
        names = Names()
        inputs = [names.take(input_name(value.source, n)) for n, value in enumerate(self._inputs)]
        calls = []
        for operation in self._operations:
            value = operation.value
            # A write gives a value that was named before; only its first operation takes the hint.
            hint = value.name if value is not None and value.index >= 0 else None
            calls.append(names.take(hint or target_name(operation.target)))
        return names, inputs, calls

    def graph(self) -> Graph:
        """A new FX graph."""
        names, inputs, calls = self.names
        fakes = self._fakes
        return build(
            list(zip(self._inputs, inputs, strict=True)),
            list(zip(self._operations, calls, strict=True)),
            self._outputs,
            names,
            lambda value, where: LazyMeta(fakes, _lone(value), where),
        )


def _lone(value: Any) -> Any:
    return value if type(value) is GraphValue or type(value) is SymValue else None
