"""A graph without symbolic floats, for backends that have no use for them.

Float inputs are replaced by their present values, and operations on numbers alone that follow from these are
computed at once. Says what it assumed; the graph it was made from stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from graphlift.graph_value import GraphValue, SymValue
from graphlift.meta_propagation.rehearsal import invoke, replace
from graphlift.output_graph.record import Operation, operands


class FixedFloats:
    """The parts of such a graph.

    Attributes:
        inputs, operations, outputs: as of a captured graph.
        guards: that the floats have these values, as payloads of ``expression`` guards.
    """

    def __init__(
        self, inputs: Sequence[Any], operations: Sequence[Operation], outputs: Sequence[Any]
    ) -> None:
        self._known: dict[Any, Any] = {}
        self.guards: Final[list[tuple[Any, ...]]] = []
        for value in inputs:
            if isinstance(value, SymValue) and isinstance(value.sym, torch.SymFloat):
                number = self._known[value] = float(value.sym.node.hint)
                self.guards.append((("float", value.source), number, "=="))
        self._kept: Final = [i for i, value in enumerate(inputs) if value not in self._known]
        self.inputs: Final[list[GraphValue | SymValue]] = [inputs[i] for i in self._kept]
        self.operations: Final[list[Operation]] = []
        for operation in operations:
            self._take(operation)
        self._all_outputs: Final = tuple(outputs)
        self.outputs: Final = tuple(x for x in outputs if x not in self._known)

    def _take(self, operation: Operation) -> None:
        found = operands(operation)
        given = replace(operation.args, self._number)
        named = replace(dict(operation.kwargs), self._number)
        if type(operation.value) is SymValue and all(x in self._known for x in found):
            self._known[operation.value] = invoke(operation.target, operation.method, given, named)
        else:
            self.operations.append(operation._replace(args=given, kwargs=named))

    def _number(self, leaf: Any) -> Any:
        return self._known.get(leaf, leaf) if type(leaf) is SymValue else leaf

    def restored(self, product: Callable[..., Any]) -> Callable[..., Any]:
        """A product of the original graph, from one of this graph."""
        kept = self._kept
        known = [(i, self._known[x]) for i, x in enumerate(self._all_outputs) if x in self._known]

        def run(*inputs: Any) -> tuple[Any, ...]:
            results = list(product(*[inputs[i] for i in kept]))
            for place, number in known:
                results.insert(place, number)
            return tuple(results)

        return run
