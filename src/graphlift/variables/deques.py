"""`collections.deque`. Mirrors Modules/_collectionsmodule.c.

What is done to a deque is a row of steps, each a method of the real class and its arguments (`_do`
says what it does to the items). A deque made by the program takes its steps at once. Of one that existed
only the type is guarded until it is looked into, so that a buffer may be added to whatever it holds; its
steps are kept, and done for real when the graph has run.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

from graphlift.errors import Unsupported
from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import SlotSource, Source
from graphlift.variables import iterator_state
from graphlift.variables.base import NOT_IMPLEMENTED, UNKNOWN, NotImplementedType, VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.builtin_object import cannot_cycle, constant, method
from graphlift.variables.classes import constructs
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.folding import fold
from graphlift.variables.iterator_state import DONE, USED_UP
from graphlift.variables.iterators import ReversedVariable, SequenceIteratorVariable
from graphlift.variables.sequences import SequenceVariable, TupleVariable, storage
from graphlift.variables.slots import iteration, text
from graphlift.variables.slots.numbers import has_index, index_, repeat_count

_ITERATOR: Final[type] = type(iter(deque()))
_REVERSED: Final[type] = type(reversed(deque()))
_MAXLEN: Final[Any] = vars(deque)["maxlen"]

#: One change: name of the real method, its arguments (trackers of items, host numbers).
Step = tuple[str, tuple[Any, ...]]

#: Steps that an iterator does not notice.
_UNNOTICED: Final = frozenset({"__setitem__", "reverse"})


def _do(items: list[Any], limit: int | None, step: Step) -> None:
    """Do a step to the items."""
    name, args = step
    if name == "__setitem__":
        items[args[0]] = args[1]
    elif name == "__delitem__":
        del items[args[0]]
    elif name in ("pop", "popleft"):
        items.pop(-1 if name == "pop" else 0)
    elif name == "clear":
        items.clear()
    elif name == "reverse":
        items.reverse()
    elif name == "rotate":
        by = args[0] % len(items) if items else 0
        items[:] = [*items[len(items) - by :], *items[: len(items) - by]]
    elif name == "__imul__":
        items[:] = _cut(items * args[0], limit)
    elif name == "append":
        items.append(args[0])
        if limit is not None and len(items) > limit:
            del items[: len(items) - limit]
    elif name == "appendleft":
        items.insert(0, args[0])
        if limit is not None:
            del items[limit:]
    else:
        items.insert(args[0], args[1])


def _cut(items: list[Any], limit: int | None) -> list[Any]:
    """What is left of items that were appended to a deque of a limited length."""
    return items if limit is None or len(items) <= limit else items[len(items) - limit :]


class DequeIteratorVariable(SequenceIteratorVariable):
    """An iterator over a deque: an error when the deque has changed its length or order since."""

    __slots__ = ("_state",)

    def __init__(self, sequence: DequeVariable) -> None:
        super().__init__(sequence, _ITERATOR)
        self._state: Final = sequence.state()

    def next_(self, tx: Tx) -> VariableTracker | None:
        assert isinstance(self.sequence, DequeVariable)
        if self.sequence.state() != self._state:  # asked also behind the end
            tx.raise_(RuntimeError, "deque mutated during iteration")
        return super().next_(tx)

    def reconstruct(self, codegen: Codegen) -> None:
        position = self.handle.value
        _rebuild(codegen, self, self._state, None if position == DONE else position)


class ReversedDequeVariable(ReversedVariable):
    """``reversed()`` of a deque. Behind its end it does not ask whether the deque has changed."""

    __slots__ = ("_count", "_state")

    def __init__(self, sequence: DequeVariable, count: int) -> None:
        super().__init__(sequence, _REVERSED, count - 1)
        self._state: Final = sequence.state()
        self._count: Final = count

    def next_(self, tx: Tx) -> VariableTracker | None:
        assert isinstance(self.sequence, DequeVariable)
        if self.handle.value >= 0 and self.sequence.state() != self._state:
            tx.heap.set_value(self.handle, USED_UP)
            tx.raise_(RuntimeError, "deque mutated during iteration")
        return super().next_(tx)

    def reconstruct(self, codegen: Codegen) -> None:
        position = self.handle.value
        _rebuild(codegen, self, self._state, None if position < 0 else self._count - 1 - position)


def _rebuild(codegen: Codegen, iterator: Any, state: object, gone: int | None) -> None:
    """Emit an iterator over a deque that gave `gone` items, or all (None)."""
    owner, backwards = iterator.sequence, iterator.kind is _REVERSED
    changed = owner.state() != state and not (backwards and gone is None)
    if changed or owner.is_pending():
        raise Unsupported(Reason.UNSUPPORTED_VALUE, "an iterator over a deque that has changed")
    if owner.source is None:
        codegen.filled(owner)
    arguments = [ConstantVariable(backwards), ConstantVariable(sys.maxsize if gone is None else gone)]
    codegen.call(iterator_at, [owner, *arguments])


def iterator_at(owner: Any, backwards: bool, gone: int) -> Any:
    """Runs in the compiled program: an iterator over a deque that gave `gone` items."""
    made = deque.__reversed__(owner) if backwards else deque.__iter__(owner)
    return iterator_state.skip(made, gone)


class DequeVariable(SequenceVariable):
    """A deque made by the program.

    Attributes:
        handle: its contents in the heap: `items`, and as `value` the greatest length or None. `absent` is a
            token that is exchanged with every change that an iterator notices.
        owner: the object of a derived class that this is the deque beneath of, or None.
    """

    __slots__ = ("handle", "owner")
    models = deque

    def __init__(
        self, handle: Handle, source: Source | None = None, owner: VariableTracker | None = None
    ) -> None:
        self.source = source
        self.handle: Final = handle
        self.owner: Final = owner

    def whole(self) -> Var:
        return self if self.owner is None else self.owner

    def python_type(self, tx: Tx) -> type:
        return deque

    def items_now(self, tx: Tx) -> list[Any]:
        items = self.handle.items
        assert items is not None
        return items

    def limit(self, tx: Tx) -> int | None:
        """The greatest length."""
        limit: int | None = self.handle.value
        return limit

    def state(self) -> object:
        """What is another one after every change that an iterator notices."""
        return self.handle.absent

    def is_pending(self) -> bool:
        """Whether something is yet to be done to the real deque."""
        return False

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return self.handle.items or ()

    def _host(self, values: list[Any]) -> Any:
        limit = self.known_limit()
        return UNKNOWN if limit is UNKNOWN else deque(values, limit)

    def known_limit(self) -> Any:
        """The greatest length, `UNKNOWN` where nobody asked for it yet."""
        return self.handle.value

    def _new(self, tx: Tx, items: Sequence[Var]) -> VariableTracker:
        self._check_exact(tx)
        return new_deque(items, self.limit(tx))

    def _check_exact(self, tx: Tx) -> None:
        """Break where the real method calls the derived class that this is the deque beneath of."""
        if self.owner is not None:
            self.refuse(tx, "copying an object of a derived class")

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        index = self._index(tx, key)
        found: VariableTracker = self.items_now(tx)[index]
        return found

    def _index(self, tx: Tx, key: VariableTracker) -> int:
        if not has_index(tx, key):
            key.type_error(tx, "sequence index must be integer, not '{}'")
        index = self.index_of(tx, key)
        if index is None:
            tx.raise_(IndexError, "deque index out of range")
        return index

    def iter_(self, tx: Tx) -> VariableTracker:
        self.items_now(tx)
        return DequeIteratorVariable(self)

    @method("__reversed__")
    def _reversed(self, tx: Tx) -> VariableTracker:
        return ReversedDequeVariable(self, len(self.items_now(tx)))

    def _find(self, tx: Tx, item: VariableTracker, start: int, stop: int | None) -> int | None:
        before = self.state()
        found = super()._find(tx, item, start, stop)
        if self.state() != before:
            self.refuse(tx, "a search whose comparisons change it")
        return found

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        beneath = storage(other)
        return self.compare_items(tx, op, beneath) if isinstance(beneath, DequeVariable) else NOT_IMPLEMENTED

    @method("__repr__")
    def _repr(self, tx: Tx) -> VariableTracker:
        self.limit(tx)
        if self.owner is not None:  # the class's own name would be shown
            self.refuse(tx, "repr()")
        return self.write(tx, lambda: self._written(text.reprs(tx, self.items_now(tx))), "[...]")

    def _written(self, texts: list[str]) -> str:
        limit = self.known_limit()
        return f"deque([{', '.join(texts)}]{'' if limit is None else f', maxlen={limit}'})"

    def _not_found(self, tx: Tx, item: VariableTracker) -> NoReturn:
        tx.raise_(ValueError, f"{text.reprs(tx, [item])[0]} is not in deque")

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if name != "maxlen":
            self.refuse(tx, f"attribute {name!r}")
        return constant(tx, self.limit(tx))

    def write_member(self, tx: Tx, descriptor: Any, name: str, value: VariableTracker | None) -> None:
        tx.raise_(AttributeError, f"attribute '{name}' of 'collections.deque' objects is not writable")

    @method("__init__")
    def _init(self, tx: Tx, *args: VariableTracker, **kwargs: VariableTracker) -> None:
        limit = maxlen_of(tx, args, kwargs)
        if self.handle.real is not None:
            self.refuse(tx, "__init__() of what existed before")
        if self.items_now(tx):
            self.step(tx, "clear")
        tx.heap.set_value(self.handle, limit)
        if args or "iterable" in kwargs:
            self.extend(tx, args[0] if args else kwargs["iterable"])

    # --- changing --------------------------------------------------------------------------------

    def step(self, tx: Tx, name: str, *args: Any) -> None:
        """Do a step."""
        if not self._spliced(tx, name, args):
            items = list(self.items_now(tx))
            _do(items, self.handle.value, (name, args))
            tx.heap.set_items(self.handle, items)
        if name not in _UNNOTICED:
            tx.heap.set_slot(self.handle, "absent", {object()})

    def _spliced(self, tx: Tx, name: str, args: tuple[Any, ...]) -> bool:
        """Do one of the steps at the ends, without a copy of all items."""
        handle, limit, count = self.handle, self.handle.value, len(self.items_now(tx))
        if name == "append":
            tx.heap.splice(handle, count, count, [args[0]])
            if limit is not None and count >= limit:
                tx.heap.splice(handle, 0, 1, [])
        elif name == "appendleft":
            tx.heap.splice(handle, 0, 0, [args[0]])
            if limit is not None and count >= limit:
                tx.heap.splice(handle, limit, limit + 1, [])
        elif name == "pop":
            tx.heap.splice(handle, count - 1, count, [])
        elif name == "popleft":
            tx.heap.splice(handle, 0, 1, [])
        else:
            return False
        return True

    def setitem(self, tx: Tx, key: VariableTracker, value: VariableTracker) -> None:
        self.step(tx, "__setitem__", self._index(tx, key), value)

    def delitem(self, tx: Tx, key: VariableTracker) -> None:
        self.step(tx, "__delitem__", self._index(tx, key))

    def concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        other = storage(other)
        if not isinstance(other, DequeVariable):
            other.type_error(tx, 'can only concatenate deque (not "{}") to deque')
        self._check_exact(tx)
        return new_deque([*self.items_now(tx), *other.items_now(tx)], self.limit(tx))

    def inplace_concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        self.extend(tx, other)
        return self

    def inplace_repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        times = max(repeat_count(tx, count), 0)
        self._repeated(tx, times)  # not too often
        self.step(tx, "__imul__", times)
        return self

    @method()
    def append(self, tx: Tx, item: VariableTracker) -> None:
        """``deque.append``."""
        self.step(tx, "append", item)

    @method()
    def appendleft(self, tx: Tx, item: VariableTracker) -> None:
        """``deque.appendleft``."""
        self.step(tx, "appendleft", item)

    @method()
    def extend(self, tx: Tx, other: VariableTracker) -> None:
        """``deque.extend``."""
        for item in iteration.each(tx, other):
            self.step(tx, "append", item)

    @method()
    def extendleft(self, tx: Tx, other: VariableTracker) -> None:
        """``deque.extendleft``."""
        for item in iteration.each(tx, other):
            self.step(tx, "appendleft", item)

    @method()
    def pop(self, tx: Tx) -> VariableTracker:
        """``deque.pop``."""
        return self._take(tx, "pop", -1)

    @method()
    def popleft(self, tx: Tx) -> VariableTracker:
        """``deque.popleft``."""
        return self._take(tx, "popleft", 0)

    def _take(self, tx: Tx, name: str, index: int) -> VariableTracker:
        items = self.items_now(tx)
        if not items:
            tx.raise_(IndexError, "pop from an empty deque")
        item: VariableTracker = items[index]
        self.step(tx, name)
        return item

    @method()
    def clear(self, tx: Tx) -> None:
        """``deque.clear``."""
        self.step(tx, "clear")

    @method("copy", "__copy__")
    def _copy(self, tx: Tx) -> VariableTracker:
        self._check_exact(tx)
        return new_deque(self.items_now(tx), self.limit(tx))

    @method()
    def rotate(self, tx: Tx, steps: VariableTracker | None = None) -> None:
        """``deque.rotate``."""
        by = 1 if steps is None else index_(tx, steps)
        if len(self.items_now(tx)) > 1:
            self.step(tx, "rotate", by)

    @method()
    def reverse(self, tx: Tx) -> None:
        """``deque.reverse``."""
        self.step(tx, "reverse")

    @method()
    def remove(self, tx: Tx, item: VariableTracker) -> None:
        """``deque.remove``."""
        index = self._find(tx, item, 0, None)
        if index is None:
            self._no_such_item(tx, item)
        self.step(tx, "__delitem__", index)

    def _no_such_item(self, tx: Tx, item: VariableTracker) -> NoReturn:
        if _NAMES_ITEM:
            self._not_found(tx, item)
        tx.raise_(ValueError, "deque.remove(x): x not in deque")

    @method()
    def insert(self, tx: Tx, index: VariableTracker, item: VariableTracker) -> None:
        """``deque.insert``."""
        limit = self.limit(tx)
        at = index_(tx, index)
        if limit is not None and len(self.items_now(tx)) >= limit:
            tx.raise_(IndexError, "deque already at its maximum size")
        self.step(tx, "insert", at, item)

    def fill(self, codegen: Codegen, made: Var) -> None:
        """Emit the filling of `made`, an empty object of a derived class."""
        codegen.run(deque.__init__, [made, TupleVariable(()), ConstantVariable(self.handle.value)])
        codegen.run(deque.extend, [made, TupleVariable(self.handle.items or ())])

    def reconstruct(self, codegen: Codegen) -> None:
        items = self.handle.items or []
        limit = ConstantVariable(self.handle.value)
        if all(cannot_cycle(item) for item in items):
            codegen.call(deque, [TupleVariable(items), limit])
            return
        codegen.call(deque, [TupleVariable(()), limit])
        codegen.later(lambda: codegen.run(deque.extend, [self, TupleVariable(items)]))


def _names_item() -> bool:
    """Whether this Python's ``remove`` says what was not found."""
    try:
        deque([0]).remove(7)
    except ValueError as error:
        return "7" in str(error)
    return False


_NAMES_ITEM: Final = _names_item()


def new_deque(items: Iterable[Any], limit: int | None) -> DequeVariable:
    """A deque made by the program."""
    handle = Handle()
    handle.items = _cut(list(items), limit)
    handle.value = limit
    handle.absent = {object()}
    handle.tracker = var = DequeVariable(handle)
    return var


class ExistingDequeVariable(DequeVariable):
    """A deque that existed before; the handle's `items` are the steps that are to be done to it."""

    __slots__ = ("_first", "_known", "_limit")

    def __init__(self, handle: Handle, source: Source | None, owner: VariableTracker | None = None) -> None:
        super().__init__(handle, source, owner)
        self._limit: Any = UNKNOWN
        self._first: list[Any] | None = None
        #: The items behind so many steps, and the last of these.
        self._known: tuple[int, Step | None, list[Any]] = (0, None, [])
        if handle.items is None:
            handle.items = []

    def _steps(self) -> list[Step]:
        steps = self.handle.items
        assert steps is not None
        return steps

    def items_now(self, tx: Tx) -> list[Any]:
        if self._first is None:
            self._known = (0, None, list(self._load(tx)))
        steps, (done, last, items) = self._steps(), self._known
        if done and (len(steps) < done or steps[done - 1] is not last):  # some were taken back
            done, items = 0, list(self._first or ())
        if len(steps) > done:
            limit = self.limit(tx)
            for step in steps[done:]:
                _do(items, limit, step)
        self._known = (len(steps), steps[-1] if steps else None, items)
        return items

    def _load(self, tx: Tx) -> list[Any]:
        real, source = self.handle.real, self.source
        assert source is not None
        items = list(deque.__iter__(real))
        tx.guard("length", source, len(items))
        self.handle.complete = True
        self._first = [tx.make.lazy(item, source.item(index)) for index, item in enumerate(items)]
        return self._first

    def limit(self, tx: Tx) -> int | None:
        if self._limit is UNKNOWN:
            assert self.source is not None
            found: VariableTracker = tx.make.from_value(
                self.handle.real.maxlen, self.source.child(SlotSource, _MAXLEN)
            ).realize(tx)
            self._limit = None if found.python_type(tx) is type(None) else index_(tx, found)
        limit: int | None = self._limit
        return limit

    def known_limit(self) -> Any:
        return self._limit

    def state(self) -> object:
        return sum(name not in _UNNOTICED for name, _ in self._steps())

    def is_pending(self) -> bool:
        return bool(self._steps())

    def children(self) -> Sequence[Var]:
        return [arg for _, args in self._steps() for arg in args if isinstance(arg, Var)]

    def step(self, tx: Tx, name: str, *args: Any) -> None:
        end = len(self._steps())
        tx.heap.splice(self.handle, end, end, [(name, args)])

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Do for real what the program did."""
        for name, args in self._steps():
            given = [arg if isinstance(arg, Var) else ConstantVariable(arg) for arg in args]
            codegen.run(getattr(deque, name), [self, *given])

    def reconstruct(self, codegen: Codegen) -> None:
        raise AssertionError("a deque that existed is loaded from its source")


@wraps(deque)
def wrap_deque(tx: Tx, value: deque[Any], source: Source | None) -> Var:
    """Only the type of an existing deque is guarded at first."""
    if source is None:
        tx.fail(Reason.UNSUPPORTED_VALUE, "a deque made outside the captured code")
    tx.guard("type", source, deque)
    handle = tx.heap.handle_of(value, source)
    handle.tracker = var = ExistingDequeVariable(handle, source)
    return var


@constructs(deque, whole=True)
def _deque(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if cls is not deque:
        return tx.make.derived(cls_var)
    made = new_deque([], maxlen_of(tx, args, kwargs))
    if args or "iterable" in kwargs:
        made.extend(tx, args[0] if args else kwargs["iterable"])
    return made


def maxlen_of(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    """The greatest length that arguments of ``deque()`` say; what they say wrong is raised."""
    names = ("iterable", "maxlen")
    if len(args) > 2 or set(kwargs) - set(names[len(args) :]):
        fold(tx, deque, *[()] * len(args), **dict.fromkeys(kwargs))
    given = args[1] if len(args) > 1 else kwargs.get("maxlen")
    if given is None or (given.realize(tx).is_constant() and given.realize(tx).as_constant() is None):
        return None
    if not issubclass(given.realize(tx).python_type(tx), int):
        tx.raise_(TypeError, "an integer is required")
    limit = index_(tx, given)
    if limit < 0:
        tx.raise_(ValueError, "maxlen must be non-negative")
    return limit
