"""`collections.deque`. Mirrors Modules/_collectionsmodule.c.

Items are the handle's `items`, its `value` is the greatest length or None. Only deques that the captured code
makes can be looked into: no guard can read what an existing one holds without iterating over it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

from graphlift.errors import Unsupported
from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import Source
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.builtin_object import BuiltinObjectVariable, cannot_cycle, constant, method
from graphlift.variables.classes import constructs
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.iterators import ReversedVariable, SequenceIteratorVariable
from graphlift.variables.sequences import SequenceVariable, TupleVariable
from graphlift.variables.slots import iteration
from graphlift.variables.slots.numbers import index_, repeat_count

_ITERATOR: Final[type] = type(iter(deque()))
_REVERSED: Final[type] = type(reversed(deque()))


class DequeIteratorVariable(SequenceIteratorVariable):
    """An iterator over a deque: an error when the deque has changed its length or order since."""

    __slots__ = ("_state",)

    def __init__(self, sequence: DequeVariable, state: object) -> None:
        super().__init__(sequence, _ITERATOR)
        self._state: Final = state

    def next_(self, tx: Tx) -> VariableTracker | None:
        assert isinstance(self.sequence, DequeVariable)
        if self.handle.value != -1 and self.sequence.handle.absent is not self._state:
            tx.raise_(RuntimeError, "deque mutated during iteration")
        return super().next_(tx)

    def reconstruct(self, codegen: Codegen) -> None:
        raise Unsupported(
            Reason.UNSUPPORTED_VALUE, "an iterator over a deque would have to be built at run time"
        )


class ReversedDequeVariable(ReversedVariable):
    """``reversed()`` of a deque, which cannot be put in a place."""

    __slots__ = ()

    def reconstruct(self, codegen: Codegen) -> None:
        raise Unsupported(
            Reason.UNSUPPORTED_VALUE, "an iterator over a deque would have to be built at run time"
        )


class DequeVariable(SequenceVariable):
    """A deque made by the program.

    Attributes:
        handle: its contents in the heap. `absent` is a token that is exchanged with every change of
            structure (nothing else uses it: there is no existing deque to write back to).
    """

    __slots__ = ("handle",)
    models = deque

    def __init__(self, handle: Handle) -> None:
        self.source = None
        self.handle: Final = handle

    def python_type(self, tx: Tx) -> type:
        return deque

    def items_now(self, tx: Tx) -> list[Any]:
        items = self.handle.items
        assert items is not None
        return items

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return self.handle.items or ()

    def _host(self, values: list[Any]) -> Any:
        return deque(values, self.handle.value)

    def _new(self, tx: Tx, items: Sequence[Var]) -> VariableTracker:
        return new_deque(items, self.handle.value)

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        if key.python_type(tx) is slice:
            tx.raise_(TypeError, "sequence index must be integer, not 'slice'")
        index = self._index(tx, key)
        found: VariableTracker = self.items_now(tx)[index]
        return found

    def _index(self, tx: Tx, key: VariableTracker) -> int:
        index = self.index_of(tx, key)
        if index is None:
            tx.raise_(IndexError, "deque index out of range")
        return index

    def iter_(self, tx: Tx) -> VariableTracker:
        return DequeIteratorVariable(self, self.handle.absent)

    @method("__reversed__")
    def _reversed(self, tx: Tx) -> VariableTracker:
        return ReversedDequeVariable(self, _REVERSED, len(self.items_now(tx)) - 1)

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        return self.compare_items(tx, op, other) if isinstance(other, DequeVariable) else NOT_IMPLEMENTED

    def _written(self, texts: list[str]) -> str:
        limit = "" if self.handle.value is None else f", maxlen={self.handle.value}"
        return f"deque([{', '.join(texts)}]{limit})"

    def _not_found(self, tx: Tx, item: VariableTracker) -> NoReturn:
        self.refuse(tx, "index() of what is not there")

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if name != "maxlen":
            self.refuse(tx, f"attribute {name!r}")
        return constant(tx, self.handle.value)

    # --- changing --------------------------------------------------------------------------------

    def _set(self, tx: Tx, items: list[Any]) -> None:
        tx.heap.set_items(self.handle, items)
        tx.heap.set_slot(self.handle, "absent", set())

    def setitem(self, tx: Tx, key: VariableTracker, value: VariableTracker) -> None:
        index = self._index(tx, key)
        tx.heap.splice(self.handle, index, index + 1, [value])

    def delitem(self, tx: Tx, key: VariableTracker) -> None:
        index = self._index(tx, key)
        items = list(self.items_now(tx))
        del items[index]
        self._set(tx, items)

    def concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if not isinstance(other, DequeVariable):
            name = other.python_type(tx).__name__
            tx.raise_(TypeError, f'can only concatenate deque (not "{name}") to deque')
        return new_deque([*self.items_now(tx), *other.items_now(tx)], self.handle.value)

    def inplace_concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        self.extend(tx, other)
        return self

    def inplace_repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        self._set(tx, _cut(self._repeated(tx, repeat_count(tx, count)), self.handle.value))
        return self

    @method()
    def append(self, tx: Tx, item: VariableTracker) -> None:
        """``deque.append``."""
        self._set(tx, _cut([*self.items_now(tx), item], self.handle.value))

    @method()
    def appendleft(self, tx: Tx, item: VariableTracker) -> None:
        """``deque.appendleft``."""
        items = [item, *self.items_now(tx)]
        limit = self.handle.value
        self._set(tx, items if limit is None else items[:limit])

    @method()
    def extend(self, tx: Tx, other: VariableTracker) -> None:
        """``deque.extend``."""
        for item in iteration.each(tx, other):
            self.append(tx, item)

    @method()
    def extendleft(self, tx: Tx, other: VariableTracker) -> None:
        """``deque.extendleft``."""
        for item in iteration.each(tx, other):
            self.appendleft(tx, item)

    @method()
    def pop(self, tx: Tx) -> VariableTracker:
        """``deque.pop``."""
        return self._take(tx, -1)

    @method()
    def popleft(self, tx: Tx) -> VariableTracker:
        """``deque.popleft``."""
        return self._take(tx, 0)

    def _take(self, tx: Tx, index: int) -> VariableTracker:
        items = list(self.items_now(tx))
        if not items:
            tx.raise_(IndexError, "pop from an empty deque")
        item: VariableTracker = items.pop(index)
        self._set(tx, items)
        return item

    @method()
    def clear(self, tx: Tx) -> None:
        """``deque.clear``."""
        self._set(tx, [])

    @method("copy", "__copy__")
    def _copy(self, tx: Tx) -> VariableTracker:
        return new_deque(self.items_now(tx), self.handle.value)

    @method()
    def rotate(self, tx: Tx, steps: VariableTracker | None = None) -> None:
        """``deque.rotate``."""
        items = self.items_now(tx)
        if items:
            by = (1 if steps is None else index_(tx, steps)) % len(items)
            self._set(tx, [*items[len(items) - by :], *items[: len(items) - by]])

    @method()
    def reverse(self, tx: Tx) -> None:
        """``deque.reverse``."""
        self._set(tx, self.items_now(tx)[::-1])

    @method()
    def remove(self, tx: Tx, item: VariableTracker) -> None:
        """``deque.remove``."""
        index = self._find(tx, item, 0, None)
        if index is None:
            self.refuse(tx, "remove() of what is not there")
        self.delitem(tx, constant(tx, index))

    @method()
    def insert(self, tx: Tx, index: VariableTracker, item: VariableTracker) -> None:
        """``deque.insert``."""
        items = list(self.items_now(tx))
        limit = self.handle.value
        if limit is not None and len(items) >= limit:
            tx.raise_(IndexError, "deque already at its maximum size")
        items.insert(index_(tx, index), item)
        self._set(tx, items)

    def reconstruct(self, codegen: Codegen) -> None:
        items = self.handle.items or []
        limit = ConstantVariable(self.handle.value)
        if all(cannot_cycle(item) for item in items):
            codegen.call(deque, [TupleVariable(items), limit])
            return
        codegen.call(deque, [TupleVariable(()), limit])
        codegen.later(lambda: codegen.run(deque.extend, [self, TupleVariable(items)]))


def _cut(items: list[Any], limit: int | None) -> list[Any]:
    """What is left of items that were appended to a deque of a limited length."""
    return items if limit is None or len(items) <= limit else items[len(items) - limit :]


def new_deque(items: Iterable[Any], limit: int | None) -> DequeVariable:
    """A deque made by the program."""
    handle = Handle()
    handle.items = _cut(list(items), limit)
    handle.value = limit
    handle.absent = set()
    handle.tracker = var = DequeVariable(handle)
    return var


class ExistingDequeVariable(BuiltinObjectVariable):
    """A deque that existed before: it can be added to, for real afterwards, but not looked into.

    The handle's value is what is to be done: (method of the real class, arguments), oldest first.
    """

    __slots__ = ("handle",)
    models = deque

    def __init__(self, handle: Handle, source: Source | None) -> None:
        self.source = source
        self.handle: Final = handle

    def python_type(self, tx: Tx) -> type:
        return deque

    def _do(self, tx: Tx, function: Any, *args: VariableTracker) -> None:
        tx.heap.set_value(self.handle, (*(self.handle.value or ()), (function, args)))

    @method()
    def append(self, tx: Tx, item: VariableTracker) -> None:
        """``deque.append``."""
        self._do(tx, deque.append, item)

    @method()
    def appendleft(self, tx: Tx, item: VariableTracker) -> None:
        """``deque.appendleft``."""
        self._do(tx, deque.appendleft, item)

    @method()
    def extend(self, tx: Tx, other: VariableTracker) -> None:
        """``deque.extend``."""
        for item in iteration.each(tx, other):
            self.append(tx, item)

    @method()
    def clear(self, tx: Tx) -> None:
        """``deque.clear``."""
        self._do(tx, deque.clear)

    def truth(self, tx: Tx) -> VariableTracker | bool:
        return self.refuse(tx, "truth")

    def length(self, tx: Tx) -> VariableTracker:
        return self.refuse(tx, "length")

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        return self.refuse(tx, "an item")

    def setitem(self, tx: Tx, key: VariableTracker, value: VariableTracker) -> None:
        self.refuse(tx, "setting an item")

    def delitem(self, tx: Tx, key: VariableTracker) -> None:
        self.refuse(tx, "deleting an item")

    def iter_(self, tx: Tx) -> VariableTracker:
        return self.refuse(tx, "iteration")

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        return self.refuse(tx, "membership")

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        return self.refuse(tx, "comparison")

    def concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        return self.refuse(tx, "+")

    def inplace_concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        self.extend(tx, other)
        return self

    def repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        return self.refuse(tx, "*")

    def inplace_repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        return self.refuse(tx, "*=")

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Do for real what the program did."""
        for function, args in handle.value or ():
            codegen.run(function, [self, *args])


@wraps(deque)
def wrap_deque(tx: Tx, value: deque[Any], source: Source | None) -> Var:
    """Only the type of an existing deque is guarded."""
    if source is None:
        tx.fail(Reason.UNSUPPORTED_VALUE, "a deque made outside the captured code")
    tx.guard("type", source, deque)
    handle = tx.heap.handle_of(value, source)
    handle.tracker = var = ExistingDequeVariable(handle, source)
    return var


@constructs(deque, whole=True)
def _deque(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    names = ("iterable", "maxlen")
    if cls is not deque or len(args) > 2 or set(kwargs) - set(names):
        tx.fail(Reason.UNSUPPORTED_VALUE, f"making an object of {cls.__qualname__}")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    limit = None
    if "maxlen" in given:
        value = given["maxlen"].realize(tx)
        limit = None if value.is_constant() and value.as_constant() is None else index_(tx, value)
        if limit is not None and limit < 0:
            tx.raise_(ValueError, "maxlen must be non-negative")
    return new_deque(iteration.unpack(tx, given["iterable"]) if "iterable" in given else [], limit)
