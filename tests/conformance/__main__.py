"""CPython's own tests, plain and compiled.

    python tests/conformance                          all files; writes docs/conformance.md
    python tests/conformance test_list test_dict      some files
    python tests/conformance test_list -k append -v   some tests, with what differs and why graphs were cut

Leaves with 1 when a test that passes plainly fails compiled, graphlift itself fails, or an exclusion passes.
"""

from __future__ import annotations

import argparse
import sys
import time

import table
from catalogue import files
from supervisor import Run, Supervisor
from verdict import HEAD, Verdict, judge

#: Of the tests that pass plainly, so many may be excluded.
_EXCLUDED_AT_MOST = 0.02


def main() -> int:
    """Run, print, and write the page if everything was run."""
    parser = argparse.ArgumentParser(prog="python tests/conformance", description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="*", help="test files such as test_list; all by default")
    parser.add_argument("-k", dest="only", default="", help="only tests whose name contains this")
    parser.add_argument("-v", "--verbose", action="store_true", help="show breaks test by test")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin with no file after so many")
    parser.add_argument(
        "--patience", type=float, default=120, help="seconds of computing that one test may take"
    )
    arguments = parser.parse_args()
    names = arguments.files or files()
    total = Verdict("all")
    verdicts = []

    print("{:32}{:>8}{:>12}{:>15}{:>10}{:>16}{:>7}".format(*HEAD))
    begun = time.perf_counter()
    for name in names:
        if time.perf_counter() - begun > 60 * arguments.minutes:
            print(f"not run: {name}")
            continue
        started = time.perf_counter()
        plain, compiled = (
            Supervisor(name, way, arguments.only, arguments.patience).run() for way in (False, True)
        )
        verdict = judge(name, plain, compiled)
        verdicts.append(verdict)
        total.add(verdict)
        print(
            "{:32}{:>8}{:>12}{:>15}{:>10}{:>16}{:>7}".format(*verdict.row()),
            f"{time.perf_counter() - started:6.0f} s",
            flush=True,
        )
        if arguments.verbose:
            _show_breaks(compiled)
        for text in verdict.wrong:
            print(f"WRONG {text.rstrip()}\n", flush=True)
    print("{:32}{:>8}{:>12}{:>15}{:>10}{:>16}{:>7}".format(*total.row()))
    if total.excluded > _EXCLUDED_AT_MOST * total.plain and not arguments.only and not arguments.files:
        total.wrong.append(f"{total.excluded} tests are excluded, more than {_EXCLUDED_AT_MOST:.0%}")
        print(f"WRONG {total.wrong[-1]}")
    print(f"{len(total.wrong)} wrong")
    if not arguments.files and not arguments.only:
        table.write(verdicts, total)
    elif not arguments.verbose:
        for count, text in table.common(total.reasons, 15):
            print(f"{count:6} {text}")
    return 1 if total.wrong else 0


def _show_breaks(compiled: Run) -> None:
    for report in compiled.reports.values():
        mark = "whole" if report["whole"] else report["outcome"]
        print(f"  {report['test']}: {mark}")
        for text in dict.fromkeys(report["breaks"]):
            print(f"      {text}")


if __name__ == "__main__":
    sys.exit(main())
