"""What a fresh process pays: importing the package, and the first capture of all.

    python benchmarks/start_up.py [--rounds 2] [--only blocks] [--json start_up.json]

Each sample is a process of its own, engines turn about. The plain program has run there before. Imports of
torch, of the program and of its library are not counted; compiled bytecode is on the disk.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import programs
import rows
import torch

QUESTION = "start-up"
IMPORT = "import after torch"

#: Seconds that are to be enough.
TARGETS = {IMPORT: 0.1, "blocks, 100": 0.15, "Llama, 12 layers": 0.15}


def worker(engine: str, name: str) -> float:
    """Seconds from importing the engine to the first result, in this process."""
    torch.set_num_threads(1)
    fn, args = (None, ()) if name == IMPORT else programs.CAPTURED[name]()
    with torch.no_grad():
        if fn is not None:
            fn(*args)
        start = time.process_time()
        # `torch.compile` imports its front end when it is first used.
        module = importlib.import_module("graphlift" if engine == rows.OURS else "torch._dynamo")
        if fn is not None:
            compiler = module.compile if engine == rows.OURS else torch.compile
            compiler(fn, backend="eager")(*args)
    return time.process_time() - start


def in_a_process(engine: str, name: str) -> float:
    """What `worker` measures in a process of its own."""
    cache = Path(__file__).resolve().parent.parent / "build" / "pycache"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(cache)
    command = [sys.executable, __file__, "--worker", engine, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def measure(name: str, rounds: int) -> Iterator[rows.Row]:
    """Seconds of both engines, a process each."""
    sides = (rows.OURS, rows.STOCK)
    in_a_process(rows.OURS, name)  # writes compiled bytecode
    samples: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side in sides:
            samples[side].append(in_a_process(side, name))
    bound = TARGETS.get(name)
    target = None if bound is None else rows.Target("at most", bound)
    yield rows.Row(QUESTION, name, samples, target=target)


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        print(worker(*sys.argv[2:4]))
        return
    chosen = rows.options(__doc__, rounds=2)
    rows.table(chosen, QUESTION, rows.STOCK, TARGETS, measure)


if __name__ == "__main__":
    main()
