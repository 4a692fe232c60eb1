"""Draws what was measured: ratios as bars, growth as curves on logarithmic axes.

python benchmarks/picture.py build/bench/results.json docs/figures
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import matplotlib
import rows
import samples

matplotlib.use("Agg")
from matplotlib import pyplot as plt

OURS, THEIRS = "#2f6f9f", "#c9822b"

STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "graphlift",
    "svg.fonttype": "none",
}


def draw(found: Sequence[rows.Row], folder: Path) -> None:
    """Write ``speed.png`` and ``speed.svg``."""
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 5.2), width_ratios=(1.25, 1))
        bars(
            left, [row for row in found if row.rival == rows.STOCK and row.unit == "second" and not row.size]
        )
        curves(right, [row for row in found if row.size])
        figure.tight_layout()
        for kind in ("png", "svg"):
            figure.savefig(
                folder / f"speed.{kind}", dpi=150, metadata={"Date": None} if kind == "svg" else {}
            )
        plt.close(figure)


def bars(axes: Any, found: Sequence[rows.Row]) -> None:
    """How many times less than torch.compile each row takes."""
    chosen = [row for row in found if row.ratio is not None and "cold" not in row.name][::-1]
    names = [f"{row.question}: {row.name}" for row in chosen]
    ratios = [row.ratio for row in chosen]
    axes.barh(names, ratios, color=OURS, height=0.65)
    for at, ratio in enumerate(ratios):
        axes.text(ratio * 1.05, at, f"{ratio:.{0 if ratio >= 10 else 1}f}", va="center")
    axes.axvline(1, color="0.4", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlim(right=max([1.0, *ratios]) * 1.7)
    axes.set_xlabel("times less than torch.compile")


def curves(axes: Any, found: Sequence[rows.Row]) -> None:
    """First-call time by the size of the program, both engines."""
    programs = dict.fromkeys(row.name.partition(" ")[2] for row in found)
    for marker, name in zip("osv^", programs, strict=False):
        points = sorted((row for row in found if row.name.endswith(f" {name}")), key=lambda row: row.size)
        for side, color in ((rows.STOCK, THEIRS), (rows.OURS, OURS)):
            seconds = [row.best(side) for row in points]
            axes.plot(
                [row.size for row in points], seconds, color=color, marker=marker, label=f"{side}: {name}"
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("size of the program")
    axes.set_ylabel("first call, seconds")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1)


if __name__ == "__main__":
    draw(samples.read(sys.argv[1]), Path(sys.argv[2]))
