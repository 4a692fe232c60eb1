"""Iterators of `itertools` that run the program's own code or keep no state worth a model, as generators.

https://docs.python.org/3/library/itertools.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


class MISSING:
    """Stands for what is not there; a class, so that it is one object for good."""


def chain(iterables: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """``chain.from_iterable``."""
    for iterable in iterables:
        yield from iterable


def islice(iterator: Iterator[Any], start: int, stop: int | None, step: int) -> Iterator[Any]:
    """``islice`` with its numbers checked already; takes no item beyond the last one it gives or skips."""
    position = 0
    wanted = start
    while stop is None or position < stop:
        if stop is not None and wanted >= stop:
            while position < stop:
                position += 1
                if next(iterator, MISSING) is MISSING:
                    return
            return
        while position < wanted:
            position += 1
            if next(iterator, MISSING) is MISSING:
                return
        item = next(iterator, MISSING)
        if item is MISSING:
            return
        position += 1
        yield item
        wanted += step


def takewhile(predicate: Callable[[Any], Any], iterator: Iterator[Any]) -> Iterator[Any]:
    """``takewhile``."""
    for item in iterator:
        if not predicate(item):
            return
        yield item


def dropwhile(predicate: Callable[[Any], Any], iterator: Iterator[Any]) -> Iterator[Any]:
    """``dropwhile``."""
    for item in iterator:
        if not predicate(item):
            yield item
            break
    yield from iterator


def starmap(function: Callable[..., Any], iterator: Iterator[Iterable[Any]]) -> Iterator[Any]:
    """``starmap``."""
    for args in iterator:
        yield function(*args)


def compress(data: Iterator[Any], selectors: Iterator[Any]) -> Iterator[Any]:
    """``compress``."""
    for item in data:
        selector = next(selectors, MISSING)
        if selector is MISSING:
            return
        if selector:
            yield item


def accumulate(
    iterator: Iterator[Any], function: Callable[[Any, Any], Any] | None, initial: Any
) -> Iterator[Any]:
    """``accumulate``; None as `initial` means there is none."""
    total = initial
    if initial is None:
        total = next(iterator, MISSING)
        if total is MISSING:
            return
    yield total
    for item in iterator:
        total = total + item if function is None else function(total, item)
        yield total


def zip_longest(iterators: list[Iterator[Any]], fill: Any) -> Iterator[Any]:
    """``zip_longest``."""
    running = len(iterators)
    ended = [False] * running
    while running:
        row = []
        for position, iterator in enumerate(iterators):
            item = fill
            if not ended[position]:
                item = next(iterator, MISSING)
                if item is MISSING:
                    running -= 1
                    if not running:
                        return
                    ended[position] = True
                    item = fill
            row.append(item)
        yield tuple(row)


def pairwise(iterator: Iterator[Any]) -> Iterator[Any]:
    """``pairwise``."""
    before = next(iterator, MISSING)
    if before is MISSING:
        return
    for item in iterator:
        yield before, item
        before = item


def batched(iterator: Iterator[Any], count: int, strict: bool) -> Iterator[Any]:
    """``batched``."""
    while True:
        batch = []
        for item in iterator:
            batch.append(item)
            if len(batch) == count:
                break
        if not batch:
            return
        if strict and len(batch) != count:
            raise ValueError("batched(): incomplete batch")
        yield tuple(batch)


def groupby(iterator: Iterator[Any], key: Callable[[Any], Any] | None) -> Iterator[Any]:
    """``groupby``: a group ends when the next one is asked for."""
    state: dict[str, Any] = {"id": None}
    item = next(iterator, MISSING)
    if item is MISSING:
        return
    state["item"] = item
    state["key"] = item if key is None else key(item)
    while True:
        token = state["id"] = [None]
        target = state["key"]
        yield target, _group(iterator, key, state, token, target)
        while "item" in state and state["key"] == target:
            _advance(iterator, key, state)
        if "item" not in state:
            return


def _advance(iterator: Iterator[Any], key: Callable[[Any], Any] | None, state: dict[str, Any]) -> None:
    del state["item"]
    item = next(iterator, MISSING)
    if item is not MISSING:
        state["key"] = item if key is None else key(item)
        state["item"] = item


def _group(
    iterator: Iterator[Any], key: Callable[[Any], Any] | None, state: dict[str, Any], token: Any, target: Any
) -> Iterator[Any]:
    while state["id"] is token and "item" in state and state["key"] == target:
        item = state["item"]
        _advance(iterator, key, state)
        yield item


def tee(iterator: Iterator[Any], link: list[Any]) -> Iterator[Any]:
    """One of the iterators that ``tee`` gives. All begin at the same `link`: ``[item, next link]``, or empty
    until somebody reaches it."""
    while True:
        if not link:
            item = next(iterator, MISSING)
            if item is MISSING:
                return
            link.append(item)
            link.append([])
        yield link[0]
        link = link[1]
