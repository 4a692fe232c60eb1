"""Frames that start while CPython runs what a graph cannot hold: which are captured, and which are not."""

from __future__ import annotations

import bisect
import concurrent.futures
import copy
import ctypes
import functools
import gc
import inspect
import json
import logging
import pickle
import re
import sys
import threading
import unittest.mock
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import graphlift
from graphlift import events

ONES = torch.ones(3)


def worked(value: float) -> Any:
    return (ONES * value + 1).sin().sum()


def read(value: float) -> float:
    number: float = worked(value).item()
    return number


def captured_in(function: Callable[..., Any], *args: Any) -> list[str]:
    """Names of the functions that gave a graph when `function` ran compiled; its result must be right."""
    names: list[str] = []

    def note(event: events.GraphFinished) -> None:
        names.append(event.code.co_name)

    graphlift.reset()
    with events.subscribed(note, events.GraphFinished):
        result = graphlift.compile(function, backend="eager")(*args)
    assert str(result) == str(function(*args))
    return names


class Keyed:
    """Objects whose special methods do tensor work."""

    def __lt__(self, other: object) -> bool:
        return read(1.0) > 0

    def __eq__(self, other: object) -> bool:
        return read(1.0) > 0

    def __hash__(self) -> int:
        return 1

    def __deepcopy__(self, memo: object) -> float:
        return read(1.0)

    def __reduce__(self) -> Any:
        return float, (read(1.0),)


def handled(function: Callable[..., Any]) -> None:
    """The logging module, whose code is never captured, calls back."""
    handler = logging.Handler()
    handler.addFilter(lambda record: function(1.0) > 100)
    handler.handle(logging.LogRecord("name", 10, "path", 1, "text", (), None))


double_of_double = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda value: read(value))

CALLS: dict[str, tuple[Callable[..., Any], Any]] = {
    "map": (lambda values: [float(value) for value in map(worked, values)], [1.0, 2.0]),
    "filter": (lambda values: list(filter(lambda value: read(value) > 0, values)), [1.0, 2.0]),
    "sorted": (lambda values: sorted(values, key=lambda value: read(value)), [1.0, 2.0]),
    "reduce": (lambda values: functools.reduce(lambda a, b: a + read(b), values, 0.0), [1.0, 2.0]),
    "min": (lambda values: min(values, key=read), [1.0, 2.0]),
    "max": (lambda values: max(values, key=read), [1.0, 2.0]),
    "bisect": (lambda values: bisect.bisect(values, 2.0, key=read), [1.0, 2.0]),
    "re.sub": (lambda text: re.sub("[0-9]", lambda found: str(read(float(found[0]))), text), "a1b2"),
    "json.dumps": (lambda value: json.dumps(value, default=lambda _: read(2.0)), [object()]),
    "json.loads": (lambda text: json.loads(text, object_hook=lambda _: read(2.0)), '{"a": 1}'),
    "copy.deepcopy": (copy.deepcopy, Keyed()),
    "pickle.dumps": (lambda value: len(pickle.dumps(value)), Keyed()),
    "logging": (lambda _: handled(read), None),
    "mock": (lambda mock: mock(1.0), unittest.mock.Mock(side_effect=read)),
    "ctypes": (lambda value: double_of_double(value), 2.0),
    "list.index": (lambda values: values.index(3), [Keyed()]),
    "list.sort": (lambda values: values.sort(), [Keyed(), Keyed()]),
    "dict look-up": (lambda table: table.get(Keyed()), {Keyed(): 1}),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_called_back_are_captured(name: str) -> None:
    function, arg = CALLS[name]
    assert captured_in(lambda value: function(value), arg)


def test_functions_that_autograd_calls_are_captured() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return (x * 2 + 1).sin()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return (grad * 2 + 1).cos()

    def applied(x: Any) -> Any:
        y = Doubled.apply(x)
        y.register_hook(lambda grad: (grad * 3).sin())
        y.sum().backward()
        grad, x.grad = x.grad, None
        return grad

    names = captured_in(applied, torch.ones(3, requires_grad=True))
    assert {"forward", "backward", "<lambda>"} <= set(names)


def test_modules_whose_hooks_cut_the_graph() -> None:
    class Sine(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return (x * 2 + 1).sin()

    def printing(module: Any, args: Any, result: Any) -> Any:
        graphlift.graph_break()
        return (result * 3 + 1).cos()

    module = Sine()
    module.register_forward_hook(printing)
    outer = torch.nn.Sequential(module, Sine())
    assert captured_in(outer.forward, ONES) == ["forward", "printing", "forward"]


def test_other_threads_run_plainly() -> None:
    def pooled(values: Any) -> Any:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return list(pool.map(read, values))

    def started(values: Any) -> Any:
        thread = threading.Thread(target=read, args=(1.0,))
        thread.start()
        thread.join()

    assert not captured_in(pooled, [1.0, 2.0])
    assert not captured_in(started, [1.0, 2.0])


def test_finalizers_run_plainly() -> None:
    class Finalized:
        def __del__(self) -> None:
            read(1.0)

    def dropping(make: Any) -> None:
        held = [make()]
        graphlift.graph_break()
        held.clear()

    assert "__del__" not in captured_in(dropping, graphlift.disable(Finalized))


def test_generators_run_plainly_and_what_they_call_is_captured() -> None:
    def numbers(values: Any) -> Any:
        for value in values:
            yield (worked(value) * 2).item()

    def consumed(values: Any) -> Any:
        generator = numbers(values)
        graphlift.graph_break()
        return list(generator)

    assert set(captured_in(consumed, [1.0, 2.0])) == {"worked"}


def test_a_weak_reference_s_callback_sees_its_object_gone() -> None:
    class Referent: ...

    def dropping(make: Any, seen: Any) -> Any:
        held = [make()]
        reference = weakref.ref(held[0], lambda gone: seen.append((gone() is None, read(1.0))))
        graphlift.graph_break()
        held.clear()
        return reference() is None

    for function in (dropping, graphlift.compile(dropping, backend="eager")):
        seen: list[Any] = []
        assert function(graphlift.disable(Referent), seen)
        assert seen == [(True, read(1.0))]


def test_a_tracer_set_in_the_middle_sees_the_program_and_no_capture():
    def traced(y):
        z = y + 1
        return z * 2

    def program(x, seen):
        def tracer(frame, event, argument):
            seen.append((Path(frame.f_code.co_filename).name, frame.f_code.co_name))
            return tracer

        sys.settrace(tracer)
        try:
            result = traced(x)
        finally:
            sys.settrace(None)
        graphlift.graph_break()
        return traced(result) * 3

    former = sys.gettrace()
    try:
        compiled = graphlift.compile(program, backend="eager")
        for _ in range(3):
            seen: list[Any] = []
            assert torch.equal(compiled(torch.ones(2), seen), torch.full((2,), 30.0))
            assert {file for file, _ in seen} == {Path(__file__).name}
            assert [name for _, name in seen].count("traced") == 4
    finally:
        sys.settrace(former)


def test_nothing_that_an_import_runs_is_captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def helper(n):\n    return [at * 2 for at in range(n)]\nTABLE = [helper(n) for n in range(12)]\n"
    (tmp_path / "imported_behind_a_break.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def program(x: Any) -> Any:
        import imported_behind_a_break

        return x + imported_behind_a_break.TABLE[3][2]

    begun: list[str] = []
    with events.subscribed(lambda event: begun.append(event.code.co_name), events.CaptureStarted):
        result = graphlift.compile(program, backend="eager")(torch.ones(2))
    assert torch.equal(result, torch.full((2,), 5.0))
    assert set(begun) == {"program"}


def test_a_frame_that_cannot_be_cut_keeps_nothing_alive() -> None:
    """Without a run of the garbage collector."""

    class Referent: ...

    def dropping(held: Any) -> bool:
        reference = weakref.ref(held[0], print)
        held.clear()
        return reference() is None

    gc.collect()
    gc.disable()
    try:
        assert graphlift.compile(dropping, backend="eager")([Referent()])
    finally:
        gc.enable()


def down(x, n):
    if n == 0:
        return x
    return down(x + 1, n - 1) + 1


def down_with_breaks(x, n):
    if n == 0:
        return x
    graphlift.graph_break()
    return down_with_breaks(x + 1, n - 1) + 1


@pytest.mark.parametrize("program", [down, down_with_breaks])
def test_a_recursion_that_plain_python_bears_is_borne(program):
    free = sys.getrecursionlimit() - len(inspect.stack(0)) - 100
    compiled = graphlift.compile(program, backend="eager")
    for _ in range(2):
        assert compiled(torch.ones(1), free).item() == 1 + 2 * free
