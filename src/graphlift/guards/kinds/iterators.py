"""The kind for where a built-in iterator stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphlift import _C
from graphlift.guards.guard import Guard, Kind, kind
from graphlift.guards.kinds.showing import show
from graphlift.guards.places import Rows

_RANGE = type(iter(range(0)))


@kind
class IteratorKind(Kind):
    """Where a list, tuple, dict or range iterator stands.

    Payload: (None,) for one that is used up, (items given,), or ((start, step, length),) for what is left of
    a range.
    """

    name = "iterator"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        state = guard.payload[0]
        if state is None:
            rows.add("iterator_done", at)
        elif isinstance(state, tuple):
            rows.add("range_left", at, *state)
        else:
            rows.add("iterator_at", at, state)
        return (at,), state

    def holds(self, payload: Any, *values: Any) -> bool:
        return bool(_state(values[0]) == payload)

    def describe(self, payload: Any, *names: str) -> str:
        return "is used up" if payload is None else f"stands at {show(payload)}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} stood at {show(payload)}, now it stands at {show(_state(values[0]))}"


def _state(iterator: Any) -> Any:
    """Where an iterator stands, from what it tells when it is pickled; "unknown" for other kinds."""
    cls = type(iterator)
    if cls is _RANGE:
        parts = iterator.__reduce__()
        rest = parts[1][0][parts[2] or 0 :] if len(parts) > 2 else parts[1][0]
        return (rest.start, rest.step, len(rest))
    if cls in (type(iter([])), type(iter(()))):
        parts = iterator.__reduce__()
        return parts[2] if len(parts) > 2 else None
    if cls in (type(iter({})), type(iter({}.values())), type(iter({}.items()))):
        state = _C.iterator_state(iterator)  # a dict's iterator tells nobody else where it stands
        return None if state is None else state[1]
    return "unknown"
