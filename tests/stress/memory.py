"""A million warm calls and ten thousand captures, at constant memory.

python tests/stress/memory.py [--calls 1000000] [--captures 10000]
"""

from __future__ import annotations

import argparse

import torch
from _resident import Progress, require, resident

import graphlift


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x: torch.Tensor, scale: int) -> torch.Tensor:
        self.calls += 1
        return self.inner(x) * scale


def arithmetic(x: torch.Tensor, scale: int) -> torch.Tensor:
    parts = [x * (scale + i) for i in range(3)]
    return torch.stack(parts).sum(0)


def broken(x: torch.Tensor, scale: int) -> torch.Tensor:
    if x.sum() > 0:
        return x * scale
    return x + 1


def warm_calls(calls: int) -> None:
    """The same functions again and again."""
    x = torch.ones(4)
    with torch.no_grad():
        for fn in (arithmetic, broken, Layer().eval()):
            compiled = graphlift.compile(fn, backend="eager")
            name = getattr(fn, "__name__", type(fn).__name__)
            share = calls // 3
            for _ in range(share // 20):
                compiled(x, 2)
            before, progress = resident(), Progress(f"warm calls of {name}", share)
            for number in range(share):
                compiled(x, 2)
                if not number % 10_000:
                    progress.at(number)
            seconds = progress.done()
            grown = resident() - before
            text = f"{share:,} warm calls of {name}: {seconds / share * 1e6:.2f} us each, {grown:+.1f} MiB"
            require(grown < 8, text)


def captures(count: int) -> None:
    """New captures after a reset, and of functions that come and go."""
    x = torch.ones(4)

    def once(number: int) -> None:
        namespace: dict[str, object] = {}
        if number % 2:
            exec(f"def fresh(x, scale):\n    return x * scale + {number}\n", namespace)
            fn = namespace["fresh"]
        else:
            fn = arithmetic
        graphlift.compile(fn, backend="eager")(x, 2)
        graphlift.reset()

    for number in range(max(count // 10, 200)):
        once(number)
    before, progress = resident(), Progress("captures", count)
    for number in range(count):
        once(number)
        progress.at(number)
    seconds = progress.done()
    grown = resident() - before
    require(grown < 16, f"{count:,} captures: {seconds / count * 1e3:.2f} ms each, {grown:+.1f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--captures", type=int, default=10_000)
    arguments = parser.parse_args()
    warm_calls(arguments.calls)
    captures(arguments.captures)


if __name__ == "__main__":
    main()
