"""The page on graph breaks, made from the table of reasons."""

from __future__ import annotations

from collections.abc import Iterator

from graphlift.reasons import Reason

_HEAD = """\
# Graph breaks: every reason, and what to write instead

This page is made from the table in `reasons.py` (`make docs`).

Where graphlift cannot go on with symbols it cuts the graph: what was captured so far runs as one graph,
CPython runs the instruction, and capture goes on behind it. Nothing is wrong then, only slower. Under
`fullgraph=True` the first break is an error (`graphlift.exc.Unsupported`) with the same text.

`graphlift.explain(f)(...)` and `compiled.report()` tell the breaks as data (`id`, `title`, `explanation`,
`hints`, `context`, `stack`, `count`); `GRAPHLIFT_LOGS=graph_breaks` prints each once. The examples are called
with `torch.ones(3)`."""


def page() -> str:
    """The page in Markdown."""
    listed = [f"- [{reason.value.title}](#{_anchor(reason)})" for reason in Reason]
    return (
        "\n\n".join([_HEAD, "\n".join(listed), *("\n\n".join(_section(reason)) for reason in Reason)]) + "\n"
    )


def _anchor(reason: Reason) -> str:
    return reason.name.lower()


def _section(reason: Reason) -> Iterator[str]:
    row = reason.value
    yield f"## {reason.name}"
    yield f"**{row.title}.** {row.explanation}"
    if row.hints:
        yield "\n".join(f"- {hint}" for hint in row.hints)
    if row.example:
        yield f"```python\n{row.example.strip()}\n```"
    else:
        yield f"No example: {row.unreached}."
