"""Eight threads that call and capture, the same functions and their own, for a minute.

python tests/stress/threads.py [--seconds 60] [--threads 8]

Among them: instances that go through one entry, instances freed while another is made at their address, and
a model whose compiled `forward` calls itself across a break.

Each result is compared with plain Python's. At the end the hook must be gone.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from _resident import Progress, require, resident

import graphlift
from graphlift import _C


def shared(x: torch.Tensor, n: int) -> torch.Tensor:
    total = x
    for i in range(n):
        total = total + i * x
    return total


def branching(x: torch.Tensor, n: int) -> torch.Tensor:
    if x.sum() > 0:
        return x * n
    return x - n


def raising(x: torch.Tensor, n: int) -> torch.Tensor:
    if n == 3:
        raise ValueError("three")
    return x + n


def calling(x: torch.Tensor, n: int) -> torch.Tensor:
    return shared(x, n) + branching(x, n)


class Layer(torch.nn.Module):
    """A weight of its own; nothing else tells two of them apart."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(self.linear.weight, weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x.unsqueeze(-1)).squeeze(-1)


def through(layer: Layer, x: torch.Tensor, n: int) -> torch.Tensor:
    return layer(x) + n


class Nested(Layer):
    """Re-entrant: calls itself, compiled, behind a break."""

    again: Callable[..., torch.Tensor]

    def forward(self, x: torch.Tensor, n: int = 0) -> torch.Tensor:
        y = super().forward(x)
        if y.sum() > 1e9 or n <= 1:
            return y
        return self.again(y, n - 1) + y


LAYERS = [Layer(2.0), Layer(3.0)]
NESTED, PLAIN_NESTED = Nested(2.0), Nested(2.0)
NESTED.again = graphlift.compile(NESTED, backend="eager")
PLAIN_NESTED.again = PLAIN_NESTED


def of_two(x: torch.Tensor, n: int) -> torch.Tensor:
    """Two instances, one entry."""
    return through(LAYERS[n % 2], x, n)


def of_many(x: torch.Tensor, n: int) -> torch.Tensor:
    """An instance that lives for one call: the next one is likely to get its address."""
    return through(Layer(float(n)), x, n)


def nested(x: torch.Tensor, n: int) -> torch.Tensor:
    return PLAIN_NESTED(x, n)


COMPILED_THROUGH = graphlift.compile(through, backend="eager")


def compiled_of_two(x: torch.Tensor, n: int) -> torch.Tensor:
    return COMPILED_THROUGH(LAYERS[n % 2], x, n)


def compiled_of_many(x: torch.Tensor, n: int) -> torch.Tensor:
    return COMPILED_THROUGH(Layer(float(n)), x, n)


def compiled_nested(x: torch.Tensor, n: int) -> torch.Tensor:
    return NESTED.again(x, n)


PROGRAMS: list[Callable[..., torch.Tensor]] = [shared, branching, raising, calling, of_two, of_many, nested]
INSTANCES = [compiled_of_two, compiled_of_many, compiled_nested]


def own(number: int) -> Callable[..., torch.Tensor]:
    """A function that no other thread has."""

    def mine(x: torch.Tensor, n: int) -> torch.Tensor:
        return x * number + n

    return mine


def outcome(fn: Callable[..., Any], *args: Any) -> Any:
    """Result or error, comparable."""
    try:
        result = fn(*args)
    except ValueError as error:
        return repr(error)
    return [round(value, 3) for value in result.tolist()]


class Worker(threading.Thread):
    """Calls at random until told to stop."""

    def __init__(self, number: int, until: float, compiled: list[Callable[..., Any]]) -> None:
        super().__init__()
        self.random = random.Random(number)
        self.until, self.compiled = until, compiled
        self.number, self.calls = number, 0
        self.wrong: list[str] = []

    def run(self) -> None:
        try:
            while time.perf_counter() < self.until and not self.wrong:
                self.step()
        except BaseException as error:
            self.wrong.append(f"thread {self.number}: {error!r}")

    def step(self) -> None:
        """One call, now and then of a function compiled anew."""
        choice = self.random.randrange(len(PROGRAMS) + 1)
        if choice == len(PROGRAMS):
            plain = own(self.number)
            compiled = graphlift.compile(plain, backend="eager")
        else:
            plain, compiled = PROGRAMS[choice], self.compiled[choice]
        x = torch.full((self.random.randrange(1, 5),), self.random.choice([-1.0, 1.0]))
        n = self.random.randrange(1, 5)
        expected, got = outcome(plain, x, n), outcome(compiled, x, n)
        if expected != got:
            self.wrong.append(f"{plain.__name__}({x.tolist()}, {n}): expected {expected}, got {got}")
        self.calls += 1
        if self.number == 0 and not self.calls % 500:
            graphlift.reset()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=8)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    compiled = [graphlift.compile(fn, backend="eager") for fn in PROGRAMS[: -len(INSTANCES)]] + INSTANCES
    for n in (2, 3, 4):  # until sizes and numbers are symbolic and all is imported
        for fn in compiled:
            outcome(fn, torch.ones(n), n)
    before = resident()
    until = time.perf_counter() + arguments.seconds
    workers = [Worker(number, until, compiled) for number in range(arguments.threads)]
    for worker in workers:
        worker.start()
    progress = Progress("seconds", int(arguments.seconds))
    while any(worker.is_alive() for worker in workers):
        time.sleep(0.2)
        progress.at(int(arguments.seconds - (until - time.perf_counter())))
    progress.done()
    wrong = [text for worker in workers for text in worker.wrong]
    calls = sum(worker.calls for worker in workers)
    require(
        not wrong, f"{calls:,} calls on {len(workers)} threads{': ' if wrong else ''}{'; '.join(wrong[:3])}"
    )
    require(not _C.hook_installed(), "the hook is gone")
    print(f"     memory {resident() - before:+.1f} MiB")


if __name__ == "__main__":
    main()
