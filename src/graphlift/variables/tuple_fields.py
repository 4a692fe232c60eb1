"""The fields of named tuples as descriptors: found on a class, or made. Mirrors tuplegetter of
Modules/_collectionsmodule.c."""

from __future__ import annotations

from _collections import _tuplegetter  # type: ignore[import-not-found]
from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.protocol import Codegen, Tx
from graphlift.reasons import Reason
from graphlift.sources import Source
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import pinned, wraps
from graphlift.variables.classes import constructs
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.sequences import storage
from graphlift.variables.slots import attributes, items
from graphlift.variables.slots.type_lookup import TypeAttr, mro_of


class TupleFieldVariable(VariableTracker):
    """A field of a named tuple.

    Attributes:
        value: a descriptor like it.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.source = source
        self.value: Final = value

    def python_type(self, tx: Tx) -> type:
        return _tuplegetter  # type: ignore[no-any-return]

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name == "__doc__" and self.source is None:
            return tx.make.constant(self.value.__doc__)  # type: ignore[return-value]
        return attributes.object_getattr(tx, self, _tuplegetter, name)

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(_tuplegetter, [ConstantVariable(part) for part in self.value.__reduce__()[1]])


wraps(_tuplegetter)(pinned(TupleFieldVariable))


@constructs(_tuplegetter, whole=True)
def _new_field(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    known = [arg.realize(tx) for arg in args]
    if kwargs or len(known) != 2 or not all(part.is_constant() for part in known):
        tx.fail(Reason.UNSUPPORTED_VALUE, "a field of a named tuple that is not known")
    try:
        return TupleFieldVariable(_tuplegetter(*(part.as_constant() for part in known)))
    except TypeError as error:
        tx.raise_real(error)


@attributes.binds(_tuplegetter)
def _bind(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    """The item, or the descriptor itself where it is read from a class."""
    field: Any = attr.value(tx) if attr.raw is None else None
    if obj is None:
        return attr.value(tx)
    index = (attr.raw if field is None else field.realize(tx).value).__reduce__()[1][0]
    if tuple not in mro_of(obj.python_type(tx)):
        kind = obj.python_type(tx).__name__
        text = f"descriptor for index '{index}' for tuple subclasses doesn't apply to '{kind}' object"
        tx.raise_(TypeError, text)
    part = storage(obj)
    length = items.length(tx, part).as_constant()
    if index >= length:
        tx.raise_(IndexError, "tuple index out of range")
    return items.getitem(tx, part, tx.make.constant(index))
