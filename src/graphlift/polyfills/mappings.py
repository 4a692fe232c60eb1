"""``dict.update`` from objects that are no plain dictionaries.

https://docs.python.org/3/library/stdtypes.html#dict.update
"""

from __future__ import annotations

from typing import Any


def update_from_mapping(target: dict[Any, Any], other: Any) -> None:
    """Store what an object with ``keys()`` and ``[]`` holds."""
    for key in other.keys():  # noqa: SIM118
        target[key] = other[key]


def update_from_pairs(target: dict[Any, Any], other: Any) -> None:
    """Store pairs; errors name the element that is no pair."""
    for number, element in enumerate(other):
        pair: list[Any] | None = None
        try:  # noqa: SIM105
            pair = list(element)
        except TypeError:
            pass
        if pair is None:  # C forgets what was raised before
            raise TypeError(f"cannot convert dictionary update sequence element #{number} to a sequence")
        if len(pair) != 2:
            raise ValueError(
                f"dictionary update sequence element #{number} has length {len(pair)}; 2 is required"
            )
        target[pair[0]] = pair[1]


def fromkeys(cls: Any, keys: tuple[Any, ...], value: Any) -> Any:
    """``cls.fromkeys(keys, value)`` of a class derived from dict."""
    made = cls()
    for key in keys:
        made[key] = value
    return made


def count_elements(mapping: Any, iterable: Any) -> None:
    """What `collections.Counter` counts with.

    https://docs.python.org/3/library/collections.html#collections.Counter
    """
    get = mapping.get
    for element in iterable:
        mapping[element] = get(element, 0) + 1
