"""Subscription and length: mirrors the mapping part of Objects/abstract.c."""

from __future__ import annotations

from graphlift.protocol import Tx, Var
from graphlift.variables.base import VariableTracker
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.slots.numbers import has_index, index_


def getitem(tx: Tx, a: Var, key: Var) -> VariableTracker:
    """``a[key]``."""
    holder: VariableTracker = a.realize(tx)
    index: VariableTracker = key.realize(tx)
    if isinstance(holder, ConstantVariable) and not isinstance(index, ConstantVariable):
        index = _plain_index(tx, index)
    return holder.getitem(tx, index)


def _plain_index(tx: Tx, key: VariableTracker) -> VariableTracker:
    """An index or slice made of plain integers, where `key` is an index at all."""
    if has_index(tx, key):
        return _constant(tx, index_(tx, key))
    if key.python_type(tx) is not slice:
        return key
    parts = []
    for name in ("start", "stop", "step"):
        part: VariableTracker = key.getattr_(tx, name).realize(tx)
        parts.append(part if not has_index(tx, part) else _constant(tx, index_(tx, part)))
    made = tx.make.slice(*parts)
    assert isinstance(made, VariableTracker)
    return made


def _constant(tx: Tx, value: object) -> VariableTracker:
    made = tx.make.constant(value)
    assert isinstance(made, VariableTracker)
    return made


def setitem(tx: Tx, a: Var, key: Var, value: Var) -> None:
    """``a[key] = value``; the value is stored as it is, lazy or not."""
    holder: VariableTracker = a.realize(tx)
    assert isinstance(value, VariableTracker)
    holder.setitem(tx, key.realize(tx), value)


def delitem(tx: Tx, a: Var, key: Var) -> None:
    """``del a[key]``."""
    holder: VariableTracker = a.realize(tx)
    holder.delitem(tx, key.realize(tx))


def length(tx: Tx, a: Var) -> VariableTracker:
    """``len(a)``."""
    holder: VariableTracker = a.realize(tx)
    return holder.length(tx)
