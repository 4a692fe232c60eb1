"""A whole program: its text from a source of choices.

The program has a function ``main``, which is what is compiled, and a generator function ``steps``, which
gives the arguments of one call after another and changes this and that in between.
"""

from __future__ import annotations

import random
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType

from fuzz.definitions import (
    PRELUDE,
    declare_globals,
    write_class,
    write_decorators,
    write_enum,
    write_function,
    write_generator,
    write_globals,
    write_recursion,
)
from fuzz.statements import KINDS, block
from fuzz.writing import Scope, Writer

#: The file that a program's code says it stands in.
FILE = "<program>"


@dataclass(frozen=True)
class Settings:
    """How a program is run; its first line says it.

    Attributes:
        dynamic: what `graphlift.compile` is told.
        guards: whether each guard's Python face is asked beside the C program.
        cut: graphs are cut before one instruction in so many; 0: before none.
        choice: which instructions these are.
    """

    dynamic: bool | None = None
    guards: bool = False
    cut: int = 0
    choice: int = 0

    @classmethod
    def chosen(cls, chance: random.Random) -> Settings:
        """Settings at random: most often the usual ones."""
        dynamic = chance.choice((*[None] * 8, True, False))
        cut = chance.choice((*[0] * 12, 3, 10, 40))
        return cls(dynamic, chance.random() < 0.1, cut, chance.randrange(100))

    @classmethod
    def of(cls, text: str) -> Settings:
        """Those that a program's text begins with."""
        found = re.match(r"# dynamic=(\w+) guards=(\w+) cut=(\d+) choice=(\d+)\n", text)
        if found is None:
            return cls()
        words = {"None": None, "True": True, "False": False}
        return cls(words[found[1]], bool(words[found[2]]), int(found[3]), int(found[4]))

    def line(self) -> str:
        """The first line of a program."""
        return f"# dynamic={self.dynamic} guards={self.guards} cut={self.cut} choice={self.choice}\n"


def program(seed: int) -> str:
    """The text of the program of this number, with the settings under which it is to run."""
    chance = random.Random(seed)
    return Settings.chosen(chance).line() + written(chance)


@lru_cache(maxsize=1)
def code_of(text: str) -> CodeType:
    """The code of a program's module: made to see whether there is any, and then run."""
    with warnings.catch_warnings(action="ignore"):
        return compile(text, FILE, "exec", dont_inherit=True)


def written(chance: random.Random) -> str:
    """A program's text; what the compiler would refuse is written anew."""
    for _ in range(20):
        text = _written(Writer(chance))
        try:
            code_of(text)
        except SyntaxError:
            continue
        return text
    raise AssertionError("twenty programs in a row cannot be compiled")


def _written(w: Writer) -> str:
    module = Scope()
    w.line(PRELUDE)
    write_globals(w, module)
    write_enum(w)
    decorators = write_decorators(w)
    known: dict[int, str] = {}
    for number in range(w.pick((0, 1, 2, 3))):
        write_class(w, module, number, known)
    for number in range(w.pick((0, 0, 1))):
        write_generator(w, module, number)
    if w.happens(0.2):
        write_recursion(w, module)
    for number in range(w.pick((0, 1, 2, 3))):
        write_function(w, module, number, decorators)
    parameters = _write_main(w, module)
    _write_steps(w, module, parameters, known)
    return "\n".join(w.lines) + "\n"


def _write_main(w: Writer, module: Scope) -> list[str]:
    """The function that is compiled; the kinds of its parameters."""
    kinds = ["T"]
    choices = [*KINDS, *((one, 4) for one in w.expressions if one.startswith("O"))]
    kinds += [w.weighted(choices) for _ in range(w.pick((1, 2, 3, 4, 5)))]
    inside = module.inner(returns="T")
    names = [w.new(inside, kind) for kind in kinds]
    w.line(f"def main({', '.join(names)}):")
    with w.indented():
        declare_globals(w, module, inside)
        block(w, inside, w.pick((3, 4, 5, 6, 8)), 3)
        results = [name for them in inside.readable.values() for name in them]
        chosen = w.chance.sample(results, min(len(results), w.pick((1, 2, 3, 4))))
        w.line(f"return {', '.join([w.expression('T', inside), *chosen])}")
    return kinds


#: What may happen between two calls to an argument of a kind: a value of another type or size, ...
OTHERS = {
    "T": [
        "torch.arange(4.0)",
        "torch.ones(3, dtype=torch.float64)",
        "torch.ones(3, requires_grad=True)",
        "torch.ones(1, 3)",
    ]
    + [
        "torch.arange(6.0).view(2, 3)",
        "torch.arange(6.0)[::2]",
        "torch.arange(3)",
        "torch.nn.Parameter(torch.ones(3))",
    ]
    + [
        "torch.zeros(2, 3).t().contiguous().t()",
        "torch.tensor([0.5, float('nan'), -0.0])",
        "torch.zeros(0)",
        "torch.tensor(True)",
    ],
    "I": ["True", "7", "2.0", "10 ** 20", "torch.tensor(2)"],
    "F": ["3", "float('nan')", "-0.0", "1e300"],
    "B": ["1", "0", "None"],
    "S": ["'zz'", "b'a'", "'a' * 9"],
    "LT": [
        "[]",
        "(torch.ones(3), torch.zeros(3))",
        "[torch.ones(3)] * 3",
        "collections.deque([torch.ones(3)])",
    ],
    "LI": ["[]", "(1, 2)", "range(3)", "[1.5, 2]", "collections.deque([1, 2])"],
    "DT": ["{}", "collections.OrderedDict(b=torch.ones(3), a=torch.ones(3))", "{'c': torch.ones(3)}"],
    "DI": ["{}", "collections.defaultdict(int, a=1)", "{'c': 3, 'a': 1}", "collections.Counter('abca')"],
    "SI": ["set()", "frozenset({1, 2})"],
    "P": ["Pair(1, torch.ones(3))", "[1, torch.ones(3)]", "(1, torch.ones(3), 2)"],
    "G": ["iter([])", "iter(range(2))", "map(int, '12')", "(v for v in [1, 2])"],
    "FN": ["operator.add", "torch.sub", "(lambda a, b: a)", "functools.partial(torch.add, alpha=2)"],
}

BETWEEN = [
    *[
        "<C>.k = <I>",
        "<C>.k += 1",
        "<C>.m0 = lambda self, a, b=1: a + b * self.n",
        "<C>.shared = [<I>]",
        "<C>.extra = <I>",
    ],
    *[
        "<C>.__call__ = lambda self, a, b=1: a - b",
        "<C>.__len__ = lambda self: 2",
        "<C>.__eq__ = lambda self, other: True",
    ],
    *[
        "<C>.__bool__ = lambda self: False",
        "<C>.p = property(lambda self: 5)",
        "<C>.__getattr__ = lambda self, name: 4",
    ],
    *["del <C>.k", "<C>.__iter__ = lambda self: iter([4, 5])", "<C>.__add__ = lambda self, other: other"],
]


def _write_steps(w: Writer, module: Scope, kinds: list[str], known: dict[int, str]) -> None:
    """The generator that gives the arguments of each call."""
    inside = module.inner(driver=True)
    inside.own = {kind: list(names) for kind, names in module.own.items()}
    w.line("def steps():")
    with w.indented():
        taken = [name for names in inside.own.values() for name in names]
        if taken:
            w.line(f"global {', '.join(taken)}")
        names = []
        for kind in kinds:
            text = w.expression(kind, inside, 1) if w.happens(0.25) else w.leaf(kind, inside)
            names.append(w.new(inside, kind))
            w.line(f"{names[-1]} = {text}")
        w.line(f"yield ({', '.join(names)},)")
        for _ in range(w.pick((1, 1, 2, 2, 3))):
            _write_change(w, inside, kinds, names, known)
            w.line(f"yield ({', '.join(names)},)")


def _write_change(
    w: Writer, inside: Scope, kinds: list[str], names: list[str], known: dict[int, str]
) -> None:
    """What happens between two calls."""
    for at, kind in enumerate(kinds):
        chance = w.chance.random()
        if chance < 0.5 and kind != "G":
            continue
        if chance < 0.65 and kind in OTHERS:
            text = w.pick(OTHERS[kind])
        elif chance < 0.75 and kind != "G":
            text = w.leaf(kind, inside)  # perhaps what another parameter is
        else:
            text = w.expression(kind, inside, 1)
        _write_safely(w, f"{names[at]} = {text}")
    for _ in range(w.pick((0, 0, 1, 2))):
        with w.indented():
            w.statement(inside)
        w.lines[-1:] = ["    with contextlib.suppress(Exception):", w.lines[-1]]
    if known and w.happens(0.4):
        number = w.pick(sorted(known))
        _write_safely(w, w.fill(w.pick(BETWEEN).replace("<C>", f"C{number}"), inside, 1))
        if w.happens(0.3):
            _write_safely(w, f"C{number}.n = <I>".replace("<I>", w.leaf("I", inside)))
    functions = [line[4 : line.index("(")] for line in w.lines if line.startswith("def f")]
    if functions and w.happens(0.3):
        one, other = sorted(
            (w.pick(functions), w.pick(functions)), reverse=True
        )  # nothing comes to call itself
        _write_safely(
            w,
            w.pick(
                (
                    f"globals()['{one}'] = {other}",
                    f"{one}.__defaults__ = None",
                    f"{one}.__defaults__ = tuple(reversed({one}.__defaults__ or ()))",
                    f"{one}.__kwdefaults__ = None",
                    f"{one}.__code__ = {other}.__code__",
                    f"globals()['{one}'] = lambda *args, **kwargs: args[0]",
                    "globals()['len'] = lambda value: 2",
                    "globals().pop('len', None)",
                )
            ),
        )


def _write_safely(w: Writer, text: str) -> None:
    """Write a line whose failure ends nothing."""
    w.line("with contextlib.suppress(Exception):")
    with w.indented():
        w.line(text)
