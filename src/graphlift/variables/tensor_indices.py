"""Indices of tensors that are symbolic numbers.

torch's C indexing would fix such a number for good, so what it names is taken by ``select``, which keeps it
open; what is left of the index goes the ordinary way.
"""

from __future__ import annotations

from typing import Any

import torch

from graphlift.graph_value import GraphValue, SymValue
from graphlift.protocol import Tx
from graphlift.variables.graph_calls import as_graph_argument, record


def _is_number(part: Any) -> bool:
    return type(part) is SymValue and isinstance(part.sym, torch.SymInt)


def pick_symbolic(tx: Tx, value: GraphValue, index: Any) -> tuple[GraphValue, Any]:
    """Take out the dimensions that `index` picks by a symbolic number.

    Returns:
        the tensor without these dimensions, and the rest of the index: ``()`` when nothing is left, `index`
        itself when there is no such number or other kinds of indices stand beside it.
    """
    parts = index if type(index) is tuple else (index,)
    if not any(map(_is_number, parts)):
        return value, index
    dims = _dimensions(parts, len(value.meta.shape))
    if dims is None:
        return value, index
    rest = []
    taken = 0
    for part, dim in zip(parts, dims, strict=True):
        if _is_number(part):
            selected = record(tx, "select", (value, dim - taken, part), method=True)
            value = as_graph_argument(tx, selected)
            taken += 1
        else:
            rest.append(part)
    return value, tuple(rest)


def _dimensions(parts: tuple[Any, ...], rank: int) -> list[int] | None:
    """The dimension that each part is about; None for an index of other parts, or too long a one."""
    # New dimensions get strides from where they stand, which a selection before would move.
    if not all(part is Ellipsis or type(part) in (int, slice) or _is_number(part) for part in parts):
        return None
    consumed = sum(part is not Ellipsis for part in parts)
    if consumed > rank or parts.count(Ellipsis) > 1:
        return None
    dims = []
    dim = 0
    for part in parts:
        dims.append(dim)
        dim += rank - consumed if part is Ellipsis else 1
    return dims
