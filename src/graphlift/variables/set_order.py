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


def added_one_by_one(history: History) -> list[Any] | None:
    """The elements in the order in which they were added, if nothing else was done to the set."""
    added: list[Any] = []
    for name, argument in history:
        if name == "add":
            added.append(argument)
        elif name == "update" and isinstance(argument, list):
            added += argument
        else:
            return None
    return list(dict.fromkeys(added))


def is_plain(history: History) -> bool:
    """Whether a history can be told again at any time: it does not begin with a set that may change."""
    return all(name != "=" or _is_plain_origin(argument[0]) for name, argument in history)


def _is_plain_origin(origin: Any) -> bool:
    return isinstance(origin, frozenset) or (isinstance(origin, tuple) and is_plain(origin))
