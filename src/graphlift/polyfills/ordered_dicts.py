"""What ``collections.OrderedDict`` does through its own ``__setitem__``, which a derived class may override.

https://docs.python.org/3/library/collections.html#collections.OrderedDict
"""

from __future__ import annotations

from typing import Any


def ordered_update(target: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """``OrderedDict.__init__`` and ``OrderedDict.update`` (``mutablemapping_update``)."""
    if len(args) > 1:
        raise TypeError(f"update() takes at most 1 positional argument ({len(args)} given)")
    for other in args:
        if type(other) is dict:
            _store(target, other.items())
        elif hasattr(other, "keys"):
            for key in other.keys():  # noqa: SIM118
                target[key] = other[key]
        elif hasattr(other, "items"):
            _store(target, other.items())
        else:
            _store(target, other)
    for key, value in named.items():
        target[key] = value


def _store(target: Any, pairs: Any) -> None:
    for pair in pairs:
        found = list(pair)
        if len(found) < 2:
            raise ValueError(f"need more than {len(found)} value{'' if len(found) == 1 else 's'} to unpack")
        if len(found) > 2:
            raise ValueError("too many values to unpack (expected 2)")
        target[found[0]] = found[1]
