"""The first example: one function, captured once, with its graph and its guards."""

import torch

import graphlift


@graphlift.compile(backend="eager")
def area(x: torch.Tensor, scale: int) -> torch.Tensor:
    parts: list[torch.Tensor] = []
    for i in range(3):
        parts.append(x * (scale + i))
    return torch.stack(parts).sum(0)


x = torch.arange(4.0)
print(area(x, 2))
print(graphlift.explain(area)(x, 2))
