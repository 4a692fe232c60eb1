"""What patterns of ``match`` ask of their subject.

Stands for the opcodes MATCH_SEQUENCE, MATCH_MAPPING, MATCH_KEYS and MATCH_CLASS:
https://docs.python.org/3/library/dis.html#opcode-MATCH_CLASS and
https://docs.python.org/3/reference/compound_stmts.html#class-patterns
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

_SEQUENCES = (list, tuple, range, deque, memoryview)
_NO_SEQUENCES = (str, bytes, bytearray)


def _refusal() -> str:
    """What the running Python says of a class pattern that names no class."""
    name: Any = 3
    try:
        match None:
            case name():
                pass
    except TypeError as error:
        return str(error)
    return ""


_NO_CLASS = _refusal()

#: Builtin classes whose single positional pattern matches the whole subject.
_SELF_MATCHING = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


def is_sequence(subject: Any) -> bool:
    """Whether a sequence pattern may match."""
    if isinstance(subject, _SEQUENCES):
        return True
    if isinstance(subject, _NO_SEQUENCES):
        return False
    return isinstance(subject, Sequence)


def is_mapping(subject: Any) -> bool:
    """Whether a mapping pattern may match."""
    return isinstance(subject, (dict, Mapping))


def match_keys(subject: Any, keys: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The values under all `keys`, or None when one is missing."""
    missing = object()
    values = []
    seen = []
    for key in keys:
        if key in seen:
            raise ValueError(f"mapping pattern checks duplicate key ({key!r})")
        seen.append(key)
        value = subject.get(key, missing)
        if value is missing:
            return None
        values.append(value)
    return tuple(values)


def match_class(subject: Any, cls: Any, count: int, names: tuple[str, ...]) -> tuple[Any, ...] | None:
    """The attributes that a class pattern matches on, or None when the subject is of another class.

    Arguments:
        count: number of positional patterns.
        names: names of the keyword patterns.
    """
    if not isinstance(cls, type):
        raise TypeError(_NO_CLASS)
    if not isinstance(subject, cls):
        return None
    seen: list[str] = []
    values = []
    if count:
        if cls in _SELF_MATCHING or not hasattr(cls, "__match_args__"):
            allowed = 1 if _matches_itself(cls) else 0
            if count > allowed:
                plural = "" if allowed == 1 else "s"
                raise TypeError(
                    f"{cls.__name__}() accepts {allowed} positional sub-pattern{plural} ({count} given)"
                )
            values.append(subject)
        else:
            arguments = cls.__match_args__
            if not isinstance(arguments, tuple):
                raise TypeError(
                    f"{cls.__name__}.__match_args__ must be a tuple (got {type(arguments).__name__})"
                )
            if count > len(arguments):
                plural = "" if len(arguments) == 1 else "s"
                accepts = f"{cls.__name__}() accepts {len(arguments)} positional sub-pattern{plural}"
                raise TypeError(f"{accepts} ({count} given)")
            for name in arguments[:count]:
                if not isinstance(name, str):
                    raise TypeError(f"__match_args__ elements must be strings (got {type(name).__name__})")
                if not _take(subject, cls, name, seen, values):
                    return None
    for name in names:
        if not _take(subject, cls, name, seen, values):
            return None
    return tuple(values)


def _matches_itself(cls: type) -> bool:
    return issubclass(cls, _SELF_MATCHING)


def _take(subject: Any, cls: type, name: str, seen: list[str], values: list[Any]) -> bool:
    """Add attribute `name` to `values`; False when the subject has none."""
    if name in seen:
        raise TypeError(f"{cls.__name__}() got multiple sub-patterns for attribute '{name}'")
    seen.append(name)
    try:
        values.append(getattr(subject, name))
    except AttributeError:
        return False
    return True
