"""Iterators of `itertools` that run the program's own code or keep no state worth a model, as generators.

https://docs.python.org/3/library/itertools.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class MISSING:
    """Stands for what is not there; a class, so that it is one object for good."""


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


def batched(iterator: Iterator[Any], count: int, strict: bool = False) -> Iterator[Any]:
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
