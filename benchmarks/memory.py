"""What captures cost in memory: the peak of a big one, what an entry keeps, what calls add.

    python benchmarks/memory.py [--only peak] [--json memory.json]

Python's own allocations, traced, a process for each engine. Programs and torch are loaded before.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import engines
import programs
import rows
import torch

QUESTION = "memory"


def peak(engine: engines.Engine) -> tuple[int, int]:
    """Peak of capturing 400 blocks, and what stays, in bytes."""
    fn, args = programs.blocks(400)
    compiled = engine.compile(fn, backend=engines.as_it_is)
    gc.collect()
    tracemalloc.start()
    compiled(*args)
    most = tracemalloc.get_traced_memory()[1]
    gc.collect()
    return most, tracemalloc.get_traced_memory()[0]


def small_entry(engine: engines.Engine) -> tuple[int, int]:
    """Bytes of an entry of the 2-tensor function, the mean of four; and what 10,000 calls add."""
    fn, _ = programs.two_tensors()
    compiled = engine.compile(fn, backend=engines.as_it_is, dynamic=False)
    inputs = [(torch.rand(size), torch.rand(size)) for size in range(2, 8)]
    for args in inputs[:2]:
        compiled(*args)
    gc.collect()
    tracemalloc.start()
    for args in inputs[2:]:
        compiled(*args)
    gc.collect()
    captured = tracemalloc.get_traced_memory()[0]
    for _ in range(10_000):
        compiled(*inputs[3])
    gc.collect()
    return captured // 4, max(tracemalloc.get_traced_memory()[0] - captured, 0)


#: What is measured in a process -> its maker and the names of its two figures.
MEASURED: dict[str, tuple[Callable[[engines.Engine], tuple[int, int]], tuple[str, str]]] = {
    "peak": (peak, ("peak of capturing 400 blocks", "kept of 400 blocks, one entry")),
    "entry": (small_entry, ("an entry of the 2-tensor function", "10,000 warm calls add")),
}

TARGETS = {
    "peak of capturing 400 blocks": rows.Target("times less", 1),
    "10,000 warm calls add": rows.Target("at most", 4096),
}


def worker(engine_name: str, what: str) -> tuple[int, int]:
    """The two figures of one engine, in this process."""
    engine = next(engine for engine in engines.BOTH if engine.name == engine_name)
    engines.quiet_machine()
    with torch.no_grad():
        engines.warm_up()
        return MEASURED[what][0](engine)


def measure(what: str, rounds: int) -> Iterator[rows.Row]:
    """The rows of both engines."""
    figures: dict[str, list[int]] = {}
    for engine in engines.BOTH:
        command = [sys.executable, __file__, "--worker", engine.name, what]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        figures[engine.name] = [int(word) for word in done.stdout.split()[-2:]]
    for at, name in enumerate(MEASURED[what][1]):
        samples = {side: [float(both[at])] for side, both in figures.items()}
        yield rows.Row(QUESTION, name, samples, "byte", TARGETS.get(name))


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        print(*worker(*sys.argv[2:4]))
        return
    chosen = rows.options(__doc__, rounds=1)
    rows.table(chosen, QUESTION, rows.STOCK, MEASURED, measure)


if __name__ == "__main__":
    main()
