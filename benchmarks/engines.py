"""The two engines that are measured side by side, behind one face.

Time is the process's processor time: it does not count what other processes of a busy machine take.
"""

from __future__ import annotations

import gc
import logging
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import graphlift

Function = Callable[..., Any]


#: Graphs handed to the backends below, since it was last set to nought.
graphs = 0


def as_it_is(graph_module: Any, example_inputs: Sequence[Any]) -> Function:
    """The backend that does nothing: what is left is the engine's own cost."""
    global graphs
    graphs += 1
    forward: Function = graph_module.forward
    return forward


def canned(graph_module: Any, example_inputs: Sequence[Any]) -> Function:
    """Runs the graph once and returns those results ever after: a warm call is the engine's cost alone."""
    global graphs
    graphs += 1
    forward, results = graph_module.forward, None

    def product(*args: Any) -> Any:
        nonlocal results
        if results is None:
            results = forward(*args)
        return results

    return product


@dataclass(frozen=True)
class Engine:
    """A compiler with ``torch.compile``'s face.

    Attributes:
        name: how tables call it.
        compile: the compiler.
        reset: forget everything captured.
    """

    name: str
    compile: Function
    reset: Callable[[], None]


GRAPHLIFT = Engine("graphlift", graphlift.compile, graphlift.reset)
STOCK = Engine("torch.compile", torch.compile, torch.compiler.reset)
BOTH = (GRAPHLIFT, STOCK)


def warm_up() -> None:
    """Let both import what they import at their first capture, so that nobody is charged for it."""
    for engine in BOTH:
        engine.reset()
        engine.compile(lambda x: x + 1, backend=as_it_is)(torch.ones(1))
        engine.reset()


def first_call_seconds(engine: Engine, fn: Function, args: Sequence[Any]) -> tuple[float, int]:
    """Time of the first call of a newly compiled `fn`, nothing remembered; and how many graphs it made."""
    global graphs
    engine.reset()
    graphs = 0
    compiled = engine.compile(fn, backend=as_it_is)
    gc.collect()
    start = time.process_time()
    compiled(*args)
    return time.process_time() - start, graphs


def warmed(engine: Engine, fn: Function, args: Sequence[Any]) -> tuple[Function, int]:
    """A compiled `fn` whose graphs cost nothing any more, and how many graphs there are."""
    global graphs
    engine.reset()
    graphs = 0
    compiled = engine.compile(fn, backend=canned)
    for _ in range(3):
        compiled(*args)
    return compiled, graphs


def say(text: str) -> None:
    """Progress, where somebody watches; an empty text wipes it."""
    if sys.stderr.isatty():
        print(f"\r{text:79}", end="" if text else "\r", file=sys.stderr, flush=True)


def seconds_per_call(fn: Function, args: Sequence[Any], budget: float = 0.05) -> float:
    """Time of one warm call: median over rounds of as many calls as fit."""
    fn(*args)
    start = time.process_time()
    fn(*args)
    once = max(time.process_time() - start, 1e-7)
    number = max(1, int(budget / 5 / once))
    rounds = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(number):
            fn(*args)
        rounds.append((time.process_time() - start) / number)
    return statistics.median(rounds)


def alternating(measure: Callable[[Engine], float], rounds: int) -> dict[str, list[float]]:
    """Samples of both engines, turn about."""
    samples: dict[str, list[float]] = {engine.name: [] for engine in BOTH}
    for number in range(rounds):
        for engine in BOTH:
            say(f"round {number + 1} of {rounds}, {engine.name}")
            samples[engine.name].append(measure(engine))
    say("")
    return samples


def quiet_machine() -> None:
    """One thread, the same random numbers, no chatter."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    logging.disable(logging.WARNING)
