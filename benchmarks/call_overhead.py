"""What a warm call costs beside the graph itself: graphlift and torch.compile side by side.

    python benchmarks/call_overhead.py [--rounds 5] [--only llama] [--json calls.json]

The backend returns the results of the first run ever after, so a warm call is guards and entry code alone.
Both engines run in this process, turn about; the best median counts.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import engines
import programs
import torch


def measure(name: str, rounds: int) -> dict[str, float]:
    """Best warm-call times of both engines, in microseconds; graphs of each."""
    fn, args = programs.CALLED[name]()
    figures: dict[str, float] = {}
    compiled = {}
    for engine in engines.BOTH:
        engines.say(f"{name}: {engine.name}")
        compiled[engine.name], figures[f"{engine.name}, graphs"] = engines.warmed(engine, fn, args)
    for _ in range(rounds):
        for engine_name, function in compiled.items():
            key = f"{engine_name}, us"
            seconds = engines.seconds_per_call(function, args)
            figures[key] = min(figures.get(key, float("inf")), seconds * 1e6)
    engines.say("")
    figures["ratio"] = figures["torch.compile, us"] / figures["graphlift, us"]
    return figures


def line(name: str, row: dict[str, float]) -> str:
    return (
        f"{name:28}{row['graphlift, us']:9.2f} us{row['torch.compile, us']:13.2f} us"
        f"{row['ratio']:7.1f}x  {row['graphlift, graphs']} and {row['torch.compile, graphs']}"
    )


def main() -> None:
    chosen = engines.options(__doc__, rounds=5)
    with torch.no_grad():
        engines.warm_up()
        print(f"{'warm call':28}{'graphlift':>12}{'torch.compile':>16}{'ratio':>8}  graphs")
        engines.table(chosen, programs.CALLED, measure, line)


if __name__ == "__main__":
    main()
