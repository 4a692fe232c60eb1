"""Iteration and unpacking: mirrors `PyObject_GetIter` of Objects/abstract.c and `_PyEval_UnpackIterable`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NoReturn

from graphlift.errors import ObservedException
from graphlift.polyfills import reductions
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.slots.attributes import call_attr
from graphlift.variables.slots.type_lookup import Binding, is_of_c, type_lookup

#: Items after which an iterator that is run to its end counts as endless.
LIMIT: Final = 1_000_000


def iter_(tx: Tx, a: Var, error: str | None = None) -> VariableTracker:
    """``iter(a)``; `error` stands in for the text of any TypeError, as where CPython replaces it."""
    operand: VariableTracker = a.realize(tx)
    if error is None:
        return operand.iter_(tx)
    try:
        return operand.iter_(tx)
    except ObservedException as raised:
        if not issubclass(raised.value.python_type(tx), TypeError):
            raise
    operand.type_error(tx, error)


def iter_once(tx: Tx, a: Var, error: str | None = None) -> VariableTracker:
    """``iter(a)`` for a polyfill that goes through it with ``for``, where C only asks for the next item."""
    return for_polyfill(tx, iter_(tx, a, error))


def for_polyfill(tx: Tx, iterator: VariableTracker) -> VariableTracker:
    """An iterator as a polyfill may have it that goes through it with ``for``.

    ``for`` asks for an iterator anew, and one that the program wrote may then begin again.
    """
    if is_of_c(iterator.python_type(tx)):
        return iterator
    made: VariableTracker = tx.run_host(reductions.turns, [iterator]).realize(tx)
    return made


def is_iterable(tx: Tx, operand: VariableTracker) -> bool:
    """Whether the class of a realised value has anything to iterate by, working or not."""
    cls = operand.python_type(tx)
    by_index = type_lookup(tx, cls, "__getitem__") is not None and not issubclass(cls, dict)
    return by_index or type_lookup(tx, cls, "__iter__") is not None


def next_(tx: Tx, iterator: Var) -> VariableTracker | None:
    """The next item, or None at the end."""
    operand: VariableTracker = iterator.realize(tx)
    return operand.next_(tx)


def advance(tx: Tx, iterator: Var) -> VariableTracker:
    """``next(iterator)``: at the end the iterator's own StopIteration, with its value, is raised."""
    operand: VariableTracker = iterator.realize(tx)
    cls = operand.python_type(tx)
    attr = type_lookup(tx, cls, "__next__")
    if attr is None:
        operand.type_error(tx, "'{}' object is not an iterator")
    if attr.binding is Binding.C_METHOD:
        return operand.call_method(tx, "__next__", [], {})
    return call_attr(tx, attr, operand, cls, []).realize(tx)  # type: ignore[no-any-return]


def unpack(tx: Tx, a: Var, error: str | None = None) -> list[VariableTracker]:
    """All items; an iterator is run to its end."""
    operand: VariableTracker = a.realize(tx)
    items = operand.unpack(tx)
    if items is not None:
        return items
    return drain(tx, iter_(tx, operand, error))


def each(tx: Tx, a: Var) -> Iterator[VariableTracker]:
    """The items one after the other: of an iterator no more is taken than the caller asks for."""
    operand: VariableTracker = a.realize(tx)
    items = operand.unpack(tx)
    if items is not None:
        yield from items
        return
    iterator = iter_(tx, operand)
    for _ in range(LIMIT):
        item = iterator.next_(tx)
        if item is None:
            return
        yield item
    too_long(tx, iterator)


def drain(tx: Tx, iterator: VariableTracker, count: int = LIMIT) -> list[VariableTracker]:
    """Up to `count` items of an iterator; a break if it does not end within `LIMIT`."""
    items: list[VariableTracker] = []
    while len(items) < count:
        item = iterator.next_(tx)
        if item is None:
            return items
        items.append(item)
    if count == LIMIT:
        too_long(tx, iterator)
    return items


def too_long(tx: Tx, iterator: Var) -> NoReturn:
    """Break: the iterator does not seem to end."""
    tx.fail(
        Reason.UNSUPPORTED_OPERATION, f"running {iterator!r}, which has more than {LIMIT} items, to its end"
    )


def iter_for_unpacking(tx: Tx, operand: VariableTracker) -> VariableTracker:
    """``iter(operand)`` for targets that take it apart."""
    if not is_iterable(tx, operand):
        operand.type_error(tx, "cannot unpack non-iterable {} object")
    return iter_(tx, operand)


def unpack_exactly(tx: Tx, a: Var, count: int) -> list[VariableTracker]:
    """The items of a value that has exactly `count`; no more than one too many is taken from an iterator."""
    operand: VariableTracker = a.realize(tx)
    items = operand.unpack(tx)
    if items is None:
        items = drain(tx, iter_for_unpacking(tx, operand), count + 1)
    if len(items) > count:
        tx.raise_(ValueError, f"too many values to unpack (expected {count})")
    if len(items) < count:
        tx.raise_(ValueError, f"not enough values to unpack (expected {count}, got {len(items)})")
    return items
