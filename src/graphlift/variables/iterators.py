"""Iterators over sequences and ranges, made inside or met from outside, and ``iter(callable, sentinel)``.

An iterator's position is the `value` of its handle; an existing iterator is never moved during the capture:
its position is read, guarded, and set when the graph has run. Mirrors Objects/iterobject.c and the iterators
of Objects/listobject.c, tupleobject.c and rangeobject.c.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from graphlift import _C
from graphlift.errors import ObservedException
from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import IteratorSource, Source
from graphlift.variables import iterator_state
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import maker, wraps
from graphlift.variables.builtin_object import BuiltinObjectVariable, KnownItemsVariable, constant, make_list
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.iterator_state import DONE, USED_UP
from graphlift.variables.slots import calls, items, operators

LIST_ITERATOR: Final[type] = type(iter([]))
TUPLE_ITERATOR: Final = type(iter(()))
RANGE_ITERATOR: Final = type(iter(range(0)))
GETITEM_ITERATOR: Final = type(iter(type("_", (), {"__getitem__": lambda self, index: index})()))


class IteratorVariable(BuiltinObjectVariable):
    """An iterator of a builtin type; ``iter()`` of it is itself.

    Attributes:
        handle: its state.
    """

    __slots__ = ("handle",)

    def __init__(self, handle: Handle | None = None, source: Source | None = None) -> None:
        self.source = source
        self.handle: Final = Handle() if handle is None else handle
        self.handle.tracker = self

    def python_type(self, tx: Tx) -> type:
        return self.models

    def iter_(self, tx: Tx) -> VariableTracker:
        return self

    def next_(self, tx: Tx) -> VariableTracker | None:
        raise NotImplementedError

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name in ("__length_hint__", "__reduce__", "__setstate__", "__reduce_ex__"):
            self.refuse(tx, f"attribute {name!r}")
        return super().getattr_(tx, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class SequenceIteratorVariable(IteratorVariable):
    """An iterator that asks its sequence for one item after the other, so that it sees it change.

    Attributes:
        sequence: what it iterates over; the handle's value is the index of the next item.
        kind: its class.
    """

    __slots__ = ("kind", "sequence")

    def __init__(
        self,
        sequence: VariableTracker,
        kind: type,
        handle: Handle | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(handle, source)
        self.sequence: Final = sequence
        self.kind: Final = kind
        if handle is None:
            self.handle.value = 0

    def children(self) -> tuple[Var, ...]:
        """What it holds."""
        return (self.sequence,)

    def python_type(self, tx: Tx) -> type:
        return self.kind

    @property
    def counted(self) -> VariableTracker | None:
        """What is asked for its length by those who ask how many items will come."""
        return None if self.handle.value == DONE else self.sequence

    def next_(self, tx: Tx) -> VariableTracker | None:
        index = self.handle.value
        if index == DONE:
            return None
        item = _item(tx, self.sequence, index)
        tx.heap.set_value(self.handle, DONE if item is None else index + 1)
        return item

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Move the existing iterator to where the program left it."""
        self._place(codegen, handle.value)

    def reconstruct(self, codegen: Codegen) -> None:
        position = self.handle.value
        sequence: Var = ConstantVariable(None) if position == DONE else self.sequence
        kind = ConstantVariable(self.kind.__name__)
        codegen.call(iterator_state.sequence_iterator, [kind, sequence, ConstantVariable(position == DONE)])
        if position not in (0, DONE):
            self._place(codegen, position)

    def _place(self, codegen: Codegen, position: int) -> None:
        """An iterator cannot be moved behind the end that its sequence has at present."""
        arguments = [self, ConstantVariable(position)]
        codegen.at_last(lambda: codegen.run(iterator_state.move_sequence_iterator, arguments))


def _item(tx: Tx, sequence: VariableTracker, index: int) -> VariableTracker | None:
    if isinstance(sequence, KnownItemsVariable):
        known = sequence.items_now(tx)
        return cast(VariableTracker, known[index]) if index < len(known) else None
    try:
        return items.getitem(tx, sequence, constant(tx, index))
    except ObservedException as error:
        if not issubclass(error.value.python_type(tx), (IndexError, StopIteration)):
            raise
        return None


class ReversedVariable(IteratorVariable):
    """``reversed()`` of a sequence; the handle's value is the index of the next item, going down.

    At -1 all items are gone, at `USED_UP` the end has been told, and the sequence was let go of.

    Attributes:
        sequence: what it iterates over.
        kind: its class (lists have one of their own).
    """

    __slots__ = ("kind", "sequence")
    models = reversed

    def __init__(self, sequence: VariableTracker, kind: type, start: int) -> None:
        super().__init__()
        self.sequence: Final = sequence
        self.kind: Final = kind
        self.handle.value = start

    def children(self) -> tuple[Var, ...]:
        """What it holds."""
        return (self.sequence,)

    def python_type(self, tx: Tx) -> type:
        return self.kind

    @property
    def counted(self) -> VariableTracker | None:
        """What is asked for its length by those who ask how many items will come."""
        return None if self.handle.value == USED_UP else self.sequence

    def next_(self, tx: Tx) -> VariableTracker | None:
        index = self.handle.value
        if index == USED_UP:
            return None
        tx.heap.set_value(self.handle, USED_UP)  # also where an item fails
        item = _item(tx, self.sequence, index) if index >= 0 else None
        if item is not None:
            tx.heap.set_value(self.handle, index - 1)
        return item

    def reconstruct(self, codegen: Codegen) -> None:
        position = self.handle.value
        of_list = self.kind is not reversed
        if position == USED_UP:
            codegen.call(iterator_state.used_up_reversed, [ConstantVariable(of_list)])
        elif not of_list:  # `reversed` would ask the sequence for its length
            codegen.call(_C.reversed_at, [self.sequence, ConstantVariable(position)])
        else:
            codegen.call(list.__reversed__, [self.sequence])
            arguments = [self, ConstantVariable(position)]
            codegen.at_last(lambda: codegen.run(iterator_state.move_reversed_iterator, arguments))


class RangeIteratorVariable(IteratorVariable):
    """An iterator over a range; the handle's value is how many items are gone.

    Attributes:
        value: what was left of the range when the iterator was made or met.
    """

    __slots__ = ("value",)
    models = RANGE_ITERATOR
    leaf = True

    def __init__(self, value: range, handle: Handle | None = None, source: Source | None = None) -> None:
        super().__init__(handle, source)
        self.value: Final = value
        self.handle.value = 0

    def next_(self, tx: Tx) -> VariableTracker | None:
        gone = self.handle.value
        try:
            item = self.value[gone]  # its length need not fit a C integer
        except IndexError:
            return None
        tx.heap.set_value(self.handle, gone + 1)
        return constant(tx, item)

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Move the existing iterator to where the program left it."""
        codegen.run(iterator_state.skip, [self, ConstantVariable(handle.value)])

    def python_type(self, tx: Tx) -> type:
        return type(iter(self.value))  # there is another one for numbers that are no C integers

    def reconstruct(self, codegen: Codegen) -> None:
        numbers = self.value.start, self.value.stop, self.value.step, self.handle.value
        codegen.call(_range_iterator, [ConstantVariable(number) for number in numbers])


def _range_iterator(start: int, stop: int, step: int, gone: int) -> Iterator[int]:
    made: Any = iter(range(start, stop, step))
    if gone:
        made.__setstate__(gone)
    return made  # type: ignore[no-any-return]


class ItemsIteratorVariable(IteratorVariable):
    """An iterator over items that cannot change any more; the handle's value is how many are gone.

    Attributes:
        items: the items.
        text: what the items are the parts of, or None: it is an iterator over a list.
    """

    __slots__ = ("items", "text")

    def __init__(self, known: Sequence[Var], text: str | bytes | None = None) -> None:
        super().__init__()
        self.items: Final = list(known)
        self.text: Final = text
        self.handle.value = 0

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return self.items

    def python_type(self, tx: Tx) -> type:
        return LIST_ITERATOR if self.text is None else type(iter(self.text))

    def next_(self, tx: Tx) -> VariableTracker | None:
        gone = self.handle.value
        if gone == DONE or gone >= len(self.items):
            if gone != DONE:
                tx.heap.set_value(self.handle, DONE)
            return None
        tx.heap.set_value(self.handle, gone + 1)
        return cast(VariableTracker, self.items[gone])

    def reconstruct(self, codegen: Codegen) -> None:
        gone = self.handle.value
        if self.text is not None:
            codegen.call(iterator_state.text_iterator, [ConstantVariable(self.text), ConstantVariable(gone)])
        else:
            codegen.call(_items_iterator, [] if gone == DONE else self.items[gone:])


def _items_iterator(*known: Any) -> Iterator[Any]:
    return iter([*known])


class CallableIteratorVariable(IteratorVariable):
    """``iter(function, sentinel)``; the handle's value is whether the sentinel came.

    Attributes:
        function, sentinel: what it was made from.
    """

    __slots__ = ("function", "sentinel")
    models = type(iter(int, 1))

    def __init__(self, function: VariableTracker, sentinel: VariableTracker) -> None:
        super().__init__()
        self.function: Final = function
        self.sentinel: Final = sentinel
        self.handle.value = False

    def children(self) -> tuple[Var, ...]:
        """What it holds."""
        return (self.function, self.sentinel)

    def next_(self, tx: Tx) -> VariableTracker | None:
        if self.handle.value:
            return None
        try:
            item: VariableTracker = calls.call(tx, self.function, [], {})
        except ObservedException as error:
            if not issubclass(error.value.python_type(tx), StopIteration):
                raise
            tx.heap.set_value(self.handle, True)
            return None
        if operators.equal(tx, self.sentinel, item):
            tx.heap.set_value(self.handle, True)
            return None
        return item

    def reconstruct(self, codegen: Codegen) -> None:
        if self.handle.value:
            codegen.call(_finished_callable_iterator, [])
        else:
            codegen.call(iter, [self.function, self.sentinel])


def _finished_callable_iterator() -> Iterator[Any]:
    done: Iterator[Any] = iter(int, 0)
    next(done, None)
    return done


class OpaqueIteratorVariable(IteratorVariable):
    """An existing iterator whose next item is asked of itself: each step breaks the graph.

    Attributes:
        kind: its class.
    """

    __slots__ = ("kind",)
    leaf = True

    def __init__(self, kind: type, handle: Handle, source: Source | None) -> None:
        super().__init__(handle, source)
        self.kind: Final = kind

    def python_type(self, tx: Tx) -> type:
        return self.kind

    def next_(self, tx: Tx) -> VariableTracker | None:
        tx.fail(Reason.ITERATOR, f"the next item of a {self.kind.__name__}")

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name not in ("__iter__", "__next__"):
            self.refuse(tx, f"method {name!r}")
        return super().call_method(tx, name, args, kwargs)


# --- iterators from outside -------------------------------------------------------------------------

_OPAQUE: Final[tuple[type, ...]] = (
    enumerate,
    zip,
    map,
    filter,
    reversed,
    type(reversed([])),
    type(iter(set())),
    type(iter("")),
    type(iter("\xe9")),
    type(iter(b"")),
    type(reversed({})),
    type(reversed({}.values())),
    type(reversed({}.items())),
    type(iter(int, 1)),
    GETITEM_ITERATOR,
    *(kind for kind in vars(itertools).values() if isinstance(kind, type)),
)


@wraps(*_OPAQUE)
def wrap_opaque_iterator(tx: Tx, value: Any, source: Source | None) -> Var:
    """An iterator that takes from others or whose place cannot be read."""
    if source is None:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"a {type(value).__name__} made outside the captured code")
    tx.guard("type", source, type(value))
    return OpaqueIteratorVariable(type(value), tx.heap.handle_of(value, source), source)


@wraps(LIST_ITERATOR, TUPLE_ITERATOR)
def wrap_sequence_iterator(tx: Tx, value: Any, source: Source | None) -> Var:
    """Position and sequence are read without moving the iterator, and guarded."""
    state = _C.iterator_state(value)
    if source is not None and state is not None and tx.capture.moves(source, state[1]):
        return wrap_opaque_iterator(tx, value, source)
    handle = tx.heap.handle_of(value, source)
    if source is not None:
        tx.guard("type", source, type(value))
        tx.guard("iterator", source, None if state is None else state[1])
    if state is None:
        handle.value = DONE
        empty = make_list(tx, [])
        return SequenceIteratorVariable(empty, type(value), handle, source)
    handle.value = state[1]
    if source is None:
        found: Any = tx.make.from_value(state[0], None)
    else:
        found = tx.make.from_value(state[0], source.child(IteratorSource, type(value).__name__))
    sequence = getattr(found, "storage", None) or found  # past what a derived class may override
    return SequenceIteratorVariable(sequence, type(value), handle, source)


@wraps(RANGE_ITERATOR)
def wrap_range_iterator(tx: Tx, value: Any, source: Source | None) -> Var:
    """What is left of the range is read without moving the iterator, and guarded."""
    start, step, length = _C.iterator_state(value)  # type: ignore[misc]
    if source is not None and tx.capture.moves(source, length):
        return wrap_opaque_iterator(tx, value, source)
    if source is not None:
        tx.guard("type", source, RANGE_ITERATOR)
        tx.guard("iterator", source, (start, step, length))
    left = range(start, start + length * step, step)
    return RangeIteratorVariable(left, tx.heap.handle_of(value, source), source)


# --- makers -------------------------------------------------------------------------------------------


@maker
def iterator(tx: Tx, known: Sequence[Var], text: str | bytes | None = None) -> Var:
    """See `protocol.Make.iterator`."""
    return ItemsIteratorVariable(known, text)


@maker
def sequence_iterator(tx: Tx, sequence: VariableTracker) -> Var:
    """See `protocol.Make.sequence_iterator`."""
    return SequenceIteratorVariable(sequence, GETITEM_ITERATOR)
