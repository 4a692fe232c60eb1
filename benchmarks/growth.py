"""How the time of a first call grows with the program: four times the size, about four times the time.

    python benchmarks/growth.py [--rounds 2] [--only blocks] [--json growth.json]

Each size is a row beside torch.compile; behind it follows by how much graphlift's own time has grown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import engines
import programs
import rows
import torch

QUESTION = "growth of the first call"

#: Program -> its maker by size, sizes, and how many times less than torch.compile's its time is to be.
GROWING: dict[str, tuple[Callable[[int], programs.Program], tuple[int, ...], float]] = {
    "blocks": (programs.blocks, (25, 100, 400), 40),
    "lines of one function": (programs.long_function, (250, 1000, 4000), 10),
}

#: By how much time may grow where the size grows four times.
MOST = 4.4


def measure(name: str, rounds: int) -> Iterator[rows.Row]:
    """Both engines at each size, and graphlift's growth between sizes."""
    make, sizes, times = GROWING[name]
    before: rows.Row | None = None
    for size in sizes:
        fn, args = make(size)
        samples = engines.alternating(lambda e, fn=fn, args=args: first_call(e, fn, args), rounds)
        target = rows.Target("times less", times)
        row = rows.Row(QUESTION, f"{size} {name}", samples, target=target, size=size)
        yield row
        if before is not None:
            both = {rows.OURS: samples[rows.OURS], "smaller": before.samples[rows.OURS]}
            grown = f"{size} : {before.size} {name}"
            yield rows.Row(QUESTION, grown, both, target=rows.Target("growth", MOST))
        before = row


def first_call(engine: engines.Engine, fn: engines.Function, args: tuple[object, ...]) -> float:
    return engines.first_call_seconds(engine, fn, args)[0]


def main() -> None:
    chosen = rows.options(__doc__, rounds=2)
    engines.quiet_machine()
    with torch.no_grad():
        engines.warm_up()
        rows.table(chosen, QUESTION, rows.STOCK, GROWING, measure)


if __name__ == "__main__":
    main()
