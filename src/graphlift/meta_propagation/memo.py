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

Table = dict[tuple[Any, ...], Any]

_LIMIT: Final = 100_000
_tables: Final[dict[Any, Table]] = {}

#: Marks the beginning of the keyword arguments in a key.
_KEYWORDS: Final = object()

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
    target: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    tensors: dict[GraphValue, int],
    value_free: bool,
) -> tuple[Any, ...]:
    """The key of a call; fills `tensors` with its distinct tensor arguments in order.

    Raises:
        CannotPropagate: for an argument that no graph can hold.
    """
    parts: list[Any] = [target]
    append = parts.append
    for value in args:
        if type(value) is GraphValue:
            if value in tensors:
                append(tensors[value])
            else:
                tensors[value] = len(tensors)
                append(value.meta)
        else:
            _add(append, value, tensors, value_free)
    if kwargs:
        append(_KEYWORDS)
        for name, value in kwargs.items():
            append(name)
            _add(append, value, tensors, value_free)
    return tuple(parts)


def _add(append: Any, value: Any, tensors: dict[GraphValue, int], value_free: bool) -> None:
    kind = type(value)
    if kind is GraphValue:
        if value in tensors:
            append(tensors[value])
        else:
            tensors[value] = len(tensors)
            append(value.meta)
    elif kind is int or kind is bool:
        append(kind)
        if not value_free:
            append(value)
    elif kind is float:
        append(kind)
        if not value_free:
            append(value.hex())
    elif kind in _BY_VALUE:
        append(kind)
        append(value)
    else:
        append(_nested(value, tensors))


def _nested(value: Any, tensors: dict[GraphValue, int]) -> tuple[Any, ...]:
    kind = type(value)
    parts: list[Any] = [kind]
    append = parts.append
    if kind is tuple or kind is list or kind is torch.Size:
        for item in value:
            _add(append, item, tensors, False)
    elif kind is dict:
        for name, item in value.items():
            append(name)
            _add(append, item, tensors, False)
    elif kind is slice:
        for item in (value.start, value.stop, value.step):
            _add(append, item, tensors, False)
    elif kind is complex:
        append(repr(value))
    else:
        raise CannotPropagate(f"an argument of type {kind.__name__}")
    return tuple(parts)
