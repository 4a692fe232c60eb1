"""What a benchmark found: rows with their samples, targets, the printed table.

A row sets graphlift beside one rival: `torch.compile`, or plain Python. Samples are seconds or bytes; the
best of each side counts, since on a busy machine all error is on one side.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

OURS, STOCK, PLAIN = "graphlift", "torch.compile", "plain Python"

Kind = Literal["times less", "times plain", "at most", "growth"]


@dataclass(frozen=True)
class Target:
    """What a row is to reach.

    Attributes:
        kind: so many "times less" than the rival, at least; so many "times plain" Python, at most; "at most"
            so much, in the row's unit; "growth" from the smaller size, at most so many times.
        bound: the number.
    """

    kind: Kind
    bound: float

    def met(self, figure: float) -> bool:
        """Whether a row whose judged figure this is has reached it."""
        return figure >= self.bound if self.kind == "times less" else figure <= self.bound

    def text(self, unit: str) -> str:
        """As the table shows it."""
        if self.kind == "at most":
            return f"≤ {shown(self.bound, unit)}"
        return f"≥ {self.bound:g}x" if self.kind == "times less" else f"≤ {self.bound:g}x"


@dataclass
class Row:
    """One line of a table.

    Attributes:
        question: which benchmark asks.
        name: the program.
        samples: per side its measured values; for growth, those of the smaller size are under "smaller".
        unit: of the samples.
        target: what is to be reached, if anything is.
        remark: what else there is to tell.
        size: the program's size, where growth is asked for.
    """

    question: str
    name: str
    samples: dict[str, list[float]] = field(default_factory=dict)
    unit: Literal["second", "byte"] = "second"
    target: Target | None = None
    remark: str = ""
    size: int = 0

    def best(self, side: str) -> float | None:
        """The least sample of a side, None where it was not measured."""
        return min(self.samples[side]) if self.samples.get(side) else None

    @property
    def rival(self) -> str | None:
        """Who stands beside graphlift."""
        return next((side for side in (STOCK, PLAIN, "smaller") if side in self.samples), None)

    @property
    def ratio(self) -> float | None:
        """How many times less than `torch.compile`, or how many times plain Python or the smaller size."""
        ours, theirs = self.best(OURS), None if self.rival is None else self.best(self.rival)
        if not ours or not theirs:
            return None
        return theirs / ours if self.rival == STOCK else ours / theirs

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None where there is none."""
        figure = self.best(OURS) if self.target and self.target.kind == "at most" else self.ratio
        return None if self.target is None or figure is None else self.target.met(figure)

    def line(self) -> str:
        """The row as the table prints it."""
        ours, theirs = self.best(OURS), None if self.rival is None else self.best(self.rival)
        ratio = "" if self.ratio is None else f"{self.ratio:.{2 if self.ratio < 9.995 else 1}f}x"
        target = "" if self.target is None else self.target.text(self.unit)
        met = {None: "", True: "met", False: "NOT MET"}[self.met]
        return (
            f"{self.name:42}{shown(ours, self.unit):>11}{shown(theirs, self.unit):>14}"
            f"{ratio:>9}{target:>12}  {met:8}{self.remark}"
        ).rstrip()


def header(question: str, rival: str) -> str:
    """The line above a table."""
    return f"\n{question:42}{OURS:>11}{rival:>14}{'ratio':>9}{'target':>12}"


def shown(value: float | None, unit: str) -> str:
    """A quantity for people."""
    if value is None:
        return ""
    scales = (
        [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
        if unit == "second"
        else [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]
    )
    scale, name = next((pair for pair in scales if value >= pair[0]), scales[-1])
    scaled = value / scale
    return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f} {name}"


# --- main programs -------------------------------------------------------------------------------------


def options(description: str | None, rounds: int) -> argparse.Namespace:
    """What a measuring program is asked on the command line: `rounds`, `only`, `json`."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--json", help="write the samples to this file, as pyperf does")
    chosen = parser.parse_args()
    chosen.only = chosen.only.lower()
    return chosen


def table(
    chosen: argparse.Namespace,
    question: str,
    rival: str,
    names: Iterable[str],
    measure: Callable[[str, int], Iterable[Row]],
) -> list[Row]:
    """Measure what was asked for, a printed line a row, and write the samples where that was asked for.

    Arguments:
        measure: gives the rows of a program for a number of rounds.
    """
    print(header(question, rival), flush=True)
    rows: list[Row] = []
    for name in names:
        if chosen.only in name.lower():
            for row in measure(name, chosen.rounds):
                rows.append(row)
                print(row.line(), flush=True)
    if chosen.json:
        import samples  # needs pyperf, which looking at a table does not

        samples.write(rows, chosen.json)
    return rows
