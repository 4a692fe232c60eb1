"""The memo table: what calls gave before, by everything that decided it.

A key is the target, the structure of the arguments, Python values with their type, metadata records by
identity and the pattern of equal tensors among them; tables are apart by global state. Owns the building
of keys. One table serves the whole process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from graphlift.graph_value import CannotPropagate, GraphValue
from graphlift.meta_propagation.template import CONSTANT_CLASSES
from graphlift.shape_rules import RULES

#: Targets for which a Python number among the positional arguments matters by its type alone.
VALUE_FREE: Final[frozenset[Any]] = frozenset(t for t, (_, traits) in RULES.items() if traits.value_free)

Table = dict[tuple[Any, ...], Any]

_LIMIT: Final = 100_000
_tables: Final[dict[Any, Table]] = {}

#: Beyond this an integer fails wherever it goes.
_WORD: Final = 2**63

#: Marks the beginning of the keyword arguments in a key.
_KEYWORDS: Final = object()

#: Classes that torch takes in the place of a dtype.
_NUMBER_CLASSES: Final = frozenset({int, float, bool, complex})

_BY_VALUE: Final = CONSTANT_CLASSES - {float, complex, torch.Size} | {type(Ellipsis), bytes}


def table_for(state: Any) -> Table:
    """The table of calls made under this global state."""
    table = _tables.get(state)
    if table is None:
        table = _tables[state] = {}
    return table


def clear() -> None:
    """Forget every call; to be called between captures only."""
    for table in _tables.values():
        table.clear()


def trim() -> None:
    """Forget every call when there are very many; to be called between captures only."""
    if sum(map(len, _tables.values())) > _LIMIT:
        clear()


def key_of(
    target: Any, args: Sequence[Any], kwargs: Mapping[str, Any], tensors: dict[GraphValue, int]
) -> tuple[Any, ...]:
    """The key of a call; fills `tensors` with its distinct tensor arguments in order.

    Raises:
        CannotPropagate: for an argument that no graph can hold.
    """
    parts: list[Any] = [target]
    for value in args:
        kind = type(value)
        if kind is GraphValue:
            # An equal tensor gives its number, a new one its record.
            count = len(tensors)
            known = tensors.setdefault(value, count)
            parts.append(value.meta if known == count else known)
        elif kind is int or kind is float:
            parts.append(kind)
            if target not in VALUE_FREE or not -_WORD <= value < _WORD:
                parts.append(value if kind is int else value.hex())
        else:
            _add(parts, value, tensors)
    if kwargs:
        parts.append(_KEYWORDS)
        for name, value in kwargs.items():
            parts.append(name)
            _add(parts, value, tensors)
    return tuple(parts)


def _add(parts: list[Any], value: Any, tensors: dict[GraphValue, int]) -> None:
    kind = type(value)
    if kind is GraphValue:
        known = tensors.get(value)
        if known is None:
            tensors[value] = len(tensors)
            parts.append(value.meta)
        else:
            parts.append(known)
    elif kind in _BY_VALUE:
        parts.append(kind)
        parts.append(value)
    elif kind is float:
        parts.append(kind)
        parts.append(value.hex())
    else:
        parts.append(_nested(value, tensors))


def _nested(value: Any, tensors: dict[GraphValue, int]) -> tuple[Any, ...]:
    kind = type(value)
    parts: list[Any] = [kind]
    if kind is tuple or kind is list or kind is torch.Size:
        for item in value:
            _add(parts, item, tensors)
    elif kind is dict:
        for name, item in value.items():
            parts.append(name)
            _add(parts, item, tensors)
    elif kind is slice:
        for item in (value.start, value.stop, value.step):
            _add(parts, item, tensors)
    elif kind is type and value in _NUMBER_CLASSES:
        parts.append(value)
    elif kind is complex:
        parts.append(repr(value))
    else:
        raise CannotPropagate(f"an argument of type {kind.__name__}")
    return tuple(parts)
