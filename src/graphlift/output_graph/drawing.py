"""From which generators of random numbers an operation of the graph draws."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from graphlift.graph_value import GraphValue
from graphlift.output_graph.record import Operation, operands


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
