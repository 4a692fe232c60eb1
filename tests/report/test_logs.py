"""Logs: chosen by name, exact in form, on Python's `logging`."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import graphlift
from graphlift import events
from graphlift.reasons import Reason
from graphlift.report import logs
from graphlift.user_frames import UserFrame


def program(x: int) -> int:
    return x + 1


CODE = program.__code__


class Graph:
    graph_module = None
    node_count = 2

    def op_counts(self) -> dict[str, int]:
        return {"sin": 2}

    def readable(self) -> str:
        return "def forward(self, L_x_): ..."


class Var:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


EVENTS: dict[str, events.Event] = {
    "graph_breaks": events.GraphBroken(
        1, Reason.USER_BREAK, "c", [UserFrame(__file__, 3, "program")], lambda: "the message"
    ),
    "guards": events.EntryAdded(1, CODE, ["g"], lambda: ["x is an int"]),
    "recompiles": events.Recompiling(1, CODE, ["x was 3, now 4"]),
    "bytecode": events.BytecodeMade(1, CODE, CODE),
    "trace_bytecode": events.Step(1, "LOAD_FAST", "x", []),
    "graph_code": events.GraphFinished(1, CODE, Graph()),
    "time": events.CaptureFinished(1, CODE, "captured", {"translate": 0.001, "backend": 0.002}),
}

SAID = {
    "graph_breaks": "GRAPH BREAK: the message",
    "guards": "\n  x is an int",
    "recompiles": "RECOMPILING program (",
    "bytecode": "MODIFIED BYTECODE of program",
    "trace_bytecode": "TRACE LOAD_FAST x []",
    "graph_code": "def forward(self, L_x_)",
    "time": "3.00 ms, captured (translate 1.00, backend 2.00)",
}


@pytest.fixture(autouse=True)
def _quiet_again() -> Iterator[None]:
    logs.set_logs()
    yield
    logs.set_logs()


def emit_all() -> None:
    for event in EVENTS.values():
        events.emit(event)


@pytest.mark.parametrize("name", list(logs.ARTIFACTS))
def test_each_artifact_by_itself(name: str, caplog: pytest.LogCaptureFixture) -> None:
    logs.set_logs(name)
    emit_all()
    assert [record.name for record in caplog.records] == [f"graphlift.{name}"]
    assert SAID[name] in caplog.text


def test_trace_lines_are_exact(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_logs(trace_bytecode=True)
    lazy, tensor, one = Var("LazyVariableTracker()"), Var("TensorVariable()"), Var("ConstantVariable(int: 1)")
    for step in (
        events.Step(1, "LOAD_FAST", "x", []),
        events.Step(1, "BINARY_OP", "5", [lazy, lazy]),
        events.Step(1, "BINARY_OP", "0", [tensor, one]),
        events.Step(1, "RETURN_VALUE", "None", [tensor]),
    ):
        events.emit(step)
    assert capsys.readouterr().err.splitlines() == [
        "TRACE LOAD_FAST x []",
        "TRACE BINARY_OP 5 [LazyVariableTracker(), LazyVariableTracker()]",
        "TRACE BINARY_OP 0 [TensorVariable(), ConstantVariable(int: 1)]",
        "TRACE RETURN_VALUE None [TensorVariable()]",
    ]


def test_nothing_is_listened_to_unless_chosen() -> None:
    assert not events.listening(events.Step)
    logs.set_logs("all")
    assert events.listening(events.Step)
    assert logs.logs() == set(logs.ARTIFACTS)
    logs.set_logs()
    assert not events.listening(events.Step)


@pytest.mark.parametrize(
    ("names", "flags"),
    [
        (("guards", "recompiles"), {}),
        (("guards, recompiles",), {}),
        ((), {"guards": True, "recompiles": True}),
    ],
)
def test_ways_to_choose(names: tuple[str, ...], flags: dict[str, bool]) -> None:
    logs.set_logs("bytecode")
    logs.set_logs(*names, **flags)
    assert logs.logs() == {"guards", "recompiles"}


@pytest.mark.parametrize(
    "arguments", [{"names": ["gards"]}, {"flags": {"gards": True}}, {"flags": {"gards": False}}]
)
def test_unknown_names_are_refused_and_change_nothing(arguments: dict[str, Any]) -> None:
    logs.set_logs("guards")
    with pytest.raises(ValueError, match=r"no such log: gards; there are: graph_breaks, guards, recompiles"):
        logs.set_logs(*arguments.get("names", ()), **arguments.get("flags", {}))
    assert logs.logs() == {"guards"}


def test_no_double_lines_where_the_root_logger_prints(capsys: pytest.CaptureFixture[str]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    logging.getLogger().addHandler(handler)
    try:
        logs.set_logs("trace_bytecode")
        events.emit(EVENTS["trace_bytecode"])
    finally:
        logging.getLogger().removeHandler(handler)
    assert capsys.readouterr().err.count("TRACE LOAD_FAST") == 1


PROGRAM = """
from graphlift import events
from graphlift.report import logs
from graphlift.user_frames import UserFrame
logs.start()
events.emit(events.Step(1, "LOAD_FAST", "x", []))
code = compile("1", "user.py", "eval")
for _ in range(2):
    try:
        raise KeyError("ours")
    except KeyError as error:
        events.emit(events.InternalFailure(1, code, error))
events.emit(events.GaveUp(1, code, "9 captures", ["x was 3, now 4"]))
"""


def run(asked: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GRAPHLIFT_LOGS": asked, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_environment_variable() -> None:
    assert "TRACE LOAD_FAST x []\n" in run("trace_bytecode,guards").stderr
    done = run("trace")
    assert done.returncode != 0
    assert "GRAPHLIFT_LOGS='trace': no such log: trace; there are: graph_breaks" in done.stderr


def test_failures_and_giving_up_are_heard_without_asking() -> None:
    err = run("").stderr
    assert "TRACE" not in err
    assert err.count("graphlift failed on <module> (user.py:1)") == 1
    assert err.count("KeyError: 'ours'") == 2  # once in the sentence, once under the stack
    assert 'raise KeyError("ours")' in err or "Traceback" in err
    assert "GAVE UP on <module> (user.py:1): 9 captures\n  x was 3, now 4" in err


def test_a_break_is_said_once_until_reset(caplog: pytest.LogCaptureFixture) -> None:
    logs.set_logs("graph_breaks")
    said = lambda: sum("GRAPH BREAK" in record.message for record in caplog.records)  # noqa: E731
    for _ in range(3):
        events.emit(EVENTS["graph_breaks"])
    assert said() == 1
    elsewhere = events.GraphBroken(
        1, Reason.USER_BREAK, "c", [UserFrame(__file__, 4, "program")], lambda: "m"
    )
    events.emit(elsewhere)
    assert said() == 2
    graphlift.reset()
    events.emit(elsewhere)
    assert said() == 3
