"""What `make memcheck` runs under valgrind: every path through the C core once or a few times.

Captures, recompiles, hooked frames, breaks at two depths, errors, modules, guards of most kinds, threads,
the frame evaluator's library, resets. Prints one line when its results were right.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import torch

import graphlift
from graphlift import eval_frame

SCALE = {"by": 2.0}


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.names = ["a", "b"]
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.linear(x) * len(self.names)


def branching(x: torch.Tensor, log: list[Any], *rest: int, key: str = "k", **more: float) -> torch.Tensor:
    y = x * SCALE["by"]
    log.append((x.shape[0], key, sum(rest), sorted(more)))
    if x.sum() > 0:
        y = inner(y, log) + 1
    return y


def inner(x: torch.Tensor, log: list[Any]) -> torch.Tensor:
    with torch.no_grad():
        y = x - 1
        graphlift.graph_break()
        try:
            log.append(y[0].item())
            if len(log) > 2:
                raise ValueError("long")
        except ValueError as error:
            graphlift.graph_break()
            log.append(str(error))
        finally:
            log.append("end")
    return y * 2


def called_back(x: torch.Tensor) -> torch.Tensor:
    parts = list(map(functools.partial(shifted, by=2), [x, x + 1]))
    return parts[0] + parts[1]


def shifted(x: torch.Tensor, by: int) -> torch.Tensor:
    for i in range(by):
        x = x + i
    return x


def failing(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return x[index] * 2


def compare(fn: Any, compiled: Any, *args: Any, **kwargs: Any) -> None:
    """Fail where result, log or error differ."""
    outcomes = []
    for function in (fn, compiled):
        log: list[Any] = []
        given = [log if argument is list else argument for argument in args]
        try:
            outcomes.append((function(*given, **kwargs).tolist(), log))
        except IndexError as error:
            outcomes.append((str(error), log))
    assert outcomes[0] == outcomes[1], outcomes


def every_path() -> None:
    compiled = {fn: graphlift.compile(fn, backend="eager") for fn in (branching, called_back, failing)}
    for turn in range(3):
        for size in (2, 3):
            x = torch.ones(size, requires_grad=bool(turn % 2))
            for value in (x, -x):
                compare(branching, compiled[branching], value, list, 1, 2, key="other", more=1.0)
                compare(branching, compiled[branching], value.detach(), list)
                compare(called_back, compiled[called_back], value)
            for index in (0, size):
                compare(failing, compiled[failing], x, torch.tensor([index]))
        SCALE["by"] += 1
        plain = Layer()
        compare(plain, graphlift.compile(plain, backend="eager"), torch.ones(2, 3))
    remembered()
    graphlift.reset()
    compare(branching, compiled[branching], torch.ones(2), list)


def remembered() -> None:
    """Memos of objects that change, and of objects that are gone when others lie where they lay."""

    def program(layer: Layer, x: torch.Tensor) -> torch.Tensor:
        return layer.linear(x) * len(layer.names) if isinstance(layer, Layer) else x

    compiled = graphlift.compile(program, backend="eager")
    layers = [Layer() for _ in range(3)]
    for turn in range(12):
        for layer in layers:
            compare(program, compiled, layer, torch.ones(2, 3))
        layers[turn % 3].names.append("c")
        layers[turn % 2].linear.weight.data = torch.full((3, 3), float(turn))
        layers[turn % 2].__dict__["more"] = turn
        layers[turn % 2].__dict__ = dict(layers[turn % 2].__dict__)
        layers[turn % 3] = Layer()


def main() -> None:
    torch.set_num_threads(1)
    every_path()
    thread = threading.Thread(target=every_path)
    thread.start()
    thread.join()
    seen: list[str] = []
    with eval_frame.frame_callback(lambda code, function, locals: seen.append(code.co_name)):
        shifted(torch.ones(2), 1)
    assert "shifted" in seen
    print("all results as plain Python gives them")


if __name__ == "__main__":
    main()
