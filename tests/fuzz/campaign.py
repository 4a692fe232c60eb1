"""Many programs, in several processes: ``make fuzz COUNT=100000 SEED=0 JOBS=2``.

Each process does a piece of the numbers and ends, so that nothing piles up. Where one dies or hangs, the
program that did it is noted and the rest of the piece goes on in another. What differs is shrunk, one program
of each kind, and written to ``build/fuzz``.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import io
import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

#: Numbers that one process does.
PIECE = 1000

#: One program in so many has its instructions counted.
COUNTED = 50

#: After so many programs the rubbish is collected; in between hardly ever, since there is so much to walk.
COLLECTED = 50

#: Seconds that one program may take.
PATIENCE = 60

COUNTS = ("calls", "errors", "whole", "graphs", "operations", "captures", "recompiles", "left", "endless")


# --- one process -----------------------------------------------------------------------------------


def piece(start: int, end: int, folder: Path) -> None:
    """Run the programs of some numbers; what came of them is written to a file when all are done."""
    import torch

    from fuzz.programs import program
    from fuzz.running import kind_of, run

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    totals, breaks, instructions = Counter[str](), Counter[str](), Counter[str]()
    found: list[tuple[int, str, str]] = []
    now = folder / f"now-{start}"
    run(program(start))
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)
    for number in range(start, end):
        now.write_text(str(number))
        if number % COLLECTED == 0:
            gc.collect()
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            result = run(program(number), instructions=number % COUNTED == 0)
        if result.differences:
            found.append((number, kind_of(result.differences[0]), result.differences[0]))
        totals.update({name: getattr(result, name) for name in COUNTS})
        totals.update(
            programs=1, captured=result.graphs > 0, unbroken=result.graphs > 0 and not result.breaks
        )
        totals["uncompared"] += len(result.uncompared)
        breaks.update(result.breaks)
        instructions.update(result.instructions)
    faulthandler.cancel_dump_traceback_later()
    done = {"totals": totals, "breaks": breaks, "instructions": instructions, "found": found}
    (folder / f"piece-{start}.json").write_text(json.dumps(done))
    now.unlink()


# --- all of them -----------------------------------------------------------------------------------


class Campaign:
    """All pieces, and what came of them.

    Arguments:
        start, count: the numbers.
        jobs: processes at a time.
        folder: where results are written.
    """

    def __init__(self, start: int, count: int, jobs: int, folder: Path) -> None:
        self._folder = folder
        self._jobs = jobs
        self._waiting = [(at, min(at + PIECE, start + count)) for at in range(start, start + count, PIECE)]
        self._running: list[tuple[subprocess.Popen[bytes], int, int]] = []
        self.totals = Counter[str]()
        self.breaks = Counter[str]()
        self.instructions = Counter[str]()
        self.found: list[tuple[int, str, str]] = []

    def run(self) -> None:
        """Do all pieces."""
        begin = time.monotonic()
        while self._waiting or self._running:
            while self._waiting and len(self._running) < self._jobs:
                self._begin(*self._waiting.pop(0))
            time.sleep(0.2)
            for one in [one for one in self._running if one[0].poll() is not None]:
                self._running.remove(one)
                known = len(self.found)
                self._take(*one)
                for number, kind, _ in self.found[known:]:
                    print(f"program {number}: {kind}", flush=True)
                seconds = time.monotonic() - begin
                done = self.totals["programs"]
                print(f"{done} programs, {done / seconds:.1f} a second, {len(self.found)} differ", flush=True)

    def _begin(self, start: int, end: int) -> None:
        command = [sys.executable, "-m", "fuzz.campaign", "--piece", str(start), str(end), str(self._folder)]
        errors = (self._folder / f"errors-{start}").open("wb")
        self._running.append((subprocess.Popen(command, stderr=errors), start, end))

    def _take(self, process: subprocess.Popen[bytes], start: int, end: int) -> None:
        """A process has ended: take its results, or note which program ended it."""
        result = self._folder / f"piece-{start}.json"
        errors = self._folder / f"errors-{start}"
        if not result.exists():
            now = self._folder / f"now-{start}"
            number = int(now.read_text()) if now.exists() else start
            tail = errors.read_text(errors="replace")[-3000:]
            kind = "no end" if "Timeout" in tail else f"ended with {process.returncode}"
            self.found.append((number, kind, tail))
            self.totals["programs"] += 1
            self._waiting[:0] = [part for part in ((start, number), (number + 1, end)) if part[0] < part[1]]
            return
        done: dict[str, Any] = json.loads(result.read_text())
        self.totals.update(done["totals"])
        self.breaks.update(done["breaks"])
        self.instructions.update(done["instructions"])
        self.found += [tuple(one) for one in done["found"]]
        result.unlink()
        errors.unlink()

    def report(self) -> str:
        """What was run, and how much of it was captured."""
        t = self.totals
        lines = [
            f"{t['programs']} programs, {t['calls']} calls, {t['errors']} of which raised",
            f"{t['captured']} programs made graphs, {t['unbroken']} of them without a break",
            f"{t['graphs']} graphs with {t['operations']} operations in {t['captures']} captures",
            f"{t['recompiles']} recompiles, {t['left']} codes left to Python",
            "breaks: " + ", ".join(f"{name} {number}" for name, number in self.breaks.most_common()),
            f"{len(self.instructions)} kinds of instructions were executed on symbols",
            f"{t['uncompared']} values could not be compared",
            f"{len(self.found)} programs differ",
        ]
        return "\n".join(lines)

    def kinds(self) -> dict[str, list[tuple[int, str]]]:
        """What differs, by kind."""
        kinds: dict[str, list[tuple[int, str]]] = {}
        for number, kind, text in sorted(self.found):
            kinds.setdefault(kind, []).append((number, text))
        return kinds


def write_shrunk(number: int, text: str, folder: Path, seconds: float) -> Path:
    """Shrink the program of a number; write it with what was different."""
    from fuzz.programs import program
    from fuzz.shrinking import shrunk

    small = shrunk(program(number), seconds)
    path = folder / f"{number}.py"
    path.write_text(small + "\n" + "\n".join(f"# {line}" for line in text.splitlines()[:40]) + "\n")
    return path


def main() -> int:
    """The command; 1 when something differs."""
    if sys.argv[1:2] == ["--piece"]:
        piece(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--shrink", type=float, default=120, metavar="SECONDS", help="for each kind of difference; 0: not"
    )
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    campaign = Campaign(options.seed, options.count, options.jobs, options.folder)
    campaign.run()
    seconds = time.monotonic() - begin
    print(campaign.report())
    print(f"{options.count / seconds:.1f} programs a second, {seconds:.0f} s with {options.jobs} processes")
    for kind, them in sorted(campaign.kinds().items(), key=lambda item: -len(item[1])):
        print(f"{len(them)} x {kind}: {', '.join(str(number) for number, _ in them[:8])}", flush=True)
        if options.shrink:
            print(f"    {write_shrunk(*them[0], options.folder, options.shrink)}", flush=True)
    return bool(campaign.found)


if __name__ == "__main__":
    sys.exit(main())
