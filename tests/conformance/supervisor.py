"""Runs a test file in processes of its own, so that a crash or a hang costs one test and is reported as
such."""

from __future__ import annotations

import faulthandler
import json
import os
import selectors
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import worker

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


class _Clock:
    """How long a process has worked on a test: seconds of computing where the system tells, so that a busy
    machine makes no hang; one that only waits has four times as long."""

    def __init__(self, process: int, patience: float) -> None:
        self._process = process
        self._patience = patience
        self._computed, self._began = self._computing(), time.monotonic()

    def _computing(self) -> float:
        try:
            fields = Path(f"/proc/{self._process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_over(self) -> bool:
        """Whether the test has had its time."""
        if self._computing() - self._computed > self._patience:
            return True
        return time.monotonic() - self._began > 4 * self._patience and not self._is_busy()

    def _is_busy(self) -> bool:
        before = self._computing()
        time.sleep(2)
        return self._computing() > before


class Supervisor:
    """One way of running a file: plainly or compiled.

    Arguments:
        file: the test file's name.
        compiled: whether bodies are compiled.
        only: what the names of tests must contain.
        patience: seconds of computing that one test may take.
    """

    def __init__(self, file: str, compiled: bool, only: str, patience: float) -> None:
        self._what = file, compiled, only
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
        """One process; None if it went through, else what ended it.

        It is forked, so torch is imported once for all.
        """
        self._begun = None
        reading, writing = os.pipe()
        with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory() as folder:
            process = os.fork()
            if not process:
                os.close(reading)
                self._work(first, writing, output, folder)
            os.close(writing)
            hung = self._read(reading, process)
            if hung:
                os.kill(process, signal.SIGABRT)  # its stack is in the output then
                time.sleep(1)
                os.kill(process, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            output.seek(0)
            text = output.read().decode(errors="replace")[-6000:]
        if hung:
            return f"hang: no end after {self._patience:.0f} s of computing\n{text}"
        if status < 0:
            return f"crash: {signal.Signals(-status).name}\n{text}"
        return f"exit status {status}\n{text}" if status else None

    def _work(self, first: int, channel: int, output: BinaryIO, folder: str) -> None:
        """What the forked process does; never returns."""
        status = 1
        try:
            os.setsid()
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            faulthandler.enable()
            os.chdir(folder)
            worker.work(*self._what, first, channel)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _read(self, reading: int, process: int) -> bool:
        """Take reports in until the process closes its end; whether a test took too long."""
        clock = _Clock(process, self._patience)
        with selectors.DefaultSelector() as selector, os.fdopen(reading, "rb", buffering=0) as stream:
            selector.register(stream, selectors.EVENT_READ)
            rest = b""
            while True:
                if not selector.select(1):
                    if clock.is_over():
                        return True
                    continue
                clock = _Clock(process, self._patience)
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
