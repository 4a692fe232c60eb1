"""Kinds about several objects at once: which are one, which are not, whose storages overlap."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch

from graphlift import _C
from graphlift.guards.guard import Guard, Kind, kind
from graphlift.guards.holding import NotGuardableError
from graphlift.guards.places import Rows
from graphlift.guards.torch_readers import place_plainly
from graphlift.sources import Source


def _all_at(guard: Guard, rows: Rows) -> tuple[int, ...]:
    first = () if guard.source is None else (guard.source,)
    return tuple([rows.at(source) for source in (*first, *guard.payload)])


@kind
class SameKind(Kind):
    """Places that hold one object. Payload: the other sources."""

    name = "same"
    rank = 2

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        ats = _all_at(guard, rows)
        rows.add("same", -1, *ats)
        return ats, None

    def holds(self, payload: Any, *values: Any) -> bool:
        return all(value is values[0] for value in values)

    def describe(self, payload: Any, *names: str) -> str:
        return f"is the same object as {' and '.join(names[1:])}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        other = next(name for name, value in zip(names, values, strict=True) if value is not values[0])
        return f"{names[0]} and {other} were one object, now they are two"


@kind
class DistinctKind(Kind):
    """Places that hold objects of which no two are one. Payload: the other sources."""

    name = "distinct"
    rank = 2

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        ats = _all_at(guard, rows)
        rows.add("distinct", -1, *ats)
        return ats, None

    def holds(self, payload: Any, *values: Any) -> bool:
        return len(set(map(id, values))) == len(values)

    def describe(self, payload: Any, *names: str) -> str:
        return f"is another object than {' and '.join(names[1:])}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        seen: dict[int, str] = {}
        for name, value in zip(names, values, strict=True):
            if id(value) in seen:
                return f"{seen[id(value)]} and {name} were two objects, now they are one"
            seen[id(value)] = name
        return "objects that were different are one now"


# --- storages --------------------------------------------------------------------------------------------


#: For each tensor: (group of one storage, size of an element, bytes ahead of the group's first tensor).
Pattern = tuple[tuple[int, int, int], ...]


def _pattern(places: Sequence[tuple[int, int, int, int]], sizes: Sequence[int]) -> Pattern | None:
    """How tensors share storages; None where two storages lie over each other."""
    groups: dict[int, tuple[int, int]] = {}
    rows = []
    for (storage, _, _, offset), size in zip(places, sizes, strict=True):
        group, start = groups.setdefault(storage, (len(groups), offset * size))
        rows.append((group, size, offset * size - start))
    spans = sorted({(data, data + length) for _, data, length, _ in places if data and length})
    storages = {place[0]: place[1:3] for place in places}
    if len(spans) < sum(1 for data, length in storages.values() if data and length):
        return None
    if any(end > start for (_, end), (start, _) in pairwise(spans)):
        return None
    return tuple(rows)


def storage_pattern(tensors: Sequence[torch.Tensor]) -> Pattern:
    """How tensors share storages now; the payload of an ``overlap`` guard.

    Raises:
        NotGuardableError: a tensor has no storage, or two storages lie over each other in memory.
    """
    places = [_C.tensor_place(tensor) for tensor in tensors]
    if None in places:
        raise NotGuardableError("a tensor without storage")
    pattern = _pattern([place for place in places if place], [tensor.element_size() for tensor in tensors])
    if pattern is None:
        raise NotGuardableError("two storages that lie over each other")
    return pattern


@kind
class OverlapKind(Kind):
    """How tensors share storages. Source: None; payload: (pattern, source of each tensor...)."""

    name = "overlap"
    rank = 2

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        pattern, *places = guard.payload
        ats = tuple([rows.at(source) for source in places])
        rows.add("overlap", -1, *((at, *row) for at, row in zip(ats, pattern, strict=True)))
        return ats, pattern

    def holds(self, payload: Any, *values: Any) -> bool:
        if not all(issubclass(type(value), torch.Tensor) for value in values):
            return False
        now = _pattern(list(map(place_plainly, values)), [row[1] for row in payload])
        return bool(now == payload)

    def describe(self, payload: Any, *names: str) -> str:
        groups = len({row[0] for row in payload})
        return f"{' and '.join(names)} lie in {groups} storage{'s' * (groups != 1)} as they did"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{' and '.join(names)} share storage in another way than before"


def overlap_guard(tensors: Sequence[torch.Tensor], places: Sequence[Source], where: Any = None) -> Guard:
    """The guard that tensors share storages as they do now.

    Raises:
        NotGuardableError: see `storage_pattern`.
    """
    return Guard("overlap", None, (storage_pattern(tensors), *places), where)


def lies_outside(buffer: Any, tensors: Sequence[Any]) -> bool:
    """Whether no tensor's storage lies over the memory that a bytearray or array shows."""
    start = torch.frombuffer(buffer, dtype=torch.uint8).data_ptr() if len(buffer) else 0
    end = start + memoryview(buffer).nbytes
    places = [place_plainly(tensor) for tensor in tensors]
    return all(end <= data or data + length <= start for _, data, length, _ in places)


@kind
class OutsideKind(Kind):
    """Tensors whose storages lie outside the memory of a bytearray or array. Payload: their sources."""

    name = "outside"
    rank = 2

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        ats = _all_at(guard, rows)
        rows.add("outside", -1, *ats)
        return ats, None

    def holds(self, payload: Any, *values: Any) -> bool:
        if not all(issubclass(type(value), torch.Tensor) for value in values[1:]):
            return False
        return isinstance(values[0], bytearray | array) and lies_outside(values[0], values[1:])

    def describe(self, payload: Any, *names: str) -> str:
        return f"shows memory of its own, not that of {' or '.join(names[1:])}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} shows the memory of a tensor among {' and '.join(names[1:])}"
