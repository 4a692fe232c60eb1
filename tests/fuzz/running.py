"""A program's two runs, call by call: plainly in one copy of its module, compiled in another, all compared.

What is compared: results, arguments and everything they reach, the module's variables, its classes'
attributes, the variables of the part that calls, printed output, warnings (but torch's own, some of which
come once in a process), exceptions with their chain and traceback, random generators, torch's settings.
"""

from __future__ import annotations

import dis
import logging
import re
import signal
import sys
import traceback
import types
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from types import CodeType
from typing import Any

import torch

import graphlift
from fuzz.programs import FILE, Settings, code_of
from graphlift import events
from graphlift.comparison import Comparison
from graphlift.interpreter.capture import force_breaks
from graphlift.testing.check import Outcome, compare_outcomes, observed, seed_all
from graphlift.testing.forced_breaks import breakable_steps

#: What a class's namespace holds that no program wrote.
_MADE = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__doc__",
        "__annotations__",
        "__slotnames__",
        "__static_attributes__",
        "__firstlineno__",
    }
)


@dataclass
class Result:
    """What came of a program.

    Attributes:
        differences: one sentence each.
        uncompared: paths of what could not be compared.
        calls, errors: how often it was called, and how often the plain call raised.
        whole: calls after which there was a graph and no break so far.
        graphs, operations, captures, recompiles: how many there were.
        breaks: how many, by reason.
        left: code that was given up.
        endless: 1 for a program that runs on and on in plain Python; there is nothing to compare then.
        instructions: how often each was executed on symbols, if that was asked for.
    """

    differences: list[str] = field(default_factory=list)
    uncompared: list[str] = field(default_factory=list)
    calls: int = 0
    errors: int = 0
    whole: int = 0
    graphs: int = 0
    operations: int = 0
    captures: int = 0
    recompiles: int = 0
    left: int = 0
    endless: int = 0
    breaks: Counter[str] = field(default_factory=Counter)
    instructions: Counter[str] = field(default_factory=Counter)

    def note(self, event: Any) -> None:
        """Take an event in."""
        match event:
            case events.GraphFinished():
                self.graphs += 1
                self.operations += event.graph.node_count
            case events.GraphBroken():
                self.breaks[event.reason.name] += 1
            case events.CaptureStarted():
                self.captures += 1
            case events.Recompiling():
                self.recompiles += 1
            case events.LeftToPython() | events.GaveUp():
                self.left += 1
            case events.InternalFailure():
                text = "".join(traceback.format_exception(event.error))
                self.differences.append(f"internal failure: {event.error!r}\n{text}")
            case events.Step():
                self.instructions[event.opname] += 1


_NOTED = (
    events.GraphFinished,
    events.GraphBroken,
    events.CaptureStarted,
    events.Recompiling,
    events.LeftToPython,
    events.GaveUp,
    events.InternalFailure,
)


class Side:
    """One of the two copies of a program."""

    def __init__(self, code: CodeType) -> None:
        self.namespace: dict[str, Any] = {"__name__": "program", "__builtins__": __builtins__}
        exec(code, self.namespace)
        self.steps = self.namespace["steps"]()

    def arguments(self) -> tuple[Any, ...] | BaseException | None:
        """Those of the next call; None when there is none, an exception when the part that calls fails."""
        try:
            found = next(self.steps, None)
        except Exception as error:
            return error
        return found if isinstance(found, tuple) else None

    def variables(self) -> dict[str, Any]:
        """The module's, without what every module has."""
        return {
            name: value
            for name, value in self.namespace.items()
            if not isinstance(value, types.ModuleType) and not name.startswith("__")
        }

    def classes(self) -> dict[str, type]:
        """The classes that the program wrote."""
        return {name: value for name, value in self.namespace.items() if isinstance(value, type)}


def run(text: str, instructions: bool = False) -> Result:
    """Run a program both ways.

    Arguments:
        instructions: count what is executed on symbols.
    """
    settings, result = Settings.of(text), Result()
    code = code_of(text)
    noted = (*_NOTED, events.Step) if instructions else _NOTED
    former = force_breaks(chosen_cuts(settings)) if settings.cut else None
    try:
        with (
            events.subscribed(result.note, *noted),
            graphlift.config.patch(check_guards=settings.guards),
            _without_logs(),
            warnings.catch_warnings(action="ignore"),
        ):
            _run_both(code, settings, result)
    except Endless:
        result.endless = 1
    finally:
        if settings.cut:
            force_breaks(former)
        graphlift.reset()
    return result


class Endless(BaseException):
    """A plain call that has run for so long that it may well never end; no handler of a program takes it."""


#: Seconds of processor time after which a plain call is given up.
PATIENCE = 8


@contextmanager
def _bounded() -> Iterator[None]:
    def give_up(number: int, frame: Any) -> None:
        raise Endless

    former = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)


def _run_both(code: CodeType, settings: Settings, result: Result) -> None:
    plain, other = Side(code), Side(code)
    compiled = graphlift.compile(other.namespace["main"], backend="eager", dynamic=settings.dynamic)
    number = 0
    while not result.differences:
        number += 1
        seed_all(number)
        left = plain.arguments()
        seed_all(number)
        right = other.arguments()
        comparison = Comparison(consume=False)
        for name, cls in plain.classes().items():
            comparison.expect(cls, other.namespace.get(name))
        if isinstance(left, tuple) and isinstance(right, tuple):
            with _bounded():
                expected = observed(plain.namespace["main"], left)
            got = observed(compiled, right)
            for outcome in (expected, got):
                settle_line(outcome)
                settle_depth(outcome)
                outcome.warned = [one for one in outcome.warned if one[0] != "UserWarning"]
            compare_outcomes(comparison, expected, got, f"call {number}: ")
            result.calls += 1
            result.errors += expected.error is not None
            result.whole += result.graphs > 0 and not result.breaks
        _compare_state(comparison, plain, other, left, right, f"call {number}: ")
        result.differences += comparison.differences
        result.uncompared += comparison.uncompared
        if not isinstance(left, tuple):
            return


#: Instructions that CPython 3.11 makes one with a `LOAD_FAST` behind them once their code has run some times.
_FUSED = frozenset({"LOAD_CONST", "LOAD_FAST", "STORE_FAST"})


def settle_line(outcome: Outcome) -> None:
    """Tell an unbound local at the line where it is read.

    On 3.11 it is told at the line of the instruction before where the two are one by then, so that plain
    Python tells another line than before when a code has run more often.
    """
    error = outcome.error
    if sys.version_info[:2] != (3, 11) or type(error) is not UnboundLocalError or not outcome.frames:
        return
    name = re.search(r"local variable '(\w+)'", str(error))
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if entry is None or name is None:
        return
    for here, then in pairwise(dis.get_instructions(entry.tb_frame.f_code)):
        if (
            here.offset == entry.tb_lasti
            and here.opname in _FUSED
            and (then.opname, then.argval) == ("LOAD_FAST", name[1])
            and (here.opname != "LOAD_FAST" or here.argval != name[1])
            and then.positions is not None
        ):
            file, _, function = outcome.frames[-1]
            outcome.frames[-1] = (file, then.positions.lineno or 0, function)


def settle_depth(outcome: Outcome) -> None:
    """A recursion without end is told in the words of what happened to be called last: a frame or C code.

    It ends some frames later where functions that it calls are done inline, and in one or another of its
    lines: the places that come again count once each, and what is behind them not at all.
    """
    error, said = outcome.error, "maximum recursion depth exceeded"
    if isinstance(error, RecursionError):
        often = Counter(outcome.frames)
        last = max((at for at, place in enumerate(outcome.frames) if often[place] > 1), default=None)
        outcome.frames = list(dict.fromkeys(outcome.frames[: None if last is None else last + 1]))
    while error is not None:
        if isinstance(error, RecursionError) and str(error).startswith(said):
            error.args = (said,)
        error = error.__context__


def _compare_state(
    comparison: Comparison, plain: Side, other: Side, left: Any, right: Any, prefix: str
) -> None:
    """Compare arguments, the module's variables, the attributes of its classes."""
    comparison.compare(left, right, f"{prefix}arguments")
    comparison.compare(plain.variables(), other.variables(), f"{prefix}globals")
    comparison.compare(plain.steps, other.steps, f"{prefix}steps")
    for name, cls in plain.classes().items():
        partner = other.namespace.get(name)
        if isinstance(partner, type):
            comparison.compare(_attributes(cls), _attributes(partner), f"{prefix}{name}")


def _attributes(cls: type) -> dict[str, Any]:
    """What a class's namespace holds and the program may have changed."""
    return {
        name: value
        for name, value in vars(cls).items()
        if name not in _MADE
        and not isinstance(value, types.GetSetDescriptorType | types.MemberDescriptorType)
    }


def chosen_cuts(settings: Settings) -> Callable[[CodeType, int], bool]:
    """Where a program's graphs are cut by force."""
    steps: dict[CodeType, frozenset[int]] = {}

    def cut(code: CodeType, index: int) -> bool:
        if code.co_filename != FILE:
            return False
        if code not in steps:
            steps[code] = frozenset(breakable_steps(code))
        place = f"{code.co_name} {index} {settings.choice}".encode()
        return index in steps[code] and zlib.crc32(place) % settings.cut == 0

    return cut


@contextmanager
def _without_logs() -> Iterator[None]:
    """What graphlift says of captures is no part of what a program prints."""
    former, logging.root.manager.disable = logging.root.manager.disable, logging.CRITICAL
    try:
        yield
    finally:
        logging.root.manager.disable = former


def kind_of(difference: str) -> str:
    """What a difference is about, without the names and numbers of one program."""
    first = difference.splitlines()[0]
    if first.startswith("internal failure"):
        last = [line.strip() for line in difference.splitlines() if line.strip().startswith("File ")][-1:]
        where = re.sub(r'File ".*/(\w+)\.py", line (\d+)', r"\1:\2", last[0]) if last else ""
        return f"{first.split('(')[0]} at {where}"
    place, _, text = re.sub(r"call \d+: ", "", first).partition(": ")
    place = re.match(r"\w*", place)[0]  # type: ignore[index]
    return f"{place}: {re.sub(r'[0-9]+', 'N', text)[:60]}"
