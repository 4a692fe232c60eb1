"""Immutable objects of C classes of the standard library known whole: dates, times, patterns, matches.

Made by captured code they are constants. One that the program hands in is guarded by what it is until that is
seen to vary (then it is an object like any other), patterns and compiled formats by their identity. What asks
the clock, the time zone or the locale is not computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from struct import Struct
from typing import Any, Final, NoReturn

from graphlift.polyfills import patterns
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import Source, StateSource
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import pinned, wraps
from graphlift.variables.classes import CLASS_METHODS, constructs
from graphlift.variables.constant import INDEXED, ConstantVariable, special_method
from graphlift.variables.folding import FOLDABLE, MADE_ANEW, fold, known_all
from graphlift.variables.iterator_state import DONE, skip
from graphlift.variables.iterators import CallableIteratorVariable, ItemsIteratorVariable
from graphlift.variables.user_defined import wrap_object

_DATES: Final = (date, time, datetime, timedelta, timezone)


class ValueVariable(ConstantVariable):
    """A value that captured code makes, a new object at each run."""

    __slots__ = ()
    leaf = False

    def children(self) -> Sequence[Any]:
        """It holds nothing that the program could change."""
        return ()

    def reconstruct(self, codegen: Codegen) -> None:
        cls, args = self.value.__reduce_ex__(4)[:2]
        codegen.call(cls, [ValueVariable(x) if type(x) in _DATES else ConstantVariable(x) for x in args])


class StandingMoment(ValueVariable):
    """A date, time or zone that the library itself keeps: ``timezone.utc``, ``date.max``."""

    __slots__ = ()

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_object(self.value)


MADE_ANEW.update(dict.fromkeys(_DATES, ValueVariable))
FOLDABLE.update((*_DATES, re.Pattern, re.Match))
INDEXED.add(re.Match)


def read_moment(value: Any) -> tuple[Any, ...]:
    """What makes a date, time or time difference, a constant; a TypeError for other zones than fixed ones."""
    if type(value) is timedelta:
        return value.days, value.seconds, value.microseconds
    if type(value) is timezone:
        return (str(value), *read_moment(value.utcoffset(None)))
    state, *zone = value.__reduce_ex__(4)[1]
    if zone and type(zone[0]) is not timezone:
        raise TypeError("a zone whose offset changes")
    return (state, *(read_moment(zone[0]) if zone else ()))


@wraps(*_DATES)
def _wrap_moment(tx: Tx, value: Any, source: Source | None) -> Var:
    """One that is handed in: guarded by what it is, until that is seen to vary."""
    try:
        state = read_moment(value)
    except TypeError:
        return wrap_object(tx, value, source)
    if source is None:
        return StandingMoment(value)
    if tx.capture.varies(source, state):
        return wrap_object(tx, value, source)
    tx.guard("type", source, type(value))
    tx.guard("constant", source.child(StateSource, read_moment), state)
    return ValueVariable(value, source)


@constructs(date, timedelta, tzinfo, time, whole=True)
def _make(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    values = known_all(tx, args, kwargs)
    if values is None or cls not in _DATES:
        tx.fail(
            Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__} made of values that are not known"
        )
    return fold(tx, cls, *values[0], **values[1])


constructs(datetime, whole=True)(_make)
constructs(timezone, whole=True)(_make)


def _class_method(owner: type, name: str) -> None:
    def model(tx: Tx, cls: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        values = known_all(tx, args, kwargs)
        if values is None or cls.value not in _DATES:
            tx.fail(Reason.UNSUPPORTED_BUILTIN, f"{owner.__name__}.{name}() of these arguments")
        return fold(tx, getattr(cls.value, name), *values[0], **values[1])

    CLASS_METHODS[owner, name] = model


for _owner in (date, datetime):
    for _name in ("fromordinal", "fromisoformat", "fromisocalendar"):
        _class_method(_owner, _name)
_class_method(datetime, "combine")
_class_method(time, "fromisoformat")

_CHANGING: Final = (
    *("now", "today", "utcnow", "fromtimestamp", "utcfromtimestamp", "strptime"),
    *("timestamp", "astimezone", "strftime"),
)


def _refuse(cls: type, name: str) -> None:
    @special_method(cls, name)
    def refuse(
        tx: Tx, value: Any, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> NoReturn:
        tx.fail(Reason.IMPURE_READ, f"call of {cls.__name__}.{name}()")


for _class in _DATES:
    for _name in _CHANGING:
        if hasattr(_class, _name):
            _refuse(_class, _name)


def _format(
    tx: Tx, value: Any, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> VariableTracker:
    values = known_all(tx, args, kwargs)
    if values is None or any(values[0]):
        tx.fail(Reason.IMPURE_READ, f"format of a {type(value).__name__}, which asks the locale")
    return fold(tx, value.__format__, *values[0], **values[1])


for _class in (date, time, datetime):
    special_method(_class, "__format__")(_format)


# --- compiled formats ---------------------------------------------------------------------------------------


class StructVariable(ConstantVariable):
    """A `struct.Struct` that captured code makes."""

    __slots__ = ()
    leaf = False

    def children(self) -> Sequence[Any]:
        """It holds nothing."""
        return ()

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(Struct, [ConstantVariable(self.value.format)])


FOLDABLE.add(Struct)
MADE_ANEW[Struct] = StructVariable


wraps(Struct)(pinned(ConstantVariable))


@constructs(Struct, whole=True)
def _make_struct(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    values = known_all(tx, args, kwargs)
    if values is None or cls is not Struct:
        tx.fail(Reason.UNSUPPORTED_VALUE, "a Struct of a format that is not known")
    return fold(tx, Struct, *values[0], **values[1])


# --- regular expressions ------------------------------------------------------------------------------------


wraps(re.Pattern)(pinned(ConstantVariable))


@special_method(re.Pattern, "finditer")
def _finditer(
    tx: Tx, pattern: Any, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> VariableTracker:
    values = known_all(tx, args, kwargs)
    if values is None:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "Pattern.finditer() of values that are not known")
    try:
        found = list(pattern.finditer(*values[0], **values[1]))
    except TypeError as error:
        tx.raise_real(error)
    return _MatchesVariable([ConstantVariable(match) for match in found], pattern, args, kwargs)


class _MatchesVariable(ItemsIteratorVariable):
    """What ``finditer`` gives: an iterator that calls a function.

    Attributes:
        pattern: the pattern.
        arguments, keywords: what it was given.
    """

    __slots__ = ("arguments", "keywords", "pattern")

    def __init__(
        self, matches: Sequence[Var], pattern: Any, args: Sequence[Var], kwargs: Mapping[str, Var]
    ) -> None:
        super().__init__(matches)
        self.pattern: Final = pattern
        self.arguments: Final = tuple(args)
        self.keywords: Final = dict(kwargs)

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (*self.items, *self.arguments, *self.keywords.values())

    def python_type(self, tx: Tx) -> type:
        return CallableIteratorVariable.models

    def reconstruct(self, codegen: Codegen) -> None:
        gone = len(self.items) + 1 if self.handle.value == DONE else self.handle.value
        start = [ConstantVariable(self.pattern), ConstantVariable(gone)]
        codegen.call(_matches_behind, [*start, *self.arguments], self.keywords)


def _matches_behind(pattern: re.Pattern[Any], gone: int, *args: Any, **kwargs: Any) -> Any:
    """Runs in the compiled program: ``finditer`` behind so many matches."""
    return skip(pattern.finditer(*args, **kwargs), gone)


@special_method(re.Pattern, "scanner")
def _scanner(
    tx: Tx, pattern: Any, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> NoReturn:
    tx.fail(Reason.UNSUPPORTED_BUILTIN, "Pattern.scanner()")


def _substitution(name: str, polyfill: Any) -> None:
    @special_method(re.Pattern, name)
    def substitute(
        tx: Tx, pattern: Any, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        """By a function of the program, which is called for each match; else at once."""
        values = known_all(tx, args, kwargs)
        if values is not None:
            return fold(tx, getattr(pattern, name), *values[0], **values[1])
        named = dict(zip(("repl", "string", "count"), args, strict=False), **kwargs)
        text = named["string"].realize(tx) if "string" in named else None
        if "repl" not in named or not isinstance(text, ConstantVariable):
            tx.fail(Reason.UNSUPPORTED_BUILTIN, f"Pattern.{name}() of values that are not known")
        rest = [named["count"]] if "count" in named else []
        made = tx.run_host(polyfill, [ConstantVariable(pattern), named["repl"], text, *rest]).realize(tx)
        assert isinstance(made, VariableTracker)
        return made


_substitution("sub", patterns.sub_by)
_substitution("subn", patterns.subn_by)
