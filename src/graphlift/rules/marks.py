"""What users say about single callables: never look into it, keep it whole, refuse it.

Owns the registry behind `graphlift.disable`, `allow_in_graph` and `disallow_in_graph`, and the two
functions that only have a meaning while a graph is captured. A marked callable is held weakly. Knows
nothing of how a mark is carried out.
"""

from __future__ import annotations

import weakref
from typing import Any, Literal

#: ``skip``: CPython calls it, nothing of graphlift's inside. ``graph``: one node, whatever its code.
#: ``refuse``: the graph is cut there, though the call would fit into it.
Mark = Literal["skip", "graph", "refuse"]

_marks: dict[int, tuple[weakref.ref[Any], Mark]] = {}


def mark(target: Any, kind: Mark) -> None:
    """Remember what the user wants of `target`; a later mark replaces an earlier one.

    Raises:
        TypeError: nothing can refer weakly to `target`, so that its mark could not die with it.
    """
    key = id(target)
    _marks[key] = (weakref.ref(target, lambda _: _marks.pop(key, None)), kind)


def unmark(target: Any) -> None:
    """Forget a mark, if there is one."""
    if mark_of(target) is not None:
        del _marks[id(target)]


def mark_of(target: Any) -> Mark | None:
    """The user's mark on this very object."""
    row = _marks.get(id(target))
    return row[1] if row is not None and row[0]() is target else None


def is_compiling() -> bool:
    """Whether the code that asks is being captured (inside captured code: True)."""
    return False


def graph_break(message: str = "") -> None:
    """Cut the graph here; outside captured code nothing happens.

    Arguments:
        message: told to whoever asks why the graph was cut.
    """
