"""The order in which a set gives its elements, found by doing to a real set what was done to it."""

from __future__ import annotations

from typing import Any, Final

#: What was done to a set since it was empty: (method name, plain argument), oldest first. The first may be
#: ``("=", (history or real set, method name, argument))``: the set is what that method made of another set.
History = tuple[tuple[str, Any], ...]


#: Methods without an argument.
BARE: Final = frozenset({"pop", "clear"})


class Existing:
    """An argument that is a set which existed before the capture, and which may change behind it."""

    __slots__ = ("elements",)

    def __init__(self, elements: set[Any] | frozenset[Any]) -> None:
        self.elements: Final = elements


def _argument(value: Any) -> Any:
    return value.elements if isinstance(value, Existing) else value


def replay(history: History) -> set[Any]:
    """A real set to which the same was done, and which therefore has the same order."""
    made: set[Any] = set()
    for name, argument in history:
        if name == "=":
            origin, method_name, other = argument
            base = replay(origin) if isinstance(origin, tuple) else origin
            made = base.copy() if method_name == "copy" else getattr(base, method_name)(_argument(other))
        elif name in BARE:
            getattr(made, name)()
        else:
            getattr(made, name)(_argument(argument))
    return made


def moves_place(history: History) -> bool:
    """Whether something was popped, behind which CPython begins to look the next time, cleared or not."""
    return any(name == "pop" for name, _ in history)


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
    """Whether a history can be told again at any time: no set that may have changed has a part in it."""
    for name, argument in history:
        other = argument[2] if name == "=" else argument
        if isinstance(other, Existing) or (name == "=" and not _is_plain_origin(argument[0])):
            return False
    return True


def _is_plain_origin(origin: Any) -> bool:
    return isinstance(origin, frozenset) or (isinstance(origin, tuple) and is_plain(origin))
