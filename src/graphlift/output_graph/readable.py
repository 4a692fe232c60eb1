"""How a captured graph is shown to people: one line an operation, each value with its metadata."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch

from graphlift.graph_value import GraphValue, SymValue
from graphlift.metadata import annotation
from graphlift.output_graph.forward import INFIX
from graphlift.output_graph.lazy_meta import places
from graphlift.output_graph.record import VALUES, Operation


def annotated(name: str, value: Any) -> str:
    """A value's name with its metadata, e.g. ``x: "f32[8][1]cpu"``."""
    if type(value) is GraphValue:
        return f'{name}: "{annotation(value.meta)}"'
    if type(value) is SymValue:
        return f'{name}: "Sym({value.sym})"'
    return name


def qualified(target: Any) -> str:
    """The full name of a function, as a reader would import it."""
    name = getattr(target, "__name__", None)
    if not isinstance(name, str):
        return repr(target)
    for owner, prefix in ((torch, "torch"), (torch.nn.functional, "torch.nn.functional")):
        if getattr(owner, name, None) is target:
            return f"{prefix}.{name}"
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', name)}".lstrip(".")


class Printer:
    """Prints the lines of one graph, given the names of its inputs."""

    def __init__(self, names: dict[Any, str]) -> None:
        self._names = names

    def head(self, inputs: list[Any]) -> str:
        """The line that lists the inputs."""
        listed = ", ".join(annotated(self._names[value], value) for value in inputs)
        return f"def forward({listed}):"

    def lines(self, operations: list[tuple[Operation, str]]) -> Iterator[str]:
        """The lines of the operations, with the user's lines as comments where they change."""
        last = None
        for operation, name in operations:
            place = places(operation.where)[-1:] if operation.where is not None else None
            if place and place != last:
                code, line = place[0]
                yield f"    # {code.co_filename}:{line} in {code.co_name}"
                last = place
            yield f"    {annotated(name, operation.value)} = {self.call(operation)}"
            if operation.value is not None:
                self._names[operation.value] = name

    def call(self, operation: Operation) -> str:
        """The right-hand side of an operation."""
        target, args = operation.target, [self.atom(x) for x in operation.args]
        if not operation.kwargs and target in INFIX and len(args) == 2:
            return f"{args[0]} {INFIX[target]} {args[1]}"
        if not operation.kwargs and target is operator.getitem:
            return f"{args[0]}[{args[1]}]"
        named = [f"{k}={self.atom(x)}" for k, x in operation.kwargs.items()]
        if operation.method:
            return f"{args[0]}.{target}({', '.join(args[1:] + named)})"
        return f"{qualified(target)}({', '.join(args + named)})"

    def atom(self, value: Any) -> str:
        """An argument."""
        kind = type(value)
        if kind in VALUES:
            return self._names[value]
        if kind is tuple:
            return "(" + ", ".join(map(self.atom, value)) + ("," if len(value) == 1 else "") + ")"
        if kind is list:
            return "[" + ", ".join(map(self.atom, value)) + "]"
        if kind is dict:
            return "{" + ", ".join(f"{k!r}: {self.atom(x)}" for k, x in value.items()) + "}"
        if kind is slice:
            return f"slice({self.atom(value.start)}, {self.atom(value.stop)}, {self.atom(value.step)})"
        return repr(value)
