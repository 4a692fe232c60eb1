"""FX graphs of the record, made in bulk.

`Graph.create_node` spends most of its time on checks that a record has passed already; here nodes are
made directly, which touches private parts of FX. Whether these are as expected is tried once on a small
graph; if not, `create_node` is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch.fx import Graph, Node

from graphlift.output_graph.naming import Names
from graphlift.output_graph.record import VALUES, Operation

MetaOf = Callable[[Any, Any], dict[str, Any]]
_NONE: Final[Mapping[str, Any]] = {}


class _Builder:
    """Adds nodes to one graph."""

    def __init__(self, graph: Graph, names: Names) -> None:
        self.graph = graph
        self.names = names
        self.nodes: dict[Any, Node] = {}
        self._table = graph._find_nodes_lookup_table.table
        self._fast = _fast_enough()

    def add(self, op: str, name: str, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Node:
        """A node at the end of the graph; `name` is unique already."""
        if not self._fast:
            return self.graph.create_node(op, target, args, dict(kwargs), name)
        graph = self.graph
        node = Node(graph, name, op, target, args, kwargs)  # type: ignore[arg-type]
        graph._graph_namespace._obj_to_name[node] = name
        graph._insert(node)
        self._table[op, target if op == "call_function" else None][node] = None
        return node

    def close(self) -> None:
        """Tell the graph what it would have counted itself."""
        if self._fast:
            space = self.graph._graph_namespace
            space._used_names.update(self.names.used)
            space._base_count.update(self.names.counts)
            self.graph._len += sum(map(len, self._table.values()))

    def operand(self, value: Any) -> Any:
        """An argument with nodes in the place of values."""
        kind = type(value)
        if kind in VALUES:
            return self.nodes[value]
        if kind is tuple or kind is list:
            return kind([self.operand(x) for x in value])
        if kind is dict:
            return {k: self.operand(x) for k, x in value.items()}
        if kind is slice:
            return slice(self.operand(value.start), self.operand(value.stop), self.operand(value.step))
        return value


def build(
    inputs: Sequence[tuple[Any, str]],
    operations: Sequence[tuple[Operation, str]],
    outputs: Sequence[Any],
    names: Names,
    meta_of: MetaOf,
) -> Graph:
    """The FX graph of a record.

    Args:
        inputs, operations: each with the name of its node; names are unique, and all in `names`.
        meta_of: gives a node's ``meta`` from (value, place in the user's program).
    """
    graph = Graph()
    builder = _Builder(graph, names)
    nodes, operand = builder.nodes, builder.operand
    for value, name in inputs:
        node = nodes[value] = builder.add("placeholder", name, name, (), _NONE)
        node.meta = meta_of(value, None)
    for call, name in operations:
        op = "call_method" if call.method else "call_function"
        args = tuple([nodes[x] if type(x) in VALUES else operand(x) for x in call.args])
        kwargs = {k: operand(x) for k, x in call.kwargs.items()} if call.kwargs else _NONE
        node = builder.add(op, name, call.target, args, kwargs)
        node.meta = meta_of(call.value, call.where)
        if call.value is not None:
            nodes[call.value] = node
    results = tuple(nodes[value] for value in outputs)
    builder.add("output", names.take("output"), "output", (results,), _NONE)
    builder.close()
    return graph


_verdict: list[bool] = []


def _fast_enough() -> bool:
    if not _verdict:
        _verdict.append(True)
        try:
            _verdict[0] = _works()
        except Exception:
            _verdict[0] = False
    return _verdict[0]


def _works() -> bool:
    names = Names()
    call = Operation(torch.relu, False, ("a",), _NONE, "b", None, False, False)
    graph = Graph()
    builder = _Builder(graph, names)
    first = builder.add("placeholder", names.take("x"), "x", (), _NONE)
    second = builder.add("call_function", names.take("relu"), call.target, (first,), _NONE)
    builder.add("output", names.take("output"), "output", ((second,),), _NONE)
    builder.close()
    graph.lint()
    third = graph.create_node("call_function", torch.relu, (second,))
    return (
        graph.find_nodes(op="call_function", target=torch.relu) == [second, third]
        and third.name == "relu_1"
        and len(graph.nodes) == 4
        and list(first.users) == [second]
    )
