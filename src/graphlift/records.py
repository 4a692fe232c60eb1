"""What a compiled object remembers of its captures: one small record each, made from events.

Records are plain data without the user's objects, so keeping them keeps nothing else alive. They belong to
the compiled object (`CaptureLog`), which hands its log along with `CaptureStarted`; when it goes, so do they.
This module knows events only, not how they are shown.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from graphlift import config, events
from graphlift.events import Outcome
from graphlift.profile import Profile
from graphlift.reasons import Reason
from graphlift.user_frames import Place, UserFrame


@dataclass(slots=True)
class Break:
    """One cut in a graph.

    Attributes:
        reason: why, from the table of reasons.
        context: what exactly was met, in one line.
        stack: the user's frames as (file, line, function), outermost first, innermost last.
        place: the expression that is pointed at, in the innermost frame that is neither Python's nor torch's
            if there is one.
        count: how often the same reason was met at the same place.
    """

    reason: Reason
    context: str
    stack: tuple[UserFrame, ...]
    place: Place | None = None
    count: int = 1

    @property
    def id(self) -> str:
        """The reason's name in the table."""
        return self.reason.name

    @property
    def title(self) -> str:
        """The reason in a few words."""
        return self.reason.value.title

    @property
    def explanation(self) -> str:
        """What happened, and why no graph can hold it."""
        return self.reason.value.explanation

    @property
    def hints(self) -> tuple[str, ...]:
        """What to write instead, most useful first."""
        return self.reason.value.hints

    @property
    def message(self) -> str:
        """The whole explanation, with hints and the user's stack."""
        return self.reason.describe(self.context, self.stack, self.place, self.count)

    @property
    def file(self) -> str:
        """The user's file in which the graph was cut; empty if unknown."""
        return self._frame.file

    @property
    def line(self) -> int:
        """The user's line at which the graph was cut; 0 if unknown."""
        return self._frame.line

    @property
    def _frame(self) -> UserFrame:
        if self.place is not None:
            return self.place.frame
        return self.stack[-1] if self.stack else UserFrame("", 0, "")

    def __str__(self) -> str:
        return self.message


class Breaks:
    """Cuts by place: the same reason at the same place is one `Break`, which counts.

    Attributes:
        found: the cuts in the order in which they were first met.
    """

    __slots__ = ("_by_place", "found")

    def __init__(self) -> None:
        self.found: list[Break] = []
        self._by_place: dict[Hashable, Break] = {}

    def note(self, event: events.GraphBroken) -> Break:
        """Take a cut in; gives what stands for it."""
        known = self._by_place.get(event.key)
        if known is not None:
            known.count += 1
            return known
        made = Break(event.reason, event.context, tuple(event.stack), event.place)
        self._by_place[event.key] = made
        self.found.append(made)
        return made

    def clear(self) -> None:
        """Forget all."""
        self.found.clear()
        self._by_place.clear()


@dataclass(slots=True)
class CaptureRecord:
    """One capture or recompile.

    Attributes:
        capture_id: unique in this process.
        function: qualified name of the frame's function.
        file, line: where it is defined.
        offset: bytecode offset at which a resumed frame went on, 0 for a frame from its start.
        started: `time.time()` at the beginning.
        outcome: ``"captured"``, ``"skipped"``, ``"failed"``, or None while it runs.
        recompile_reasons: why no earlier entry would do, a sentence each; empty for a first capture.
        node_counts: operations in each graph.
        breaks: where graphs were cut; a place that other captures of the same owner met, too, is one object.
        guard_count: guards of the entry made.
        seconds: time by phase.
        profile: where the time went and what each guard costs, if the ``time`` log was on, else None.
        error: graphlift's own failure, as text, or None.
        left_to_python: why what was captured runs no more, or None; see `config.give_up_below`.
    """

    capture_id: int
    function: str
    file: str
    line: int
    offset: int = 0
    started: float = 0.0
    outcome: Outcome | None = None
    recompile_reasons: tuple[str, ...] = ()
    node_counts: list[int] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    guard_count: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    profile: Profile | None = None
    error: str | None = None
    left_to_python: str | None = None
    _guard_lines: Callable[[], Sequence[str]] = field(default=tuple, repr=False)

    @property
    def is_recompile(self) -> bool:
        """Whether an earlier entry existed and would not do."""
        return bool(self.recompile_reasons)

    @property
    def guards(self) -> tuple[str, ...]:
        """The guards as text, one line each."""
        return tuple(self._guard_lines())

    @property
    def total_seconds(self) -> float:
        """Time of all phases together."""
        return sum(self.seconds.values())

    def __str__(self) -> str:
        what = "recompile" if self.is_recompile else "resumed" if self.offset else "capture"
        nodes = " + ".join(map(str, self.node_counts)) or "0"
        text = (
            f"{what} of {self.function} ({self.file}:{self.line}): {self.outcome or 'running'}, "
            f"{nodes} operations, {len(self.breaks)} breaks, {self.guard_count} guards, "
            f"{self.total_seconds * 1e3:.1f} ms"
        )
        text = "\n  because ".join((text, *self.recompile_reasons))
        if self.left_to_python:
            text = f"{text}\n  runs plainly since: {self.left_to_python}"
        if self.profile is not None:
            phases = ", ".join(f"{name} {seconds * 1e3:.2f} ms" for name, seconds in self.seconds.items())
            text = "\n  ".join((text, f"capture time by phase: {phases}", *self.profile.lines()))
        return text


class CaptureLog:
    """The records of one compiled object, oldest first; bounded by ``config.report_size``.

    Attributes:
        records: the captures.
        gave_up: a sentence for each code object that now runs plainly for this object.
        breaks: the cuts of all captures, each place once.
    """

    __slots__ = ("__weakref__", "breaks", "gave_up", "records")

    def __init__(self) -> None:
        self.breaks = Breaks()
        self.records: deque[CaptureRecord] = deque()
        self.gave_up: list[str] = []

    def add(self, record: CaptureRecord) -> None:
        """Append a record; the oldest go when there are too many."""
        self.records.append(record)
        while len(self.records) > config.report_size:
            self.records.popleft()

    def clear(self) -> None:
        """Forget everything."""
        self.records.clear()
        self.gave_up.clear()
        self.breaks.clear()


#: Captures that are running now, and their owners' logs. Each key is used by the one thread that captures.
_running: dict[int, CaptureRecord] = {}
_logs: dict[int, CaptureLog] = {}


def _started(event: events.CaptureStarted) -> None:
    if not isinstance(event.owner, CaptureLog):
        return
    code = event.code
    record = CaptureRecord(
        event.capture_id, code.co_qualname, code.co_filename, code.co_firstlineno, event.offset, time.time()
    )
    _running[event.capture_id] = record
    _logs[event.capture_id] = event.owner
    event.owner.add(record)


def _finished(event: events.CaptureFinished) -> None:
    record = _running.pop(event.capture_id, None)
    _logs.pop(event.capture_id, None)
    if record is not None:
        record.outcome = event.outcome
        record.seconds = dict(event.seconds)
        record.profile = event.profile


def _graph(event: events.GraphFinished) -> None:
    if record := _running.get(event.capture_id):
        record.node_counts.append(event.graph.node_count)


def _broken(event: events.GraphBroken) -> None:
    if record := _running.get(event.capture_id):
        record.breaks.append(_logs[event.capture_id].breaks.note(event))


def _entry(event: events.EntryAdded) -> None:
    if record := _running.get(event.capture_id):
        record.guard_count += len(event.guards)
        record._guard_lines = event.lines


def _recompiling(event: events.Recompiling) -> None:
    if record := _running.get(event.capture_id):
        record.recompile_reasons = tuple(event.failures)


def _failure(event: events.InternalFailure) -> None:
    if record := _running.get(event.capture_id):
        record.error = f"{type(event.error).__name__}: {event.error}"


def _gave_up(event: events.GaveUp) -> None:
    if isinstance(event.owner, CaptureLog):
        event.owner.gave_up.append(f"{event.code.co_qualname}: {event.why}")


def _left_to_python(event: events.LeftToPython) -> None:
    if isinstance(event.owner, CaptureLog):
        gone = set(event.captures)
        for record in event.owner.records:
            if record.capture_id in gone:
                record.left_to_python = event.why


events.subscribe(_started, events.CaptureStarted)
events.subscribe(_finished, events.CaptureFinished)
events.subscribe(_graph, events.GraphFinished)
events.subscribe(_broken, events.GraphBroken)
events.subscribe(_entry, events.EntryAdded)
events.subscribe(_recompiling, events.Recompiling)
events.subscribe(_failure, events.InternalFailure)
events.subscribe(_gave_up, events.GaveUp)
events.subscribe(_left_to_python, events.LeftToPython)
