"""Attribute hooks and descriptors as Python.

Each function names the documentation of what it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def cached_property_get(descriptor: Any, instance: Any) -> Any:
    """``functools.cached_property.__get__``.

    https://docs.python.org/3/library/functools.html#functools.cached_property
    """
    name = descriptor.attrname
    if name is None:
        raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
    cache = instance.__dict__
    if name in cache:
        return cache[name]
    value = descriptor.func(instance)
    cache[name] = value
    return value


def iterate_by_index(sequence: Any) -> Iterator[Any]:
    """``iter()`` of an object that has ``__getitem__`` but no ``__iter__``.

    https://docs.python.org/3/library/functions.html#iter
    """
    index = 0
    while True:
        try:
            item = sequence[index]
        except (IndexError, StopIteration):
            return
        yield item
        index += 1
