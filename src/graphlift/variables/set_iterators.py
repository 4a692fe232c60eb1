"""Iterators over sets: they give the elements in the set's order and notice when it changes meanwhile.

Mirrors the iterator part of Objects/setobject.c. Knows a set by its handle only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from graphlift.errors import Unsupported
from graphlift.heap import Handle, Table
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.variables import iterator_state
from graphlift.variables.base import VariableTracker
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.iterator_state import DONE
from graphlift.variables.iterators import ItemsIteratorVariable

_SET_ITERATOR: Final[type] = type(iter(set()))


class SetIteratorVariable(ItemsIteratorVariable):
    """An iterator over a set, which notices when the set changes meanwhile.

    Arguments:
        owner: the set.
        elements: its handle, whose elements have been read.
        known: the elements in the set's order.
    """

    __slots__ = ("_elements", "_set", "_size_then", "_table_then")

    def __init__(self, owner: Var, elements: Handle, known: Sequence[Var]) -> None:
        super().__init__(known)
        self._set: Final = owner
        self._elements: Final = elements
        self._table_then: Final = _table(elements)
        self._size_then: Final = len(self._table_then)

    def python_type(self, tx: Tx) -> type:
        return _SET_ITERATOR

    def next_(self, tx: Tx) -> VariableTracker | None:
        table, size = _table(self._elements), self._size_then
        if self.handle.value <= size and len(table) != size:
            tx.heap.set_value(self.handle, size + 1)  # it stays unusable
            tx.raise_(RuntimeError, "Set changed size during iteration")
        if table is not self._table_then and table.keys() != self._table_then.keys():
            tx.fail(
                Reason.UNSUPPORTED_OPERATION, "a set whose elements are exchanged while it is iterated over"
            )
        return super().next_(tx)

    def reconstruct(self, codegen: Codegen) -> None:
        handle = self._elements
        changed = len(_table(handle)) != self._size_then
        if changed or (handle.real is not None and handle.dirty):
            # What the program wrote is done last; the order of the elements depends on it.
            raise Unsupported(Reason.UNSUPPORTED_VALUE, "an iterator over a set that was changed")
        gone = self._size_then if self.handle.value == DONE else self.handle.value
        codegen.call(_iterator_at, [self._set, ConstantVariable(gone)])


def _table(elements: Handle) -> Table:
    assert elements.table is not None
    return elements.table


def _iterator_at(elements: Any, gone: int) -> Any:
    return iterator_state.skip(iter(elements), gone)
