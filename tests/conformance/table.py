"""`docs/conformance.md`: a section for each Python, each written by a run on it."""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from catalogue import EXCLUSIONS, files
from verdict import HEAD, Verdict

PAGE = Path(__file__).parent.parent.parent / "docs" / "conformance.md"

_HEADER = """\
# CPython's own tests, compiled

Made by `make conformance` (`PYTHON_VERSION=3.12` for another Python), which runs files of the interpreter's
own `Lib/test` twice: plainly, and with the body of every test method called from a compiled function
between two tensor operations, so that it is part of a frame that matters. Each test runs two times in a
row: captured, then behind its guards. Each example of a doctest is made a function, its names global, and
is captured likewise. `setUp`, `tearDown` and the machinery that runs tests stay plain. What passes plainly
must pass compiled.

*Captured whole*: of those that pass, the tests whose body became one capture without a break.
"""

_TOP = 40


def write(verdicts: Sequence[Verdict], total: Verdict) -> None:
    """Put this Python's section in place; others stay as they are."""
    version = platform.python_version()
    short = ".".join(version.split(".")[:2])
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = re.findall(r"^## Python (\d+\.\d+).*?(?=^## |\Z)", text, re.M | re.S)
    parts = re.split(r"^(?=## )", text, flags=re.M)[1:]
    sections = {
        name: part.rstrip() for name, part in zip(found, parts, strict=False) if part.startswith("## Python")
    }
    sections[short] = _section(version, verdicts, total)
    order = sorted(sections, key=lambda name: [int(part) for part in name.split(".")])
    pages = [_HEADER.rstrip(), *(sections[name] for name in order), _exclusions()]
    PAGE.write_text("\n\n".join(pages) + "\n", encoding="utf-8")


def _section(version: str, verdicts: Sequence[Verdict], total: Verdict) -> str:
    rows = [HEAD, ["---", *["--:"] * (len(HEAD) - 1)], *(item.row() for item in verdicts), total.row()]
    missing = sorted({*files()} - {item.file for item in verdicts})
    return "\n".join(
        [
            f"## Python {version}",
            "",
            *_lines(rows),
            *(["", f"Not run this time: {', '.join(missing)}."] if missing else []),
            "",
            f"{total.passed - total.whole} tests were not captured whole; a test may have several reasons:",
            "",
            *_lines([["tests", "reason"], ["--:", "---"], *common(total.reasons, _TOP)]),
        ]
    )


def common(reasons: Counter[str], top: int) -> list[list[object]]:
    """The most frequent reasons, addresses and numbers left out of them."""
    merged: Counter[str] = Counter()
    for text, count in reasons.items():
        merged[re.sub(r"0x[0-9a-f]+", "0x...", text)[:150].replace("|", "\\|")] += count
    return [[count, text] for text, count in merged.most_common(top)]


def _exclusions() -> str:
    rows: list[list[object]] = [["file", "test", "Python", "why"], ["---"] * 4]
    rows += [[item.file, item.pattern, ", ".join(item.versions) or "all", item.reason] for item in EXCLUSIONS]
    return "\n".join(
        ["## Excluded", "", "They run all the same; one that passes is an error.", "", *_lines(rows)]
    )


def _lines(rows: Sequence[Sequence[object]]) -> list[str]:
    return ["| " + " | ".join(map(str, row)) + " |" for row in rows]
