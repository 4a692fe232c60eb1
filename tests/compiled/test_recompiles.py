"""The cache of a code object: what is captured again and why, how often, and what a failure leaves."""

from __future__ import annotations

import functools
import logging
import os
import sysconfig
import trace

import pytest
import torch

import graphlift
from graphlift import _C, config, convert_frame, events
from graphlift.testing import CompileCounter, check

X = torch.ones(3)


@pytest.fixture
def counter():
    graphlift.reset()
    return CompileCounter()


def by_number(x, n):
    return x * n


def by_text(x, how):
    return x + 1 if how == "a" else x + len(how)


class Heard:
    """Events of this thread, by their classes."""

    def __init__(self, *kinds):
        self.kinds, self.events = kinds, []

    def __enter__(self):
        self.block = events.subscribed(self.events.append, *self.kinds, this_thread=True)
        self.block.__enter__()
        return self.events

    def __exit__(self, *what):
        self.block.__exit__(*what)


def test_compiling_in_a_loop_captures_once(counter):
    for _ in range(5):
        assert torch.equal(graphlift.compile(by_number, backend=counter)(X, 2), X * 2)
    assert counter.frame_count == 1


def test_each_combination_of_settings_has_entries_of_its_own(counter):
    for settings in (
        {},
        {"fullgraph": True},
        {"dynamic": True},
        {"dynamic": False},
        {"options": {"a": 1}},
        {},
    ):
        torch_backend = counter if "options" not in settings else (lambda gm, ex, options: counter(gm, ex))
        graphlift.compile(by_number, backend=torch_backend, **settings)(X, 2)
    assert counter.frame_count == 5


def test_the_reason_names_guard_old_and_new_value(counter):
    compiled = graphlift.compile(by_text, backend=counter)
    compiled(X, "a")
    with Heard(events.Recompiling) as heard:
        compiled(X, "bb")
        compiled(X, "ccc")
        compiled(X, "a")  # an entry of before fits
    assert counter.frame_count == 3
    first, second = heard
    assert [line.split(" (")[0] for line in first.failures] == ["argument `how` was 'a', now it is 'bb'"]
    assert [line.split(" (")[0] for line in second.failures] == [
        "argument `how` was 'bb', now it is 'ccc'",
        "argument `how` was 'a', now it is 'ccc'",
    ]
    assert f"{__file__}:{by_text.__code__.co_firstlineno + 1}" in first.failures[0]


def test_the_limit_is_said_once_and_then_all_is_eager(counter, caplog):
    assert config.recompile_limit == 8
    compiled = graphlift.compile(by_text, backend=counter)
    words = ["a" * n for n in range(1, 12)]
    with caplog.at_level(logging.WARNING, "graphlift"), Heard(events.CaptureStarted) as captures:
        for word in words * 2:
            assert torch.equal(compiled(X, word), by_text(X, word))
    assert counter.frame_count == 8 and len(captures) == 8
    (record,) = [r for r in caplog.records if "GAVE UP" in r.getMessage()]
    for part in (
        "by_text",
        "8 times",
        "recompile_limit",
        "argument `how` was 'aaaaaaaa', now it is 'aaaaaaaaa'",
    ):
        assert part in record.getMessage(), part
    # What was captured before goes on being used.
    (entry,) = [e for e in _C.cache_of(by_text.__code__, settings_of(compiled)).entries if e.hits][:1]
    assert entry.function is not None


def settings_of(compiled):
    return compiled.report.args[0].settings


def test_the_limit_is_of_one_owner(counter):
    first, second = (graphlift.compile(by_text, backend=counter) for _ in range(2))
    for n in range(1, 12):
        first(X, "a" * n)
    assert counter.frame_count == 8
    for n in range(20, 32):
        second(X, "a" * n)
    assert counter.frame_count == 16


def fail(*args, **kwargs):
    raise LookupError("a fault of graphlift's own")


def test_an_internal_error_is_logged_once_and_the_frame_runs_eagerly(counter, caplog, monkeypatch):
    monkeypatch.setattr(convert_frame.InstructionTranslator, "translate", fail)
    compiled = graphlift.compile(by_number, backend=counter)
    with caplog.at_level(logging.WARNING, "graphlift"):
        for n in (2, 3, 2):
            assert torch.equal(compiled(X, n), X * n)
    (record,) = [r for r in caplog.records if "a fault of graphlift's own" in r.getMessage()]
    assert record.exc_info and "in fail" in caplog.text and "Traceback" in caplog.text
    assert counter.frame_count == 0


def test_an_internal_error_in_an_inner_frame_does_not_reach_the_program(counter, monkeypatch):
    def outer(x):
        graphlift.graph_break()
        return by_number(x, 2) + 1

    translate = convert_frame.InstructionTranslator.translate

    def failing(self, *args):
        return fail() if self.code is not outer.__code__ else translate(self, *args)

    monkeypatch.setattr(convert_frame.InstructionTranslator, "translate", failing)
    assert torch.equal(graphlift.compile(outer, backend=counter)(X), X * 2 + 1)


@pytest.mark.parametrize("how", ["fullgraph", "setting"])
def test_an_internal_error_is_raised_where_that_was_asked_for(counter, monkeypatch, how):
    monkeypatch.setattr(convert_frame.InstructionTranslator, "translate", fail)
    compiled = graphlift.compile(by_number, backend=counter, fullgraph=how == "fullgraph")
    with config.patch(suppress_errors=how == "fullgraph"), pytest.raises(LookupError, match="own"):
        compiled(X, 2)


def test_suppressing_is_the_default():
    assert config.suppress_errors is True


def test_one_translator_for_each_frame(counter, monkeypatch):
    made = []
    init = convert_frame.InstructionTranslator.__init__

    def noting(self, *args):
        made.append(args[1].__code__)
        init(self, *args)

    monkeypatch.setattr(convert_frame.InstructionTranslator, "__init__", noting)

    def outer(x):
        return by_number(x, 2) + by_number(x, 3)

    graphlift.compile(outer, backend=counter)(X)
    assert made == [outer.__code__]


@pytest.mark.parametrize("name", ["library", "own", "skipped"])
def test_a_frame_that_cannot_matter_is_no_root(counter, tmp_path, monkeypatch, name):
    """The same code, by the file it says it comes from, met by the hook while a user's frame runs plainly."""
    files = {
        "library": functools.__file__,
        "own": graphlift.__file__,
        "skipped": os.path.join(sysconfig.get_paths()["purelib"], "tqdm", "std.py"),
        "user": str(tmp_path / "user.py"),
    }

    def seen(file):
        namespace = {"torch": torch}
        exec(compile("def met(x):\n    return torch.sin(x) + 1", file, "exec"), namespace)
        met = namespace["met"]

        runner = trace.Trace(count=0, trace=0)  # traces nothing; captured code does not look into it
        with Heard(events.CaptureStarted) as heard:
            result = graphlift.compile(lambda x: runner.runfunc(met, x) * 2, backend=counter)(X)
        assert torch.equal(result, (torch.sin(X) + 1) * 2)
        return met.__code__ in {event.code for event in heard}

    assert seen(files["user"])
    assert not seen(files[name])


def test_library_frames_are_no_roots(counter):
    """Called at run time, code of the standard library is not captured; user code beneath it is."""

    def program(x):
        graphlift.graph_break()
        return functools.reduce(lambda a, b: a + b, [x, x, x])

    with Heard(events.CaptureStarted) as heard:
        graphlift.compile(program, backend=counter)(X)
    files = {event.code.co_filename for event in heard}
    assert files == {__file__}


def test_numbers_of_thousands_of_digits_are_told_in_another_way():
    def program(x, n, table):
        return x + n % 7, table.get(n)

    huge = 10**5000
    calls = [(torch.ones(2), n, {n: 1}) for n in (huge, huge + 1, -huge)]
    checked = check(program, *calls[0], then=calls[1:], recompiles=None)
    assert any("bits" in text for text in checked.captured.recompiles)
