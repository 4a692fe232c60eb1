"""What stands at the top of a program: globals, classes, functions, generators, context managers.

Each definition offers templates, so that whatever is written later uses it. Levels keep calls from going
round: what a method of level 2 calls is of level 1 or 0, also when a subclass puts another in its place.
"""

from __future__ import annotations

from fuzz.statements import block, generator_body
from fuzz.writing import Scope, Writer

PRELUDE = """\
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import math
import operator
import random
import sys
import warnings

import torch

import graphlift


class E0(Exception):
    pass


class E1(E0, ValueError):
    def __init__(self, *args):
        super().__init__(*args)
        self.extra = len(args)


Pair = collections.namedtuple("Pair", "first second")


class Manager:
    entered = 0

    def __init__(self, n):
        self.n = n

    def __enter__(self):
        Manager.entered += 1
        return self.n

    def __exit__(self, kind, error, trace):
        log.append("out" if kind is None else kind.__name__)


class Swallow:
    def __init__(self, kind):
        self.kind = kind

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(kind, self.kind)


@contextlib.contextmanager
def managed(n):
    log.append("in")
    try:
        yield n + 1
    finally:
        log.append("out")


log = []
"""

GLOBALS = ["T", "I", "LI", "LT", "DT", "DI", "S", "F", "SI"]


def write_globals(w: Writer, scope: Scope) -> None:
    """Variables of the module."""
    for _ in range(w.pick((1, 2, 3, 4))):
        kind = w.pick(GLOBALS)
        name = f"g_{w.fresh(kind)}"
        w.line(f"{name} = {w.leaf(kind, scope)}")
        scope.add(kind, name)


def declare_globals(w: Writer, module: Scope, scope: Scope) -> None:
    """Let the function that is being written assign to some of the module's variables."""
    chosen = [(kind, name) for kind, names in module.own.items() for name in names if w.happens(0.3)]
    if chosen:
        w.line(f"global {', '.join(name for _, name in chosen)}")
        for kind, name in chosen:
            scope.own.setdefault(kind, []).append(name)


# --- functions -----------------------------------------------------------------------------------

DECORATORS = {
    "counted": """\
def counted(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        log.append(function.__name__)
        return function(*args, **kwargs)
    return wrapper
""",
    "scaled": """\
def scaled(factor):
    def decorate(function):
        def wrapper(*args, **kwargs):
            result = function(*args, **kwargs)
            return result * factor
        return wrapper
    return decorate
""",
}


def write_decorators(w: Writer) -> list[str]:
    """Decorators; what may stand behind an ``@``."""
    w.line(DECORATORS["counted"])
    w.line(DECORATORS["scaled"])
    return ["counted", "scaled(2)"]


#: How a parameter may stand in a signature: as it is, with a default, by keyword only, as the rest.
FORMS = [("plain", 6), ("default", 3), ("keyword", 2), ("star", 1), ("kwargs", 1)]


def write_function(w: Writer, module: Scope, number: int, decorators: list[str]) -> None:
    """A function with some signature, and the ways in which it can be called."""
    name, returns = f"f{number}", w.weighted([("T", 6), ("I", 2), ("LI", 1), ("DT", 1), ("S", 1), ("P", 1)])
    inside = module.inner(returns=returns)
    parameters = [(w.fresh("t"), "T", "plain")]
    forms = sorted(
        (w.weighted(FORMS) for _ in range(w.pick((0, 1, 2, 2, 3)))), key=[f for f, _ in FORMS].index
    )
    for form in forms:
        kind = {"star": "LI", "kwargs": "DI"}.get(form) or w.weighted(
            [("I", 4), ("T", 2), ("F", 1), ("LI", 1), ("FN", 1)]
        )
        if form not in ("star", "kwargs") or form not in [one for _, _, one in parameters]:
            parameters.append((w.fresh(kind), kind, form))
    if w.happens(0.25):
        w.line(f"@{w.pick(decorators)}")
        if returns != "T":
            w.lines[-1] = "@counted"
    w.line(f"def {name}({signature(w, module, parameters)}):")
    w.level = 10 + number
    with w.indented():
        declare_globals(w, module, inside)
        for parameter, kind, form in parameters:
            inside.add("LI" if form == "star" else kind, parameter)
            if form == "star":
                w.line(f"{parameter} = list({parameter})")
        block(w, inside, w.pick((1, 2, 3, 4)), 2)
        w.line(f"return {w.expression(returns, inside)}")
    w.level = 1000
    for text in ways_to_call(w, name, parameters):
        w.offer(returns, text, 2, 10 + number)
    if returns == "T" and [(kind, form) for _, kind, form in parameters[1:2]] == [("I", "plain")]:
        if all(form not in ("plain", "keyword") for _, _, form in parameters[2:]):
            w.offer("FN", name, 3, 10 + number)


def signature(w: Writer, scope: Scope, parameters: list[tuple[str, str, str]]) -> str:
    """The parameters as they stand in a ``def``."""
    texts, starred = [], False
    for name, kind, form in sorted(
        parameters, key=lambda one: ("plain", "default", "star", "keyword", "kwargs").index(one[2])
    ):
        if form == "keyword" and not starred:
            texts.append("*")
            starred = True
        starred = starred or form == "star"
        prefix = {"star": "*", "kwargs": "**"}.get(form, "")
        value = f"={w.leaf(kind, scope)}" if form == "default" else ""
        texts.append(f"{prefix}{name}{value}")
    return ", ".join(texts)


def ways_to_call(w: Writer, name: str, parameters: list[tuple[str, str, str]]) -> list[str]:
    """Calls that fit the parameters: by position, by name, with stars, with defaults left out."""
    positional = [f"<{kind}>" for _, kind, form in parameters if form == "plain"]
    optional = [(one, kind) for one, kind, form in parameters if form == "default"]
    named = [f"{one}=<{kind}>" for one, kind, form in parameters if form == "keyword"]
    rest = ["*<LI>"] * any(form == "star" for _, _, form in parameters)
    more = ["**<DI>"] * any(form == "kwargs" for _, _, form in parameters)
    texts = [
        [*positional, *(f"<{kind}>" for _, kind in optional), *rest, *named, *more],
        [*positional, *named],
        [*positional, *(f"{one}=<{kind}>" for one, kind in optional[::-1]), *named, *more],
        [f"*({', '.join(positional)},)", *named],
    ]
    calls = [f"{name}({', '.join(parts)})" for parts in texts]
    return list(dict.fromkeys(calls))


def write_generator(w: Writer, module: Scope, number: int) -> None:
    """A generator function."""
    inside = module.inner(generator=True)
    parameter = w.fresh("i")
    inside.add("I", parameter)
    w.line(f"def gen{number}({parameter}, *{w.fresh('rest')}):")
    w.level = 5 + number
    with w.indented():
        declare_globals(w, module, inside)
        generator_body(w, inside, 1)
    w.level = 1000
    w.offer("G", f"gen{number}(<I>)", 3, 5 + number)
    w.offer("LI", f"list(gen{number}(<I>))", 2, 5 + number)
    w.offer("I", f"sum(gen{number}(<I>))", 1, 5 + number)
    w.offer("I", f"max(gen{number}(<I>, <I>), default=<i>)", 1, 5 + number)


def write_recursion(w: Writer, module: Scope) -> None:
    """A function that calls itself a few times."""
    inside = module.inner(returns="T")
    inside.add("T", "x")
    inside.add("I", "n")
    w.line("def again(x, n, seen=()):")
    w.level = 9
    with w.indented():
        w.line(w.fill("if n <= 0 or len(seen) > 3:\n    return <T>", inside))
        block(w, inside, w.pick((0, 1)), 1)
        w.line(w.fill("return again(<T>, n - 1, (*seen, n)) + <I>", inside, 1))
    w.level = 1000
    w.offer("T", "again(<T>, <u>)", 2, 9)


# --- classes -------------------------------------------------------------------------------------

#: What every object of the program's classes can do; ``<O>`` stands for its kind, ``<C>`` for its class.
OFFERED: dict[str, list[str]] = {
    "I": [
        "<O>.n",
        "<O>.n",
        "<C>.k",
        "type(<O>).k",
        "getattr(<O>, 'n', <i>)",
        "<O>.__dict__['n']",
        "<O>.k",
        "len(<O>.items)",
    ],
    "T": ["<O>.t", "<O>.t", "<O>.t + <O>.n", "operator.attrgetter('t')(<O>)"],
    "LI": ["<O>.items", "<C>.shared", "<O>.shared"],
    "DT": ["<O>.d", "<O>.d"],
    "B": [
        "isinstance(<O>, <C>)",
        "(<O> is <O>)",
        "hasattr(<O>, <w>)",
        "(type(<O>) is <C>)",
        "(<O> == <O>)",
        "issubclass(<C>, <C>)",
    ],
    "S": ["type(<O>).__name__", "<C>.__name__", "str(sorted(vars(<O>)))", "<O>.__class__.__qualname__"],
    "": [
        *[
            "<O?>.n = <I>",
            "<O?>.n += <I>",
            "<O?>.t = <T>",
            "<O?>.t += <T>",
            "<O?>.t.mul_(<I>)",
            "<O?>.items.append(<I>)",
        ],
        *[
            "<O?>.d[<k>] = <T>",
            "<C>.k = <I>",
            "<C>.k += 1",
            "<C>.shared.append(<I>)",
            "<O?>.items = <LI>",
            "<O?>.d = <DT>",
        ],
        *[
            "setattr(<O?>, 'n', <I>)",
            "<O?>.extra = <T>",
            "<O?>.k = <I>",
            "<O?>.k += <I>",
            "<O!> = <O>",
            "<O?>.n, <O?>.t = <P>",
        ],
        *[
            "del <O?>.t",
            "del <O?>.n",
            "vars(<O?>).update(n=<I>)",
            "<O?>.items[:] = <LI>",
            "<O?>.__dict__['t'] = <T>",
        ],
    ],
    "O": [
        "<C>(<I>, <T>)",
        "<C>(<I>, <T>)",
        "<C>(t=<T>, n=<I>)",
        "copy.copy(<O>)",
        "copy.deepcopy(<O>)",
        "(<O> if <B> else <O>)",
    ],
}

BODIES = {
    "plain": """\
def __init__(self, n=<i>, t=None):
    self.n = n
    self.t = torch.ones(3) if t is None else t
    self.items = [n, <i>]
    self.d = {'a': self.t}
""",
    "slots": """\
__slots__ = ('n', 't', 'items', 'd', '__dict__')
def __init__(self, n, t=None):
    self.n, self.t, self.items, self.d = n, t, [n], {'a': t, 'b': torch.ones(3)}
""",
    "new": """\
made = 0
def __new__(cls, *args, **kwargs):
    cls.made += 1
    self = super().__new__(cls)
    self.items = []
    return self
def __init__(self, n, t):
    self.n = n
    self.t = t
    self.items.append(n)
    self.d = dict(a=t)
""",
    "dataclass": """\
n: int = <i>
t: torch.Tensor = None
items: list = dataclasses.field(default_factory=lambda: [1])
d: dict = dataclasses.field(default_factory=dict)
def __post_init__(self):
    self.d['a'] = self.t
""",
    "module": """\
def __init__(self, n, t=None):
    super().__init__()
    self.n = n
    self.t = t
    self.items = [n]
    self.d = {'a': t}
    self.w = torch.nn.Parameter(torch.full((3,), 0.5))
    self.register_buffer('seen', torch.zeros(3))
def forward(self, a, b=1):
    <M>
    return a * self.w + b
""",
    "list": """\
def __init__(self, n, t=None):
    super().__init__([n, <i>])
    self.n, self.t, self.items, self.d = n, t, [n], {'a': t}
""",
    "dict": """\
def __init__(self, n, t=None):
    super().__init__(a=n)
    self.n, self.t, self.items, self.d = n, t, [n], {'a': t}
def __missing__(self, key):
    return <i>
""",
    "child": """\
def __init__(self, n=2, t=None, *rest):
    super().__init__(n, t)
    self.items.append(<i>)
""",
}

BASES = {"module": "(torch.nn.Module)", "list": "(list)", "dict": "(dict)"}

#: What a class may have beside: methods' text, and what then may be written. Level 0: they call nothing else.
EXTRAS: list[tuple[str, dict[str, list[str]]]] = [
    (
        """\
@property
def p(self):
    return self.n + <i>
@p.setter
def p(self, value):
    self.n = value
""",
        {"I": ["<O>.p", "<O>.p"], "": ["<O?>.p = <I>", "<O?>.p += <I>"]},
    ),
    (
        """\
@property
def q(self):
    return self.t * self.n
""",
        {"T": ["<O>.q"], "": ["<O?>.q = <T>"]},
    ),
    (
        """\
@classmethod
def make(cls, n):
    return cls(n + cls.k, torch.ones(3))
""",
        {"O": ["<C>.make(<I>)", "<O>.make(<I>)"]},
    ),
    (
        """\
@staticmethod
def st(a, b=<i>):
    return a * b
""",
        {"T": ["<C>.st(<T>)", "<O>.st(<T>, <I>)"], "FN": ["<C>.st", "<O>.st"]},
    ),
    (
        """\
def __call__(self, a, b):
    return a * self.n + b
""",
        {"T": ["<O>(<T>, <I>)"], "FN": ["<O>"]},
    ),
    (
        """\
def __len__(self):
    return self.n % 5
""",
        {"I": ["len(<O>)"], "B": ["bool(<O>)", "(not <O>)"]},
    ),
    (
        """\
def __bool__(self):
    return self.n > 1
""",
        {"B": ["bool(<O>)", "(not <O>)", "(<O> and True)"]},
    ),
    (
        """\
def __bool__(self):
    return self.t.dim() > 0
""",
        {"I": ["(<I> if <O> else <I>)"]},
    ),
    (
        """\
def __iter__(self):
    for item in self.items:
        yield item + 1
""",
        {"G": ["iter(<O>)"], "LI": ["list(<O>)", "[*<O>]"], "B": ["(<I> in <O>)"]},
    ),
    (
        """\
def __iter__(self):
    self.at = 0
    return self
def __next__(self):
    self.at += 1
    if self.at > 3:
        raise StopIteration
    return self.at * self.n
""",
        {"G": ["iter(<O>)"], "LI": ["list(<O>)", "[<@v> for <@v> in <O>]"], "I": ["sum(<O>)"]},
    ),
    (
        """\
def __getitem__(self, key):
    return self.items[key]
""",
        {"I": ["<O>[<u>]", "<O>[-1]"], "LI": ["<O>[:2]"], "B": ["(<I> in <O>)"]},
    ),
    (
        """\
def __setitem__(self, key, value):
    self.d[key] = value
""",
        {"": ["<O?>[<k>] = <T>"]},
    ),
    (
        """\
def __delitem__(self, key):
    del self.d[key]
""",
        {"": ["del <O?>[<k>]"]},
    ),
    (
        """\
def __contains__(self, item):
    return item == self.n
""",
        {"B": ["(<I> in <O>)", "(<S> not in <O>)"]},
    ),
    (
        """\
def __add__(self, other):
    if isinstance(other, str):
        return NotImplemented
    return self.t + other
__radd__ = __add__
""",
        {"T": ["(<O> + <I>)", "(<T> + <O>)", "(<O> + <T>)", "sum([<O>, <T>])"], "S": ["(<O> + <S>)"]},
    ),
    (
        """\
def __iadd__(self, other):
    self.n += other
    return self
""",
        {"": ["<O!> += <I>"]},
    ),
    (
        """\
def __mul__(self, other):
    return type(self)(self.n * other, self.t)
""",
        {"O": ["(<O> * <I>)"]},
    ),
    (
        """\
def __rsub__(self, other):
    return other - self.n
""",
        {"I": ["(<I> - <O>)"], "T": ["(<T> - <O>)"]},
    ),
    (
        """\
def __neg__(self):
    return type(self)(-self.n, -self.t)
""",
        {"O": ["(-<O>)"]},
    ),
    (
        """\
def __eq__(self, other):
    return isinstance(other, type(self)) and self.n == other.n
def __hash__(self):
    return hash(self.n)
""",
        {
            "B": ["(<O> == <O>)", "(<O> in [<O>, <O>])", "(<O> in {<O>: 1})", "(<O> != <I>)"],
            "I": ["len({<O>, <O>})", "{<O>: <I>}.get(<O>, <i>)"],
        },
    ),
    (
        """\
def __lt__(self, other):
    return self.n < other.n
""",
        {"B": ["(<O> < <O>)", "(<O> > <O>)"], "O": ["max(<O>, <O>)", "sorted([<O>, <O>])[0]"]},
    ),
    (
        """\
def __getattr__(self, name):
    if name.startswith('x'):
        return len(name)
    raise AttributeError(name)
""",
        {"I": ["<O>.xyz", "getattr(<O>, <w>, <i>)"], "B": ["hasattr(<O>, 'zz')"]},
    ),
    (
        """\
def __setattr__(self, name, value):
    log.append(name)
    super().__setattr__(name, value)
""",
        {"": ["<O?>.other = <I>"]},
    ),
    (
        """\
def __delattr__(self, name):
    log.append('del ' + name)
    object.__delattr__(self, name)
""",
        {"": ["del <O?>.items"]},
    ),
    (
        """\
def __repr__(self):
    return f'<{type(self).__name__} {self.n}>'
""",
        {"S": ["repr(<O>)", "str(<O>)", "f'{<O?>}'", "('%s' % <O>)"]},
    ),
    (
        """\
def __format__(self, spec):
    return spec + str(self.n)
""",
        {"S": ["f'{<O?>:ab}'", "format(<O>, <w>)"]},
    ),
    (
        """\
def __index__(self):
    return self.n % 3
""",
        {"I": ["<LI>[<O>]", "int(<O>)", "operator.index(<O>)"], "T": ["<T>[<O>:]"]},
    ),
    (
        """\
def __enter__(self):
    self.n += 1
    return self
def __exit__(self, *info):
    self.n -= 1
    return self.n > 3
""",
        {"I": ["<O>.__enter__().n"]},
    ),
    (
        """\
@functools.cached_property
def lazy(self):
    log.append('lazy')
    return self.n * 2
""",
        {"I": ["<O>.lazy"], "": ["<O?>.__dict__.pop('lazy', None)"]},
    ),
    (
        """\
@functools.lru_cache(None)
def kept(self, a):
    log.append('kept')
    return self.n + a
""",
        {"I": ["<O>.kept(<u>)"]},
    ),
    (
        """\
counter = itertools.count()
""",
        {"I": ["next(<C>.counter)"]},
    ),
    (
        """\
field = Field()
""",
        {"I": ["<O>.field"], "": ["<O?>.field = <I>", "<O?>.field += 1", "del <O?>.field"]},
    ),
    (
        """\
plain = Once()
""",
        {"I": ["<O>.plain"], "": ["<O?>.plain = <I>"]},
    ),
    (
        """\
def __getattribute__(self, name):
    return super().__getattribute__(name)
""",
        {},
    ),
    (
        """\
def __init_subclass__(cls, **kwargs):
    super().__init_subclass__(**kwargs)
    cls.k = 5
""",
        {},
    ),
    (
        """\
def __class_getitem__(cls, item):
    return (cls, item)
""",
        {"I": ["<C>[<I>][1]"]},
    ),
    (
        """\
def __matmul__(self, other):
    return self.n * len(other.items)
""",
        {"I": ["(<O> @ <O>)"]},
    ),
    (
        """\
def __torch_function__(self, func, types, args=(), kwargs=None):
    return args[0] * self.n
""",
        {"T": ["torch.mul(<T>, <O>)"]},
    ),
]

DESCRIPTORS = """\
class Field:
    def __set_name__(self, owner, name):
        self.name = '_' + name
    def __get__(self, instance, owner=None):
        if instance is None:
            return 7
        return instance.__dict__.get(self.name, 0)
    def __set__(self, instance, value):
        log.append(self.name)
        instance.__dict__[self.name] = value
    def __delete__(self, instance):
        instance.__dict__.pop(self.name)


class Once:
    def __get__(self, instance, owner=None):
        return 3 if instance is None else instance.n + 10


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    @property
    def next(self):
        return Color.BLUE if self is Color.RED else Color.RED
"""


def write_enum(w: Writer) -> None:
    """What the enumeration and the descriptors of every program offer."""
    w.line(DESCRIPTORS)
    w.offer("I", "Color.RED.value")
    w.offer("I", "Color(<B> + 1).value", 1)
    w.offer("I", "Color['RED'].next.value", 1)
    w.offer("B", "(Color(<B> + 1) is Color.RED)", 1)
    w.offer("I", "len(list(Color))", 1)
    w.offer("I", "{Color.RED: <I>}.get(Color(<B> + 1), 0)", 1)
    w.offer("S", "str(Color.BLUE)", 1)


def write_class(w: Writer, module: Scope, number: int, known: dict[int, str]) -> None:
    """A class of the program.

    Arguments:
        known: the style of each class written before.
    """
    style = w.weighted(
        [("plain", 5), ("slots", 1), ("new", 1), ("dataclass", 2), ("module", 2), ("list", 1), ("dict", 1)]
    )
    parent = (
        w.pick([one for one, of in known.items() if of != "dataclass"] or [None]) if w.happens(0.4) else None
    )
    name, kind = f"C{number}", f"O{number}"
    if parent is not None:
        style = "child"
        w.subclasses.setdefault(f"O{parent}", []).append(kind)
        for above in [one for one, them in w.subclasses.items() if f"O{parent}" in them]:
            w.subclasses[above].append(kind)
    if style == "dataclass":
        w.line(w.pick(("@dataclasses.dataclass", "@dataclasses.dataclass(eq=False)")))
    w.line(f"class {name}{f'(C{parent})' if parent is not None else BASES.get(style, '')}:")
    known[number] = style if parent is None else known[parent]
    w.level = 0
    with w.indented():
        w.line(w.fill("k = <i>\nshared = [<i>]", module))
        body = BODIES[style].replace(
            "<M>", w.pick(("self.seen += 1", "self.seen.add_(a.detach().mean())", "self.n += 1", "pass"))
        )
        w.line(w.fill(body, module))
        offer_for(w, number, OFFERED)
        for text, offered in w.chance.sample(EXTRAS, w.pick((0, 1, 2, 3, 4))):
            w.line(w.fill(text, module))
            offer_for(w, number, offered)
        if known[number] == "module":
            offer_for(
                w,
                number,
                {
                    "T": ["<O>(<T>)", "<O>(<T>, <I>)", "<O>.w + <I>", "<O>.seen"],
                    "FN": ["<O>"],
                    "": ["<O?>.train(<B>)", "<O?>.w.data.add_(1)"],
                },
            )
        if known[number] == "list":
            offer_for(
                w,
                number,
                {
                    "I": ["len(<O>)", "<O>[0]"],
                    "LI": ["list(<O>)", "<O>[:1]"],
                    "": ["<O?>.append(<I>)", "<O?>[0] = <I>"],
                },
            )
        if known[number] == "dict":
            offer_for(
                w,
                number,
                {
                    "I": ["<O>[<k>]", "<O>.get(<k>, 0)"],
                    "B": ["(<k> in <O>)"],
                    "": ["<O?>[<k>] = <I>", "<O?>.update(b=<I>)"],
                },
            )
        for method in range(w.pick((0, 1, 2))):
            write_method(w, module, number, method, parent)
    w.level = 1000


def offer_for(w: Writer, number: int, offered: dict[str, list[str]], level: int = -1) -> None:
    """Offer a class's templates."""
    for kind, texts in offered.items():
        for text in texts:
            filled = text.replace("<O", f"<O{number}").replace("<C>", f"C{number}")
            w.offer(f"O{number}" if kind == "O" else kind, filled, 1, level)


def write_method(w: Writer, module: Scope, number: int, method: int, parent: int | None) -> None:
    """A method of a tensor and an int."""
    inside = module.inner(returns="T")
    for kind, name in ((f"O{number}", "self"), ("T", "a"), ("I", "b")):
        inside.add(kind, name)
    inside.own[f"O{number}"].clear()
    w.line(f"def m{method}(self, a, b{w.pick(('', '=2'))}):")
    w.level = 1 + method
    with w.indented():
        declare_globals(w, module, inside)
        block(w, inside, w.pick((1, 2)), 1)
        if parent is not None and w.happens(0.5):
            w.line(f"return getattr(super(), 'm{method}', operator.mul)(a, b)")
        else:
            w.line(f"return {w.expression('T', inside)}")
    offered = {
        "T": [f"<O>.m{method}(<T>, <I>)"] * 3 + [f"C{number}.m{method}(<O>, <T>, b=<I>)"],
        "FN": [f"<O>.m{method}"],
    }
    offer_for(w, number, offered, 1 + method)
