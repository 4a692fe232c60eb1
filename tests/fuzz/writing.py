"""The pen: fills in templates, keeps lines and indentation, and knows which names there are.

What is chosen comes from a `random.Random` (or one of Hypothesis's, which has the same methods) and from
nothing else. Each program has a mood of its own: some templates do not occur in it, others often do.
"""

from __future__ import annotations

import contextlib
import random
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from fuzz.grammar import EXPRESSIONS, LEAVES, LITERALS, PLACE, STATEMENTS, Template

#: By how much a template's weight is changed in one program.
MOODS = (0.0, 0.0, 0.4, 1.0, 1.0, 1.0, 3.0)


@dataclass
class Scope:
    """The names that can be used at a place of the program.

    Attributes:
        readable: names of variables by kind.
        own: those of them that may be assigned.
        returns: the kind that the function gives, None at other places.
        generator: whether `yield` may stand here.
        loop: whether `break` and `continue` may stand here.
        handler: whether a bare `raise` may stand here.
        driver: whether this is the part that calls the program.
    """

    readable: dict[str, list[str]] = field(default_factory=dict)
    own: dict[str, list[str]] = field(default_factory=dict)
    returns: str | None = None
    generator: bool = False
    loop: bool = False
    handler: bool = False
    driver: bool = False

    def add(self, kind: str, name: str) -> None:
        """There is a variable of this name from here on."""
        self.readable.setdefault(kind, []).append(name)
        self.own.setdefault(kind, []).append(name)

    def inner(self, **changes: Any) -> Scope:
        """The scope of a function that stands here: all may be read, nothing assigned."""
        return Scope({kind: list(names) for kind, names in self.readable.items()}, {}, **changes)

    def can_write(self, template: Template) -> bool:
        """Whether there are the variables that a template needs."""
        return all((self.own if own else self.readable).get(kind) for kind, own in template.needs)


@dataclass(frozen=True)
class Offer(Template):
    """A template that a program's own definitions offer.

    Attributes:
        level: functions of this level and below must not use it, so that nothing calls itself.
    """

    level: int = -1


class Writer:
    """Writes one program.

    Arguments:
        chance: where all choices come from.

    Attributes:
        level: that of the function which is being written; see `Offer`.
        expressions, statements: what the program's own definitions offer beside the grammar.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.lines: list[str] = []
        self.level = 1000
        self.expressions: dict[str, list[Template]] = {}
        self.statements: list[Template] = []
        self.subclasses: dict[str, list[str]] = {}
        self.breaking = self.pick((0.0, 0.0, 0.2, 0.5, 1.0))
        self._indent = 0
        self._names = 0
        self._prepared: dict[str, tuple[list[Template], list[float]]] = {}

    # --- choices -----------------------------------------------------------------------------

    def happens(self, probability: float) -> bool:
        """True with this probability."""
        return self.chance.random() < probability

    def pick(self, options: Sequence[Any]) -> Any:
        """One of several."""
        return options[self.chance.randrange(len(options))]

    def weighted(self, options: Sequence[tuple[Any, float]]) -> Any:
        """One of several, by weight."""
        sums = list(accumulate(weight for _, weight in options))
        return options[bisect(sums, self.chance.random() * sums[-1])][0]

    # --- text --------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Write a line, or several, at the present indentation."""
        self.lines += ["    " * self._indent + part for part in text.splitlines()]

    @contextlib.contextmanager
    def indented(self) -> Iterator[None]:
        """Lines inside are a block."""
        self._indent += 1
        try:
            yield
        finally:
            self._indent -= 1

    def fresh(self, kind: str) -> str:
        """A name that is used nowhere else."""
        self._names += 1
        return f"{kind.lower()}{'_' if kind[-1].isdigit() else ''}{self._names}"

    # --- expressions -------------------------------------------------------------------------

    def expression(self, kind: str, scope: Scope, depth: int = 2) -> str:
        """An expression whose value is, as a rule, of this kind."""
        if depth <= 0 or self.happens(0.35):
            return self.leaf(kind, scope)
        for _ in range(4):
            template = self._template(kind)
            if template is not None and self._allowed(template, scope):
                return self.fill(template.text, scope, depth - 1 if template.parts > 1 else depth - 0.5)
        return self.leaf(kind, scope)

    def leaf(self, kind: str, scope: Scope) -> str:
        """A variable, else a literal or the like."""
        names = self.variables(kind, scope)
        if names and self.happens(0.85):
            return str(self.pick(names))
        if kind.startswith("O"):
            return self.fill(f"C{kind[1:]}(<I>, <T>)", scope, 0)
        return str(self.pick(LEAVES[kind]))

    def variables(self, kind: str, scope: Scope) -> list[str]:
        """Names of variables of a kind, objects of subclasses among them."""
        kinds = (kind, *self.subclasses.get(kind, ()))
        return [name for one in kinds for name in scope.readable.get(one, ())]

    def fill(self, text: str, scope: Scope, depth: float = 2) -> str:
        """A template's text with its places filled in."""
        bound: dict[str, str] = {}

        def place(found: Any) -> str:
            name = found[1]
            if name[0] == "@":
                if name not in bound:
                    bound[name] = self.fresh(name[1:])
                return bound[name]
            if name[-1] == "!":
                return str(self.pick(scope.own[name[:-1]]))
            if name[-1] == "?":
                return str(self.pick(scope.readable[name[:-1]]))
            if name[0].islower():
                return str(self.pick(LITERALS[name]))
            return self.expression(name, scope, depth)  # type: ignore[arg-type]

        return PLACE.sub(place, text)

    def statement(self, scope: Scope) -> None:
        """Write one simple statement out of the tables."""
        for _ in range(6):
            template = self._template("")
            if template is not None and self._allowed(template, scope):
                self.line(self.fill(template.text, scope))
                return
        self.bind(scope, "T", "<T>")

    def new(self, scope: Scope, kind: str) -> str:
        """A new variable, known from here on."""
        name = self.fresh(kind)
        scope.add(kind, name)
        return name

    def bind(self, scope: Scope, kind: str, text: str) -> None:
        """Write that a new variable is what a template says."""
        filled = self.fill(text, scope)
        self.line(f"{self.new(scope, kind)} = {filled}")

    def offer(self, kind: str, text: str, weight: float = 2, level: int = -1) -> None:
        """Let expressions of a kind (statements: "") be written this way, too."""
        template = Offer(text, weight, level=level)
        (self.statements if not kind else self.expressions.setdefault(kind, [])).append(template)
        self._prepared.pop(kind, None)

    def _allowed(self, template: Template, scope: Scope) -> bool:
        return getattr(template, "level", -1) < self.level and scope.can_write(template)

    def _template(self, kind: str) -> Template | None:
        """A template of a kind, by weight and mood."""
        if kind not in self._prepared:
            offered = self.statements if not kind else self.expressions.get(kind, [])
            known = STATEMENTS if not kind else EXPRESSIONS.get(kind, [])
            options = [(one, self._mood(one)) for one in known] + [(one, one.weight) for one in offered]
            options = [(one, weight) for one, weight in options if weight]
            self._prepared[kind] = (
                [one for one, _ in options],
                list(accumulate(weight for _, weight in options)),
            )
        templates, sums = self._prepared[kind]
        if not templates:
            return None
        return templates[min(bisect(sums, self.chance.random() * sums[-1]), len(templates) - 1)]

    def _mood(self, template: Template) -> float:
        weight = template.weight * self.pick(MOODS)
        return weight * self.breaking if template.breaks else weight


Make = Callable[[Writer, Scope, int], None]
