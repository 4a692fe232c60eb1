"""What the two runs of a file come to: counts, and what is wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from catalogue import excluded
from supervisor import Run


@dataclass
class Verdict:
    """The counts of a file's tests (or of all files').

    Attributes:
        file: the test file's name.
        tests: those that do not skip themselves.
        plain: passed plainly.
        passed: of these, passed compiled.
        whole: of these, captured in one piece.
        excluded: named in the list of exclusions.
        reasons: of breaks, each counted once a test.
        wrong: what must not be, a text each: passed plainly and failed compiled, failures of graphlift's own,
            exclusions that pass.
    """

    file: str
    tests: int = 0
    plain: int = 0
    passed: int = 0
    whole: int = 0
    excluded: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Verdict) -> None:
        """Add another file's counts."""
        for name in ("tests", "plain", "passed", "whole", "excluded"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.reasons.update(other.reasons)
        self.wrong += other.wrong

    def row(self) -> list[object]:
        """The counts as a table shows them."""
        share = f"{100 * self.whole / self.passed:.0f} %" if self.passed else "-"
        return [self.file, self.tests, self.plain, self.passed, self.excluded, self.whole, share]


HEAD = ["file", "tests", "pass plain", "pass compiled", "excluded", "captured whole", "share"]


def judge(file: str, plain: Run, compiled: Run) -> Verdict:
    """Compare a file's two runs."""
    verdict = Verdict(file)
    missing = {"outcome": "failed", "text": "not run", "whole": False, "breaks": [], "internal": []}
    for number, before in sorted(plain.reports.items()):
        if before["outcome"] != "skipped":
            verdict.tests += 1
            _judge_test(verdict, before, compiled.reports.get(number, missing))
    verdict.wrong += [f"{file}: {text}" for text in compiled.broken if text not in plain.broken]
    return verdict


def _judge_test(verdict: Verdict, before: dict[str, Any], after: dict[str, Any]) -> None:
    name = f"{verdict.file} {before['test']}"
    if after["internal"]:
        verdict.wrong.append(f"{name}: internal failure\n" + "\n".join(after["internal"]))
    if before["outcome"] != "passed":
        return
    verdict.plain += 1
    exclusion = excluded(verdict.file, before["test"])
    if exclusion is not None:
        verdict.excluded += 1
        if after["outcome"] == "passed":
            verdict.wrong.append(f"{name}: passes, but is excluded: {exclusion.reason}")
        return
    if after["outcome"] != "passed":
        verdict.wrong.append(f"{name}: {after['outcome']} compiled\n{after['text']}")
        return
    verdict.passed += 1
    verdict.whole += after["whole"]
    if not after["whole"]:
        verdict.reasons.update(dict.fromkeys(after["breaks"] or ["captured, but not as a whole"], 1))
