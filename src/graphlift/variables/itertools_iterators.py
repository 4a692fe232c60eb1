"""Iterators of `itertools` that call the program's functions or keep a state of their own.

An error that leaves one of them does not end it, unless C lets go of what it iterates over. Made real, they
are what their class makes of what is left, where that shows the same state. Mirrors
Modules/itertoolsmodule.c.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any, Final, NoReturn, cast

from graphlift.errors import Unsupported
from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtin_object import make_tuple
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.iterators import IteratorVariable
from graphlift.variables.lazy_iterators import DerivedIteratorVariable, Itself, Take, emit_iterator
from graphlift.variables.slots import calls, iteration, length_hint, operators

#: State of an iterator that has let go of what it iterates over.
_DONE: Final = None


def _refuse(kind: Any) -> NoReturn:
    raise Unsupported(Reason.GENERATOR, f"a begun {kind.__name__} must become real")


def used_up(kind: Any, *args: Any) -> Any:
    """Runs in the compiled program: an iterator of class `kind` at its end."""
    made = kind(*args)
    next(made, None)
    return made


class StarmapVariable(DerivedIteratorVariable):
    """`itertools.starmap`.

    Attributes:
        function: what is called.
        inner: the iterator over its arguments.
    """

    __slots__ = ("function", "inner")
    models = itertools.starmap

    def __init__(self, function: VariableTracker, inner: VariableTracker) -> None:
        super().__init__()
        self.function: Final = function
        self.inner: Final = inner

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (self.function, self.inner)

    def take(self, tx: Tx, take: Take) -> VariableTracker | None:
        found = take(tx, self.inner)
        if found is None:
            return None
        return cast(VariableTracker, calls.call(tx, self.function, length_hint.unpack(tx, found), {}))

    def reconstruct(self, codegen: Codegen) -> None:
        emit_iterator(codegen, itertools.starmap, [self.function, self.inner], (1,))


class WhileVariable(DerivedIteratorVariable):
    """`itertools.takewhile` and `itertools.dropwhile`; the handle's value: whether an item failed the test.

    Attributes:
        kind: which of the two.
        predicate: what items are asked by.
        inner: the iterator it takes from.
    """

    __slots__ = ("inner", "kind", "predicate")

    def __init__(self, kind: Any, predicate: VariableTracker, inner: VariableTracker) -> None:
        super().__init__()
        self.kind: Final = kind
        self.predicate: Final = predicate
        self.inner: Final = inner
        self.handle.value = False

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (self.predicate, self.inner)

    def python_type(self, tx: Tx) -> type:
        return cast(type, self.kind)

    def take(self, tx: Tx, take: Take) -> VariableTracker | None:
        drops = self.kind is itertools.dropwhile
        if self.handle.value:
            return take(tx, self.inner) if drops else None
        for _ in range(iteration.LIMIT):
            item = take(tx, self.inner)
            if item is None:
                return None
            passes = operators.is_true(tx, calls.call(tx, self.predicate, [item], {}))
            if not passes:
                tx.heap.set_value(self.handle, True)
                return item if drops else None
            if not drops:
                return item
        iteration.too_long(tx, self)

    def reconstruct(self, codegen: Codegen) -> None:
        if self.handle.value:
            _refuse(self.kind)
        emit_iterator(codegen, self.kind, [self.predicate, self.inner], (1,))


class CompressVariable(DerivedIteratorVariable):
    """`itertools.compress`.

    Attributes:
        data, selectors: the iterators it takes from.
    """

    __slots__ = ("data", "selectors")
    models = itertools.compress

    def __init__(self, data: VariableTracker, selectors: VariableTracker) -> None:
        super().__init__()
        self.data: Final = data
        self.selectors: Final = selectors

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (self.data, self.selectors)

    def take(self, tx: Tx, take: Take) -> VariableTracker | None:
        for _ in range(iteration.LIMIT):
            item = take(tx, self.data)
            selector = None if item is None else take(tx, self.selectors)
            if selector is None:
                return None
            if operators.is_true(tx, selector):
                return item
        iteration.too_long(tx, self)

    def reconstruct(self, codegen: Codegen) -> None:
        emit_iterator(codegen, itertools.compress, [self.data, self.selectors], (0, 1))


class AccumulateVariable(DerivedIteratorVariable):
    """`itertools.accumulate`; the handle's value is (initial value to be given, total), None for none.

    Attributes:
        inner: the iterator it takes from.
        function: what adds up; None: ``+``.
    """

    __slots__ = ("function", "inner")
    models = itertools.accumulate

    def __init__(
        self, inner: VariableTracker, function: VariableTracker | None, initial: VariableTracker | None
    ) -> None:
        super().__init__()
        self.inner: Final = inner
        self.function: Final = function
        self.handle.value = (initial, None)

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return [var for var in (self.inner, self.function, *self.handle.value) if var is not None]

    def take(self, tx: Tx, take: Take) -> VariableTracker | None:
        initial, total = self.handle.value
        if initial is not None:
            tx.heap.set_value(self.handle, (None, initial))
            return cast(VariableTracker, initial)
        item = take(tx, self.inner)
        if item is None:
            return None
        if total is not None and self.function is None:
            item = operators.binary(tx, "+", total, item)
        elif total is not None:
            item = calls.call(tx, self.function, [total, item], {})
        tx.heap.set_value(self.handle, (None, item))
        return item

    def reconstruct(self, codegen: Codegen) -> None:
        initial, total = self.handle.value
        if total is not None:
            _refuse(itertools.accumulate)
        none = ConstantVariable(None)
        named = {"initial": initial or none}
        emit_iterator(codegen, itertools.accumulate, [self.inner, self.function or none], named=named)


class ChainVariable(IteratorVariable):
    """`itertools.chain`; the handle's value is (iterator over what is chained, the present iterator or None),
    or None at its end."""

    __slots__ = ()
    models = itertools.chain

    def __init__(self, source: VariableTracker) -> None:
        super().__init__()
        self.handle.value = (source, None)

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return [var for var in self.handle.value or () if var is not None]

    def next_(self, tx: Tx) -> VariableTracker | None:
        while self.handle.value is not _DONE:
            source, active = self.handle.value
            if active is None:
                tx.heap.set_value(self.handle, _DONE)  # also where one of these fails
                following = iteration.next_(tx, source)
                if following is None:
                    return None
                active = iteration.iter_(tx, following)
                tx.heap.set_value(self.handle, (source, active))
            item = iteration.next_(tx, active)
            if item is not None:
                return item
            tx.heap.set_value(self.handle, (source, None))
        return None

    def reconstruct(self, codegen: Codegen) -> None:
        if self.handle.value is _DONE:
            codegen.call(used_up, [ConstantVariable(itertools.chain)])
            return
        source, active = self.handle.value
        if active is not None:
            _refuse(itertools.chain)
        emit_iterator(codegen, itertools.chain.from_iterable, [source])


class SliceVariable(DerivedIteratorVariable):
    """`itertools.islice`; the handle's value is (items taken, number of the next one to give), None at its
    end.

    Attributes:
        inner: the iterator it takes from.
        start, stop, step: as it was made.
    """

    __slots__ = ("inner", "start", "step", "stop")
    models = itertools.islice

    def __init__(self, inner: VariableTracker, start: int, stop: int | None, step: int) -> None:
        super().__init__()
        self.inner: Final = inner
        self.start: Final = start
        self.stop: Final = stop
        self.step: Final = step
        self.handle.value = (0, start)

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return () if self.handle.value is _DONE else (self.inner,)

    def take(self, tx: Tx, take: Take) -> VariableTracker | None:
        if self.handle.value is _DONE:
            return None
        gone, wanted = self.handle.value
        tx.heap.set_value(self.handle, _DONE)  # also where an item fails
        stop = self.stop
        if wanted - gone > iteration.LIMIT:
            iteration.too_long(tx, self)
        for _ in range(wanted - gone):
            if take(tx, self.inner) is None:
                return None
        gone = max(gone, wanted)
        if stop is not None and gone >= stop:
            return None
        item = take(tx, self.inner)
        if item is None:
            return None
        wanted += self.step
        tx.heap.set_value(self.handle, (gone + 1, wanted if stop is None else min(wanted, stop)))
        return item

    def reconstruct(self, codegen: Codegen) -> None:
        if self.handle.value is _DONE:
            arguments = (itertools.islice, (), 0)
            codegen.call(used_up, [ConstantVariable(value) for value in arguments])
            return
        if self.handle.value[0]:
            _refuse(itertools.islice)
        numbers = [ConstantVariable(number) for number in (self.start, self.stop, self.step)]
        emit_iterator(codegen, itertools.islice, [self.inner, *numbers])


class GroupbyVariable(IteratorVariable):
    """`itertools.groupby`; the handle's value is (key and value of the item at hand, key of the present
    group, number of the group), None for what is not there.

    Attributes:
        inner: the iterator it takes from.
        key: what gives an item's key; None: the item is its key.
    """

    __slots__ = ("inner", "key")
    models = itertools.groupby

    def __init__(self, inner: VariableTracker, key: VariableTracker | None) -> None:
        super().__init__()
        self.inner: Final = inner
        self.key: Final = key
        self.handle.value = (None, None, None, 0)

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return [var for var in (self.inner, self.key, *self.handle.value[:3]) if var is not None]

    def advance(self, tx: Tx) -> bool:
        """Take the next item; whether there was one."""
        item = iteration.next_(tx, self.inner)
        if item is None:
            return False
        key = item if self.key is None else calls.call(tx, self.key, [item], {})
        tx.heap.set_value(self.handle, (key, item, *self.handle.value[2:]))
        return True

    def next_(self, tx: Tx) -> VariableTracker | None:
        tx.heap.set_value(self.handle, (*self.handle.value[:3], self.handle.value[3] + 1))
        for _ in range(iteration.LIMIT):
            key, item, target, number = self.handle.value
            if key is not None and (target is None or not operators.equal(tx, target, key)):
                tx.heap.set_value(self.handle, (key, item, key, number))
                return make_tuple(tx, [key, GroupVariable(self, key, number)])
            if not self.advance(tx):
                return None
        iteration.too_long(tx, self)

    def reconstruct(self, codegen: Codegen) -> None:
        if self.handle.value[3]:
            _refuse(itertools.groupby)
        emit_iterator(codegen, itertools.groupby, [self.inner, self.key or ConstantVariable(None)])


class GroupVariable(IteratorVariable):
    """One group of `itertools.groupby`: it ends when the next one is asked for.

    Attributes:
        groups: the iterator over the groups.
        target: its key.
        number: which group it is.
    """

    __slots__ = ("groups", "number", "target")
    models = cast(type, itertools._grouper)  # type: ignore[attr-defined]

    def __init__(self, groups: GroupbyVariable, target: VariableTracker, number: int) -> None:
        super().__init__()
        self.groups: Final = groups
        self.target: Final = target
        self.number: Final = number

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (self.groups, self.target)

    def next_(self, tx: Tx) -> VariableTracker | None:
        groups = self.groups
        if groups.handle.value[3] != self.number:
            return None
        if groups.handle.value[1] is None and not groups.advance(tx):
            return None
        key, item, target, number = groups.handle.value
        if not operators.equal(tx, self.target, key):
            return None
        tx.heap.set_value(groups.handle, (None, None, target, number))
        return cast(VariableTracker, item)

    def reconstruct(self, codegen: Codegen) -> None:
        _refuse(self.models)


def _tees_of(iterator: Any, count: int) -> Any:
    """Runs in the compiled program: ``tee``, which calls ``iter()`` twice, of an iterator as it is."""
    return itertools.tee(Itself(Itself(iterator)), count)


class TeesVariable(VariableTracker):
    """The iterators of one `itertools.tee`; the handle's value are the items that were taken for them, its
    items are not empty while one is taken.

    Attributes:
        inner: the iterator that is taken from.
        count: how many iterators there are.
    """

    __slots__ = ("count", "handle", "inner")

    def __init__(self, inner: VariableTracker, count: int) -> None:
        self.source = None
        self.inner: Final = inner
        self.count: Final = count
        self.handle: Final = Handle()
        self.handle.value, self.handle.items = (), []
        self.handle.tracker = self

    def python_type(self, tx: Tx) -> type:
        return tuple

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (self.inner, *self.handle.value)

    def item(self, tx: Tx, position: int) -> VariableTracker | None:
        """The item at a position, the next one of which may have to be taken."""
        taken: tuple[VariableTracker, ...] = self.handle.value
        if position < len(taken):
            return taken[position]
        if self.handle.items:
            tx.raise_(RuntimeError, "cannot re-enter the tee iterator")
        tx.heap.set_items(self.handle, [self.inner])
        try:
            item = iteration.next_(tx, self.inner)
        finally:
            tx.heap.set_items(self.handle, [])
        if item is not None:
            tx.heap.set_value(self.handle, (*self.handle.value, item))
        return item

    def reconstruct(self, codegen: Codegen) -> None:
        if self.handle.value or self.handle.items:
            _refuse(itertools.tee)
        own = not isinstance(self.inner, IteratorVariable)
        codegen.call(_tees_of if own else itertools.tee, [self.inner, ConstantVariable(self.count)])


class TeeVariable(IteratorVariable):
    """One of the iterators that `itertools.tee` gives; the handle's value is how many items it gave.

    Attributes:
        tees: all of them.
        index: which one it is.
    """

    __slots__ = ("index", "tees")
    models = cast(type, itertools._tee)  # type: ignore[attr-defined]

    def __init__(self, tees: TeesVariable, index: int) -> None:
        super().__init__()
        self.tees: Final = tees
        self.index: Final = index
        self.handle.value = 0

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (self.tees,)

    def next_(self, tx: Tx) -> VariableTracker | None:
        position = self.handle.value
        item = self.tees.item(tx, position)
        if item is not None:
            tx.heap.set_value(self.handle, position + 1)
        return item

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(operator.getitem, [self.tees, ConstantVariable(self.index)])
