"""What a warm call costs beside the graph itself: graphlift and torch.compile side by side.

    python benchmarks/call_overhead.py [--rounds 5] [--only linear] [--json calls.json]

The backend returns the results of the first run ever after, so a warm call is guards and entry code alone.
Both engines run in this process, turn about. Cold rows sweep through 64 MB before each call.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import engines
import programs
import rows
import torch

QUESTION = "warm call"

#: What a warm call may take on Python 3.12, in seconds; where there is none, a tenth of torch.compile's.
TARGETS = {"two tensors": 0.3e-6, "100 linear layers": 4e-6, "400 linear layers": 15e-6}

#: What those of modules are multiplied by: 3.11 and 3.13.0 have no way to be told of changes.
ALLOWANCE = 1.5 if sys.version_info[:2] == (3, 11) or sys.version_info[:3] == (3, 13, 0) else 1.0


def cold_seconds(function: engines.Function, args: Sequence[Any], calls: int = 30) -> float:
    """Time of one call with caches that hold other things: the median of a few."""
    sweep = torch.zeros(64 * 2**20, dtype=torch.uint8)
    taken = []
    for _ in range(calls):
        sweep.add_(1)
        start = time.process_time()
        function(*args)
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def measure(name: str, rounds: int) -> Iterator[rows.Row]:
    """Warm-call times of both engines, hot and with cold caches."""
    fn, args = programs.CALLED[name]()
    compiled = {engine.name: engines.warmed(engine, fn, args)[0] for engine in engines.BOTH}

    def hot(engine: engines.Engine) -> float:
        return engines.seconds_per_call(compiled[engine.name], args)

    def cold(engine: engines.Engine) -> float:
        return cold_seconds(compiled[engine.name], args)

    bound = TARGETS.get(name)
    if bound is not None and "linear" in name:
        bound *= ALLOWANCE
    target = rows.Target("times less", 10) if bound is None else rows.Target("at most", bound)
    yield rows.Row(QUESTION, name, engines.alternating(hot, rounds), target=target)
    yield rows.Row(QUESTION, f"{name}, caches cold", engines.alternating(cold, 2))


def main() -> None:
    chosen = rows.options(__doc__, rounds=5)
    engines.quiet_machine()
    with torch.no_grad():
        engines.warm_up()
        rows.table(chosen, QUESTION, rows.STOCK, programs.CALLED, measure)


if __name__ == "__main__":
    main()
