"""An gathered as one self-contained HTML page: no scripts, no files beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from graphlift.records import Break
from graphlift.report.gathered import Gathered
from graphlift.user_frames import listing, pointed_at

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --bad: #c4452d; --good: #2f7d4f; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin-bottom: 0 } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem }
code, pre { font: 13px/1.45 ui-monospace, monospace }
pre { background: var(--soft); padding: .7rem; overflow-x: auto; border-radius: 6px; margin: .4rem 0 }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0 }
.figures div { border: 1px solid var(--line); border-radius: 6px; padding: .4rem .9rem }
.figures b { display: block; font-size: 1.4rem } .bad b { color: var(--bad) } .good b { color: var(--good) }
table { border-collapse: collapse }
td, th { border-bottom: 1px solid var(--line); padding: .15rem .8rem .15rem 0 }
th { text-align: left; font-weight: 600 } td.number { text-align: right }
.break { border-left: 3px solid var(--bad); padding-left: .8rem; margin: 1rem 0 }
.bar { background: var(--good); height: .7rem; border-radius: 2px; min-width: 1px }
summary { cursor: pointer; padding: .2rem 0 }
"""


def to_html(gathered: Gathered) -> str:
    """The page's text."""
    body = [
        f"<h1>graphlift: {escape(gathered.function)}</h1>",
        _figures(gathered),
        _section("Breaks", map(_break, gathered.break_reasons)),
        _section("Graphs", _graphs(gathered)),
        _section("Operations", _counts(gathered)),
        _section("Guards", _lines(gathered.guards)),
        _section("Frames", _lines(gathered.captures)),
        _section("Time", _times(gathered)),
        _section("Profile", _lines([line for profile in gathered.profiles for line in profile.lines()])),
    ]
    title = escape(gathered.function)
    head = f"<meta charset='utf-8'><title>{title}</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(body)}</body></html>\n"


def _section(title: str, parts: Iterable[str]) -> str:
    text = "".join(parts)
    return f"<h2>{title}</h2>{text}" if text else ""


def _figures(gathered: Gathered) -> str:
    breaks = gathered.graph_break_count
    figures = [
        ("", "graphs", str(gathered.graph_count)),
        ("bad" if breaks else "good", "breaks", str(breaks)),
        ("", "operations", str(gathered.op_count)),
        ("", "guards", str(len(gathered.guards))),
        ("", "capture", f"{gathered.total_seconds * 1e3:.1f} ms"),
    ]
    if gathered.failures:
        figures.append(("bad", "internal failures", str(len(gathered.failures))))
    tiles = (f"<div class='{kind}'><b>{value}</b>{name}</div>" for kind, name, value in figures)
    return f"<div class='figures'>{''.join(tiles)}</div>"


def _break(cut: Break) -> str:
    hints = "".join(f"<li>{escape(hint)}</li>" for hint in cut.hints)
    lines = [*(pointed_at(cut.place) if cut.place else ()), "", *listing(cut.stack)]
    times = f", {cut.count} times" if cut.count > 1 else ""
    return (
        f"<div class='break'><b>{escape(cut.title)}</b> "
        f"<code>{escape(f'{cut.file}:{cut.line}')}</code>{times}<p>{escape(cut.explanation)}</p>"
        f"<ul>{hints}</ul><pre>{escape(chr(10).join(lines))}</pre><p><code>{escape(cut.context)}</code></p></div>"
    )


def _graphs(gathered: Gathered) -> Iterable[str]:
    for number, graph in enumerate(gathered.captured, 1):
        is_open = "open" if gathered.graph_count <= 3 else ""
        yield (
            f"<details {is_open}><summary>Graph {number}: {graph.node_count} operations</summary>"
            f"<pre>{escape(graph.readable().strip())}</pre></details>"
        )


def _counts(gathered: Gathered) -> Iterable[str]:
    if gathered.captured:
        totals = gathered.op_totals.items()
        rows = (f"<tr><td>{escape(name)}<td class='number'>{count}" for name, count in totals)
        yield f"<table>{''.join(rows)}</table>"


def _lines(lines: Sequence[str]) -> Iterable[str]:
    if lines:
        yield f"<pre>{escape(chr(10).join(lines))}</pre>"


def _times(gathered: Gathered) -> Iterable[str]:
    longest = max(gathered.times.values(), default=0.0)
    if longest:
        rows = (
            f"<tr><td>{escape(name)}<td class='number'>{seconds * 1e3:.2f} ms"
            f"<td width=300><div class='bar' style='width:{100 * seconds / longest:.0f}%'></div>"
            for name, seconds in gathered.times.items()
        )
        yield f"<table>{''.join(rows)}</table>"
