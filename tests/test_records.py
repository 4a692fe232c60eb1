"""Records of captures: one each, small, gone with their owner."""

from __future__ import annotations

import gc
import weakref
from types import CodeType

from graphlift import config, events
from graphlift.reasons import Reason
from graphlift.records import CaptureLog
from graphlift.user_frames import UserFrame


class Graph:
    graph_module = None
    node_count = 3

    def op_counts(self) -> dict[str, int]:
        return {"add": 3}

    def readable(self) -> str:
        return ""


def program() -> None: ...


CODE: CodeType = program.__code__
PLACE = UserFrame(__file__, 7, "program")


def capture(log: CaptureLog, *, recompile: bool = False, outcome: events.Outcome = "captured") -> None:
    number = events.new_capture_id()
    events.emit(events.CaptureStarted(number, CODE, log))
    if recompile:
        events.emit(events.Recompiling(number, CODE, ["n was 3, now 4"]))
    events.emit(events.GraphFinished(number, CODE, Graph()))
    events.emit(events.GraphBroken(number, Reason.INPUT_OUTPUT, "print", [PLACE], lambda: "said"))
    events.emit(events.EntryAdded(number, CODE, ["a", "b"], lambda: ["a holds", "b holds"]))
    events.emit(events.CaptureFinished(number, CODE, outcome, {"translate": 0.5, "backend": 0.25}))


def test_a_capture_and_a_recompile() -> None:
    log = CaptureLog()
    capture(log)
    capture(log, recompile=True)
    first, second = log.records
    assert (first.function, first.line, first.outcome) == ("program", CODE.co_firstlineno, "captured")
    assert (first.node_counts, first.guard_count) == ([3], 2)
    assert first.total_seconds == 0.75
    assert first.guards == ("a holds", "b holds")
    assert not first.is_recompile
    assert second.is_recompile
    assert second.recompile_reasons == ("n was 3, now 4",)
    (cut,) = first.breaks
    assert (cut.title, cut.line, cut.file) == ("Input or output", 7, __file__)
    assert cut.message.startswith(f"Input or output at {__file__}:7")
    assert "Debug context: print" in cut.message
    assert (cut.id, cut.context, cut.stack) == ("INPUT_OUTPUT", "print", ((__file__, 7, "program"),))
    assert cut.hints == Reason.INPUT_OUTPUT.value.hints
    assert cut.count == 2, "the second capture met the same cut at the same place"
    assert second.breaks == [cut]
    assert "Met 2 times" in cut.message
    assert "3 operations, 1 breaks, 2 guards" in str(first)
    assert "because n was 3, now 4" in str(second).replace("\n ", "")


def test_failure_and_giving_up() -> None:
    log = CaptureLog()
    number = events.new_capture_id()
    events.emit(events.CaptureStarted(number, CODE, log))
    events.emit(events.InternalFailure(number, CODE, KeyError("x")))
    events.emit(events.CaptureFinished(number, CODE, "failed"))
    events.emit(events.GaveUp(number, CODE, "too many recompiles", owner=log))
    assert log.records[0].outcome == "failed"
    assert log.records[0].error == "KeyError: 'x'"
    assert log.gave_up == ["program: too many recompiles"]


def test_nested_captures_do_not_mix() -> None:
    outer, inner = CaptureLog(), CaptureLog()
    number = events.new_capture_id()
    events.emit(events.CaptureStarted(number, CODE, outer))
    capture(inner)
    events.emit(events.CaptureFinished(number, CODE, "skipped"))
    assert outer.records[0].node_counts == []
    assert inner.records[0].node_counts == [3]


def test_the_log_is_bounded_and_dies_with_its_owner() -> None:
    log = CaptureLog()
    with config.patch(report_size=3):
        for _ in range(5):
            capture(log)
    assert len(log.records) == 3
    gone = weakref.ref(log)
    del log
    gc.collect()
    assert gone() is None


def test_a_record_does_not_keep_the_error_of_a_break() -> None:
    class Error(Exception):
        def message(self) -> str:
            return "said"

    log, error = CaptureLog(), Error()
    number = events.new_capture_id()
    events.emit(events.CaptureStarted(number, CODE, log))
    events.emit(events.GraphBroken(number, Reason.INPUT_OUTPUT, "print", [(CODE, 7)], error.message))
    events.emit(events.CaptureFinished(number, CODE, "captured"))
    gone = weakref.ref(error)
    del error
    assert log.records[0].breaks
    assert gone() is None


def test_captures_without_an_owner_leave_nothing() -> None:
    from graphlift import records

    events.emit(events.CaptureStarted(events.new_capture_id(), CODE))
    assert not records._running
