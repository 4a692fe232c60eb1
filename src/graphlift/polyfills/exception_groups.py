"""Taking exception groups apart.

Stands for the methods of `BaseExceptionGroup` and for what ``except*`` does between its clauses:
https://docs.python.org/3/library/exceptions.html#exception-groups
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any


def _refusal(condition: Any) -> str:
    """What the running Python says about a condition; empty if it takes it."""
    try:
        ExceptionGroup("", [ValueError()]).split(condition)
    except TypeError as error:
        return str(error)
    return ""


#: Newer Pythons take anything that can be called.
_TAKES_CALLABLES = not _refusal(bool.__call__)
_REFUSED = _refusal(3)


def derive(group: Any, excs: Sequence[BaseException]) -> Any:
    """``BaseExceptionGroup.derive``."""
    return BaseExceptionGroup(group.message, excs)


def split(group: Any, condition: Any) -> tuple[Any, Any]:
    """``BaseExceptionGroup.split``."""
    return _split(group, matcher(condition))


def subgroup(group: Any, condition: Any) -> Any:
    """``BaseExceptionGroup.subgroup``."""
    return _subset(group, matcher(condition))


def matcher(condition: Any) -> Callable[[BaseException], Any]:
    """The test that a condition stands for."""
    if isinstance(condition, FunctionType) or (
        _TAKES_CALLABLES and callable(condition) and not isinstance(condition, type)
    ):
        return condition
    kinds = condition if type(condition) is tuple else (condition,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TypeError(_REFUSED)

    def matches(error: BaseException) -> bool:
        return any(kind in type(error).__mro__ for kind in kinds)

    return matches


def _split(error: Any, matches: Callable[[BaseException], Any]) -> tuple[Any, Any]:
    """What of an exception matches, and what does not; None for nothing."""
    if matches(error):
        return error, None
    if not isinstance(error, BaseExceptionGroup):
        return None, error
    matching = []
    rest = []
    for inner in error.exceptions:
        one, other = _split(inner, matches)
        if one is not None:
            matching.append(one)
        if other is not None:
            rest.append(other)
    return _part(error, matching), _part(error, rest)


def _subset(error: Any, matches: Callable[[BaseException], Any]) -> Any:
    """What of an exception matches, or None."""
    if matches(error):
        return error
    if not isinstance(error, BaseExceptionGroup):
        return None
    matching = []
    for inner in error.exceptions:
        one = _subset(inner, matches)
        if one is not None:
            matching.append(one)
    return _part(error, matching)


def _part(group: Any, excs: list[BaseException]) -> Any:
    """A group of some of a group's exceptions that is like it in all else; None for no exceptions."""
    if not excs:
        return None
    made = group.derive(excs)
    if not isinstance(made, BaseExceptionGroup):
        raise TypeError("derive must return an instance of BaseExceptionGroup")
    trace = group.__traceback__
    if trace is not None:
        made.__traceback__ = trace
    made.__context__ = group.__context__
    made.__cause__ = group.__cause__
    if hasattr(group, "__notes__"):
        notes = group.__notes__
        if isinstance(notes, (list, tuple)):
            made.__notes__ = list(notes)
    return made


def pair_of(group: Any, kinds: Any) -> tuple[Any, Any]:
    """A group's own ``split``, as ``except*`` calls it."""
    pair = group.split(kinds)
    if not isinstance(pair, tuple):
        raise TypeError(f"{type(group).__name__}.split must return a tuple, not {type(pair).__name__}")
    if len(pair) < 2:
        text = f"{type(group).__name__}.split must return a 2-tuple, got tuple of size {len(pair)}"
        raise TypeError(text)
    return pair[0], pair[1]


def to_raise(original: Any, raised: list[BaseException], reraised: list[BaseException]) -> Any:
    """What is raised behind the clauses of an ``except*``; None for nothing.

    Arguments:
        original: the group that was caught.
        raised: what the clauses raised.
        reraised: parts of the group that they let go on, or that none of them took.
    """
    rest = _projection(original, reraised)
    if not raised:
        return rest
    if rest is not None:
        raised = [*raised, rest]
    return raised[0] if len(raised) == 1 else BaseExceptionGroup("", raised)


def _projection(original: Any, parts: list[BaseException]) -> Any:
    """A group shaped as the original, of the exceptions in some of its parts."""
    leaves: list[BaseException] = []
    for part in parts:
        _collect(part, leaves)
    if not leaves:
        return None
    return _subset(original, lambda error: any(error is leaf for leaf in leaves))


def _collect(error: Any, leaves: list[BaseException]) -> None:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            _collect(inner, leaves)
    else:
        leaves.append(error)
