"""Attribute hooks and descriptors as Python.

Each function names the documentation of what it stands for.
"""

from __future__ import annotations

from typing import Any


def cached_property_get(descriptor: Any, instance: Any) -> Any:
    """``functools.cached_property.__get__``.

    https://docs.python.org/3/library/functools.html#functools.cached_property
    """
    name = descriptor.attrname
    if name is None:
        raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
    cls = type(instance).__name__
    try:
        cache = instance.__dict__
    except AttributeError:
        raise TypeError(f"No '__dict__' attribute on {cls!r} instance to cache {name!r} property.") from None
    if name in cache:
        return cache[name]
    value = descriptor.func(instance)
    try:
        cache[name] = value
    except TypeError:
        text = f"The '__dict__' attribute on {cls!r} instance does not support item assignment for caching"
        raise TypeError(f"{text} {name!r} property.") from None
    return value
