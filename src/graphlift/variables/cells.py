"""Closure cells: a handle's `value` is what the cell holds, None when it is empty.

`handle.complete` tells whether the contents of a cell that existed before the capture were read yet.
Mirrors Objects/cellobject.c.
"""

from __future__ import annotations

from types import CellType
from typing import Final

from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.sources import CellContentsSource, Source
from graphlift.variables import namespace
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import wraps


def load(tx: Tx, cell: Handle, name: str) -> Var | None:
    """What the cell holds, or None when it is empty; `name` is the variable's name."""
    if not cell.complete:
        try:
            contents = cell.real.cell_contents
        except ValueError:
            if cell.source is not None:
                tx.guard("cell_empty", cell.source)
        else:
            if cell.source is None:
                cell.value = tx.make.from_value(contents, None)
            else:
                source = cell.source.child(CellContentsSource, name)
                tx.guard("there", source)
                cell.value = tx.make.lazy(contents, source)
        cell.complete = True
    value: Var | None = cell.value
    return value


def store(tx: Tx, cell: Handle, value: Var | None) -> None:
    """Put `value` into the cell; None empties it."""
    if not cell.complete:
        tx.heap.set_slot(cell, "complete", True)
    tx.heap.set_value(cell, value)


class CellVariable(VariableTracker):
    """A cell as a value: in a frame's slots, and on the stack while a closure is made.

    Attributes:
        handle: the cell's contents in the heap.
    """

    __slots__ = ("handle",)

    def __init__(self, handle: Handle) -> None:
        self.source = handle.source
        self.handle: Final = handle

    def python_type(self, tx: Tx) -> type:
        return CellType

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name != "cell_contents":
            return super().getattr_(tx, name)
        contents = load(tx, self.handle, name)
        if contents is None:
            tx.raise_(ValueError, "Cell is empty")
        return contents.realize(tx)  # type: ignore[no-any-return]

    def setattr_(self, tx: Tx, name: str, value: VariableTracker) -> None:
        if name != "cell_contents":
            super().setattr_(tx, name, value)
        store(tx, self.handle, value)

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(CellType, ())
        contents = self.handle.value
        if contents is not None:
            codegen.later(lambda: codegen.set_attr(self, "cell_contents", contents))


def of(handle: Handle) -> CellVariable:
    """The tracker of a cell; one for each cell, so that what shares it goes on sharing it."""
    if handle.tracker is None:
        handle.tracker = CellVariable(handle)
    tracker: CellVariable = handle.tracker
    return tracker


@wraps(CellType)
def wrap_cell(tx: Tx, value: CellType, source: Source | None) -> Var:
    """A cell met as a value: one that was passed behind a cut, or an item of a function's closure."""
    if source is not None:
        tx.guard("type", source, CellType)
    return of(namespace.handle_at(tx, value, source))
