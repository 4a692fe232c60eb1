"""Lists. Mirrors Objects/listobject.c.

A list's contents are its handle's `items`; existing lists are read when first asked, each item lazily.
Objects of classes derived from list hold a `ListVariable` as their storage.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, NoReturn

from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.sources import Source
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker
from graphlift.variables.builder import makes, wraps
from graphlift.variables.builtin_object import cannot_cycle, constant, make_list, method
from graphlift.variables.iterators import LIST_ITERATOR, ReversedVariable, SequenceIteratorVariable
from graphlift.variables.ranges import SliceVariable
from graphlift.variables.sequences import SequenceVariable, TupleVariable, storage
from graphlift.variables.slots import iteration, length_hint, sorting, text
from graphlift.variables.slots.numbers import repeat_count, size_argument

_LIST_REVERSED: Final[type] = type(reversed([]))


def _refusal(part: slice) -> str:
    """What this Python says of what cannot be assigned to a slice."""
    try:
        [0, 0].__setitem__(part, 0)  # type: ignore[call-overload]
    except TypeError as error:
        return str(error)
    raise AssertionError("a number was assigned to a slice")


_NO_SLICE: Final = _refusal(slice(None))
_NO_EXTENDED_SLICE: Final = _refusal(slice(None, None, 2))


class ListVariable(SequenceVariable):
    """A list, or the list beneath an object of a class derived from list.

    Attributes:
        handle: the list's contents in the heap.
        owner: the object of a derived class that this is the list beneath of, or None.
    """

    __slots__ = ("handle", "owner")
    models = list

    def __init__(
        self, handle: Handle, source: Source | None = None, owner: VariableTracker | None = None
    ) -> None:
        self.source = source
        self.handle: Final = handle
        self.owner: Final = owner

    def whole(self) -> Var:
        return self if self.owner is None else self.owner

    def python_type(self, tx: Tx) -> type:
        return list

    def items_now(self, tx: Tx) -> list[Any]:
        items = self.handle.items
        return self._load(tx) if items is None else items

    def _load(self, tx: Tx) -> list[Any]:
        handle = self.handle
        real, source = handle.real, handle.source
        length = list.__len__(real)
        if source is None:
            items = [tx.make.from_value(list.__getitem__(real, i), None) for i in range(length)]
        else:
            tx.guard("length", source, length)
            items = [tx.make.lazy(list.__getitem__(real, i), source.item(i)) for i in range(length)]
        handle.items = items
        return items

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return self.handle.items or ()

    def _host(self, values: list[Any]) -> Any:
        return values

    def _new(self, tx: Tx, items: Sequence[Var]) -> VariableTracker:
        return make_list(tx, items)

    def hash_key(self, tx: Tx) -> Hashable:
        return self.type_error(tx, "unhashable type: '{}'")

    def iter_(self, tx: Tx) -> VariableTracker:
        return SequenceIteratorVariable(self, LIST_ITERATOR)

    @method("__reversed__")
    def _reversed(self, tx: Tx) -> VariableTracker:
        return ReversedVariable(self, _LIST_REVERSED, len(self.items_now(tx)) - 1)

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        beneath = storage(other)
        if not isinstance(beneath, ListVariable):
            return NOT_IMPLEMENTED
        if op in ("==", "!=") and len(self.items_now(tx)) != len(beneath.items_now(tx)):
            return constant(tx, op == "!=")
        return self.compare_items(tx, op, beneath)

    # --- changing ------------------------------------------------------------------------------

    def setitem(self, tx: Tx, key: VariableTracker, value: VariableTracker) -> None:
        if isinstance(key, SliceVariable):
            self._set_slice(tx, key, value)
            return
        index = self.index_of(tx, key)
        if index is None:
            tx.raise_(IndexError, "list assignment index out of range")
        tx.heap.splice(self.handle, index, index + 1, [value])

    def _set_slice(self, tx: Tx, key: SliceVariable, value: VariableTracker) -> None:
        length = len(self.items_now(tx))
        start, stop, step = key.resolve(tx, length)
        new = length_hint.fast(tx, value, _NO_SLICE if step == 1 else _NO_EXTENDED_SLICE)
        if len(self.items_now(tx)) != length:  # whose bounds count then differs between Python versions
            self.refuse(tx, "assignment to a slice, which changes the list by taking the values")
        if step == 1:
            tx.heap.splice(self.handle, start, max(start, stop), new)
            return
        places = range(start, stop, step)
        if len(new) != len(places):
            text = f"attempt to assign sequence of size {len(new)} to extended slice of size {len(places)}"
            tx.raise_(ValueError, text)
        items = list(self.items_now(tx))
        for index, item in zip(places, new, strict=True):
            items[index] = item
        tx.heap.set_items(self.handle, items)

    def delitem(self, tx: Tx, key: VariableTracker) -> None:
        if isinstance(key, SliceVariable):
            gone = set(range(*key.resolve(tx, len(self.items_now(tx)))))
            left = [item for index, item in enumerate(self.items_now(tx)) if index not in gone]
            tx.heap.set_items(self.handle, left)
            return
        index = self.index_of(tx, key)
        if index is None:
            tx.raise_(IndexError, "list assignment index out of range")
        tx.heap.splice(self.handle, index, index + 1, [])

    def concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        beneath = storage(other)
        if not isinstance(beneath, ListVariable):
            other.type_error(tx, 'can only concatenate list (not "{}") to list')
        return make_list(tx, [*self.items_now(tx), *beneath.items_now(tx)])

    def inplace_concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        self.extend(tx, other)
        return self

    def inplace_repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        items = self._repeated(tx, repeat_count(tx, count))
        tx.heap.set_items(self.handle, items)
        return self

    @method("__init__")
    def _init(self, tx: Tx, items: VariableTracker | None = None) -> None:
        if self.items_now(tx):
            self.clear(tx)
        if items is not None:
            self.extend(tx, items)

    @method()
    def append(self, tx: Tx, item: VariableTracker) -> None:
        """``list.append``."""
        end = len(self.items_now(tx))
        tx.heap.splice(self.handle, end, end, [item])

    @method()
    def extend(self, tx: Tx, other: VariableTracker) -> None:
        """``list.extend``: items of an iterator that fails half-way stay."""
        known = other.realize(tx).unpack(tx)
        end = len(self.items_now(tx))
        if known is not None:
            tx.heap.splice(self.handle, end, end, known)
            return
        iterator = iteration.iter_(tx, other)
        length_hint.ask(tx, other)
        for _ in range(iteration.LIMIT):
            item = iterator.next_(tx)
            if item is None:
                return
            self.append(tx, item)
        iteration.too_long(tx, iterator)

    @method()
    def insert(self, tx: Tx, index: VariableTracker, item: VariableTracker) -> None:
        """``list.insert``."""
        length = len(self.items_now(tx))
        at = size_argument(tx, index)
        at = max(at + length, 0) if at < 0 else min(at, length)
        tx.heap.splice(self.handle, at, at, [item])

    @method()
    def pop(self, tx: Tx, index: VariableTracker | None = None) -> VariableTracker:
        """``list.pop``."""
        at = -1 if index is None else size_argument(tx, index)
        items = self.items_now(tx)
        if not items:
            tx.raise_(IndexError, "pop from empty list")
        if at < 0:
            at += len(items)
        if not 0 <= at < len(items):
            tx.raise_(IndexError, "pop index out of range")
        item: VariableTracker = items[at]
        tx.heap.splice(self.handle, at, at + 1, [])
        return item

    @method()
    def remove(self, tx: Tx, item: VariableTracker) -> None:
        """``list.remove``."""
        index = self._find(tx, item, 0, None)
        if index is None:
            tx.raise_(ValueError, "list.remove(x): x not in list")
        tx.heap.splice(self.handle, index, index + 1, [])

    @method()
    def clear(self, tx: Tx) -> None:
        """``list.clear``."""
        self.items_now(tx)
        tx.heap.set_items(self.handle, [])

    @method()
    def reverse(self, tx: Tx) -> None:
        """``list.reverse``."""
        tx.heap.set_items(self.handle, self.items_now(tx)[::-1])

    @method("copy", "__copy__")
    def _copy(self, tx: Tx) -> VariableTracker:
        return make_list(tx, self.items_now(tx))

    @method()
    def sort(
        self, tx: Tx, *, key: VariableTracker | None = None, reverse: VariableTracker | None = None
    ) -> None:
        """``list.sort``: while it runs the list is empty, and whoever fills it meanwhile gets an error."""
        items = list(self.items_now(tx))
        self.clear(tx)
        try:
            done = sorting.sort(tx, items, key, reverse, in_place=True)
        except BaseException:
            tx.heap.set_items(self.handle, items)
            raise
        changed = bool(self.items_now(tx))
        tx.heap.set_items(self.handle, done)
        if changed:
            tx.raise_(ValueError, "list modified during sort")

    def _not_found(self, tx: Tx, item: VariableTracker) -> NoReturn:
        tx.raise_(ValueError, f"{text.reprs(tx, [item])[0]} is not in list")

    def reconstruct(self, codegen: Codegen) -> None:
        items = self.handle.items or []
        if all(cannot_cycle(item) for item in items):
            for item in items:
                codegen(item)
            codegen.build("list", len(items))
            return
        codegen.build("list", 0)
        codegen.later(lambda: codegen.run(list.extend, [self, TupleVariable(items)]))


@wraps(list)
def wrap_list(tx: Tx, value: list[Any], source: Source | None) -> Var:
    """Its type is guarded now, its length when it is first looked into, items when they are used."""
    if source is not None:
        tx.guard("type", source, list)
    handle = tx.heap.handle_of(value, source)
    handle.tracker = var = ListVariable(handle, source)
    return var


@makes("list")
def new_list(tx: Tx, items: Sequence[Var], cls: type = list) -> Var:
    """See `protocol.Make.list`."""
    assert cls is list
    handle = Handle()
    handle.items = list(items)
    handle.tracker = var = ListVariable(handle)
    return var
