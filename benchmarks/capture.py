"""How long the first call takes: graphlift and torch.compile side by side, with a backend that does nothing.

    python benchmarks/capture.py [--rounds 3] [--only llama] [--json capture.json]

Both run in this process, turn about; each round starts with nothing remembered. Imports are done before.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import engines
import programs
import torch


def measure(name: str, rounds: int) -> dict[str, float]:
    """Best first-call times of both engines and plain Python's call, in milliseconds; graphs of each."""
    fn, args = programs.CAPTURED[name]()
    figures: dict[str, float] = {}
    for number in range(rounds):
        for engine in engines.BOTH:
            engines.say(f"{name}: round {number + 1} of {rounds}, {engine.name}")
            seconds, graphs = engines.first_call_seconds(engine, fn, args)
            key = f"{engine.name}, ms"
            figures[key] = min(figures.get(key, float("inf")), seconds * 1e3)
            figures[f"{engine.name}, graphs"] = graphs
    engines.say("")
    figures["plain, ms"] = engines.seconds_per_call(fn, args) * 1e3
    figures["ratio"] = figures["torch.compile, ms"] / figures["graphlift, ms"]
    return figures


def line(name: str, row: dict[str, float]) -> str:
    return (
        f"{name:28}{row['graphlift, ms']:9.1f} ms{row['torch.compile, ms']:13.1f} ms"
        f"{row['plain, ms']:7.1f} ms{row['ratio']:7.1f}x"
        f"  {row['graphlift, graphs']} and {row['torch.compile, graphs']}"
    )


def main() -> None:
    chosen = engines.options(__doc__, rounds=3)
    with torch.no_grad():
        engines.warm_up()
        print(f"{'first call':28}{'graphlift':>12}{'torch.compile':>16}{'plain':>10}{'ratio':>8}  graphs")
        engines.table(chosen, programs.CAPTURED, measure, line)


if __name__ == "__main__":
    main()
