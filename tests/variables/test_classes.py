"""Classes as values: making objects, metaclasses, class attributes, abstract classes, dataclasses, enums."""

from __future__ import annotations

import abc
import collections
import dataclasses
import enum
import functools
import types
import typing

import pytest
import torch

import graphlift
from graphlift.testing.check import check, check_fresh

X = torch.arange(3.0)


class Plain:
    scale = 3

    def __init__(self, w):
        self.w = w

    def f(self, x):
        return x * self.w * self.scale

    @staticmethod
    def st(x):
        return x - 1

    @classmethod
    def cm(cls, x):
        return x * cls.scale

    @classmethod
    def make(cls, *args):
        return cls(*args)


class Derived(Plain):
    scale = 5

    def __init__(self, w, b):
        super().__init__(w)
        self.b = b

    def f(self, x):
        return super().f(x) + self.b


class Allocated:
    made = 0

    def __new__(cls, *args):
        self = super().__new__(cls)
        self.n = len(args)
        return self

    def __init__(self, a):
        self.a = a


class Elsewhere:
    def __new__(cls):
        return 7

    def __init__(self):
        raise AssertionError


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.tag = "m"
        return made

    def __getattr__(cls, name):
        if name.startswith("x"):
            return "meta " + name
        raise AttributeError(name)

    @property
    def own(cls):
        return cls.__name__

    def __len__(cls):
        return 3

    def __iter__(cls):
        return iter([1, 2])

    def __getitem__(cls, key):
        return key

    def __contains__(cls, key):
        return key == 1


class WithMeta(metaclass=Meta):
    def __init__(self, a):
        self.a = a


class Abstract(abc.ABC):
    @abc.abstractmethod
    def f(self, x): ...


class Concrete(Abstract):
    def f(self, x):
        return x * 2


class Mixin1:
    def f(self, x):
        return super().f(x) + 1


class Mixin2:
    def f(self, x):
        return super().f(x) * 2


class Root:
    def f(self, x):
        return x


class Diamond(Mixin1, Mixin2, Root):
    pass


def making(x):
    a = Plain(2)
    b = Derived(2, b=3)
    c = Plain.make(4)
    return (
        a.f(x),
        b.f(x),
        b.st(x),
        b.cm(x),
        Plain.cm(x),
        Plain.st(x),
        c.w,
        type(c) is Plain,
        isinstance(b, Plain),
        a,
        b,
    )


def allocating(x):
    a = Allocated(4)
    return x + a.a, a.n, Elsewhere(), a


def metaclasses(x):
    m = WithMeta(x)
    return (
        m.a + 1,
        m.tag,
        WithMeta.xfoo,
        hasattr(WithMeta, "nope"),
        WithMeta.own,
        len(WithMeta),
        list(WithMeta),
        WithMeta["k"],
        1 in WithMeta,
    )


def abstract(x):
    try:
        Abstract()
    except TypeError as e:
        text = str(e)
    return Concrete().f(x), isinstance(Concrete(), Abstract), issubclass(Concrete, Abstract), text


def orders(x):
    d = Diamond()
    return d.f(x), super(Mixin1, d).f(x), [c.__name__ for c in Diamond.__mro__], Diamond.mro()[1] is Mixin1


def wrong_calls(x):
    out = []
    for call in (
        lambda: Plain(),
        lambda: Plain(1, 2),
        lambda: Root(1),
        lambda: Allocated(),
        lambda: Plain.nope,
        lambda: object(1),
        lambda: Plain(1)(2),
        lambda: Plain[int],
        lambda: object.__new__(),
    ):
        try:
            call()
        except (TypeError, AttributeError) as e:
            out.append(str(e))
    return x + 1, out


def unbound(x):
    a = Plain.__new__(Plain)
    Plain.__init__(a, 3)
    object.__setattr__(a, "k", x)
    return Plain.f(a, x), object.__getattribute__(a, "k"), getattr(Plain, "scale"), a


def names(x):
    return (
        x + 1,
        Plain.__name__,
        Plain.__qualname__,
        Plain.__module__,
        str(Plain),
        repr(int),
        Plain.__doc__,
        Plain.__base__ is object,
    )


@dataclasses.dataclass
class Data:
    a: int
    b: list = dataclasses.field(default_factory=list)
    c: object = None

    def __post_init__(self):
        self.sum = self.a + len(self.b)


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: int

    def doubled(self):
        return Frozen(self.a * 2)


@dataclasses.dataclass(order=True, slots=True)
class Slotted:
    a: int
    b: int = 4


def dataclass(x):
    d = Data(3)
    d.b.append(x)
    return (
        d.a * x,
        d,
        Data(1) == Data(1),
        Data(1) != Data(2),
        [f.name for f in dataclasses.fields(d)],
        dataclasses.is_dataclass(d),
        dataclasses.replace(d, a=9).a,
        d.sum,
    )


def frozen(x, f):
    g = f.doubled()
    try:
        g.a = 3
    except dataclasses.FrozenInstanceError as e:
        text = str(e)
    return g, x * g.a, text


def slotted(x, s):
    s.b += 1
    made = Slotted(2)
    return x * made.b, made, made < Slotted(3), made == Slotted(2, 4)


class Color(enum.Enum):
    R = 1
    G = "g"

    @property
    def nice(self):
        return self.name.lower()


class Number(enum.IntEnum):
    A = 1
    B = 2


class Bits(enum.Flag):
    P = 1
    Q = 2


class Text(str, enum.Enum):
    U = "u"


def enums(x, c):
    y = x * 2 if c is Color.R else x
    return (
        y,
        c.value,
        c.name,
        c.nice,
        Color("g") is Color.G,
        c == Color.R,
        c != Color.G,
        [k.name for k in Color],
        Color["G"].value,
        Number.B + 1,
        x * Number.B,
        Number(2) == 2,
        {Color.R: 1, Color.G: 2}[c],
        c,
        len(Color),
        isinstance(c, Color),
        Text.U == "u",
        Text("u") is Text.U,
        (Bits.P | Bits.Q).value,
        Bits.P in (Bits.P | Bits.Q),
    )


def wrong_members(x):
    out = []
    for call in (lambda: Color(5), lambda: Color["nope"], lambda: Color.nope):
        try:
            call()
        except (ValueError, KeyError, AttributeError) as e:
            out.append(str(e))
    return x + 1, out


Point = collections.namedtuple("Point", "u v")


class Sum(collections.namedtuple("Sum", "u v")):
    @property
    def s(self):
        return self.u + self.v


class Typed(typing.NamedTuple):
    a: int
    b: int = 4

    def total(self):
        return self.a + self.b


def named_tuples(x, p):
    q = Point(x, 2)
    u, v = q
    t = Typed(3)
    return (
        q,
        q.u + q.v,
        p.u,
        q._replace(v=5).v,
        Point._fields,
        u,
        p == Point(1, 2),
        Point(v=1, u=2),
        t.total(),
        t,
        t._asdict(),
    )


def derived_named_tuples(x, p):
    return Sum(x, 2).s, p.s


def simple(x):
    s = types.SimpleNamespace(a=1, b=x)
    s.c = 3
    return x + s.a, s.b, s.c, s


def generic(x):
    return Box(x).a + 1, typing.cast(int, 4), Box[int] is not None


T = typing.TypeVar("T")


class Box(typing.Generic[T]):
    def __init__(self, a):
        self.a = a


@functools.total_ordering
class Ordered:
    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return self.v == other.v

    def __lt__(self, other):
        return self.v < other.v


def ordered(x):
    a, b = Ordered(1), Ordered(2)
    return (
        x + 1,
        a < b,
        a >= b,
        a != b,
        sorted([b, a], key=lambda c: c.v)[0].v,
        max(a, b).v,
        [c.v for c in sorted([b, a])],
        a in [Ordered(1)],
    )


@pytest.mark.parametrize(
    "program",
    [
        making,
        allocating,
        metaclasses,
        abstract,
        orders,
        wrong_calls,
        unbound,
        names,
        dataclass,
        wrong_members,
        simple,
        ordered,
    ],
    ids=lambda f: f.__name__,
)
def test_program(program):
    check(program, X)


def test_frozen():
    check(frozen, X, Frozen(4))


def test_slotted():
    check(slotted, X, Slotted(4))


def test_members_that_are_made_while_the_program_runs():
    class Wanted(enum.IntFlag):
        READ = 1
        WRITE = 2

        @classmethod
        def _missing_(cls, value):
            graphlift.graph_break()
            member = super()._missing_(value)
            graphlift.graph_break()
            return member

    class Level(enum.IntEnum):
        LOW = 1

        def __new__(cls, value):
            graphlift.graph_break()
            member = int.__new__(cls, value)
            graphlift.graph_break()
            member._value_ = value
            return member

        @classmethod
        def _missing_(cls, value):
            graphlift.graph_break()
            member = int.__new__(cls, value)
            graphlift.graph_break()
            member._value_ = value
            graphlift.graph_break()
            member._name_ = f"level{value}"
            return member

    def program(x, number):
        graphlift.graph_break()
        level = Level(number)
        wanted = Wanted(number) | Wanted.READ
        return x * number, level.name, level.value, wanted.name, wanted.value

    check(program, X, 2, then=[(X, 3), (X, 7)], graphs=None, breaks=None, recompiles=None, warm=False)


def test_enums():
    check(enums, X, Color.R, then=[(X, Color.G)], recompiles=1)


def test_named_tuples():
    check(named_tuples, X, Point(1, 2))


def test_derived_named_tuples():
    check(derived_named_tuples, X, Sum(1, 2))


def test_class_attributes_written():
    def make():
        class Counter:
            n = 0
            seen: list = []

        def program(x, cls):
            cls.n += 1
            cls.n += 1
            cls.fresh = x
            cls.seen.append(cls.n)
            made = cls()
            made.n += 5
            del cls.fresh
            return x * cls.n, made.n, Counter.n, hasattr(made, "fresh"), cls.seen

        return program, (X, Counter)

    check_fresh(make)


def test_one_instance_only():
    def make():
        class Single:
            it = None

            def __new__(cls):
                if cls.it is None:
                    cls.it = super().__new__(cls)
                return cls.it

        def program(x):
            return x + 1, Single() is Single()

        return program, (X,)

    check_fresh(make)


def test_changed_methods_are_seen():
    class Local:
        def f(self, x):
            return x + 1

    compiled = graphlift.compile(lambda x, o: o.f(x), backend="eager", fullgraph=True)
    o = Local()
    assert torch.equal(compiled(X, o), X + 1)
    Local.f = lambda self, x: x * 3
    assert torch.equal(compiled(X, o), X * 3)
    o.f = lambda x: x - 1
    assert torch.equal(compiled(X, o), X - 1)


def test_changed_bases_are_seen():
    class One:
        def f(self, x):
            return x + 1

    class Two:
        def f(self, x):
            return x * 3

    class Low(One):
        def f(self, x):
            return super().f(x)

    compiled = graphlift.compile(lambda x: Low().f(x), backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), X + 1)
    Low.__bases__ = (Two,)
    assert torch.equal(compiled(X), X * 3)


class SaysAnother:
    def __init__(self, cls):
        self.cls = cls

    @property
    def __class__(self):
        self.asked = getattr(self, "asked", 0) + 1
        return self.cls


class Hides:
    def __getattribute__(self, name):
        raise AttributeError(name)


def test_isinstance_asks_for_the_class_that_an_object_says():
    def program(x, a, b, c, d):
        found = [isinstance(a, Plain), isinstance(a, (int, Plain)), isinstance(a, int)]
        found += [isinstance(a, SaysAnother), type(a) is SaysAnother]
        found += [isinstance(b, dict), isinstance(b, collections.abc.Mapping), isinstance(b, list)]
        found += [isinstance(c, torch.Tensor), isinstance(d, int)]
        return x + 1, found

    objects = [SaysAnother(cls) for cls in (Plain, dict, torch.Tensor)]
    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    asked = [SaysAnother(o.cls) for o in objects]
    assert compiled(X, *asked, Hides())[1] == program(X, *objects, Hides())[1]
    assert [vars(o)["asked"] for o in asked] == [vars(o)["asked"] for o in objects]


def test_a_hook_may_deny_a_class_that_derives():
    class Denies(abc.ABC):  # noqa: B024
        @classmethod
        def __subclasshook__(cls, other):
            return False

    class Derives(Denies):
        pass

    check(
        lambda x, a: (x + 1, isinstance(a, Denies), issubclass(Derives, Denies)),
        X,
        Derives(),
        breaks=None,
        graphs=None,
    )


def test_making_an_object_does_not_ask_the_metaclass_for_subclasses():
    asked = []

    class Asks(type):
        def __subclasscheck__(cls, other):
            asked.append(other)
            return False

    class Asked(metaclass=Asks):
        def __init__(self):
            self.v = 3

    compiled = graphlift.compile(lambda x: x + Asked().v, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), X + 3) and not asked


def test_data_descriptors_put_on_a_class_come_first():
    class Data:
        def __get__(self, instance, owner):
            return "got"

        def __set__(self, instance, value):
            instance.__dict__["set"] = value

    def make():
        class Bare:
            pass

        def program(x, a):
            Bare.v = Data()
            Bare.w = property()
            Bare.u = property(lambda self: 1)
            found = [a.v, a.u]
            a.v = 4
            for name in ("w", "u"):
                for access in (
                    lambda: setattr(a, name, 1),
                    lambda: getattr(a, name),
                    lambda: delattr(a, name),
                ):  # noqa: B023
                    try:
                        found.append(access())
                    except AttributeError as error:
                        found.append(str(error))
            return x + 1, found, a.__dict__

        instance = Bare()
        instance.__dict__.update(v=1, u=2)
        return program, (X, instance)

    check_fresh(make, graphs=None, breaks=None, recompiles=None)


@dataclasses.dataclass
class Node:
    value: int
    next: object = None


def test_texts_of_dataclasses():
    def program(x):
        first = Node(1)
        first.next = Node(2, first)
        return x + 1, repr(Node(1, Node(3))), repr(first), f"{Node(4)}"

    check(program, X)


@typing.runtime_checkable
class HasF(typing.Protocol):
    def f(self, x): ...


def test_runtime_protocols():
    check(lambda x: (x + 1, isinstance(Plain(1), HasF)), X)
    check(lambda x: (x + 1, isinstance(3, HasF), issubclass(Plain, HasF)), X, graphs=None, breaks=None)


def test_static_methods_as_values():
    def program(x):
        static = staticmethod(lambda v: v + 1)
        return (
            x + static(1),
            Plain.__dict__["st"](3),
            static.__func__(2),
            Plain.__dict__["cm"].__get__(None, Derived)(1),
        )

    check(program, X)


def test_bound_methods_are_compared_and_hashed():
    def program(x):
        one, two = Plain(1), Plain(1)
        equal = one.f == one.f, one.f == two.f, one.f != two.f, one.f == one.cm
        return x + 1, equal, {one.f: 1}[one.f], one.f in [two.f], one.f in {two.f, one.f}

    check(program, X)


def test_any_object_may_bind_or_be_set():
    class Called:
        def __call__(self, *args):
            return len(args)

    class Described:
        __get__ = Called()
        __set__ = Called()

    class Holder:
        v = Described()

    def program(x):
        holder = Holder()
        holder.v = 3
        return x + 1, holder.v, Holder.v

    check(program, X)


def test_objects_with_bases_are_asked_for_them():
    class Like:
        def __init__(self, *bases):
            self.__bases__ = bases

    def program(x):
        y, seen = x + 1, []
        for value in (Like(int), Like(), 3):
            try:
                seen.append(issubclass(value, int))
            except TypeError as error:
                seen.append(str(error))
        return y, seen

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None, warm=False)
