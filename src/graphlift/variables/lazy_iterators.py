"""Iterators that take from other iterators: `enumerate`, `zip`, `map`, `filter`, and endless ones.

Their own state is small and in the heap; they are made real by calling the real class on what is left.
Mirrors Objects/enumobject.c, Python/bltinmodule.c and Modules/itertoolsmodule.c.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from graphlift.errors import ObservedException
from graphlift.protocol import Codegen, Tx, Var
from graphlift.variables import exceptions
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtin_object import constant, make_tuple, method
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.iterators import IteratorVariable
from graphlift.variables.slots import calls, iteration, operators
from graphlift.variables.slots.type_lookup import is_of_c

#: How an iterator beneath is moved: None at its end, or its own StopIteration, whose value counts.
Take = Callable[[Tx, VariableTracker], "VariableTracker | None"]


class Itself:
    """Gives an iterator to a class that calls ``iter()``, which the program's own iterators need not bear."""

    __slots__ = ("_iterator",)

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __iter__(self) -> Any:
        return self._iterator

    def __next__(self) -> Any:
        """Where ``iter()`` is called twice, one stands for another, which must look like an iterator."""
        return next(self._iterator)


def _on_iterators(kind: Any, places: tuple[int, ...], *args: Any, **named: Any) -> Any:
    """Runs in the compiled program: ``kind(*args)``, the iterators at `places` taken as they are."""
    return kind(*(Itself(arg) if place in places else arg for place, arg in enumerate(args)), **named)


def emit_iterator(
    codegen: Codegen,
    kind: Any,
    args: Sequence[Var],
    places: Iterable[int] = (0,),
    named: Mapping[str, Var] | None = None,
) -> None:
    """Emit the making of a real iterator over iterators; ``iter()`` was called on these before.

    Arguments:
        kind: its class.
        args, named: the arguments.
        places: which arguments are iterators.
    """
    own = tuple(place for place in places if not isinstance(args[place], IteratorVariable))
    if own:
        codegen.call(_on_iterators, [ConstantVariable(kind), ConstantVariable(own), *args], named)
    else:
        codegen.call(kind, args, named)


class DerivedIteratorVariable(IteratorVariable):
    """An iterator that ends when one beneath it, or what it calls, ends: with that one's StopIteration."""

    __slots__ = ()

    def take(self, tx: Tx, take: Take) -> VariableTracker | None:
        """The next item, those beneath moved by `take`; None at an end that is its own."""
        raise NotImplementedError

    def next_(self, tx: Tx) -> VariableTracker | None:
        try:
            return self.take(tx, iteration.next_)
        except ObservedException as error:
            if not exceptions.is_stop_iteration(error.value, tx):
                raise
            return None

    @method("__next__")
    def _next(self, tx: Tx) -> VariableTracker:
        item = self.take(tx, iteration.advance)
        if item is None:
            tx.raise_(StopIteration)
        return item


class EnumerateVariable(DerivedIteratorVariable):
    """``enumerate``; the handle's value is the next number.

    Attributes:
        inner: the iterator it takes from.
    """

    __slots__ = ("inner",)
    models = enumerate

    def __init__(self, inner: VariableTracker, start: VariableTracker) -> None:
        super().__init__()
        self.inner: Final = inner
        self.handle.value = start

    def children(self) -> tuple[Var, ...]:
        """What it holds."""
        return (self.inner, self.handle.value)

    def take(self, tx: Tx, take: Take) -> VariableTracker | None:
        item = take(tx, self.inner)
        if item is None:
            return None
        number = self.handle.value
        tx.heap.set_value(self.handle, operators.binary(tx, "+", number, constant(tx, 1)))
        return make_tuple(tx, [number, item])

    def reconstruct(self, codegen: Codegen) -> None:
        emit_iterator(codegen, enumerate, [self.inner, self.handle.value])


class ZipVariable(DerivedIteratorVariable):
    """``zip``.

    Attributes:
        inner: the iterators it takes from.
        strict: whether they must end together.
    """

    __slots__ = ("inner", "strict")
    models = zip

    def __init__(self, inner: Sequence[VariableTracker], strict: bool) -> None:
        super().__init__()
        self.inner: Final = tuple(inner)
        self.strict: Final = strict

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return self.inner

    def take(self, tx: Tx, take: Take) -> VariableTracker | None:
        items = []
        for position, iterator in enumerate(self.inner):
            item = iteration.next_(tx, iterator) if self.strict else take(tx, iterator)
            if item is None:
                if self.strict:
                    self._check_end(tx, position)
                return None
            items.append(item)
        return make_tuple(tx, items) if self.inner else None

    def _check_end(self, tx: Tx, position: int) -> None:
        """One iterator ended: with ``strict`` the first may, if all others end now."""
        if position:
            tx.raise_(ValueError, _length_text(position, "shorter"))
        for later in range(1, len(self.inner)):
            if self.inner[later].next_(tx) is not None:
                tx.raise_(ValueError, _length_text(later, "longer"))

    def reconstruct(self, codegen: Codegen) -> None:
        named = {"strict": ConstantVariable(True)} if self.strict else None
        emit_iterator(codegen, zip, self.inner, range(len(self.inner)), named)


def _length_text(position: int, word: str) -> str:
    others = "argument 1" if position == 1 else f"arguments 1-{position}"
    return f"zip() argument {position + 1} is {word} than {others}"


class MapVariable(DerivedIteratorVariable):
    """``map``.

    Attributes:
        function: what is called.
        inner: the iterators it takes from.
    """

    __slots__ = ("function", "inner")
    models = map

    def __init__(self, function: VariableTracker, inner: Sequence[VariableTracker]) -> None:
        super().__init__()
        self.function: Final = function
        self.inner: Final = tuple(inner)

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (self.function, *self.inner)

    def take(self, tx: Tx, take: Take) -> VariableTracker | None:
        items = []
        for iterator in self.inner:
            item = take(tx, iterator)
            if item is None:
                return None
            items.append(item)
        return cast(VariableTracker, calls.call(tx, self.function, items, {}))

    def reconstruct(self, codegen: Codegen) -> None:
        emit_iterator(codegen, map, [self.function, *self.inner], range(1, 1 + len(self.inner)))


class FilterVariable(DerivedIteratorVariable):
    """``filter`` and `itertools.filterfalse`.

    Attributes:
        function: what is asked, or the tracker of None.
        inner: the iterator it takes from.
        wanted: the truth of what passes.
    """

    __slots__ = ("function", "inner", "wanted")
    models = filter

    def __init__(self, function: VariableTracker, inner: VariableTracker, wanted: bool = True) -> None:
        super().__init__()
        self.function: Final = function
        self.inner: Final = inner
        self.wanted: Final = wanted

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (self.function, self.inner)

    def python_type(self, tx: Tx) -> type:
        return filter if self.wanted else itertools.filterfalse

    def take(self, tx: Tx, take: Take) -> VariableTracker | None:
        plain = self.function.is_constant() and self.function.as_constant() in (None, bool)
        for _ in range(iteration.LIMIT):
            item = take(tx, self.inner)
            if item is None:
                return None
            test = item if plain else calls.call(tx, self.function, [item], {})
            if operators.is_true(tx, test) is self.wanted:
                return item
        iteration.too_long(tx, self)

    def reconstruct(self, codegen: Codegen) -> None:
        kind = filter if self.wanted else itertools.filterfalse
        emit_iterator(codegen, kind, [self.function, self.inner], (1,))


class CountVariable(IteratorVariable):
    """`itertools.count`; the handle's value is the next number.

    Attributes:
        step: what is added each time.
    """

    __slots__ = ("step",)
    models = itertools.count

    def __init__(self, start: VariableTracker, step: VariableTracker) -> None:
        super().__init__()
        self.step: Final = step
        self.handle.value = start

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (self.step, self.handle.value)

    def next_(self, tx: Tx) -> VariableTracker | None:
        number: VariableTracker = self.handle.value
        tx.heap.set_value(self.handle, operators.binary(tx, "+", number, self.step))
        return number

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(itertools.count, [self.handle.value, self.step])


class RepeatVariable(IteratorVariable):
    """`itertools.repeat`; the handle's value is how often it still gives its object, None for ever.

    Attributes:
        item: what it gives.
    """

    __slots__ = ("item",)
    models = itertools.repeat

    def __init__(self, item: VariableTracker, times: int | None) -> None:
        super().__init__()
        self.item: Final = item
        self.handle.value = times

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (self.item,)

    def next_(self, tx: Tx) -> VariableTracker | None:
        left = self.handle.value
        if left is not None:
            if left <= 0:
                return None
            tx.heap.set_value(self.handle, left - 1)
        return self.item

    def reconstruct(self, codegen: Codegen) -> None:
        left = self.handle.value
        codegen.call(itertools.repeat, [self.item] if left is None else [self.item, ConstantVariable(left)])


class CycleVariable(IteratorVariable):
    """`itertools.cycle`; the handle's value is (items seen, place in them or None in the first round).

    Attributes:
        inner: the iterator of the first round.
    """

    __slots__ = ("inner",)
    models = itertools.cycle

    def __init__(self, inner: VariableTracker) -> None:
        super().__init__()
        self.inner: Final = inner
        self.handle.value = ((), None)

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (self.inner, *self.handle.value[0])

    def next_(self, tx: Tx) -> VariableTracker | None:
        seen, place = self.handle.value
        if place is None:
            item = self.inner.next_(tx)
            if item is not None:
                tx.heap.set_value(self.handle, ((*seen, item), None))
                return item
            place = 0
        if not seen:
            return None
        tx.heap.set_value(self.handle, (seen, (place + 1) % len(seen)))
        return cast(VariableTracker, seen[place])

    def reconstruct(self, codegen: Codegen) -> None:
        seen, place = self.handle.value
        rest = [self.inner] if place is None else []
        codegen.call(_cycle, [ConstantVariable(len(seen)), ConstantVariable(place), *rest, *seen])


def _cycle(count: int, place: int | None, *parts: Any) -> Any:
    """A cycle that gave `count` items in its first round, or stands at `place` in a later one."""
    if place is None:
        first = parts[0] if is_of_c(type(parts[0])) else Itself(parts[0])
        made: Any = itertools.cycle(itertools.chain(parts[1:], first) if count else first)
        gone = count
    else:
        made = itertools.cycle(parts)
        gone = count + place
    for _ in range(gone):
        next(made)
    return made
