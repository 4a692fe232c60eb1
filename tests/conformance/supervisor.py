"""Runs a test file in processes of its own, so that a crash or a hang costs one test and is reported as
such."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_WORKER = Path(__file__).resolve().with_name("worker.py")
_SOURCES = _WORKER.parent.parent.parent / "src"

#: A file whose tests keep taking the process down is given up after so many starts.
_STARTS = 25


@dataclass
class Run:
    """What became of a file's tests in one way of running them.

    Attributes:
        reports: the workers' reports by test number; see `worker.Report`.
        broken: what went wrong outside of tests.
    """

    reports: dict[int, dict[str, Any]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)


class Supervisor:
    """One way of running a file: plainly or compiled.

    Arguments:
        file: the test file's name.
        compiled: whether bodies are compiled.
        only: what the names of tests must contain.
        patience: seconds that one test may take.
    """

    def __init__(self, file: str, compiled: bool, only: str, patience: float) -> None:
        self._command = [
            sys.executable,
            str(_WORKER),
            file,
            "-k",
            only,
            *(["--compiled"] if compiled else []),
        ]
        self._patience = patience
        self._run = Run()
        self._begun: tuple[int, str] | None = None

    def run(self) -> Run:
        """Run all, starting again behind a test that took its process down."""
        first = 0
        for _ in range(_STARTS):
            ended = self._process(first)
            if ended is None:
                return self._run
            if self._begun is None:
                self._run.broken.append(f"outside of tests: {ended}")
                return self._run
            number, test = self._begun
            self._run.reports[number] = {
                "test": test, "outcome": "failed", "text": ended,
                "whole": False, "breaks": [], "internal": [],
            }  # fmt: skip
            first = number + 1
        self._run.broken.append(f"given up after {_STARTS} starts, at test {first}")
        return self._run

    def _process(self, first: int) -> str | None:
        """One process; None if it went through, else what ended it."""
        self._begun = None
        reading, writing = os.pipe()
        environment = {**os.environ, "PYTHONFAULTHANDLER": "1", "PYTHONPATH": str(_SOURCES)}
        with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [*self._command, "--first", str(first), "--channel", str(writing)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=[writing], cwd=folder,
                start_new_session=True, env=environment,
            )  # fmt: skip
            os.close(writing)
            hung = self._read(reading)
            if hung:
                os.kill(process.pid, signal.SIGABRT)  # its stack is in the output then
                time.sleep(1)
            if hung or process.poll() is None and self._begun is not None:
                self._end(process)
            status = process.wait()
            output.seek(0)
            text = output.read().decode(errors="replace")[-6000:]
        if hung:
            return f"hang: no end after {self._patience:.0f} s\n{text}"
        if status < 0:
            return f"crash: {signal.Signals(-status).name}\n{text}"
        return f"exit status {status}\n{text}" if status else None

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()

    def _read(self, reading: int) -> bool:
        """Take reports in until the process closes its end; whether a test took too long."""
        with selectors.DefaultSelector() as selector, os.fdopen(reading, "rb", buffering=0) as stream:
            selector.register(stream, selectors.EVENT_READ)
            rest = b""
            while True:
                if not selector.select(self._patience):
                    return True
                data = stream.read(1 << 16)
                if not data:
                    return False
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        if "broken" in line:
            self._run.broken.append(f"{line['broken']}\n{line['text']}")
        elif "begin" in line:
            self._begun = line["begin"], line["test"]
        else:
            self._run.reports[line["number"]] = line
            self._begun = None
