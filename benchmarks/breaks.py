"""Programs that graphs cannot hold whole: what a warm call costs beside plain Python.

    python benchmarks/breaks.py [--rounds 7] [--only sorted] [--json breaks.json]

Shapes that graph breaks make: breaks in hot loops, tiny graphs, many small functions, callbacks from C. The
backend runs graphs as they are, so nothing is won by compiling; 1.0 is the best that can be. Plain and
compiled calls take turns in this process, and the best of all rounds counts.
"""

from __future__ import annotations

import functools
import gc
import re
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import engines
import rows
import torch

import graphlift

Program = Callable[..., Any]

QUESTION = "breaks, warm call"
TARGET = rows.Target("times plain", 1.1)

#: Name -> makes the program and its arguments.
SHAPES: dict[str, Callable[[], tuple[Program, Sequence[Any]]]] = {}

#: One call of 100,000 breaks, measured in its own way.
LONG_LOOP = "a loop of 100,000 breaks"

#: Calls before anything is measured: enough for every capture, and for giving up what is not worth it.
WARM_CALLS = 40


def shape(make: Callable[[], tuple[Program, Sequence[Any]]]) -> Callable[[], tuple[Program, Sequence[Any]]]:
    """Register a maker under its function's name."""
    SHAPES[make.__name__.replace("_", " ")] = make
    return make


@shape
def item_50_times() -> tuple[Program, Sequence[Any]]:
    def program(x: Any) -> Any:
        total = 0.0
        for _ in range(50):
            total += x.item()
        return total

    return program, (torch.ones(()),)


@shape
def item_between_operations() -> tuple[Program, Sequence[Any]]:
    def program(x: Any) -> Any:
        for _ in range(50):
            if x.sum().item() > 1e9:
                break
            x = x + 1
        return x

    return program, (torch.ones(8),)


class Counter:
    """Plain Python on attributes, now and then a tensor."""

    def __init__(self) -> None:
        self.a, self.b, self.x = 1, 2, torch.ones(4)

    def step(self) -> int:
        self.a = (self.a + self.b) % 1000
        return self.a

    def work(self, at: int) -> int:
        if at % 100 == 0:
            self.x = self.x * 1.5 % 7.0
        self.a = (self.a + self.b) % 1000
        return self.a


def two_breaks(method: str) -> tuple[Program, Sequence[Any]]:
    """Two breaks with 2000 calls of small methods between them."""

    def plain(counter: Counter, x: Any) -> Any:
        first = x.sum().item()
        for _ in range(2000):
            counter.step()
        return first + x.max().item()

    def now_and_then(counter: Counter, x: Any) -> Any:
        first = x.sum().item()
        for at in range(2000):
            counter.work(at)
        return first + x.max().item()

    return (plain if method == "step" else now_and_then), (Counter(), torch.ones(4))


@shape
def two_breaks_2000_methods() -> tuple[Program, Sequence[Any]]:
    return two_breaks("step")


@shape
def two_breaks_2000_methods_20_operations() -> tuple[Program, Sequence[Any]]:
    return two_breaks("work")


@shape
def tiny_graphs() -> tuple[Program, Sequence[Any]]:
    def program(x: Any) -> Any:
        for _ in range(20):
            y = x * 2
            graphlift.graph_break()
            x = y - x
        return x

    return program, (torch.ones(4),)


@shape
def many_small_functions() -> tuple[Program, Sequence[Any]]:
    def double(v: float) -> float:
        return v * 2

    def halve(v: float) -> float:
        return v / 2

    def read(x: Any) -> float:
        return halve(double(x.item()))

    def program(x: Any) -> Any:
        return [read(x) + halve(double(i)) for i in range(100)]

    return program, (torch.ones(()),)


@shape
def recursion_with_a_break_at_the_leaf() -> tuple[Program, Sequence[Any]]:
    def walk(x: Any, depth: int) -> Any:
        if depth == 0:
            return x.item()
        return walk(x, depth - 1) + 1.0

    return walk, (torch.ones(()), 30)


@shape
def sorted_by_an_item() -> tuple[Program, Sequence[Any]]:
    def program(values: Any) -> Any:
        return sorted(values, key=lambda v: v.item())

    return program, ([torch.tensor(float(i * 7 % 50)) for i in range(50)],)


@shape
def callbacks_from_re() -> tuple[Program, Sequence[Any]]:
    pattern = re.compile("[0-9]+")

    def program(text: str, x: Any) -> Any:
        return pattern.sub(lambda found: str(int(found[0]) + 1), text), x + 1

    return program, ("1 22 333 " * 30, torch.ones(4))


@shape
def callbacks_from_map_on_tensors() -> tuple[Program, Sequence[Any]]:
    def fold(a: Any, b: Any) -> Any:
        return a + b.item()

    def program(values: Any) -> Any:
        return functools.reduce(fold, values, 0.0), list(map(torch.Tensor.item, values))

    return program, ([torch.tensor(float(i)) for i in range(50)],)


@shape
def a_generator_consumed_by_a_broken_frame() -> tuple[Program, Sequence[Any]]:
    def numbers(x: Any) -> Iterator[float]:
        for i in range(50):
            yield x.item() + i

    def program(x: Any) -> Any:
        total = 0.0
        for value in numbers(x):
            total += value
        return total

    return program, (torch.ones(()),)


@shape
def try_in_the_loop() -> tuple[Program, Sequence[Any]]:
    def program(x: Any) -> Any:
        caught = 0
        for i in range(50):
            try:
                if x.item() + i % 2 > 1:
                    raise ValueError(i)
            except ValueError:
                caught += 1
        return caught

    return program, (torch.ones(()),)


@shape
def a_break_inside_with() -> tuple[Program, Sequence[Any]]:
    def program(x: Any) -> Any:
        total = 0.0
        for _ in range(20):
            with torch.no_grad():
                total += x.sum().item()
        return total

    return program, (torch.ones(4),)


@shape
def a_frame_that_cannot_be_captured() -> tuple[Program, Sequence[Any]]:
    def one(v: int) -> int:
        return v + 1

    def program(x: Any, values: Any) -> Any:
        lock = threading.Lock()
        total = 0
        with lock:
            for v in values:
                total = one(total) + v
        return total + x.item()

    return program, (torch.ones(()), list(range(200)))


@shape
def one_item() -> tuple[Program, Sequence[Any]]:
    def program(x: Any) -> Any:
        return x.item() + 1

    return program, (torch.ones(()),)


@shape
def big_graphs_between_breaks() -> tuple[Program, Sequence[Any]]:
    def program(x: Any) -> Any:
        for _ in range(5):
            for _ in range(25):
                x = x * 0.5 + 1
            if x.sum() > 1e9:
                break
        return x

    return program, (torch.ones(8),)


def seconds(function: Program, args: Sequence[Any], calls: int) -> float:
    """Time of one call, the mean of a few in a row."""
    start = time.process_time()
    for _ in range(calls):
        function(*args)
    return (time.process_time() - start) / calls


def measure(name: str, rounds: int) -> Iterator[rows.Row]:
    """Times of a plain and of a warm compiled call."""
    if name == LONG_LOOP:
        yield long_loop()
        return
    program, args = SHAPES[name]()
    compiled = graphlift.compile(program, backend="eager")
    for _ in range(WARM_CALLS):
        compiled(*args)
        program(*args)
    calls = max(1, int(0.02 / seconds(program, args, 3)))
    sides = ((rows.OURS, compiled), (rows.PLAIN, program))
    samples: dict[str, list[float]] = {side: [] for side, _ in sides}
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for side, function in sides:
            samples[side].append(seconds(function, args, calls))
    gc.enable()
    yield rows.Row(QUESTION, name, samples, target=TARGET)


def resident_kib() -> int:
    """The most memory that the process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def depth_here() -> int:
    """How many frames there are above."""
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def long_loop() -> rows.Row:
    """100,000 breaks in one call: time beside plain Python; depth must not grow, growth of memory is told."""

    def program(x: Any, turns: int) -> tuple[float, int, int]:
        total, first, last = 0.0, 0, 0
        for at in range(turns):
            total += x.item()
            if at == 100 or at == turns - 1:
                first, last = last, depth_here()
        return total, first, last

    x = torch.ones(())
    compiled = graphlift.compile(program, backend="eager")
    for _ in range(2):
        compiled(x, 2000)
    before = resident_kib()
    sides = ((rows.OURS, compiled), (rows.PLAIN, program))
    samples: dict[str, list[float]] = {side: [] for side, _ in sides}
    for _ in range(3):
        for side, function in sides:
            start = time.process_time()
            _, first, last = function(x, 100_000)
            samples[side].append(time.process_time() - start)
            assert first == last, "the stack has grown"
    more = resident_kib() - before
    return rows.Row(QUESTION, LONG_LOOP, samples, target=TARGET, remark=f"{more} KiB more memory")


def main() -> None:
    chosen = rows.options(__doc__, rounds=7)
    engines.quiet_machine()
    rows.table(chosen, QUESTION, rows.PLAIN, [*SHAPES, LONG_LOOP], measure)


if __name__ == "__main__":
    main()
