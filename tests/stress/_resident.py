"""What the stress programs share: resident memory, progress, and a verdict."""

from __future__ import annotations

import gc
import sys
import time


def resident() -> float:
    """This process's resident memory in MiB."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


class Progress:
    """One line that is rewritten about once a second."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total = what, total
        self.start = self.last = time.perf_counter()

    def at(self, done: int) -> None:
        """Show how far it is, now and then."""
        now = time.perf_counter()
        if now - self.last > 1 and sys.stderr.isatty():
            self.last = now
            print(f"\r{self.what}: {done:,} of {self.total:,}", end="", file=sys.stderr, flush=True)

    def done(self) -> float:
        """End the line; returns the seconds that it took."""
        if sys.stderr.isatty():
            print("\r" + " " * 78 + "\r", end="", file=sys.stderr, flush=True)
        return time.perf_counter() - self.start


def require(holds: bool, text: str) -> None:
    """Print a finding; leave with status 1 if it does not hold."""
    print(f"{'ok  ' if holds else 'FAIL'} {text}", flush=True)
    if not holds:
        sys.exit(1)
