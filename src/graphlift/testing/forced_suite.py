"""Forced breaks in every program that a test suite checks: a companion of the verb `check`.

A first run without breaks tells which instructions the program's captures reach, in the outermost frame and
in those that are inlined. Then the program runs again for each of these places, with the graph cut there,
and everything but the counts is compared with plain Python. Places of the library (torch, the standard
library) and places of a test's own code are tried once in a session.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import CodeType
from typing import Any

import graphlift
from graphlift import events
from graphlift.bytecode.decode import decode
from graphlift.comparison import short
from graphlift.interpreter.capture import force_breaks
from graphlift.rules import files
from graphlift.testing.check import Program, companions, run_both
from graphlift.testing.forced_breaks import breakable_steps

Place = tuple[CodeType, int]


class ForcedBreaks:
    """Runs programs with forced breaks and keeps count.

    Arguments:
        sample: how many places of a program are tried; None: all.
        seed: of the choice.

    Attributes:
        programs, places: how many were tried.
        whole: places where a frame could not be cut and ran plainly, from its start.
        differences: a text for each place where something was different.
        cut_short: tests that did not run to their end under this mode.
    """

    def __init__(self, sample: int | None = None, seed: object = 0) -> None:
        self._sample = sample
        self._random = random.Random(str(seed))
        self._seen: set[tuple[int, int, int]] = set()
        self._kept: list[CodeType] = []  # their identities are good only while they live
        self._breakable: dict[int, frozenset[int]] = {}
        self.programs = 0
        self.places = 0
        self.whole: list[str] = []
        self.differences: list[str] = []
        self.cut_short = 0

    def summary(self) -> str:
        """One line on what was tried and found."""
        early = f"; {self.cut_short} tests did not run to their end" if self.cut_short else ""
        return (
            f"forced breaks: {self.programs} programs, {self.places} places,"
            f" {len(self.differences)} differences, {len(self.whole)} ran plainly as a whole{early}"
        )

    @contextmanager
    def beside_checks(self) -> Iterator[None]:
        """Every check inside the block is run with forced breaks, too."""
        companions.append(self.try_program)
        try:
            yield
        finally:
            companions.remove(self.try_program)

    def try_program(self, program: Program) -> None:
        """Run a program with a cut at each of its places, or at some of them."""
        options = {name: value for name, value in program.options.items() if name != "fullgraph"}
        program = replace(program, options=options)
        try:
            places = self._places(program)
            if self._sample is not None and len(places) > self._sample:
                places = self._random.sample(places, self._sample)
            self.programs += bool(places)
            for place in places:
                self._try_place(program, place)
        finally:
            graphlift.reset()

    def _places(self, program: Program) -> list[Place]:
        """The places that the program's captures reach and that were not tried yet, in order."""
        reached: dict[tuple[int, int], Place] = {}

        def note(code: CodeType, index: int) -> bool:
            reached.setdefault((id(code), index), (code, index))
            return False

        graphlift.reset()
        former = force_breaks(note)
        try:
            with _without_logs():
                whole = run_both(program)
        finally:
            force_breaks(former)
        if whole.comparison.differences:  # without any cut: the check itself will say so
            return []
        root = next((code for code, _ in reached.values()), None)
        return [(code, index) for code, index in reached.values() if self._is_new(root, code, index)]

    def _is_new(self, root: CodeType | None, code: CodeType, index: int) -> bool:
        if id(code) not in self._breakable:
            self._breakable[id(code)] = frozenset(breakable_steps(code))
            self._kept.append(code)
        if index not in self._breakable[id(code)]:
            return False
        key = (id(root) if files.is_users(code.co_filename) else 0, id(code), index)
        new = key not in self._seen
        self._seen.add(key)
        return new

    def _try_place(self, program: Program, place: Place) -> None:
        fired: set[str] = set()

        def here(code: CodeType, index: int) -> bool:
            hit = code is place[0] and index == place[1]
            if hit:
                fired.add("now")
            return hit

        def note(event: Any) -> None:
            if isinstance(event, events.CaptureFinished) and "now" in fired and event.outcome == "skipped":
                fired.add("whole")
            fired.discard("now")

        graphlift.reset()
        former = force_breaks(here)
        try:
            with (
                events.subscribed(note, events.CaptureStarted, events.CaptureFinished, this_thread=True),
                _without_logs(),
            ):
                runs = run_both(program)
        finally:
            force_breaks(former)
        self.places += 1
        where = f"{short(runs.plain_fn)}, cut before {described(place)}"
        if "whole" in fired:
            self.whole.append(where)
        if runs.comparison.differences:
            texts = [_shortened(text) for text in runs.comparison.differences[:4]]
            self.differences.append("\n    ".join([where, *texts]))


@contextmanager
def _without_logs() -> Iterator[None]:
    """What graphlift says of many captures is no part of what the program prints."""
    former = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(former)


def _shortened(text: str) -> str:
    """The beginning and the end of what may hold a whole traceback."""
    lines = text.splitlines()
    return "\n      ".join(lines if len(lines) < 6 else [lines[0], *lines[-4:]])


def described(place: Place) -> str:
    """A place in words: instruction, function, file and line."""
    code, index = place
    decoded = decode(code)
    line = decoded.line(index) or code.co_firstlineno
    return f"step {index} ({decoded.text(index)}) of {code.co_qualname} at {code.co_filename}:{line}"
