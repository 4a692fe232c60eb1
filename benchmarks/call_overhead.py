"""What a warm call costs beside the graph itself: graphlift and torch.compile side by side.

    python benchmarks/call_overhead.py [--rounds 5] [--only llama] [--json calls.json]

The backend returns the results of the first run ever after, so a warm call is guards and entry code alone.
Both engines run in this process, turn about; the best median counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import engines
import programs
import torch


def measure(name: str, rounds: int) -> dict[str, float]:
    """Best warm-call times of both engines, in microseconds."""
    fn, args = programs.CALLED[name]()
    compiled = {}
    for engine in engines.BOTH:
        engine.reset()
        compiled[engine.name] = engine.compile(fn, backend=engines.canned)
        for _ in range(3):
            compiled[engine.name](*args)
    times: dict[str, list[float]] = {engine.name: [] for engine in engines.BOTH}
    for _ in range(rounds):
        for engine_name, function in compiled.items():
            times[engine_name].append(engines.seconds_per_call(function, args))
    best = {f"{name}, us": min(values) * 1e6 for name, values in times.items()}
    best["ratio"] = best["torch.compile, us"] / best["graphlift, us"]
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    figures: dict[str, dict[str, float]] = {}
    with torch.no_grad():
        engines.warm_up()
        print(f"{'warm call':28}{'graphlift':>12}{'torch.compile':>16}{'ratio':>8}")
        for name in programs.CALLED:
            if arguments.only.lower() in name.lower():
                row = figures[name] = measure(name, arguments.rounds)
                print(
                    f"{name:28}{row['graphlift, us']:9.2f} us{row['torch.compile, us']:13.2f} us"
                    f"{row['ratio']:7.1f}x",
                    flush=True,
                )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
