"""The module `itertools`: combinatorics at once, most iterators as trackers, the rest inlined."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from graphlift.errors import ObservedException, Unsupported
from graphlift.polyfills import itertools_ as polyfills
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtin_object import constant, make_list, make_tuple
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.classes import CLASS_METHODS, constructs
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.folding import fold
from graphlift.variables.iterator_state import DONE, combinations_of, combinatoric_iterator
from graphlift.variables.iterators import ItemsIteratorVariable
from graphlift.variables.itertools_iterators import (
    AccumulateVariable,
    ChainVariable,
    CompressVariable,
    GroupbyVariable,
    SliceVariable,
    StarmapVariable,
    TeesVariable,
    TeeVariable,
    WhileVariable,
)
from graphlift.variables.lazy_iterators import (
    CountVariable,
    CycleVariable,
    DerivedIteratorVariable,
    FilterVariable,
    RepeatVariable,
    Take,
    emit_iterator,
)
from graphlift.variables.slots import iteration, operators
from graphlift.variables.slots.numbers import has_index, index_
from graphlift.variables.slots.type_lookup import type_lookup

#: Items that combinatorial iterators may have.
_LIMIT: Final = 100_000


class InlinedIteratorVariable(DerivedIteratorVariable):
    """An iterator whose steps are those of a generator that is interpreted.

    The handle's value tells whether it was started. Made real it is the real class called on its arguments,
    which is right as long as nothing was taken from it.

    Attributes:
        kind: the class of the real iterator.
        generator: the suspended generator.
        arguments, keywords: what the real class is called with.
        places: which of the arguments are iterators.
    """

    __slots__ = ("arguments", "generator", "keywords", "kind", "places")

    def __init__(
        self,
        kind: Any,
        generator: VariableTracker,
        arguments: Sequence[Var],
        keywords: Mapping[str, Var],
        places: Sequence[int],
    ) -> None:
        super().__init__()
        self.kind: Final = kind
        self.generator: Final = generator
        self.arguments: Final = tuple(arguments)
        self.keywords: Final = dict(keywords)
        self.places: Final = places
        self.handle.value = False

    def python_type(self, tx: Tx) -> type:
        return cast(type, self.kind)

    def take(self, tx: Tx, take: Take) -> VariableTracker | None:
        if not self.handle.value:
            tx.heap.set_value(self.handle, True)
        return self.generator.next_(tx)

    def reconstruct(self, codegen: Codegen) -> None:
        if self.handle.value:
            raise Unsupported(Reason.GENERATOR, f"a begun {self.kind.__name__} must become real")
        emit_iterator(codegen, self.kind, self.arguments, self.places, self.keywords)


def _inlined(
    tx: Tx, kind: Any, polyfill: Any, inner: Sequence[Any], rest: Sequence[Var], keywords: Mapping[str, Var]
) -> Any:
    """An iterator that goes through others.

    Arguments:
        inner: these.
        rest: what else the polyfill takes; so does the real class, by position, unless it is in `keywords`.
    """
    through = [iteration.for_polyfill(tx, iterator) for iterator in inner]
    given = [make_list(tx, through)] if kind is itertools.zip_longest else through
    generator: VariableTracker = tx.run_host(polyfill, [*given, *rest]).realize(tx)
    arguments = [*inner, *rest[: len(rest) - len(keywords)]]
    return InlinedIteratorVariable(kind, generator, arguments, keywords, range(len(inner)))


def _unless_none(var: VariableTracker) -> VariableTracker | None:
    return None if var.is_constant() and var.as_constant() is None else var


class Arguments:
    """The arguments of one call, taken by position or name as the real class takes them.

    Arguments:
        names: names of the parameters, in order; those with a default are optional.
        least: how many must be there.
    """

    def __init__(
        self,
        tx: Tx,
        cls: Any,
        names: Sequence[str],
        least: int,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names) or set(kwargs) - set(names) or set(given) & set(kwargs):
            fold(tx, cls, *[()] * len(args), **dict.fromkeys(kwargs))
            tx.fail(Reason.UNSUPPORTED_BUILTIN, f"arguments of {cls.__name__}()")
        given.update(kwargs)
        if any(name not in given for name in names[:least]):
            fold(tx, cls, *[()] * len(args), **dict.fromkeys(kwargs))
        self._given: Final = given

    def __getitem__(self, name: str) -> Any:
        return self._given[name]

    def get(self, tx: Tx, name: str, default: object = None) -> Any:
        """The argument, or the tracker of a default."""
        return self._given[name] if name in self._given else constant(tx, default)


def _pools(tx: Tx, args: Sequence[Any]) -> list[list[VariableTracker]]:
    return [iteration.unpack(tx, arg) for arg in args]


# --- combinatorics ------------------------------------------------------------------------------------


class CombinatoricVariable(ItemsIteratorVariable):
    """An iterator over tuples of trackers that are all made now.

    Attributes:
        kind: its class.
        pools: what the tuples are made of.
        number: of repetitions, or of elements that a tuple has.
    """

    __slots__ = ("kind", "number", "pools")

    def __init__(self, rows: Sequence[Var], kind: Any, pools: Sequence[Var], number: int) -> None:
        super().__init__(rows)
        self.kind: Final[Any] = kind
        self.pools: Final = tuple(pools)
        self.number: Final = number

    def children(self) -> Sequence[Var]:
        return [*self.items, *self.pools]

    def python_type(self, tx: Tx) -> type:
        return self.kind  # type: ignore[no-any-return]

    def reconstruct(self, codegen: Codegen) -> None:
        gone = len(self.items) + 1 if self.handle.value == DONE else self.handle.value
        known = map(ConstantVariable, (self.kind.__name__, gone, self.number))
        codegen.call(combinatoric_iterator, [*known, *self.pools])


def _rows(tx: Tx, kind: Any, pools: Sequence[Sequence[Var]], length: int) -> Any:
    """The iterator that `kind` gives for pools and a number."""
    made = []
    for row in combinations_of(kind, pools, length):
        made.append(make_tuple(tx, row))
        if len(made) > _LIMIT:
            tx.fail(Reason.UNSUPPORTED_BUILTIN, f"more than {_LIMIT} combinations")
    return CombinatoricVariable(made, kind, [make_tuple(tx, pool) for pool in pools], length)


@constructs(itertools.product, whole=True)
def _product(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if set(kwargs) - {"repeat"}:
        return fold(tx, itertools.product, **dict.fromkeys(kwargs))
    repeat = index_(tx, kwargs["repeat"]) if kwargs else 1
    if repeat < 0:
        tx.raise_(ValueError, "repeat argument cannot be negative")
    return _rows(tx, itertools.product, _pools(tx, args), repeat)


def _combinatoric(cls: Any, names: tuple[str, ...], least: int) -> None:
    @constructs(cls, whole=True)
    def construct(tx: Tx, cls_var: Any, kind: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        given = Arguments(tx, cls, names, least, args, kwargs)
        pool = iteration.unpack(tx, given["iterable"])
        length = given.get(tx, "r").realize(tx)
        if length.is_constant() and length.as_constant() is None and least == 1:
            count = len(pool)
        elif least == 1 and not issubclass(length.python_type(tx), int):
            tx.raise_(TypeError, "Expected int as r")
        else:
            count = index_(tx, length)
        if count < 0:
            tx.raise_(ValueError, "r must be non-negative")
        return _rows(tx, cls, [pool], count)


_combinatoric(itertools.combinations, ("iterable", "r"), 2)
_combinatoric(itertools.combinations_with_replacement, ("iterable", "r"), 2)
_combinatoric(itertools.permutations, ("iterable", "r"), 1)


# --- endless ones -------------------------------------------------------------------------------------


@constructs(itertools.count, whole=True)
def _count(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    given = Arguments(tx, cls, ("start", "step"), 0, args, kwargs)
    start, step = given.get(tx, "start", 0).realize(tx), given.get(tx, "step", 1).realize(tx)
    for number in (start, step):
        if number.is_constant() and not isinstance(number.as_constant(), int | float | complex):
            tx.raise_(TypeError, "a number is required")
    return CountVariable(start, step)


@constructs(itertools.repeat, whole=True)
def _repeat(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    given = Arguments(tx, cls, ("object", "times"), 1, args, kwargs)
    times = given.get(tx, "times")
    limited = len(args) > 1 or "times" in kwargs
    return RepeatVariable(given["object"], max(index_(tx, times), 0) if limited else None)


@constructs(itertools.cycle, whole=True)
def _cycle(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs or len(args) != 1:
        return fold(tx, itertools.cycle, *[()] * len(args), **dict.fromkeys(kwargs))
    return CycleVariable(iteration.iter_(tx, args[0]))


# --- inlined ones -------------------------------------------------------------------------------------


@constructs(itertools.chain, whole=True)
def _chain(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs:
        return fold(tx, itertools.chain, **dict.fromkeys(kwargs))
    return ChainVariable(iteration.iter_(tx, make_tuple(tx, args)))


def _chain_from_iterable(tx: Tx, cls: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs or len(args) != 1:
        return fold(tx, itertools.chain.from_iterable, *[()] * len(args), **dict.fromkeys(kwargs))
    if cls.value is not itertools.chain:
        cls.refuse(tx, "from_iterable()")
    return ChainVariable(iteration.iter_(tx, args[0]))


CLASS_METHODS[itertools.chain, "from_iterable"] = _chain_from_iterable


_STOP: Final = "Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize."
_INDICES: Final = "Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize."
_STEP: Final = "Step for islice() must be a positive integer or None."


def _slice_number(
    tx: Tx, value: Any, default: int | None, failed: str, negative: str = _INDICES
) -> int | None:
    """An argument of ``islice``. C takes -1 for an error.

    Arguments:
        failed: the text of the error where it is no index.
        negative: the text where it is less than -1.
    """
    tracker = value.realize(tx)
    if tracker.is_constant() and tracker.as_constant() is None:
        return default
    number = -1
    if has_index(tx, tracker):
        try:
            number = index_(tx, tracker)
        except ObservedException:
            tx.raise_(ValueError, failed)
    if not 0 <= number <= sys.maxsize:
        tx.raise_(ValueError, negative if -sys.maxsize - 1 <= number < -1 else failed)
    return number


@constructs(itertools.islice, whole=True)
def _islice(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs or not 2 <= len(args) <= 4:
        return fold(tx, itertools.islice, *[()] * len(args), **dict.fromkeys(kwargs))
    start, step = 0, 1
    if len(args) == 2:
        stop = _slice_number(tx, args[1], None, _STOP)
    else:
        start = _slice_number(tx, args[1], 0, _INDICES) or 0
        stop = _slice_number(tx, args[2], None, _STOP)
        if len(args) == 4:
            given = _slice_number(tx, args[3], 1, _STEP, _STEP)
            if not given:
                tx.raise_(ValueError, _STEP)
            step = given
    return SliceVariable(iteration.iter_(tx, args[0]), start, stop, step)


def _simple(cls: Any, names: tuple[str, str], make: Callable[..., Any], iterated: Sequence[str]) -> None:
    """A class that is called with two arguments, some of which it iterates over."""

    @constructs(cls, whole=True)
    def construct(tx: Tx, cls_var: Any, kind: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if kwargs and cls is not itertools.compress:  # which alone has names for them
            return fold(tx, cls, *[()] * len(args), **dict.fromkeys(kwargs))
        given = Arguments(tx, cls, names, 2, args, kwargs)
        return make(
            *(iteration.iter_(tx, given[n]) if n in iterated else given[n].realize(tx) for n in names)
        )


_ITERABLE: Final = ("iterable",)
for _while in (itertools.takewhile, itertools.dropwhile):
    _simple(_while, ("predicate", "iterable"), functools.partial(WhileVariable, _while), _ITERABLE)
_simple(itertools.starmap, ("function", "iterable"), StarmapVariable, _ITERABLE)
_simple(itertools.compress, ("data", "selectors"), CompressVariable, ("data", "selectors"))


@constructs(itertools.pairwise, whole=True)
def _pairwise(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs or len(args) != 1:
        return fold(tx, itertools.pairwise, *[()] * len(args), **dict.fromkeys(kwargs))
    return _inlined(tx, cls, polyfills.pairwise, [iteration.iter_(tx, args[0])], [], {})


@constructs(itertools.filterfalse, whole=True)
def _filterfalse(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs or len(args) != 2:
        return fold(tx, itertools.filterfalse, *[()] * len(args), **dict.fromkeys(kwargs))
    return FilterVariable(args[0].realize(tx), iteration.iter_(tx, args[1]), wanted=False)


@constructs(itertools.accumulate, whole=True)
def _accumulate(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if len(args) > 2:
        return fold(tx, itertools.accumulate, *[()] * len(args), **dict.fromkeys(kwargs))
    given = Arguments(tx, cls, ("iterable", "func", "initial"), 1, args, kwargs)
    function, initial = (_unless_none(given.get(tx, n).realize(tx)) for n in ("func", "initial"))
    return AccumulateVariable(iteration.iter_(tx, given["iterable"]), function, initial)


@constructs(itertools.zip_longest, whole=True)
def _zip_longest(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if set(kwargs) - {"fillvalue"}:
        return fold(tx, itertools.zip_longest, **dict.fromkeys(kwargs))
    inner = [iteration.iter_(tx, arg) for arg in args]
    fill = kwargs.get("fillvalue", constant(tx, None))
    return _inlined(tx, cls, polyfills.zip_longest, inner, [fill], {"fillvalue": fill})


@constructs(itertools.groupby, whole=True)
def _groupby(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    given = Arguments(tx, cls, ("iterable", "key"), 1, args, kwargs)
    return GroupbyVariable(
        iteration.iter_(tx, given["iterable"]), _unless_none(given.get(tx, "key").realize(tx))
    )


@builtin(itertools.tee)
def _tee(tx: Tx, iterable: Var, n: Var | None = None) -> Any:
    count = 2 if n is None else index_(tx, n)
    if count < 0:
        tx.raise_(ValueError, "n must be >= 0")
    if not count:
        return make_tuple(tx, [])
    inner = iteration.iter_(tx, iterable)
    if type_lookup(tx, inner.python_type(tx), "__copy__") is not None:
        tx.fail(Reason.ITERATOR, "tee() of an iterator that it copies")
    tees = TeesVariable(iteration.iter_(tx, inner), count)  # C asks twice, too
    return make_tuple(tx, [TeeVariable(tees, index) for index in range(count)])


def _batched(cls: Any) -> None:
    @constructs(cls, whole=True)
    def construct(tx: Tx, cls_var: Any, kind: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        names = ("iterable", "n", "strict") if _BATCHES_STRICTLY else ("iterable", "n")
        given = Arguments(tx, cls, names, 2, args, kwargs)
        count = index_(tx, given["n"])
        if count < 1:
            tx.raise_(ValueError, "n must be at least one")
        inner, rest, named = iteration.iter_(tx, given["iterable"]), [constant(tx, count)], {}
        if len(names) > 2:
            named["strict"] = constant(tx, operators.is_true(tx, given.get(tx, "strict", False)))
        return _inlined(tx, cls, polyfills.batched, [inner], [*rest, *named.values()], named)


def _batches_strictly(cls: Any) -> bool:
    try:
        cls((), 1, strict=True)
    except TypeError:
        return False
    return True


_BATCHED: Callable[..., Any] | None = getattr(itertools, "batched", None)
_BATCHES_STRICTLY: Final = _BATCHED is not None and _batches_strictly(_BATCHED)
if _BATCHED is not None:
    _batched(_BATCHED)
