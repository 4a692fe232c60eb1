"""``list.sort`` for keys that are compared by the program's own code.

https://docs.python.org/3/library/stdtypes.html#list.sort
"""

from __future__ import annotations

from typing import Any


def stable_sort(keys: list[Any], items: list[Any], reverse: bool) -> list[Any]:
    """The items in the order of their keys; equal ones keep theirs. Only ``<`` is asked of keys."""
    count = len(keys)
    order: list[int] = []
    for step in range(count):
        index = count - 1 - step if reverse else step
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            if keys[index] < keys[order[middle]]:
                high = middle
            else:
                low = middle + 1
        order.insert(low, index)
    if reverse:
        order.reverse()
    return [items[index] for index in order]
