"""Operations that do something beside their results: draw random numbers, or fail.

Owns from which generators they draw, and which of them seem to be needed by nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from graphlift.graph_value import GraphContainer, GraphValue
from graphlift.output_graph.record import Operation, operands, writes_input


def devices_of(operation: Operation) -> set[torch.device]:
    """The devices on which an operation computes."""
    return {
        value.meta.device for value in (operation.value, *operands(operation)) if type(value) is GraphValue
    }


def generators_of(devices: Iterable[torch.device]) -> list[torch.Generator] | None:
    """The default generators of some devices; None where one has none whose state can be kept."""
    found: dict[int, torch.Generator] = {}
    for device in devices:
        if device.type == "cpu":
            found[-1] = torch.default_generator
        elif device.type == "cuda" and torch.cuda.default_generators:
            index = torch.cuda.current_device() if device.index is None else device.index
            found[index] = torch.cuda.default_generators[index]
        elif device.type != "meta":
            return None
    return list(found.values())


def unused_results(
    operations: Sequence[Operation], uses: Sequence[Sequence[Any]], outputs: Sequence[Any]
) -> list[GraphValue]:
    """A result of each operation that can fail or draws, where no output and no later operation needs one.

    `uses` are the operands of each operation.

    Those that write to an input are needed for that.
    """
    if not any(operation.raises or operation.random for operation in operations):
        return []
    later: set[Any] = set(outputs)
    found: list[GraphValue] = []
    items: dict[Any, GraphValue] = {}
    for operation, values in zip(reversed(operations), reversed(uses), strict=True):
        results = [x for x in (operation.value, *operation.written) if x is not None]
        needed = writes_input(operation) or not later.isdisjoint(results)
        if operation.raises or operation.random:
            if not needed:
                found += [items.get(x, x) for x in results[:1]]
        elif not needed:
            # It may be an item of what an operation before it gave; that can be an output.
            if operation.args and type(operation.args[0]) is GraphContainer:
                items[operation.args[0]] = operation.value
            continue
        later.update(values)
    return [value for value in reversed(found) if type(value) is GraphValue]
