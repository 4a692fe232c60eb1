"""From guards to the C program, and back from a failing node to its guard.

What is kept is plain data: rows, lasting forms of payloads, places in the user's program. No source and no
object of the user's outlives the capture through it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, Final

from graphlift import _C
from graphlift.guards import kinds  # noqa: F401  (fills the table of kinds)
from graphlift.guards.guard import PRESENCE, Guard, Kind, Where, find_kind
from graphlift.guards.places import MISSING, Row, Rows, name_of, read, sort_of_place
from graphlift.profile import GuardCost
from graphlift.sources import ParamSource, Source


class Check:
    """The lasting form of one guard.

    Attributes:
        kind: its kind.
        ats: the rows that read the places it is about.
        payload: what must hold, without objects of the user's.
        place: the user's code (weakly) and byte offset, or None.
    """

    __slots__ = ("ats", "kind", "payload", "place")

    def __init__(self, kind: Kind, ats: tuple[int, ...], payload: Any, place: Any) -> None:
        self.kind: Final = kind
        self.ats: Final = ats
        self.payload: Final = payload
        self.place: Final[tuple[weakref.ref[CodeType], int] | None] = place

    def user_line(self) -> tuple[str, int] | None:
        """File and line in the user's program that made it matter, if still known."""
        code = self.place[0]() if self.place is not None else None
        if code is None or self.place is None:
            return None
        line = code.co_firstlineno
        for start, end, number in code.co_lines():
            if start <= self.place[1] < end and number is not None:
                line = number
        return code.co_filename, line


#: What a `Check` is made of.
Lasting = tuple[Kind, tuple[int, ...], Any, Any]


class GuardTable:
    """Guards as data, and what Python can do with them.

    Attributes:
        rows: the nodes of the program.
    """

    __slots__ = ("_checks", "_first_rows", "_lasting", "_names", "rows")

    def __init__(self, rows: Rows, lasting: list[Lasting], first_rows: list[int]) -> None:
        self.rows: Final[list[Row]] = rows.rows
        self._lasting: list[Lasting] = lasting
        self._checks: list[Check] = []
        self._first_rows: Final = first_rows
        self._names: Final = rows.names

    @property
    def checks(self) -> list[Check]:
        """The guards in the order in which they are checked; made when somebody asks first."""
        if self._lasting:
            self._checks = [Check(*parts) for parts in self._lasting]
            self._lasting = []
        return self._checks

    def check_of_row(self, row: int) -> Check | None:
        """The guard whose nodes row `row` belongs to; None for one that only the binding needs."""
        if row >= self._first_rows[-1]:
            return None
        low, high = 0, len(self._first_rows) - 2
        while low < high:
            middle = (low + high + 1) // 2
            if self._first_rows[middle] <= row:
                low = middle
            else:
                high = middle - 1
        return self.checks[low]

    def spans(self) -> Iterator[tuple[Check, int, int]]:
        """Each guard with its first row and the one behind its last."""
        return zip(self.checks, self._first_rows, self._first_rows[1:], strict=False)

    def values(self, check: Check, function: Any, params: Sequence[Any]) -> list[Any]:
        """What is at the places of a guard now, read by Python; `MISSING` for what is not there."""
        return [read(self.rows, at, function, params) for at in check.ats]

    def holds(self, check: Check, function: Any, params: Sequence[Any]) -> bool:
        """Whether a guard holds, by its Python face."""
        values = self.values(check, function, params)
        return MISSING not in values_by_identity(values) and check.kind.holds(check.payload, *values)

    def place_name(self, at: int) -> str:
        """The place that row `at` reads, as a user would write it."""
        return name_of(self.rows, self._names, at)

    def named(self, check: Check) -> list[str]:
        """The places of a guard with what sort of place each is, e.g. ``argument `n```."""
        return [f"{sort_of_place(self.rows, at)} `{self.place_name(at)}`".lstrip() for at in check.ats]

    def lines(self) -> list[str]:
        """One line of text a guard."""
        return [self.line(check) for check in self.checks]

    def line(self, check: Check) -> str:
        """A guard as text: the place, what must hold, and the user's line that made it matter."""
        names = [self.place_name(at) for at in check.ats]
        text = check.kind.describe(check.payload, *names)
        if names and check.kind.name not in ("expression", "overlap"):
            text = f"{names[0]} {text}"
        where = check.user_line()
        return text if where is None else f"{text}  # {where[0]}:{where[1]}"


class CompiledGuards(GuardTable):
    """A guard program with what is needed to explain it.

    Attributes:
        program: to be run at each call.
    """

    __slots__ = ("program",)

    def __init__(
        self, rows: Rows, lasting: list[Lasting], first_rows: list[int], outputs: Sequence[int]
    ) -> None:
        super().__init__(rows, lasting, first_rows)
        self.program: Final = _C.GuardProgram(rows.for_program(), outputs)


#: Runs in a row of each node when costs are measured.
_COST_RUNS: Final = 25


def guard_costs(compiled: CompiledGuards, function: Any, params: tuple[Any, ...]) -> list[GuardCost]:
    """What each guard costs for a call, dearest first; those behind one that fails are left out."""
    nodes = compiled.program.profile(function, params, _COST_RUNS)
    found = []
    for check, first, end in compiled.spans():
        if end > len(nodes):
            break
        found.append(GuardCost(compiled.line(check), sum(nodes[first:end])))
    return sorted(found, key=lambda row: row.nanoseconds, reverse=True)


def values_by_identity(values: Sequence[Any]) -> list[Any]:
    """Values of which only `MISSING` matters, so that no ``__eq__`` of the user's is asked."""
    return [value if value is MISSING else None for value in values]


def _in_order(guards: Sequence[Guard]) -> list[tuple[Kind, Guard]]:
    """The order of checking: the process, then parameters themselves (cheap, and what differs most often),
    then the rest in the order in which the capture met it, then relations between places, then whether what
    nobody looked into is there."""
    rest: list[tuple[Kind, Guard]] = []
    others: tuple[list[tuple[Kind, Guard]], ...] = ([], [], [], [])
    parameters = others[1]
    for guard in guards:
        name, source, _, _ = guard
        kind = find_kind(name)
        rank = kind.rank
        if rank != 1:
            others[rank].append((kind, guard))
        elif type(source) is ParamSource:
            parameters.append((kind, guard))
        else:
            rest.append((kind, guard))
    return others[0] + parameters + rest + others[2] + others[3]


def compile_guards(
    guards: Sequence[Guard],
    outputs: Sequence[Source] = (),
    presence: Sequence[tuple[Source, Where]] = (),
    *,
    check: bool = False,
) -> CompiledGuards:
    """Make the program that checks `guards` and hands out what is at `outputs`.

    Whoever gives the guards gives each once; places that they share are read once, and that a place is there
    is listed only where nothing else is said of it.

    Arguments:
        presence: places where something is, and what made that matter; each is read once more only if nothing
            else reads it.
        check: run the Python face of every guard beside the program, and raise where they disagree.

    Raises:
        NotGuardableError: one of the guards cannot be checked later.
        KeyError: a guard's kind does not exist.
    """
    rows = Rows()
    program, ref = rows.rows, weakref.ref
    lasting: list[Lasting] = []
    first_rows: list[int] = []
    for kind, guard in _in_order(guards):
        if kind.rank == PRESENCE and guard.source is not None and rows.reads(guard.source):
            continue  # reading a place is a check that it is there
        first_rows.append(len(program))
        ats, payload = kind.compile(guard, rows)
        where = guard.where
        lasting.append((kind, ats, payload, None if where is None else (ref(where[0]), where[1])))
    there = find_kind("there")
    for source, where in rows.unread(presence):
        if not rows.reads(source):  # nor did one before it in this list
            first_rows.append(len(program))
            lasting.append((there, (rows.at(source),), None, (ref(where[0]), where[1])))
    first_rows.append(len(program))
    compiled = CompiledGuards(rows, lasting, first_rows, [rows.at(source) for source in outputs])
    if check:
        compiled.program.set_audit(auditor(GuardTable(rows, lasting, first_rows)))
    return compiled


class GuardFacesDisagreeError(AssertionError):
    """The C face and the Python face of a guard say different things."""


def auditor(table: GuardTable) -> Callable[[Any, tuple[Any, ...], int], None]:
    """What runs after each run of the program when faces are compared."""

    def audit(function: Any, params: tuple[Any, ...], failed: int) -> None:
        culprit = table.check_of_row(failed) if failed >= 0 else None
        if failed >= 0 and culprit is None:
            return  # a place that only the binding needs
        for check in table.checks:
            says = table.holds(check, function, params)
            if check is culprit:
                if says:
                    raise GuardFacesDisagreeError(f"only the program objects to: {table.line(check)}")
                return
            if not says:
                raise GuardFacesDisagreeError(f"only Python objects to: {table.line(check)}")

    return audit
