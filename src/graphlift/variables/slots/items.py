"""Subscription and length: mirrors the mapping part of Objects/abstract.c."""

from __future__ import annotations

from graphlift.protocol import Tx, Var
from graphlift.variables.base import VariableTracker


def getitem(tx: Tx, a: Var, key: Var) -> VariableTracker:
    """``a[key]``."""
    holder: VariableTracker = a.realize(tx)
    return holder.getitem(tx, key.realize(tx))


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
