"""The logs: what a capture does, as text on Python's `logging`.

Each artifact is a logger ``graphlift.<artifact>`` and a view of one or two events. Choosing artifacts
(``GRAPHLIFT_LOGS`` or `set_logs`) subscribes to their events and prints to stderr; whoever prefers their own
handlers attaches them to the loggers. What a user must hear without asking (a failure of graphlift, a
function given up) is logged as a warning always. Knows events, not who emits them.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any, TextIO
from weakref import WeakKeyDictionary

from graphlift import events
from graphlift.report import text

#: The variable that chooses artifacts at import, e.g. ``GRAPHLIFT_LOGS="graph_breaks,guards"``.
ENVIRONMENT = "GRAPHLIFT_LOGS"


@dataclass(frozen=True, slots=True)
class Artifact:
    """One kind of log.

    Attributes:
        events: what it is made from.
        render: an event's text, or None to say nothing.
        meaning: one line for people who look for the right name.
    """

    events: tuple[type[events.Event], ...]
    render: Callable[[Any], str | None]
    meaning: str


ARTIFACTS: dict[str, Artifact] = {
    "graph_breaks": Artifact(
        (events.GraphBroken, events.LeftToPython), text.of_break, "where and why graphs are cut"
    ),
    "guards": Artifact((events.EntryAdded,), text.of_guards, "what each entry assumes"),
    "recompiles": Artifact(
        (events.Recompiling, events.GaveUp), text.of_recompile, "which guard made a frame be captured again"
    ),
    "bytecode": Artifact((events.BytecodeMade,), text.of_bytecode, "original and emitted code"),
    "trace_bytecode": Artifact((events.Step,), text.of_step, "each instruction with the stack before it"),
    "graph_code": Artifact((events.GraphFinished,), text.of_graph, "the graphs"),
    "time": Artifact(
        (events.CaptureFinished, events.CaptureProfiled),
        text.of_times,
        "how long each capture took, by phase and function; what each guard costs a call",
    ),
}

_ROOT = logging.getLogger("graphlift")


class _ToStderr(logging.StreamHandler[TextIO]):
    """Prints to whatever `sys.stderr` is then, unless the root logger prints there already."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter("%(message)s"))

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, value: TextIO) -> None:
        """Never kept."""

    def emit(self, record: logging.LogRecord) -> None:
        others = logging.getLogger().handlers
        if not any(getattr(handler, "stream", None) is sys.stderr for handler in others):
            super().emit(record)


_handler = _ToStderr()
_chosen: dict[str, Callable[[], None]] = {}


def set_logs(*names: str, **flags: bool) -> None:
    """Choose what is logged; what is not named is off.

    ``set_logs("guards", "recompiles")``, ``set_logs("guards,recompiles")`` and
    ``set_logs(guards=True, recompiles=True)`` mean the same; ``"all"`` means every artifact; no
    argument turns all off.

    Raises:
        ValueError: there is no such artifact; nothing is changed.
    """
    wanted = _parse([*names, *(name for name, on in flags.items() if on)])
    _parse(flags)  # a name that is turned off must exist, too
    _said.clear()
    for name in set(_chosen) - wanted:
        _chosen.pop(name)()
        logging.getLogger(f"graphlift.{name}").setLevel(logging.NOTSET)
    for name in wanted - set(_chosen):
        _chosen[name] = _turn_on(name)
    if wanted:
        _ROOT.addHandler(_handler)
    else:
        _ROOT.removeHandler(_handler)


def logs() -> frozenset[str]:
    """The artifacts that are on now."""
    return frozenset(_chosen)


def _parse(names: Iterable[str]) -> set[str]:
    split = [part.strip() for name in names for part in name.split(",") if part.strip()]
    unknown = [name for name in split if name not in ARTIFACTS and name != "all"]
    if unknown:
        valid = ", ".join(ARTIFACTS)
        raise ValueError(f"no such log: {', '.join(unknown)}; there are: {valid} (and all)")
    return set(ARTIFACTS) if "all" in split else set(split)


def _turn_on(name: str) -> Callable[[], None]:
    artifact = ARTIFACTS[name]
    logger = logging.getLogger(f"graphlift.{name}")
    logger.setLevel(logging.DEBUG)

    def log(event: events.Event) -> None:
        if isinstance(event, events.GraphBroken) and _said_before(event):
            return
        message = artifact.render(event)
        if message is not None:
            logger.debug("%s", message)

    return events.subscribe(log, *artifact.events)


#: Places of breaks that were logged, so that each is said once; `reset` forgets them, as does choosing logs.
_said: set[Hashable] = set()


def _said_before(event: events.GraphBroken) -> bool:
    """Whether the same reason was logged for the same place; the reports have the count."""
    if event.key in _said:
        return True
    _said.add(event.key)
    return False


#: Failures that were logged, by code object, so that each is said once.
_told: WeakKeyDictionary[CodeType, set[str]] = WeakKeyDictionary()


def _failed(event: events.InternalFailure) -> None:
    told = _told.setdefault(event.code, set())
    what = repr(event.error)
    if what not in told:
        told.add(what)
        logging.getLogger("graphlift").warning("%s", text.of_failure(event), exc_info=event.error)


def _gave_up(event: events.GaveUp) -> None:
    if "recompiles" not in _chosen:  # which says it already
        logging.getLogger("graphlift").warning("%s", text.of_recompile(event))


def start() -> None:
    """Say what must be heard, and turn on what the environment asks for; called once, at import."""
    events.subscribe(lambda event: _said.clear(), events.Forgotten)
    events.subscribe(_failed, events.InternalFailure)
    events.subscribe(_gave_up, events.GaveUp)
    asked = os.environ.get(ENVIRONMENT, "")
    try:
        set_logs(asked)
    except ValueError as error:
        raise ValueError(f"{ENVIRONMENT}={asked!r}: {error}") from None
