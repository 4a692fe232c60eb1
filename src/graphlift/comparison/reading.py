"""How objects are looked at without running any code of theirs: what counts as an atom, attributes, texts."""

from __future__ import annotations

import copyreg
import itertools
import re
import sys
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

#: Objects without an identity that a program could count on.
ATOMS: frozenset[type] = frozenset(
    {
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        type(None),
        type(...),
        type(NotImplemented),
        torch.dtype,
        torch.device,
        torch.layout,
        torch.memory_format,
        range,
        types.CodeType,
    }
)

#: Shared by both sides, never copied: they must be the very same object.
SHARED = (
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    torch._ops.OpOverload,
)

ITERATORS: tuple[type, ...] = (
    types.GeneratorType,
    type(iter([])),
    type(iter(())),
    type(iter({})),
    type(iter({}.values())),
    type(iter({}.items())),
    type(iter(set())),
    type(iter(range(0))),
    type(iter("")),
    type(reversed([])),
    zip,
    map,
    filter,
    enumerate,
    itertools.chain,
    itertools.islice,
)

#: How many values are taken out of an iterator to compare it.
DRAIN = 1000

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def items(sequence: list[Any] | tuple[Any, ...] | deque[Any]) -> Iterator[Any]:
    """Items of a list, tuple or deque from the storage beneath, whatever a subclass says."""
    if isinstance(sequence, list):
        return list.__iter__(sequence)
    if isinstance(sequence, tuple):
        return tuple.__iter__(sequence)
    return deque.__iter__(sequence)


def members(values: set[Any] | frozenset[Any]) -> list[Any]:
    """Members of a set, whatever a subclass says."""
    base: Any = set if isinstance(values, set) else frozenset
    return list(base.__iter__(values))


def is_constant(value: Any) -> bool:
    """Whether a value is an atom or made of atoms alone, so that its identity means nothing."""
    if type(value) in (tuple, frozenset, torch.Size):
        return all(map(is_constant, value))
    return type(value) in ATOMS or isinstance(value, type | types.ModuleType)


def take(iterator: Any) -> list[Any]:
    """What an iterator would give, up to a limit; an error it raises stands for the rest."""
    taken: list[Any] = []
    try:
        taken.extend(itertools.islice(iterator, DRAIN))
    except Exception as error:
        taken.append(error)
    return taken


def reduced(iterator: Any) -> Any:
    """Where an iterator stands, without moving it; the error where what it goes through has changed."""
    try:
        return iterator.__reduce__()
    except RuntimeError as error:
        return error


def equal(expected: Any, actual: Any) -> bool:
    """Equality of two objects of which nothing else is known."""
    if expected is actual:
        return True
    plain: Any = object.__eq__
    if type(expected).__eq__ is plain:
        return True  # bare objects: that they correspond is all there is to compare
    same = expected == actual
    return bool(same.all()) if hasattr(same, "all") else bool(same)


def instance_dict(value: Any) -> dict[str, Any] | None:
    """The instance dictionary, or None."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) else None


def slot_names(cls: type) -> list[str]:
    """Names of the slots that a class and its bases declare."""
    names: list[str] = copyreg._slotnames(cls)  # type: ignore[attr-defined]
    return names


def slot(value: Any, name: str) -> Any:
    """A slot's value; an empty one compares equal to an empty one."""
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return "<empty slot>"


def without_addresses(text: Any) -> Any:
    """A text in which no address of an object tells two runs apart; other values as they are."""
    return _ADDRESS.sub("0x…", text) if type(text) is str else text


def kind(value: Any) -> str:
    """A value's class, for messages."""
    return type(value).__qualname__


def is_lasting(cls: type) -> bool:
    """Whether a class is found under its own name in its module, so that the program did not make it."""
    found: Any = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls


def short(value: Any, limit: int = 120) -> str:
    """A value's text, not too long."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{kind(value)}: {error}>"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
