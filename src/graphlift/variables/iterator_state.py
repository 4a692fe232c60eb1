"""What emitted code calls to build iterators and to move existing ones; runs in the compiled program only."""

from __future__ import annotations

import itertools
import sys
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

#: The position of an iterator that has come to its end.
DONE: Final = -1
#: Position of a reversed iterator that told its end, and let go of its sequence.
USED_UP: Final = -2


class _Nothing:
    """A sequence without items that has ``__getitem__`` only."""

    def __getitem__(self, index: int) -> Any:
        raise IndexError


_EMPTY: Final[dict[str, Any]] = {
    "list_iterator": [],
    "tuple_iterator": (),
    "str_iterator": "",
    "str_ascii_iterator": "",
    "bytes_iterator": b"",
    "bytearray_iterator": bytearray(),
    "arrayiterator": array("b"),
    "set_iterator": set(),
    "iterator": _Nothing(),
}


def _at(iterator: Any, position: int) -> Any:
    iterator.__setstate__(sys.maxsize if position == DONE else position)
    if position == DONE:
        next(iterator, None)
    return iterator


def sequence_iterator(kind: str, sequence: Any, done: bool) -> Any:
    """An iterator of the class named `kind` over `sequence`, at its beginning or at its end."""
    if done:
        iterator = iter(_EMPTY[kind])
        next(iterator, None)
        return iterator
    if isinstance(sequence, list):
        return list.__iter__(sequence)
    if isinstance(sequence, tuple):
        return tuple.__iter__(sequence)
    return iter(sequence)


def used_up_reversed(of_list: bool) -> Any:
    """An iterator such as `reversed` gives for a list, or for other sequences, at its end."""
    iterator = reversed([]) if of_list else reversed(())
    next(iterator, None)
    return iterator


def move_reversed_iterator(iterator: Any, position: int) -> None:
    """Make the item at `position` the next one."""
    iterator.__setstate__(position)


def text_iterator(text: str | bytes, gone: int) -> Any:
    """An iterator over a text; -1: one that is used up, which has let go of it."""
    return _at(iter(text), gone)


def move_sequence_iterator(iterator: Any, position: int) -> None:
    """Move an existing iterator to a position, which may lie beyond the end of a sequence that has
    become shorter: for the moment it is made long enough, since CPython bounds the position by it."""
    sequence: Any = iterator.__reduce__()[1][0] if position > 0 else None
    cls: Any = next((cls for cls in (list, bytearray, array) if isinstance(sequence, cls)), None)
    if cls is None or position <= cls.__len__(sequence):
        _at(iterator, position)
        return
    length = cls.__len__(sequence)
    cls.extend(sequence, ([None] if cls is list else [0]) * (position - length))
    _at(iterator, position)
    cls.__delitem__(sequence, slice(length, None))


def skip(iterator: Iterator[Any], count: int) -> Iterator[Any]:
    """Take `count` items off an iterator whose items are made without running user code."""
    deque(islice(iterator, count), maxlen=0)
    return iterator


def skip_all(iterator: Iterator[Any]) -> None:
    """Run such an iterator to its end."""
    deque(iterator, maxlen=0)


def combinations_of(kind: Any, pools: Sequence[Sequence[Any]], length: int) -> Iterator[tuple[Any, ...]]:
    """The iterator of class `kind`, `itertools.product` or one of its like, at its beginning."""
    if kind is itertools.product:
        return itertools.product(*pools, repeat=length)
    made: Iterator[tuple[Any, ...]] = kind(pools[0], length)
    return made


def combinatoric_iterator(name: str, gone: int, length: int, *pools: Sequence[Any]) -> Iterator[Any]:
    """The iterator of the class of this name in `itertools`, from which some items were taken."""
    return skip(combinations_of(getattr(itertools, name), pools, length), gone)
