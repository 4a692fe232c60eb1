"""From a real object to its tracker: one table by exact class, then an ordered list of tests.

The files that own tracker classes enter their rules here by decorator (`wraps`, `wraps_if`) and fill in
the makers of `protocol.Make` (`maker`). An object met again, through whatever source, gives the tracker
it got the first time, and the fact that the two places held one object is guarded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from graphlift.protocol import Make, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import Source
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.lazy import LazyVariableTracker

Wrap = Callable[[Tx, Any, "Source | None"], Var]
WrapT = TypeVar("WrapT", bound=Wrap)
F = TypeVar("F", bound=Callable[..., Any])

_BY_CLASS: dict[type, Wrap] = {}
_BY_TEST: list[tuple[int, Callable[[Any], bool], Wrap]] = []

#: Classes whose instances are compared by value: no identity, one guard on type and value.
CONSTANT_TYPES: set[type] = {
    int,
    float,
    complex,
    bool,
    str,
    bytes,
    type(None),
    type(Ellipsis),
    type(NotImplemented),
}


def wraps(*classes: type) -> Callable[[WrapT], WrapT]:
    """Register the rule for objects of exactly these classes. The rule adds the guards it needs."""

    def register(wrap: WrapT) -> WrapT:
        for cls in classes:
            _BY_CLASS[cls] = wrap
        return wrap

    return register


def wraps_if(test: Callable[[Any], bool], order: int) -> Callable[[WrapT], WrapT]:
    """Register a rule for objects that pass `test`, tried by ascending `order` where no exact class fits.

    Orders in use: 10 torch values, 20 modules (`nn.Module`), 30 functions and callables, 40 classes,
    50 enums and named tuples, 60 subclasses of containers, 70 exceptions, 90 any other user object.
    """

    def register(wrap: WrapT) -> WrapT:
        _BY_TEST.append((order, test, wrap))
        _BY_TEST.sort(key=lambda row: row[0])
        return wrap

    return register


def pinned(tracker: Callable[[Any, Source | None], Var]) -> Wrap:
    """The rule for objects that are what they are: guarded by identity, their tracker made of them alone."""

    def wrap(tx: Tx, value: Any, source: Source | None) -> Var:
        if source is not None:
            tx.guard("is", source, value)
        return tracker(value, source)

    return wrap


def maker(function: F) -> F:
    """Fill in the maker of `protocol.Make` that has the function's name (its first argument is `tx`)."""
    _enter(function.__name__, function)
    return function


def makes(name: str) -> Callable[[F], F]:
    """As `maker`, for a maker whose name is also a builtin's."""

    def register(function: F) -> F:
        _enter(name, function)
        return function

    return register


def _enter(name: str, made: Callable[..., Any]) -> None:
    """Make a maker a method of the builders."""

    def run(self: Builder, *args: Any, **kwargs: Any) -> Any:
        return made(self._tx, *args, **kwargs)

    setattr(Builder, name, run)


def wrap_constant(tx: Tx, value: Any, source: Source | None) -> Var:
    """The rule for constants that are compared by type and value; numbers that change become symbolic."""
    if source is not None:
        if type(value) in (int, float) and tx.capture.is_symbolic(source, value):
            return tx.make.symbol(value, source)
        tx.guard("constant", source, value)
    return ConstantVariable(value, source)


for _cls in CONSTANT_TYPES:
    _BY_CLASS[_cls] = wrap_constant


def _rule(value: object) -> Wrap | None:
    known = _BY_CLASS.get(type(value))
    if known is not None:
        return known
    for _, test, wrap in _BY_TEST:
        if test(value):
            return wrap
    return None


class Builder:
    """The makers of one translator (`tx.make`)."""

    def __init__(self, tx: Tx, objects: dict[int, tuple[object, Var]]) -> None:
        self._tx = tx
        self._objects = objects

    def from_value(self, value: object, source: Source | None) -> Var:
        """See `protocol.Make.from_value`."""
        if type(value) in CONSTANT_TYPES:
            return _BY_CLASS[type(value)](self._tx, value, source)
        known = self._objects.get(id(value))
        if known is not None:
            var = known[1]
            if source is not None and var.source is not None and source is not var.source:
                self._tx.guard("same", source, var.source)
            elif source is not None and var.source is None:
                self._tx.guard("is", source, value)
            return var
        wrap = _rule(value)
        if wrap is None:
            self._tx.fail(Reason.UNSUPPORTED_VALUE, f"an object of class {type(value).__qualname__}")
        var = wrap(self._tx, value, source)
        self._objects[id(value)] = (value, var)
        return var

    def lazy(self, value: object, source: Source) -> Var:
        """See `protocol.Make.lazy`."""
        return LazyVariableTracker(value, source)

    def constant(self, value: object) -> Var:
        """See `protocol.Make.constant`."""
        return ConstantVariable(value)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"no maker named {name!r} is registered")


Make.register(Builder)
