"""The modules `heapq` and `bisect`, whose C functions compare with the program's own ``<``.

https://docs.python.org/3/library/heapq.html
https://docs.python.org/3/library/bisect.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _rise(heap: list[Any], start: int, position: int) -> None:
    """Move the item at `position` up to where its parent is not larger."""
    item = heap[position]
    while position > start:
        above = (position - 1) >> 1
        parent = heap[above]
        if not item < parent:
            break
        heap[position] = parent
        position = above
    heap[position] = item


def _sink(heap: list[Any], position: int) -> None:
    """Move the item at `position` to the bottom along the smaller children, then up to its place."""
    end = len(heap)
    start = position
    item = heap[position]
    child = 2 * position + 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[position] = heap[child]
        position = child
        child = 2 * position + 1
    heap[position] = item
    _rise(heap, start, position)


def _rise_max(heap: list[Any], start: int, position: int) -> None:
    """As `_rise` with the largest item on top."""
    item = heap[position]
    while position > start:
        above = (position - 1) >> 1
        parent = heap[above]
        if not parent < item:
            break
        heap[position] = parent
        position = above
    heap[position] = item


def _sink_max(heap: list[Any], position: int) -> None:
    """As `_sink` with the largest item on top."""
    end = len(heap)
    start = position
    item = heap[position]
    child = 2 * position + 1
    while child < end:
        right = child + 1
        if right < end and not heap[right] < heap[child]:
            child = right
        heap[position] = heap[child]
        position = child
        child = 2 * position + 1
    heap[position] = item
    _rise_max(heap, start, position)


def heapify(heap: list[Any]) -> None:
    """``heapq.heapify``."""
    for position in reversed(range(len(heap) // 2)):
        _sink(heap, position)


def heappush(heap: list[Any], item: Any) -> None:
    """``heapq.heappush``."""
    heap.append(item)
    _rise(heap, 0, len(heap) - 1)


def heappop(heap: list[Any]) -> Any:
    """``heapq.heappop``."""
    if not heap:
        raise IndexError("index out of range")
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    heap[0] = last
    _sink(heap, 0)
    return first


def heapreplace(heap: list[Any], item: Any) -> Any:
    """``heapq.heapreplace``."""
    if not heap:
        raise IndexError("index out of range")
    first = heap[0]
    heap[0] = item
    _sink(heap, 0)
    return first


def heappushpop(heap: list[Any], item: Any) -> Any:
    """``heapq.heappushpop``."""
    if heap and heap[0] < item:
        first = heap[0]
        heap[0] = item
        _sink(heap, 0)
        return first
    return item


def _heapify_max(heap: list[Any]) -> None:
    """``heapify`` with the largest item on top, which `heapq.nsmallest` is made of."""
    for position in reversed(range(len(heap) // 2)):
        _sink_max(heap, position)


def _heappop_max(heap: list[Any]) -> Any:
    """``heappop`` with the largest item on top."""
    if not heap:
        raise IndexError("index out of range")
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    heap[0] = last
    _sink_max(heap, 0)
    return first


def _heapreplace_max(heap: list[Any], item: Any) -> Any:
    """``heapreplace`` with the largest item on top."""
    if not heap:
        raise IndexError("index out of range")
    first = heap[0]
    heap[0] = item
    _sink_max(heap, 0)
    return first


def bisect_right(found: Any, x: Any, low: int, high: int | None, key: Callable[[Any], Any] | None) -> int:
    """``bisect.bisect_right``."""
    if low < 0:
        raise ValueError("lo must be non-negative")
    if high is None:
        high = len(found)
    while low < high:
        middle = (low + high) // 2
        item = found[middle] if key is None else key(found[middle])
        if x < item:
            high = middle
        else:
            low = middle + 1
    return low


def bisect_left(found: Any, x: Any, low: int, high: int | None, key: Callable[[Any], Any] | None) -> int:
    """``bisect.bisect_left``."""
    if low < 0:
        raise ValueError("lo must be non-negative")
    if high is None:
        high = len(found)
    while low < high:
        middle = (low + high) // 2
        item = found[middle] if key is None else key(found[middle])
        if item < x:
            low = middle + 1
        else:
            high = middle
    return low


def insort_right(found: Any, x: Any, low: int, high: int | None, key: Callable[[Any], Any] | None) -> None:
    """``bisect.insort_right``."""
    found.insert(bisect_right(found, x if key is None else key(x), low, high, key), x)


def insort_left(found: Any, x: Any, low: int, high: int | None, key: Callable[[Any], Any] | None) -> None:
    """``bisect.insort_left``."""
    found.insert(bisect_left(found, x if key is None else key(x), low, high, key), x)
