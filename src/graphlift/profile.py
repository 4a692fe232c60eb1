"""What the profile mode finds: where the time of a capture went, and what each guard costs a call.

Plain data, made only while somebody listens to `events.CaptureProfiled`. Knows neither captures nor guards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import CodeType
from typing import NamedTuple


class FunctionTime(NamedTuple):
    """Capture time of one of the user's functions.

    Attributes:
        function: qualified name.
        file, line: where it is defined.
        calls: how often it was followed.
        own: seconds in it, without functions that it called.
        whole: seconds in it with those; calls inside one another count twice.
    """

    function: str
    file: str
    line: int
    calls: int
    own: float
    whole: float


class GuardCost(NamedTuple):
    """What one guard costs at each call.

    Attributes:
        guard: the guard, a line of text.
        nanoseconds: with warm caches; places that a guard reads first are counted as its own.
    """

    guard: str
    nanoseconds: float


class Profile(NamedTuple):
    """Where the time of one capture went.

    Attributes:
        functions: the user's functions, most of their own time first.
        guards: the guards of the entry, dearest first; empty where there is no entry.
    """

    functions: Sequence[FunctionTime]
    guards: Sequence[GuardCost]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, most: int = 20) -> list[str]:
        """The profile as text, at most so many functions and guards each."""
        lines = ["capture time by function (own ms, with callees, calls):"]
        for row in self.functions[:most]:
            place = f"{row.function} ({row.file}:{row.line})"
            lines.append(f"  {row.own * 1e3:8.2f} {row.whole * 1e3:8.2f} {row.calls:6}  {place}")
        if self.guards:
            total = sum(row.nanoseconds for row in self.guards)
            lines.append(f"guards at each call ({total:.0f} ns, {len(self.guards)} guards):")
            lines += [f"  {row.nanoseconds:8.1f} ns  {row.guard}" for row in self.guards[:most]]
        return lines


class FunctionClock:
    """Adds up capture time by code object: processor time of the thread that captures."""

    __slots__ = ("_inside", "_rows")

    def __init__(self) -> None:
        self._rows: dict[CodeType, list[float]] = {}
        #: Seconds spent in callees of the function that runs now.
        self._inside = 0.0

    def run(self, code: CodeType, follow: Callable[[], int]) -> int:
        """Follow a frame of `code`; gives what `follow` gives."""
        outer, self._inside = self._inside, 0.0
        start = time.thread_time()
        try:
            return follow()
        finally:
            spent = time.thread_time() - start
            row = self._rows.setdefault(code, [0, 0.0, 0.0])
            row[0] += 1
            row[1] += spent - self._inside
            row[2] += spent
            self._inside = outer + spent

    def functions(self) -> list[FunctionTime]:
        """What was added up, most time first."""
        rows = [
            FunctionTime(code.co_qualname, code.co_filename, code.co_firstlineno, int(calls), own, whole)
            for code, (calls, own, whole) in self._rows.items()
        ]
        return sorted(rows, key=lambda row: row.own, reverse=True)
