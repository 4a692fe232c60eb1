"""What `explain` hands back: the data of one call's captures, as text and as a page."""

from __future__ import annotations

from pathlib import Path

from graphlift.report import page
from graphlift.report.gathered import Gathered


class ExplainOutput(Gathered):
    """Graphs, breaks, guards and times of one call; prints as text, shows as a page in a notebook."""

    __slots__ = ()

    def to_html(self, path: str | Path | None = None) -> str:
        """The page as HTML; written to `path`, too, if one is given."""
        html = page.to_html(self)
        if path is not None:
            Path(path).write_text(html, encoding="utf-8")
        return html

    def _repr_html_(self) -> str:
        return page.to_html(self)

    def __str__(self) -> str:
        parts = [
            f"Explanation of {self.function}",
            f"Graph count: {self.graph_count}",
            f"Graph break count: {self.graph_break_count}",
            f"Operation count: {self.op_count}",
        ]
        for number, cut in enumerate(self.break_reasons, 1):
            parts += ["", f"Break {number}: {cut.message}"]
        for number, graph in enumerate(self.captured, 1):
            parts += ["", f"Graph {number}: {graph.node_count} operations", graph.readable().strip()]
        if self.captured:
            counts = ", ".join(f"{name} {count}" for name, count in self.op_totals.items())
            parts += ["", f"Operations: {counts}"]
        if self.guards:
            parts += ["", f"Guards ({len(self.guards)}):", *(f"  {line}" for line in self.guards)]
        if self.captures:
            parts += ["", "Frames:", *(f"  {line}" for line in self.captures)]
        if self.times:
            phases = ", ".join(f"{name} {seconds * 1e3:.2f} ms" for name, seconds in self.times.items())
            parts += ["", f"Times: {phases}"]
        for profile in self.profiles:
            parts += ["", *profile.lines()]
        for error in self.failures:
            parts += ["", f"graphlift failed: {type(error).__name__}: {error}"]
        return "\n".join(parts)

    __repr__ = __str__
