"""Every question, the targets that are met and those that are not, one file of figures and a picture.

    python benchmarks/all.py [--out build/bench] [--only capture]

Each question runs in a process of its own. Leaves in `--out`: a file of pyperf's a question, `results.json`
with all of them, `table.md`, and `speed.png` and `speed.svg`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import picture
import rows
import samples

HERE = Path(__file__).resolve().parent

#: One file a question.
QUESTIONS = ("capture", "growth", "call_overhead", "breaks", "start_up", "memory")


def asked(question: str, out: Path) -> list[rows.Row]:
    """The rows of a question; its table is printed as it comes."""
    file = out / f"{question}.json"
    subprocess.run([sys.executable, str(HERE / f"{question}.py"), "--json", str(file)], check=True)
    return samples.read(str(file))


def markdown(found: Sequence[rows.Row]) -> str:
    """The whole table for a page."""
    lines = ["| | graphlift | beside it | ratio | target | |", "|---|--:|--:|--:|--:|---|"]
    for row in found:
        ours, theirs = row.best(rows.OURS), None if row.rival is None else row.best(row.rival)
        ratio = "" if row.ratio is None else f"{row.ratio:.{2 if row.ratio < 3 else 1}f}"
        target = "" if row.target is None else row.target.text(row.unit)
        met = {None: "", True: "met", False: "not met"}[row.met]
        cells = [f"{row.question}: {row.name}", rows.shown(ours, row.unit), rows.shown(theirs, row.unit)]
        lines.append("| " + " | ".join([*cells, ratio, target, met]) + " |")
    return "\n".join(lines) + "\n"


def verdict(found: Sequence[rows.Row]) -> str:
    """How many targets are met, and which are not."""
    judged = [row for row in found if row.met is not None]
    missed = [f"  {row.question}: {row.line()}" for row in judged if not row.met]
    return "\n".join([f"\n{len(judged) - len(missed)} of {len(judged)} targets met", *missed])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE.parent / "build" / "bench")
    parser.add_argument("--only", default="", help="questions whose name contains this")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    found = [row for name in QUESTIONS if chosen.only in name for row in asked(name, chosen.out)]
    samples.write(found, str(chosen.out / "results.json"))
    (chosen.out / "table.md").write_text(markdown(found), encoding="utf-8")
    picture.draw(found, chosen.out)
    print(verdict(found))
    print(f"\nfigures and pictures: {chosen.out}")


if __name__ == "__main__":
    main()
