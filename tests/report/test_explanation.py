"""An explanation gathers everything and shows it as text and as a page."""

from __future__ import annotations

import html.parser
import sys
from pathlib import Path

from graphlift import events
from graphlift.reasons import Reason
from graphlift.report.explanation import ExplainOutput
from graphlift.report.gathered import KINDS
from graphlift.user_frames import UserFrame

CODE = sys._getframe().f_code


class Graph:
    def __init__(self, **counts: int) -> None:
        self.counts = counts
        self.graph_module = f"module of {counts}"
        self.node_count = sum(counts.values())

    def op_counts(self) -> dict[str, int]:
        return self.counts

    def readable(self) -> str:
        return '\nx: "f32[8][1]cpu" = L_x_ < 3\n'


def gathered() -> ExplainOutput:
    reason = Reason.DATA_DEPENDENT_BRANCH
    stack = [UserFrame(__file__, 1, CODE.co_name)]
    context = "attempted to jump with TensorVariable()"
    output = ExplainOutput("program (user.py:3)")
    with events.subscribed(output.note, *KINDS, this_thread=True):
        events.emit(events.GraphFinished(1, CODE, Graph(mul=1, add=2)))
        events.emit(events.GraphBroken(1, reason, context, stack, lambda: reason.describe(context, stack)))
        events.emit(events.GraphFinished(1, CODE, Graph(add=1)))
        events.emit(events.EntryAdded(1, CODE, ["g"], lambda: ["n is 3 <int>"]))
        events.emit(events.CaptureFinished(1, CODE, "captured", {"translate": 0.001, "backend": 0.002}))
        events.emit(events.CaptureFinished(2, CODE, "captured", {"translate": 0.001}))
        events.emit(events.InternalFailure(2, CODE, KeyError("ours")))
    return output


def test_figures() -> None:
    output = gathered()
    assert (output.graph_count, output.graph_break_count, output.op_count) == (2, 1, 4)
    assert output.graphs == ["module of {'mul': 1, 'add': 2}", "module of {'add': 1}"]
    assert list(output.op_totals.items()) == [("add", 3), ("mul", 1)]
    assert output.times == {"translate": 0.002, "backend": 0.002}
    assert output.guards == ["n is 3 <int>"]
    assert output.break_reasons[0].file == __file__


def test_text_says_it_all() -> None:
    text = str(gathered())
    for part in (
        "Explanation of program (user.py:3)",
        "Graph count: 2",
        "Graph break count: 1",
        "Data-dependent branching",
        "torch.cond",
        "attempted to jump with TensorVariable()",
        f"{__file__}:1",
        '"f32[8][1]cpu"',
        "Operations: add 3, mul 1",
        "n is 3 <int>",
        "translate 2.00 ms, backend 2.00 ms",
        "graphlift failed: KeyError: 'ours'",
    ):
        assert part in text, part


class Outline(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in {"meta", "tr", "td"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_page_is_well_formed_and_escaped(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    page = gathered().to_html(path)
    assert path.read_text(encoding="utf-8") == page
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    for part in ("n is 3 <int>", "L_x_ < 3", "Data-dependent branching", "attempted to jump", "Graph 2"):
        assert part in outline.text, part
    assert gathered()._repr_html_() == page


def test_the_functions_name_is_escaped() -> None:
    page = ExplainOutput("<lambda>").to_html()
    assert "<lambda>" not in page and page.count("&lt;lambda&gt;") == 2  # title and heading


def test_nothing_captured() -> None:
    output = ExplainOutput("f")
    assert "Graph count: 0" in str(output)
    assert "<h2>" not in output.to_html()
