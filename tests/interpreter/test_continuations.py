"""Cuts inside special methods: their frames are gone on with, and so is what had called them."""

from __future__ import annotations

import dataclasses
import traceback
from types import TracebackType

import pytest
import torch

import graphlift
from graphlift.testing.forced_breaks import check_forced_breaks


class Base:
    def __init__(self, x, log):
        self.log = log
        self.y = x + 1
        log.append("base")


class Thing(Base):
    limit = 0

    def __init__(self, x, log):
        super().__init__(x * 2, log)
        self.z = self.y * 3
        self.count = 0

    @property
    def doubled(self):
        y = self.z * 2
        self.log.append("get")
        return y + 1

    @doubled.setter
    def doubled(self, value):
        half = value / 2
        self.z = half + 1

    @doubled.deleter
    def doubled(self):
        self.log.append("del")
        self.z = self.y

    @property
    def absent(self):
        self.log.append("absent")
        raise AttributeError("of a property")

    def __getitem__(self, key):
        self.log.append(str(key))
        return self.z * 4

    def __setitem__(self, key, value):
        moved = value + 1
        self.z = moved * 2

    def __delitem__(self, key):
        self.log.append("del item")
        self.z = self.z + 1

    def __contains__(self, key):
        self.log.append("in")
        self.z = self.z + 1
        return [] if key else [1]

    def __bool__(self):
        self.z = self.z + 1
        return len(self.log) > self.limit

    def __iter__(self):
        self.count = 2
        self.z = self.z - 1
        return self

    def __next__(self):
        self.count -= 1
        if self.count < 0:
            self.log.append("end")
            raise StopIteration
        return self.z * self.count

    def __enter__(self):
        self.log.append("in")
        self.z = self.z + 1
        return self.z

    def __exit__(self, kind, error, trace):
        self.log.append("out" if kind is None else kind.__name__)
        self.z = self.z * 2
        return kind is KeyError

    def __neg__(self):
        y = self.z + 1
        return y * -1

    def __call__(self, x, *, k=1):
        y = x + self.z
        return y * k

    def __getattr__(self, name):
        self.log.append(name)
        if name == "missing":
            raise AttributeError("nothing here")
        return self.z - 5


class Hooked:
    def __init__(self, log):
        self.log = log

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        if name != "log":
            self.log.append(name)

    def __delattr__(self, name):
        self.log.append(name)
        object.__delattr__(self, name)

    def __getattribute__(self, name):
        if name == "log":
            return object.__getattribute__(self, name)
        self.log.append("?" + name)
        return object.__getattribute__(self, name)


class Descriptor:
    def __get__(self, instance, owner):
        y = instance.x * 2
        return y + 1

    def __set__(self, instance, value):
        y = value * 3
        instance.x = y + 1


class Left:
    """Answers numbers, hands on everything else."""

    def __init__(self, x, log):
        self.x = x
        self.log = log

    def __add__(self, other):
        y = self.x + 1
        self.log.append("add")
        return y + other if isinstance(other, int) else NotImplemented

    def __mul__(self, other):
        y = self.x * 2
        return NotImplemented if isinstance(other, Left) else y

    def __lt__(self, other):
        self.log.append("lt")
        return self.x + 3 if isinstance(other, int) else NotImplemented

    def __eq__(self, other):
        self.log.append("eq")
        return (self.x + 3).dim() == other if isinstance(other, int) else NotImplemented

    __hash__ = None


class Right:
    def __init__(self, log):
        self.log = log

    def __radd__(self, other):
        self.log.append("radd")
        return other.x * 5

    def __gt__(self, other):
        self.log.append("gt")
        return other.x * 6

    def __eq__(self, other):
        self.log.append("right eq")
        return NotImplemented

    __hash__ = None


@dataclasses.dataclass
class Record:
    x: object
    log: list
    described = Descriptor()

    def __post_init__(self):
        self.y = self.x * 2
        self.log.append("post")
        self.z = self.y + 1


class Wrong:
    def __init__(self, log):
        self.log = log

    def __bool__(self):
        self.log.append("bool")
        return 3

    def __iter__(self):
        self.log.append("iter")
        return 5

    def __enter__(self):
        self.log.append("enter")
        raise LookupError("no")

    def __exit__(self, *error):
        self.log.append("never")

    def __next__(self):
        self.log.append("next")
        raise LookupError("no next")


class Endless(Wrong):
    def __iter__(self):
        return self


class Returns:
    def __init__(self, log):
        log.append("init")
        return 3


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.extra = made.x + 1
        return made


class Counted(metaclass=Meta):
    def __new__(cls, x, log):
        made = super().__new__(cls)
        made.before = x * 3
        log.append("new")
        return made

    def __init__(self, x, log):
        self.x = x * 2
        log.append("init")


def metaclasses(x, log):
    made = Counted(x + 1, log)
    return made.before, made.x, made.extra


def making(x, log):
    thing = Thing(x + 1, log)
    return thing.z + 1, thing.y


def records(x, log):
    record = Record(x + 1, log)
    record.described = x
    return record.z + 1, record.described


def properties(x, log):
    thing = Thing(x, log)
    y = thing.doubled
    thing.doubled = y
    z = thing.z
    del thing.doubled
    return y, z, thing.z


def items(x, log):
    thing = Thing(x, log)
    y = thing[1] + thing[1:2]
    thing[2] = y
    thing[2:3] = y
    del thing[3]
    return y, thing.z, -thing


def membership(x, log):
    thing = Thing(x, log)
    return 1 in thing, 1 not in thing, 0 in thing, thing.z


def truths(x, log):
    thing = Thing(x, log)
    y = (thing and x + 1), (thing or x + 2) is thing
    if not thing:
        y = y[0]
    while thing:
        thing.limit = thing.limit + 3
        log.append("turn")
    return y, not thing, thing.z


def loops(x, log):
    y = x
    for part in Thing(x, log):
        y = y + part
    else:
        y = y * 2
    return y, [part + 1 for part in Thing(x, log)]


def blocks(x, log):
    thing = Thing(x, log)
    with thing as y, thing:
        x = x + y
    with thing:
        x = x * 2
        raise KeyError("swallowed")
    return x, thing.z


def calling(x, log):
    thing = Thing(x, log)
    return thing(x) + thing(x, k=3) + thing(*[x], **{"k": 2})


def attributes(x, log):
    thing = Thing(x, log)
    y = thing.other
    try:
        thing.missing
    except AttributeError as error:
        log.append(f"{error.args[0]} {error.name} {error.obj is thing} {error.__context__}")
        y = y + 1
    y = y + thing.absent
    hooked = Hooked(log)
    hooked.a = y
    y = hooked.a + 1
    del hooked.a
    return y


def operators(x, log):
    left, right = Left(x, log), Right(log)
    y = left + 2, left + right, left < 3, left < right, left * 2, left * right
    if left == 1:
        log.append("equal")
    return y, left == right, left != right, left == left, right == right


def wrong_operands(x, log):
    y = Left(x, log), Right(log)
    for attempt in (lambda: y[0] + y[0], lambda: y[0] < y[0], lambda: y[0] * y[0], lambda: y[1] + 1):
        try:
            attempt()
        except TypeError as error:
            log.append(str(error))
            x = x + 1
    return x


def wrong_truth(x, log):
    y = x + 1
    try:
        if Wrong(log):
            y = y + 1
    except TypeError as error:
        log.append(str(error))
    return y, bool(Wrong(log))


def wrong_iterator(x, log):
    y = x + 1
    for _ in Wrong(log):
        y = y * 2
    return y


def wrong_next(x, log):
    for _ in Endless(log):
        x = x * 2
    return x


def wrong_enter(x, log):
    with Wrong(log):
        x = x * 2
    return x


def wrong_init(x, log):
    y = x + 1
    return Returns(log), y


def code_of(cls, *names):
    return [vars(cls)[name].__code__ for name in names]


_DOUBLED = vars(Thing)["doubled"]
PROGRAMS = {
    making: [*code_of(Base, "__init__"), *code_of(Thing, "__init__")],
    metaclasses: [*code_of(Meta, "__call__"), Counted.__new__.__code__, *code_of(Counted, "__init__")],
    records: [
        *code_of(Record, "__init__", "__post_init__"),
        *code_of(Descriptor, "__get__", "__set__"),
    ],
    properties: [_DOUBLED.fget.__code__, _DOUBLED.fset.__code__, _DOUBLED.fdel.__code__],
    items: code_of(Thing, "__getitem__", "__setitem__", "__delitem__", "__neg__"),
    membership: code_of(Thing, "__contains__"),
    truths: code_of(Thing, "__bool__"),
    loops: code_of(Thing, "__iter__", "__next__"),
    blocks: code_of(Thing, "__enter__", "__exit__"),
    calling: code_of(Thing, "__call__"),
    attributes: [
        *code_of(Thing, "__getattr__"),
        vars(Thing)["absent"].fget.__code__,
        *code_of(Hooked, "__init__", "__setattr__", "__delattr__", "__getattribute__"),
    ],
    operators: [
        *code_of(Left, "__add__", "__lt__", "__eq__", "__mul__"),
        *code_of(Right, "__radd__", "__gt__", "__eq__"),
    ],
    wrong_operands: code_of(Left, "__add__", "__lt__", "__mul__"),
    wrong_truth: code_of(Wrong, "__init__", "__bool__"),
    wrong_iterator: code_of(Wrong, "__iter__"),
    wrong_next: code_of(Wrong, "__next__"),
    wrong_enter: code_of(Wrong, "__enter__"),
    wrong_init: code_of(Returns, "__init__"),
}


def outcome(fn):
    log = []
    x = torch.arange(3.0)
    try:
        result = repr(fn(x, log))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        result = type(error), error.args, [(f.name, f.lineno) for f in frames if f.name != "outcome"]
    return result, log


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_cut_before_each_instruction(program):
    assert check_forced_breaks(program, PROGRAMS[program], outcome) > 2


class Watched:
    def __init__(self, seen):
        object.__setattr__(self, "seen", seen)

    def __getattribute__(self, name):
        if name != "seen":
            self.seen.append(name)
        return object.__getattribute__(self, name)


def test_a_capture_asks_an_object_nothing_that_the_program_did_not_ask():
    def program(watched, x):
        y = x + 1
        if y.sum() > 0:
            y = y * 2
        return y + watched.x

    watched = Watched([])
    watched.x = torch.ones(2)
    graphlift.compile(program, backend="eager")(watched, torch.ones(2))
    assert watched.seen == ["x"]


class Asks:
    """Each method computes, asks for data, and computes on."""

    def __init__(self, x):
        self.x = x

    def _asked(self):
        y = self.x * 2
        if y.sum().item() > 0:
            y = y + 1
        return y * 3

    @property
    def value(self):
        return self._asked()

    def __getattr__(self, name):
        return self._asked()

    def __getitem__(self, key):
        return self._asked()

    def __call__(self):
        return self._asked()

    def __neg__(self):
        return self._asked()

    def __add__(self, other):
        return self._asked() + other

    def __lt__(self, other):
        return self._asked()

    def __bool__(self):
        return self._asked() is not None

    def __contains__(self, key):
        return self._asked() is not None

    def __iter__(self):
        self.count = 1
        self._asked()
        return self

    def __next__(self):
        self.count -= 1
        if self.count < 0:
            raise StopIteration
        return self._asked()

    def __enter__(self):
        return self._asked()

    def __exit__(self, *error):
        self._asked()

    def __setitem__(self, key, value):
        self.x = self._asked()

    def __setattr__(self, name, value):
        if name == "special":
            self._asked()
        object.__setattr__(self, name, value)


class Made(Asks):
    def __init__(self, x):
        super().__init__(x)
        self.y = self._asked()


def loop(x, asks):
    z = x + 1
    for y in asks:
        z = z + y
    return z


def block(x, asks):
    z = x + 1
    with asks as y:
        z = z + y
    return z * 2


def store(x, asks):
    asks[1] = x + 1
    return x + asks.x


def store_attribute(x, asks):
    asks.special = x + 1
    return x + asks.x


#: Program -> operations of each graph. The first graph is the program's first operation and the two before
#: the method asks for data; the second is the two behind that.
COUNTED = {
    "property": (lambda x, asks: (x + 1) * asks.value, [3, 2, 1]),
    "getattr": (lambda x, asks: (x + 1) * asks.other, [3, 2, 1]),
    "getitem": (lambda x, asks: (x + 1) * asks[1], [3, 2, 1]),
    "call": (lambda x, asks: (x + 1) * asks(), [3, 2, 1]),
    "negative": (lambda x, asks: (x + 1) * -asks, [3, 2, 1]),
    "add": (lambda x, asks: (x + 1) * (asks + 1), [3, 2, 1, 1]),
    "less": (lambda x, asks: (x + 1) * (asks < 1), [3, 2, 1]),
    "branch": (lambda x, asks: (x + 1, x * 2 if asks else x), [3, 2, 1]),
    "not": (lambda x, asks: (x + 1, not asks, x * 2), [3, 2, 1]),
    "contains": (lambda x, asks: (x + 1, 3 not in asks, x * 2), [3, 2, 1]),
    "init": (lambda x, asks: (x + 1) * Made(x).y, [3, 2, 1]),
    "loop": (loop, [3, 2, 2, 1]),
    "with": (block, [3, 2, 3, 1]),
    "setitem": (store, [2, 2, 1]),  # nobody uses the value stored
    "setattr": (store_attribute, [3, 2, 1]),
}


@pytest.mark.parametrize("name", COUNTED)
def test_what_was_captured_in_the_inner_frame_is_kept(name):
    program, expected = COUNTED[name]
    sizes = []

    def backend(module, inputs):
        sizes.append(sum(node.op not in ("placeholder", "output") for node in module.graph.nodes))
        return module.forward

    x = torch.ones(2)
    compiled = graphlift.compile(program, backend=backend)
    assert repr(compiled(x, Asks(x))) == repr(program(x, Asks(x)))
    assert sizes == expected


GIVEN = KeyError()


def inner_without_a_way(x, log):
    try:
        raise GIVEN
    except KeyError as error:
        kept = error.__traceback__  # of an exception that existed, nobody can build it before the effects
    y = x * 2
    if y.sum().item() > 0:
        log.append(type(kept))
    return y


def outer_of_it(x, log):
    z = x + 1
    return inner_without_a_way(z, log) * 3


def test_where_a_frame_cannot_be_made_real_its_call_is_run_as_a_whole():
    sizes = []

    def backend(module, inputs):
        sizes.append(sum(node.op not in ("placeholder", "output") for node in module.graph.nodes))
        return module.forward

    compiled = graphlift.compile(outer_of_it, backend=backend)
    for log in ([], []):
        assert torch.equal(compiled(torch.ones(2), log), outer_of_it(torch.ones(2), []))
        assert log == [TracebackType]
    assert sizes[0] == 1
    assert sizes[-1] == 1
