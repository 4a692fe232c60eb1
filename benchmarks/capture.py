"""How long the first call takes: graphlift and torch.compile side by side, with a backend that does nothing.

    python benchmarks/capture.py [--rounds 3] [--only llama] [--json capture.json]

Both run in this process, turn about; each round starts with nothing remembered. Imports are done before.
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
    """Best first-call times of both engines, and plain Python's, in milliseconds."""
    fn, args = programs.CAPTURED[name]()
    times: dict[str, list[float]] = {engine.name: [] for engine in engines.BOTH}
    for number in range(rounds):
        for engine in engines.BOTH:
            print(f"\r{name}: round {number + 1} of {rounds}, {engine.name}     ", end="", file=sys.stderr)
            times[engine.name].append(engines.first_call_seconds(engine, fn, args))
    print("\r" + " " * 79 + "\r", end="", file=sys.stderr)
    best = {f"{name}, ms": min(values) * 1e3 for name, values in times.items()}
    best["plain, ms"] = engines.seconds_per_call(fn, args) * 1e3
    best["ratio"] = best["torch.compile, ms"] / best["graphlift, ms"]
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    figures: dict[str, dict[str, float]] = {}
    with torch.no_grad():
        engines.warm_up()
        print(f"{'first call':28}{'graphlift':>12}{'torch.compile':>16}{'plain':>10}{'ratio':>8}")
        for name in programs.CAPTURED:
            if arguments.only.lower() in name.lower():
                row = figures[name] = measure(name, arguments.rounds)
                print(
                    f"{name:28}{row['graphlift, ms']:9.1f} ms{row['torch.compile, ms']:13.1f} ms"
                    f"{row['plain, ms']:7.1f} ms{row['ratio']:7.1f}x",
                    flush=True,
                )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
