"""Events reach whoever listens, cost next to nothing where nobody does."""

from __future__ import annotations

import threading
import timeit
from types import CodeType

from graphlift import events
from graphlift.events import CaptureFinished, CaptureStarted, Event, Step

CODE: CodeType = (lambda: None).__code__


def step(name: str = "NOP") -> Step:
    return Step(1, name, "None", [])


def test_listeners_get_their_types_only_and_in_order() -> None:
    seen: list[tuple[str, Event]] = []
    with (
        events.subscribed(lambda event: seen.append(("a", event)), Step),
        events.subscribed(lambda event: seen.append(("b", event)), Step, CaptureStarted),
    ):
        first, second = step(), CaptureStarted(1, CODE)
        events.emit(first)
        events.emit(second)
        events.emit(CaptureFinished(1, CODE, "captured"))
    assert seen == [("a", first), ("b", first), ("b", second)]
    events.emit(step())
    assert len(seen) == 3


def test_listening_tells_whether_anybody_does() -> None:
    assert not events.listening(Step)
    end_one = events.subscribe(lambda event: None, Step)
    end_two = events.subscribe(lambda event: None, Step)
    end_one()
    assert events.listening(Step)
    end_two()
    end_two()
    assert not events.listening(Step)


def test_this_thread_only() -> None:
    seen: list[str] = []
    with events.subscribed(lambda event: seen.append(event.opname), Step, this_thread=True):
        other = threading.Thread(target=lambda: events.emit(step("OTHER")))
        other.start()
        other.join()
        events.emit(step("MINE"))
    assert seen == ["MINE"]


def test_a_listener_may_end_itself_while_called() -> None:
    seen: list[Event] = []

    def once(event: Event) -> None:
        seen.append(event)
        end()

    end = events.subscribe(once, Step)
    events.emit(step())
    events.emit(step())
    assert len(seen) == 1


def test_subscription_ends_after_an_error() -> None:
    try:
        with events.subscribed(lambda event: None, Step):
            raise KeyError
    except KeyError:
        pass
    assert not events.listening(Step)


def test_capture_ids_differ() -> None:
    assert len({events.new_capture_id() for _ in range(100)}) == 100


def test_nobody_listening_is_cheap() -> None:
    runs = 20_000
    best = min(timeit.repeat(lambda: events.listening(Step), number=runs, repeat=5)) / runs
    assert best < 2e-6, f"{best * 1e9:.0f} ns"
