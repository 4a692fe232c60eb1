"""Debuggers, line tracers, coverage and profilers see a compiled program as they see a plain one."""

from __future__ import annotations

import cProfile
import io
import pdb
import pstats
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

import graphlift
from graphlift.testing import CompileCounter

WITH_MONITORING = sys.version_info >= (3, 12)
X = torch.arange(3.0)


def inner(x: Any) -> Any:
    y = x + 1
    return y * 2


def program(x: Any) -> Any:
    total = x
    for _ in range(2):
        total = inner(total)
    return total


def broken(x: Any) -> Any:
    y = inner(x)
    graphlift.graph_break()
    z = inner(y)
    return z


PROGRAMS = (program, broken)


def compiled_beforehand(fn: Callable[..., Any]) -> Callable[..., Any]:
    compiled = graphlift.compile(fn, backend="eager")
    for _ in range(2):
        compiled(X)
    return compiled


def compiled_now(fn: Callable[..., Any]) -> Callable[..., Any]:
    return graphlift.compile(fn, backend="eager")


MAKERS = (compiled_beforehand, compiled_now)

Line = tuple[str, int]


@contextmanager
def lines_traced(seen: list[Line]) -> Iterator[None]:
    """Note the lines of this file by a trace function."""

    def tracer(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != __file__:
            return None
        if event == "line":
            seen.append((frame.f_code.co_name, frame.f_lineno))
        return tracer

    former = sys.gettrace()
    sys.settrace(tracer)
    try:
        yield
    finally:
        sys.settrace(former)


@contextmanager
def lines_monitored(seen: list[Line], codes: tuple[Any, ...] = ()) -> Iterator[None]:
    """Note lines by a monitoring tool: all of this file, or of some code objects."""
    monitoring = sys.monitoring
    tool, line = 4, monitoring.events.LINE

    def note(code: Any, number: int) -> None:
        if code.co_filename == __file__:
            seen.append((code.co_name, number))

    monitoring.use_tool_id(tool, "test")
    try:
        monitoring.register_callback(tool, line, note)
        for code in codes:
            monitoring.set_local_events(tool, code, line)
        monitoring.set_events(tool, 0 if codes else line)
        yield
    finally:
        monitoring.set_events(tool, 0)
        for code in codes:
            monitoring.set_local_events(tool, code, 0)
        monitoring.register_callback(tool, line, None)
        monitoring.free_tool_id(tool)


def ways() -> list[Callable[[list[Line]], Any]]:
    """The ways of watching lines on this Python."""
    if not WITH_MONITORING:
        return [lines_traced]
    codes = (inner.__code__,)
    return [lines_traced, lines_monitored, lambda seen: lines_monitored(seen, codes)]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("fn", PROGRAMS)
def test_every_line_is_seen(fn: Callable[..., Any], make: Callable[..., Any]) -> None:
    for watch in ways():
        plain: list[Line] = []
        with watch(plain):
            fn(X)
        compiled = make(fn)
        seen: list[Line] = []
        with watch(seen):
            result = compiled(X)
        inside = {name for name, _ in plain if name in ("inner", "program", "broken")}
        assert [line for line in seen if line[0] in inside] == [line for line in plain if line[0] in inside]
        assert "inner" in inside
        assert torch.equal(result, fn(X))


def test_captured_code_runs_again_when_nobody_watches() -> None:
    graphs = CompileCounter()
    compiled = graphlift.compile(program, backend=graphs)
    for watch in ways():
        with watch([]):
            compiled(X)
    assert graphs.frame_count == 0
    compiled(X)
    assert graphs.frame_count == 1
    runs = graphs.op_count
    compiled(X)
    assert (graphs.frame_count, graphs.op_count) == (1, runs)


def test_lines_are_seen_from_the_call_on_that_asks_for_them() -> None:
    def watched_in_the_middle(x: Any, seen: list[Line], watch: Callable[[list[Line]], Any]) -> Any:
        y = inner(x)
        with watch(seen):
            y = inner(y)
        return inner(y)

    for watch in ways():
        compiled = graphlift.compile(watched_in_the_middle, backend="eager")
        for _ in range(3):
            plain: list[Line] = []
            seen: list[Line] = []
            expected = watched_in_the_middle(X, plain, watch)
            assert torch.equal(compiled(X, seen, watch), expected)
            assert [line for line in seen if line[0] == "inner"] == [
                line for line in plain if line[0] == "inner"
            ]
            assert len([line for line in plain if line[0] == "inner"]) == 2


def session(fn: Callable[..., Any], commands: list[str]) -> str:
    """What pdb says in a session whose program calls `fn` with it."""
    said = io.StringIO()
    debugger = pdb.Pdb(
        stdin=io.StringIO("\n".join(commands) + "\n"), stdout=said, nosigint=True, readrc=False
    )
    debugger.use_rawinput = False
    former = sys.gettrace()
    try:
        fn(X, debugger)
    finally:
        sys.settrace(former)
    return said.getvalue()


def stops(x: Any, debugger: pdb.Pdb) -> Any:
    y = x + 1
    debugger.set_trace()
    z = inner(y)
    w = z * 2
    return w


def test_pdb_stops_steps_and_shows_locals() -> None:
    commands = ["p y", "n", "p z.shape", "s", "p sorted(locals())", "c"]
    plain = session(stops, commands)
    assert "tensor([1., 2., 3.])" in plain
    compiled = graphlift.compile(stops, backend="eager")
    for _ in range(3):
        assert session(compiled, commands) == plain


def outer(x: Any, debugger: pdb.Pdb) -> Any:
    w = stops(x + 1, debugger)
    return w * 3


def test_pdb_started_in_a_function_that_is_called() -> None:
    commands = ["p y", "n", "u", "p x", "d", "p z.shape", "c"]
    plain = session(outer, commands)
    compiled = graphlift.compile(outer, backend="eager")
    for _ in range(3):
        assert session(compiled, commands) == plain


def test_breakpoint_stops_in_the_frame_that_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def calls(x: Any, debugger: pdb.Pdb) -> Any:
        y = x * 3
        breakpoint()
        return y + 1

    def run(fn: Callable[..., Any]) -> str:
        def traced(x: Any, debugger: pdb.Pdb) -> Any:
            monkeypatch.setattr(sys, "breakpointhook", lambda: debugger.set_trace(sys._getframe(1)))
            return fn(x, debugger)

        return session(traced, ["p y", "n", "n", "c"])

    plain = run(calls)
    assert "return y + 1" in plain
    compiled = graphlift.compile(calls, backend="eager")
    for _ in range(3):
        assert run(compiled) == plain


def test_pdb_breakpoints() -> None:
    def calls(x: Any, debugger: pdb.Pdb) -> Any:
        debugger.set_break(__file__, inner.__code__.co_firstlineno + 2)
        return debugger.runcall(wrapped["fn"], x)

    commands = ["p y", "u", "p total", "c", "p y", "c"]
    wrapped: dict[str, Callable[..., Any]] = {"fn": program}
    plain = session(calls, commands)
    wrapped["fn"] = graphlift.compile(program, backend="eager")
    for _ in range(2):
        assert session(calls, commands) == plain


def test_cprofile_counts_the_calls() -> None:
    compiled = graphlift.compile(broken, backend="eager")
    for _ in range(3):
        profile = cProfile.Profile()
        result = profile.runcall(compiled, X)
        names = {name for _, _, name in pstats.Stats(profile).stats}  # type: ignore[attr-defined]
        assert torch.equal(result, broken(X))
        assert "broken" in names
