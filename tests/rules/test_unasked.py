"""What CPython calls of its own accord, in between the program's steps, is never captured."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
import torch

import graphlift

X = torch.ones(3)


class Counter:
    """Callable in every role; each call reads what a graph could not hold."""

    def __init__(self) -> None:
        self.calls = 0

    def method(self, *unused: Any) -> None:
        self.calls += 1
        time.perf_counter()

    __call__ = method


@contextmanager
def collector_calls(callback: Callable[..., Any]) -> Iterator[None]:
    gc.callbacks.append(callback)
    try:
        yield
    finally:
        gc.callbacks.remove(callback)


@contextmanager
def signal_calls(handler: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    former = signal.signal(signal.SIGUSR1, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, former)


def codes_captured(program: Callable[..., Any]) -> set[str]:
    graphlift.reset()
    compiled = graphlift.compile(program, backend="eager")
    for _ in range(3):
        compiled(X)
    return {record.function.rpartition(".")[2] for record in compiled.report()}


@pytest.mark.parametrize("kind", ["function", "method", "object"])
def test_callbacks_of_the_collector(kind: str) -> None:
    counter = Counter()

    def callback(phase: str, info: dict[str, int]) -> None:
        counter.method()

    def program(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        gc.collect()
        return y * 2

    with collector_calls({"function": callback, "method": counter.method, "object": counter}[kind]):
        assert codes_captured(program) == {"program"}
    assert counter.calls >= 6


@pytest.mark.parametrize("kind", ["function", "method", "object"])
def test_signal_handlers(kind: str) -> None:
    counter = Counter()

    def handler(number: int, frame: FrameType | None) -> None:
        counter.method()

    def program(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        os.kill(os.getpid(), signal.SIGUSR1)
        return y * 2

    with signal_calls({"function": handler, "method": counter.method, "object": counter}[kind]):
        assert codes_captured(program) == {"program"}
    assert counter.calls == 3


def test_finalizers() -> None:
    counter = Counter()

    class Resource:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            counter.method()

    def program(x: torch.Tensor, held: list[Any]) -> torch.Tensor:
        y = x + 1
        held.pop()
        gc.collect()
        return y * 2

    compiled = graphlift.compile(program, backend="eager")
    for _ in range(3):
        compiled(X, [Resource()])
    assert counter.calls == 3
    assert {record.function.rpartition(".")[2] for record in compiled.report()} == {"program"}
