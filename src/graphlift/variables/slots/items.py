"""Subscription and length: mirrors the mapping part of Objects/abstract.c."""

from __future__ import annotations

from typing import NoReturn

from graphlift import _C
from graphlift.protocol import Tx, Var
from graphlift.variables.base import NOT_IMPLEMENTED, VariableTracker
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.slots.numbers import has_index, index_, position


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
    place = key.realize(tx)
    if holder.setitem(tx, place, value) is NOT_IMPLEMENTED:
        _no_items(tx, holder, place, "__setitem__", "assignment")


def delitem(tx: Tx, a: Var, key: Var) -> None:
    """``del a[key]``."""
    holder: VariableTracker = a.realize(tx)
    place = key.realize(tx)
    if holder.delitem(tx, place) is NOT_IMPLEMENTED:
        _no_items(tx, holder, place, "__delitem__", "deletion")


def _no_items(tx: Tx, holder: VariableTracker, key: VariableTracker, special: str, verb: str) -> NoReturn:
    """The error of storing or deleting an item where the class has nothing for it.

    Mirrors PyObject_SetItem, PyObject_DelItem and what they go through in Objects/abstract.c.
    """
    has_table, is_sequence, stores = _C.item_slots(holder.python_type(tx))
    if has_table:  # a class written in Python that has the other one of the two methods
        tx.raise_(AttributeError, special)
    if is_sequence and has_index(tx, key):
        position(tx, key)
        lacks = "doesn't" if special == "__delitem__" else "does not"
        holder.type_error(tx, f"'{{}}' object {lacks} support item {verb}")
    if stores:
        name = key.python_type(tx).__name__
        tx.raise_(TypeError, f"sequence index must be integer, not '{name}'")
    holder.type_error(tx, f"'{{}}' object does not support item {verb}")


def length(tx: Tx, a: Var) -> VariableTracker:
    """``len(a)``."""
    holder: VariableTracker = a.realize(tx)
    return holder.length(tx)
