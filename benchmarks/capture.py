"""How long the first call takes: graphlift and torch.compile side by side, with a backend that does nothing.

    python benchmarks/capture.py [--rounds 3] [--only llama] [--json capture.json]

Both run in this process, turn about; each round starts with nothing remembered. Imports are done before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import engines
import programs
import rows
import torch

QUESTION = "first call"

#: How many times less than torch.compile's a first call is to take.
TARGETS = {"two tensors": 10, "blocks": 40, "one function": 10}


def target(name: str) -> rows.Target:
    """The target of a program; 20 for the models."""
    return rows.Target("times less", next((t for key, t in TARGETS.items() if name.startswith(key)), 20))


def measure(name: str, rounds: int) -> Iterator[rows.Row]:
    """First-call times of both engines."""
    fn, args = programs.CAPTURED[name]()
    graphs: dict[str, int] = {}

    def first_call(engine: engines.Engine) -> float:
        seconds, graphs[engine.name] = engines.first_call_seconds(engine, fn, args)
        return seconds

    samples = engines.alternating(first_call, rounds)
    counts = sorted(set(graphs.values()))
    remark = "" if counts == [1] else f"graphs: {', '.join(f'{n} {engine}' for engine, n in graphs.items())}"
    yield rows.Row(QUESTION, name, samples, target=target(name), remark=remark)


def main() -> None:
    chosen = rows.options(__doc__, rounds=3)
    engines.quiet_machine()
    with torch.no_grad():
        engines.warm_up()
        rows.table(chosen, QUESTION, rows.STOCK, programs.CAPTURED, measure)


if __name__ == "__main__":
    main()
