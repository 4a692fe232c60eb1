"""Runs the tests of one file of CPython's suite in this process, each twice, plainly or compiled.

What becomes of each test is written as one line of JSON to a file descriptor: ``{"begin": n}`` before it,
and a `Report` behind it, so that whoever started the process knows which test a crash or a hang belongs to.
`setUp`, `tearDown` and the machinery of `unittest` that runs tests stay plain; the test method's body is
called from a compiled function between two tensor operations (`around.py`), an example of a doctest
likewise (`examples.py`).

    python tests/conformance/worker.py test_list --compiled -k test_append
"""

from __future__ import annotations

import argparse
import doctest
import gc
import importlib
import json
import os
import sys
import traceback
import types
import unittest
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

from test import support

sys.path[:] = [folder for folder in sys.path if os.path.realpath(folder or ".") != os.path.dirname(__file__)]
sys.path.append(os.path.dirname(__file__))  # behind all else: its names shadow nobody's

import around  # noqa: E402
import examples  # noqa: E402

import graphlift  # noqa: E402
from graphlift import config, events  # noqa: E402

_MACHINERY = (os.path.dirname(__file__), os.path.dirname(unittest.__file__))

PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"


@dataclass
class Report:
    """What became of one test.

    Attributes:
        number: its place in the file.
        test: ``Class.method``, or a doctest's name.
        outcome: ``"passed"``, ``"skipped"`` or ``"failed"``; of two runs the worse.
        text: tracebacks of what failed.
        whole: the body was captured in one piece in its first run.
        breaks: why it was not, a sentence each.
        internal: graphlift's own failures.
    """

    number: int
    test: str
    outcome: str = PASSED
    text: str = ""
    whole: bool = False
    breaks: list[str] = field(default_factory=list)
    internal: list[str] = field(default_factory=list)


class Bodies:
    """Runs bodies between tensor operations, compiled or not, and knows what was captured of each.

    Attributes:
        compiled: whether they are compiled.
        breaks, internal: what was met since the last `begin`.
        whole: all bodies since then were captured, each as one piece.
    """

    def __init__(self, compiled: bool) -> None:
        self.compiled = compiled
        self._functions: dict[object, Callable[..., Any]] = {}
        self._codes: set[types.CodeType] = set()
        self.begin()
        if compiled:
            kinds = events.GraphBroken, events.InternalFailure, events.CaptureFinished
            events.subscribe(self._note, *kinds)

    def begin(self) -> None:
        """Forget what was met."""
        self.breaks: list[str] = []
        self.internal: list[str] = []
        self._outcomes: list[str] = []

    @property
    def whole(self) -> bool:
        return not self.breaks and not self.internal and {*self._outcomes} == {"captured"}

    def run(self, key: object, name: str, body: Callable[[], Any], keeps_errors: bool = False) -> Any:
        """Run a body by the function that belongs to `key`; gives its result."""
        function = self._functions.get(key)
        if function is None:
            function = around.surrounded(name, keeps_errors=keeps_errors)
            if self.compiled:
                self._codes.add(function.__code__)
                function = graphlift.compile(function, backend="eager")
            self._functions[key] = function
        return around.judged(function(body, around.INPUT.clone()))

    def run_example(self, name: str, function: types.FunctionType) -> Any:
        """Run an example of a doctest; gives its value, raises its error."""
        result = self.run(name, "example", function, keeps_errors=True)
        if isinstance(result, BaseException) and result.__traceback__ is not None:
            raise result
        return result

    def run_method(self, case: unittest.TestCase, method: Callable[[], Any]) -> None:
        """In place of `TestCase._callTestMethod`."""
        if isinstance(case, doctest.DocTestCase):
            method()  # its examples are captured one by one
            return
        self.run(case.id(), case._testMethodName, method)

    def _note(self, event: Any) -> None:
        match event:
            case events.GraphBroken():
                self.breaks.append(f"{event.reason.value.title}: {event.context}")
            case events.InternalFailure():
                self.internal.append(f"{type(event.error).__name__}: {event.error}")
            case events.CaptureFinished() if event.code in self._codes:
                self._outcomes.append(event.outcome)


class Results(unittest.TestResult):
    """Writes reports; each test is run twice in a row."""

    def __init__(self, bodies: Bodies, channel: TextIO, numbers: dict[int, int]) -> None:
        super().__init__()
        self._bodies = bodies
        self._channel = channel
        self._numbers = numbers
        self._report: Report | None = None
        self._second = False

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        number = self._numbers[id(test)]
        self._second = self._report is not None and self._report.number == number
        if not self._second:
            self._report = Report(number, short_name(test))
            self._say({"begin": number, "test": self._report.test})
            self._bodies.begin()

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        report, bodies = self._report, self._bodies
        assert report is not None
        if self._second:
            report.internal += [text for text in bodies.internal if text not in report.internal]
            self._say(asdict(report))
        else:
            report.whole, report.breaks, report.internal = bodies.whole, bodies.breaks, [*bodies.internal]

    def addError(self, test: Any, err: Any) -> None:
        self._failed(test, err)

    addFailure = addError

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            if issubclass(err[0], unittest.SkipTest):
                return
            self._failed(test, err, str(subtest))

    def addSkip(self, test: Any, reason: str) -> None:
        if self._report is not None and self._report.outcome == PASSED:
            self._report.outcome = SKIPPED

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._failed(test, None, "unexpected success")

    def _failed(self, test: Any, err: Any, text: str = "") -> None:
        if err is not None:
            text += "\n" + _told(err[1])
        if id(test) not in self._numbers:  # the setting up of a class or module
            self._say({"broken": str(test), "text": text})
            return
        assert self._report is not None
        self._report.outcome = FAILED
        if not (self._second and self._report.text):  # a second failure is seldom another one
            self._report.text += text

    def _say(self, line: dict[str, Any]) -> None:
        self._channel.write(json.dumps(line) + "\n")
        self._channel.flush()


def _told(error: BaseException) -> str:
    """An error as text, without the frames of this program and of `unittest`."""
    told = traceback.TracebackException.from_exception(error)
    told.stack[:] = [frame for frame in told.stack if os.path.dirname(frame.filename) not in _MACHINERY]
    return "".join(told.format())


def short_name(test: unittest.TestCase) -> str:
    """``Class.method``, or a doctest's name."""
    if isinstance(test, doctest.DocTestCase):
        return f"doctest {test.id()}"
    return ".".join(test.id().split(".")[-2:])


def cases_of(suite: unittest.TestSuite) -> list[unittest.TestCase]:
    """The tests of a suite, flat."""
    found: list[unittest.TestCase] = []
    for item in suite:
        found += cases_of(item) if isinstance(item, unittest.TestSuite) else [item]  # type: ignore[list-item]
    return found


def run_file(file: str, bodies: Bodies, channel: TextIO, first: int, only: str) -> None:
    """Run a file's tests from number `first` on; only those whose name contains `only`."""
    module = importlib.import_module(f"test.{file}")
    load = unittest.defaultTestLoader.loadTestsFromModule
    pairs = list(zip(cases_of(load(module)), cases_of(load(module)), strict=True))
    numbers: dict[int, int] = {}
    suite = unittest.TestSuite()
    for number, (case, again) in enumerate(pairs):
        if number < first or only not in short_name(case):
            continue
        if isinstance(case, doctest.DocTestCase):
            again = case  # its examples keep their namespace
        numbers[id(case)] = numbers[id(again)] = number
        suite.addTests([case, again])
    unittest.TestCase._callTestMethod = lambda *both: bodies.run_method(*both)  # type: ignore[attr-defined]
    doctest.set_unittest_reportflags(doctest.REPORT_ONLY_FIRST_FAILURE)
    examples.run_examples_with(bodies.run_example)
    suite.run(Results(bodies, channel, numbers))


def work(file: str, compiled: bool, only: str, first: int, channel: int) -> None:
    """Run a file's tests and report to a file descriptor; for a process that does nothing else."""
    gc.freeze()  # so that a test's `gc.collect` does not go through all of torch each time
    support.use_resources = []  # as `python -m test` by default: no network, nothing that takes minutes
    # A cut in a loop is no reason to stop looking. Loops of many thousand turns are not unrolled whole.
    with config.patch(give_up_below=0, turn_limit=10_000):
        stream = os.fdopen(channel, "w", encoding="utf-8", closefd=False)
        run_file(file, Bodies(compiled), stream, first, only)


def main() -> None:
    """One file in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("-k", dest="only", default="")
    arguments = parser.parse_args()
    work(arguments.file, arguments.compiled, arguments.only, 0, 1)


if __name__ == "__main__":
    main()
