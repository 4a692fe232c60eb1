"""The order in which a set gives its elements, found by doing to a real set what was done to it."""

from __future__ import annotations

from typing import Any

#: What was done to a set since it was empty: (method name, plain argument), oldest first. The first may be
#: ``("=", (history or real set, method name, argument))``: the set is what that method made of another set.
History = tuple[tuple[str, Any], ...]


def replay(history: History) -> set[Any]:
    """A real set to which the same was done, and which therefore has the same order."""
    made: set[Any] = set()
    for name, argument in history:
        if name == "=":
            origin, method_name, other = argument
            base = replay(origin) if isinstance(origin, tuple) else origin
            made = base.copy() if method_name == "copy" else getattr(base, method_name)(other)
        elif name == "pop":
            made.pop()
        else:
            getattr(made, name)(argument)
    return made
