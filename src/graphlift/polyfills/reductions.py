"""Builtins that run an iterable to its end or to a decision.

https://docs.python.org/3/library/functions.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


class MISSING:
    """Stands for what is not there; a class, so that it is one object for good."""


def turns(iterator: Iterator[Any]) -> Iterator[Any]:
    """The items of an iterator, which is asked for nothing else."""
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return
        yield item


def sum_(items: Iterator[Any], start: Any) -> Any:
    """``sum``. Numbers in front are added in C, which is exact for floats on newer Pythons."""
    if type(start) is int or type(start) is float:
        numbers = []
        for item in items:
            if type(item) is int or type(item) is float:
                numbers.append(item)
            else:
                start = sum(numbers, start) + item
                break
        else:
            return sum(numbers, start)
    for item in items:
        start = start + item
    return start


def any_(iterable: Iterable[Any]) -> bool:
    """``any``."""
    for item in iterable:  # noqa: SIM110
        if item:
            return True
    return False


def all_(iterable: Iterable[Any]) -> bool:
    """``all``."""
    for item in iterable:  # noqa: SIM110
        if not item:
            return False
    return True


def smallest(items: Iterator[Any], key: Callable[[Any], Any] | None, found: Any) -> Any:
    """``min``; `found` is what stands when there is no item."""
    best = found
    best_key = MISSING
    for item in items:
        value = item if key is None else key(item)
        if best_key is MISSING or value < best_key:
            best, best_key = item, value
    return best


def largest(items: Iterator[Any], key: Callable[[Any], Any] | None, found: Any) -> Any:
    """``max``; `found` is what stands when there is no item."""
    best = found
    best_key = MISSING
    for item in items:
        value = item if key is None else key(item)
        if best_key is MISSING or value > best_key:
            best, best_key = item, value
    return best


def reduce(function: Callable[[Any, Any], Any], items: Iterable[Any], start: Any) -> Any:
    """``functools.reduce`` with a start."""
    for item in items:
        start = function(start, item)
    return start


def product(iterable: Iterable[Any], start: Any) -> Any:
    """``math.prod``."""
    for item in iterable:
        start = start * item
    return start
