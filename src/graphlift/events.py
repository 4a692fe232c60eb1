"""What happens during a capture, as typed events; logs, `explain`, reports and tests are views of them.

Events carry data, not text: whoever listens makes the text. Objects in an event may be live parts of the
capture (a stack, a graph) and are good only until the listener returns, unless stated otherwise. This
module knows nobody who emits and nobody who listens.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Literal, Protocol

from graphlift.profile import Profile
from graphlift.reasons import Reason
from graphlift.user_frames import Place, UserFrame

_capture_ids = itertools.count(1)

Outcome = Literal["captured", "skipped", "failed"]


def new_capture_id() -> int:
    """A number that no other capture of this process has."""
    return next(_capture_ids)


class Graph(Protocol):
    """What events tell of a finished graph."""

    @property
    def graph_module(self) -> Any: ...
    @property
    def node_count(self) -> int: ...
    def op_counts(self) -> Mapping[str, int]: ...
    def readable(self) -> str: ...


@dataclass(slots=True)
class Event:
    """Base of all events.

    Attributes:
        capture_id: the capture it belongs to, 0 when it belongs to none.
    """

    capture_id: int


@dataclass(slots=True)
class CaptureStarted(Event):
    """A frame is about to be translated.

    Attributes:
        code: the user's code object.
        owner: the compiled object's own list of records, or None; see `records`.
        offset: bytecode offset at which a resumed frame goes on, 0 at its start.
    """

    code: CodeType
    owner: Any = None
    offset: int = 0


@dataclass(slots=True)
class Step(Event):
    """An instruction is about to be executed on symbols.

    Attributes:
        opname: the instruction's own name, also when it is a fused one.
        argument: its argument as `dis` users know it.
        stack: the value stack before the step, as trackers or their texts; read it at once.
    """

    opname: str
    argument: str
    stack: Sequence[object]


@dataclass(slots=True)
class GraphFinished(Event):
    """The tensor part of a capture is complete, and has not been compiled yet.

    Attributes:
        code: the user's code object.
        graph: the graph; may be kept.
    """

    code: CodeType
    graph: Graph


@dataclass(slots=True)
class BytecodeMade(Event):
    """New code for the user's frame has been assembled; both may be kept."""

    original: CodeType
    modified: CodeType


@dataclass(slots=True)
class EntryAdded(Event):
    """A capture has been published.

    Attributes:
        code: the user's code object.
        guards: the guards, plain data; may be kept.
        lines: makes one line of text a guard, when somebody asks; may be kept.
    """

    code: CodeType
    guards: Sequence[object]
    lines: Callable[[], Sequence[str]]


@dataclass(slots=True)
class GraphBroken(Event):
    """The graph was cut at an instruction.

    Attributes:
        reason: why, from the table of reasons.
        context: what exactly was met, in one line.
        stack: the user's frames, outermost first, innermost last; may be kept.
        message: makes the whole explanation, when somebody asks; holds the error's frames, so do not keep it.
        place: what a message points at, or None.
    """

    reason: Reason
    context: str
    stack: Sequence[UserFrame]
    message: Callable[[], str]
    place: Place | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two breaks the same one: the reason, and where the user's program is cut."""
        return (self.reason, self.place or (self.stack[-1] if self.stack else None))


@dataclass(slots=True)
class Recompiling(Event):
    """No entry's guards held, so the frame is captured once more; comes right after `CaptureStarted`.

    With `capture_id` 0 no capture follows, because there have been too many.

    Attributes:
        code: the user's code object.
        failures: a sentence for each entry: which guard failed, old and new value.
    """

    code: CodeType
    failures: Sequence[str]


@dataclass(slots=True)
class GaveUp(Event):
    """A code object runs plainly from now on, for this owner.

    Attributes:
        code: the user's code object.
        why: one sentence.
        reasons: what led to it, e.g. the reasons of the recompiles.
        owner: the compiled object's own list of records, or None.
    """

    code: CodeType
    why: str
    reasons: Sequence[str] = ()
    owner: Any = None


@dataclass(slots=True)
class LeftToPython(Event):
    """A frame that was captured runs plainly from now on: its graphs hold too little to be worth a cut.

    Attributes:
        code: the code object: the user's, or a resume function's.
        why: one sentence.
        captures: numbers of the captures that run no more.
        owner: the compiled object's own list of records, or None.
    """

    code: CodeType
    why: str
    captures: Sequence[int] = ()
    owner: Any = None


@dataclass(slots=True)
class InternalFailure(Event):
    """graphlift itself failed on this frame, which runs plainly."""

    code: CodeType
    error: BaseException


@dataclass(slots=True)
class Forgotten(Event):
    """All captures of the process were forgotten (`reset`); whoever counts begins anew."""


@dataclass(slots=True)
class CaptureFinished(Event):
    """A capture is over, whatever came of it.

    Attributes:
        code: the user's code object.
        outcome: what came of it.
        seconds: time by phase, e.g. ``{"translate": 0.002, "backend": 0.1}``.
        profile: where the time went, if somebody listens to `CaptureProfiled`.
    """

    code: CodeType
    outcome: Outcome
    seconds: Mapping[str, float] = field(default_factory=dict)
    profile: Profile | None = None


@dataclass(slots=True)
class CaptureProfiled(Event):
    """The profile of a capture, right before `CaptureFinished`; that somebody listens turns profiling on."""

    code: CodeType
    profile: Profile


Listener = Callable[[Any], None]

#: Event type -> who listens; a type without listeners has no key. Replaced whole, never changed in place.
_listeners: dict[type[Event], tuple[Listener, ...]] = {}
_lock = threading.Lock()


def listening(kind: type[Event]) -> bool:
    """Whether anybody wants events of this type; ask before making a costly one."""
    return kind in _listeners


def emit(event: Event) -> None:
    """Hand an event to whoever listens, in the order of subscription."""
    for listener in _listeners.get(type(event), ()):
        listener(event)


def subscribe(listener: Listener, *kinds: type[Event], this_thread: bool = False) -> Callable[[], None]:
    """Listen to the given types of events.

    Arguments:
        listener: called with each event, on the thread that captures. It must not raise.
        kinds: exact event types.
        this_thread: only events of the calling thread.

    Returns:
        a function that ends the subscription.
    """
    if this_thread:
        listener = _only_here(listener)
    with _lock:
        _replace({kind: (*_listeners.get(kind, ()), listener) for kind in kinds})

    def end() -> None:
        with _lock:
            _replace({kind: _without(_listeners.get(kind, ()), listener) for kind in kinds})

    return end


@contextmanager
def _subscribed(listener: Listener, kinds: tuple[type[Event], ...], this_thread: bool) -> Iterator[None]:
    end = subscribe(listener, *kinds, this_thread=this_thread)
    try:
        yield
    finally:
        end()


def subscribed(
    listener: Listener, *kinds: type[Event], this_thread: bool = False
) -> AbstractContextManager[None]:
    """`subscribe` for the length of a ``with`` block."""
    return _subscribed(listener, kinds, this_thread)


def _only_here(listener: Listener) -> Listener:
    here = threading.get_ident()

    def on_this_thread(event: Event) -> None:
        if threading.get_ident() == here:
            listener(event)

    return on_this_thread


def _without(listeners: tuple[Listener, ...], gone: Listener) -> tuple[Listener, ...]:
    return tuple(item for item in listeners if item is not gone)


def _replace(changes: Mapping[type[Event], tuple[Listener, ...]]) -> None:
    global _listeners
    _listeners = {kind: them for kind, them in {**_listeners, **changes}.items() if them}
