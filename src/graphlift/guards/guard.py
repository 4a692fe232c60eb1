"""What a guard is, and the table of kinds.

A `Guard` is plain data: which kind, of which place, what must hold, and the user's place that made it
matter. Everything that can be done with one is the business of its kind (`kinds/`), which shows three faces:
`compile` writes the nodes of the C program, `holds` says the same in obvious Python, `explain` says it to
people. This module knows no kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, ClassVar, Final, NamedTuple

from graphlift.guards.places import Rows
from graphlift.sources import Source

#: Where the user's program read what is guarded: a code object, a byte offset, and the caller's place.
Where = tuple[CodeType, int, Any]


class Guard(NamedTuple):
    """One assumption of a capture.

    Attributes:
        kind: the name of its kind.
        source: the place that it is about, or None where it is about the process.
        payload: what must hold; its form is the kind's.
        where: the user's place that made it matter, or None.
    """

    kind: str
    source: Source | None
    payload: tuple[Any, ...] = ()
    where: Where | None = None

    def __eq__(self, other: object) -> bool:
        return self is other  # the payload may hold objects of the user's

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        about = "" if self.source is None else f" of {self.source.name()}"
        return f"Guard({self.kind}{about})"


#: The rank of guards that say only that a place is there: checked last.
PRESENCE: Final = 3


class Kind(ABC):
    """One way of assuming something. Instances have no state.

    The lasting form of a guard is (places, payload): indices of rows of the program, and what must hold,
    without any object of the user's.
    """

    name: ClassVar[str]
    #: Order of checks: 0 before anything is read, 1 as soon as its place is read, 2 after all single places,
    #: 3 at the end.
    rank: ClassVar[int] = 1

    @abstractmethod
    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        """Add the nodes to the program and give the guard's lasting form.

        Raises:
            NotGuardableError: this cannot be checked later.
        """

    @abstractmethod
    def holds(self, payload: Any, *values: Any) -> bool:
        """Whether the assumption holds for what is at the places now."""

    @abstractmethod
    def describe(self, payload: Any, *names: str) -> str:
        """What must hold, in a few words, for lists of guards."""

    @abstractmethod
    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        """What was assumed and what is there now, for one that does not hold."""


_KINDS: Final[dict[str, Kind]] = {}


def kind(cls: type[Kind]) -> type[Kind]:
    """Class decorator: enter a kind into the table."""
    assert cls.name not in _KINDS, cls.name
    _KINDS[cls.name] = cls()
    return cls


def kind_named(name: str) -> Kind:
    """The kind of that name.

    Raises:
        KeyError: there is none.
    """
    return _KINDS[name]


def all_kinds() -> dict[str, Kind]:
    """Every kind by its name."""
    return dict(_KINDS)


#: Shortest way to a kind for whoever compiles many guards.
find_kind: Final[Callable[[str], Kind]] = _KINDS.__getitem__
