"""Class statements and calls of metaclasses in captured code: captured whole, made real where they leave."""

from __future__ import annotations

import abc
import gc
import types
from collections.abc import Callable, Hashable, Iterable, Sized

import pytest
import torch

import graphlift
from graphlift.testing.check import check, check_fresh

X = torch.arange(3.0)


def methods(x):
    class Base:
        scale = 3

        def __init__(self, v):
            self.v = v

        def f(self):
            return self.v * Base.scale

        @classmethod
        def make(cls, v):
            return cls(v)

        @staticmethod
        def plain(v):
            return v + 1

    class Low(Base):
        def f(self):
            return super().f() + 1

        def kind(self):
            return __class__

    low = Low.make(2)
    names = Low.__name__, Low.__qualname__, Low.__module__, Low.__doc__
    kinds = low.kind() is Low, isinstance(low, Base), issubclass(Low, Base), Base.__bases__ == (object,)
    return x * low.f(), Low.plain(1), names, kinds, [c.__name__ for c in Low.__mro__], repr(Low)


def left(x):
    class Kept:
        """What it is."""

        items = [1]
        z: int = 3

        def __init__(self, v):
            self.v = v

        def f(self):
            return super().__init__, self.v

        @classmethod
        def c(cls):
            return cls(5)

        @staticmethod
        def s(a):
            return a

        @property
        def p(self):
            """Of p."""
            return self.v

        @p.setter
        def p(self, v):
            self.v = v

    kept = Kept(x + 1)
    kept.p = x * 2
    return (
        kept,
        Kept,
        Kept.c(),
        Kept.s(3),
        list(Kept.__dict__),
        Kept.__annotations__,
        Kept.__doc__,
        Kept.p.__doc__,
    )


def closures(x):
    n = 3

    class Outer:
        m = n + 1
        squares = [i * i for i in range(3)]

        class Inner:
            v = x

        def f(self):
            return n, self.m, self.Inner.v

        def g(self):
            nonlocal n
            n += 1
            return n

        del m
        m = 7

    first = Outer().f()
    return x * Outer().g(), n, first, Outer.squares, Outer.Inner.__qualname__


def private_names(x):
    class Hidden:
        __secret = 3

        def f(self):
            return self.__secret

    return x + Hidden().f(), Hidden._Hidden__secret


def attributes_written(x):
    class Counter:
        n = 0
        gone = 1

        def __init__(self):
            Counter.n += 1

    Counter(), Counter()
    Counter.fresh = x
    del Counter.gone
    return x * Counter.n, hasattr(Counter, "gone"), Counter().fresh, Counter


def slots(x):
    class Base:
        __slots__ = ("a", "b")

    class Low(Base):
        __slots__ = ["c", "__d"]

        def __init__(self):
            self.a = x + 1
            self.c = 2
            self.__d = 4

    low = Low()
    errors = []
    for access in (lambda: low.b, lambda: setattr(low, "q", 1), lambda: low.__dict__):
        try:
            access()
        except AttributeError as error:
            errors.append(str(error))
    return low, Base, errors, Low.__slots__


def operators(x):
    class Value:
        def __init__(self, v):
            self.v = v

        def __add__(self, other):
            return Value(self.v + other.v)

        def __eq__(self, other):
            return self.v == other.v

        def __lt__(self, other):
            return self.v < other.v

        def __len__(self):
            return 3

        def __bool__(self):
            return False

        def __getitem__(self, index):
            return index

        def __iter__(self):
            yield from (1, 2)

        def __contains__(self, item):
            return True

        def __call__(self, z):
            return z

        def __enter__(self):
            return self

        def __exit__(self, *args):
            return True

        def __repr__(self):
            return f"Value({self.v})"

        def __getattr__(self, name):
            return name

    a, b = Value(1), Value(x)
    with a:
        raise ValueError
    shown = repr(a), a.other, a(5), list(a), 4 in a, a[3], len(a), bool(a)
    return (b + b).v, a == Value(1), a < Value(2), shown, sorted([Value(3), Value(1)])[0].v, Value.__hash__, b


def derived_from_builtins(x):
    class Items(list):
        def append(self, v):
            super().append(v * 2)

    class Names(dict):
        def __missing__(self, key):
            return key

    class Pair(tuple):
        pass

    items, names, pair = Items(), Names(a=1), Pair((1, x + 1))
    items.append(x)
    return items, names["other"], names, pair, Items


def errors_of_its_own(x):
    class Wrong(ValueError):
        def __init__(self, v):
            super().__init__(v)
            self.v = v

    try:
        raise Wrong(3)
    except ValueError as error:
        return x + error.v, error, str(error), Wrong


def error_that_leaves(x):
    class Wrong(Exception):
        pass

    raise Wrong((x + 1).shape)


class Named:
    def __set_name__(self, owner, name):
        self.seen = owner.__name__, name

    def __get__(self, instance, owner):
        return self.seen, instance is None


def names_told(x):
    class Holder:
        a = Named()
        b = Named()

    return x + 1, Holder.a, Holder().b, Holder


class Meta(type):
    @classmethod
    def __prepare__(mcs, name, bases, **kwargs):
        return {"prepared": name}

    def __new__(mcs, name, bases, names, **kwargs):
        names["given"] = kwargs
        made = super().__new__(mcs, name, bases, names)
        made.after = 1
        return made

    def __init__(cls, name, bases, names, **kwargs):
        cls.seen = sorted(n for n in names if not n.startswith("__"))
        super().__init__(name, bases, names)

    def __call__(cls, *args):
        made = super().__call__(*args)
        made.called = 1
        return made


def metaclasses(x):
    class Made(metaclass=Meta, w=3):
        def f(self):
            return __class__

    made = Made()
    parts = (
        Made.prepared,
        Made.given,
        Made.after,
        Made.seen,
        made.called,
        made.f() is Made,
        type(Made) is Meta,
    )
    return x + 1, parts, Made, made


def metaclass_that_is_a_function(x):
    class Made(metaclass=lambda name, bases, names, **kwargs: (name, bases, names["q"], kwargs), z=3):
        q = 1

    return x + 1, Made


def three_arguments(x):
    one = type("One", (), {"f": lambda self: 3, "k": x})
    two = type("Two", (one,), {})
    return one().f() * x, two.k, one.__module__, one.__qualname__, two


def abstract(x):
    class Base(abc.ABC):
        @abc.abstractmethod
        def f(self): ...

        @property
        @abc.abstractmethod
        def g(self): ...

    class Whole(Base):
        g = 3

        def f(self):
            return 1

    try:
        Base()
    except TypeError as error:
        text = str(error)
    names = Base.__abstractmethods__, Whole.__abstractmethods__
    return x + Whole().f(), text, isinstance(Whole(), Base), isinstance(3, Base), names, Base, Whole


def decorated(x):
    def marked(cls):
        cls.extra = cls.__name__
        return cls

    @marked
    class Made:
        pass

    return x + 1, Made.extra, Made


def one_for_each_turn(x):
    made = []
    for i in range(3):

        class Turn:
            v = i

        made.append(Turn)
    return x + made[2].v, [c.v for c in made], made[0] is made[1], made


def one_instance(x):
    class Single:
        it = None

        def __new__(cls):
            if cls.it is None:
                cls.it = super().__new__(cls)
            return cls.it

    return x + 1, Single() is Single(), Single.it


def matched(x):
    class Point:
        __match_args__ = ("a", "b")

        def __init__(self, a, b):
            self.a = a
            self.b = b

    match Point(1, x):
        case Point(1, y):
            return y + 1


def properties(x):
    class Made:
        v = property(lambda self: 3, doc="given")

        @property
        def w(self):
            return self.missing

        def __getattr__(self, name):
            return name

    made = Made()
    try:
        made.v = 3
    except AttributeError as error:
        text = str(error)
    return x + made.v, made.w, Made.v.__doc__, text, Made.w.fget.__name__


def refused_classes(x):
    found = []

    def of_int_and_str():
        class Both(int, str): ...

    def of_a_number():
        class Odd(3): ...

    def with_a_missing_name():
        class Odd:
            v = missing  # noqa: F821

    def of_bool():
        class Odd(bool): ...

    def with_slots_and_values():
        class Odd:
            __slots__ = ("a",)
            a = 3

    def with_a_number_as_metaclass():
        class Odd(metaclass=3): ...

    def with_keywords():
        class Odd(z=1): ...

    def of_two_metaclasses():
        class M1(type): ...

        class M2(type): ...

        class A(metaclass=M1): ...

        class B(metaclass=M2): ...

        class C(A, B): ...

    def twice_of_one():
        class A: ...

        class B(A, A): ...

    def with_a_failing_name():
        class Failing:
            def __set_name__(self, owner, name):
                raise KeyError("q")

        class A:
            d = Failing()

    def without_its_cell():
        class M(type):
            def __new__(mcs, name, bases, names):
                del names["__classcell__"]
                return super().__new__(mcs, name, bases, names)

        class A(metaclass=M):
            def f(self):
                return __class__

    for make in (
        of_int_and_str,
        of_a_number,
        with_a_missing_name,
        of_bool,
        with_slots_and_values,
        with_a_number_as_metaclass,
        with_keywords,
        of_two_metaclasses,
        twice_of_one,
        with_a_failing_name,
        without_its_cell,
        lambda: type("A", (), {}, 3),
        lambda: type(1, (), {}),
        lambda: type("A", (1,), {}),
    ):
        try:
            make()
        except Exception as error:
            cause = error.__cause__
            found.append((type(error), str(error), type(cause), getattr(error, "__notes__", None)))
    return x + 1, found


@pytest.mark.parametrize(
    "program",
    [
        methods,
        left,
        closures,
        private_names,
        attributes_written,
        slots,
        operators,
        derived_from_builtins,
        errors_of_its_own,
        names_told,
        metaclasses,
        metaclass_that_is_a_function,
        three_arguments,
        abstract,
        decorated,
        one_for_each_turn,
        one_instance,
        matched,
        properties,
        refused_classes,
    ],
    ids=lambda f: f.__name__,
)
def test_program(program):
    check(program, X)


def test_an_error_of_a_local_class_leaves():
    check(error_that_leaves, X, graphs=None)


def test_subclasses_are_told_once():
    def make():
        seen = []

        class Registered:
            def __init_subclass__(cls, **kwargs):
                super().__init_subclass__()
                seen.append((cls, kwargs, cls.__mro__[1].__name__))

        def program(x):
            class First(Registered, q=x.shape[0]):
                pass

            class Second(First):
                def __init_subclass__(cls, /, z=1):
                    cls.z = z

            class Third(Second, z=5):
                pass

            return x + Third.z, Third, Third(), len(seen)

        return program, (X,), seen

    check_fresh(lambda: make()[:2])
    program, inputs, seen = make()
    _, third, instance, _ = graphlift.compile(program, backend="eager", fullgraph=True)(*inputs)
    assert [cls.__name__ for cls, *_ in seen] == ["First", "Second"]
    assert seen[1][0] is third.__mro__[1]
    assert type(third) is type
    assert type(instance) is third


def test_bases_know_the_class_that_was_made_and_no_other():
    class Base:
        def __init_subclass__(cls):
            cls.told = True

    def program(x):
        class Low(Base):
            pass

        return x + 1, Low

    gc.collect()
    gc.disable()
    try:
        _, low = graphlift.compile(program, backend="eager", fullgraph=True)(X)
        assert Base.__subclasses__() == [low]
    finally:
        gc.enable()
    Base.later = 5
    assert low.later == 5


def test_each_call_makes_a_class_of_its_own():
    def program(x):
        class Local:
            pass

        return x + 1, Local

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    assert compiled(X)[1] is not compiled(X)[1]


def test_changes_of_bases_are_seen():
    class Base:
        scale = 2

        def f(self, x):
            return x * self.scale

    def program(x):
        class Low(Base):
            def f(self, x):
                return super().f(x) + 1

        return Low().f(x), Low.scale

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    for change in (
        lambda: None,
        lambda: setattr(Base, "scale", 5),
        lambda: setattr(Base, "f", lambda self, x: x - 1),
        lambda: setattr(Base, "__new__", lambda cls: types.SimpleNamespace(f=lambda x: x * 100)),
    ):
        change()
        for left, right in zip(program(X), compiled(X), strict=True):
            assert left == right if isinstance(left, int) else torch.equal(left, right)


def test_class_bodies_are_cut_at_the_statement():
    def program(x):
        y = x + 1

        class Local:
            if y.sum() > 0:
                sign = 1
            else:
                sign = -1

        return y * Local.sign

    check(program, X, graphs=2, breaks=1, recompiles=None, warm=False)


def test_a_class_goes_on_behind_a_cut():
    def program(x, tag):
        class Holder:
            items = []
            name = tag

            def __init__(self, v):
                self.v = v

            def get(self):
                return self.v + len(Holder.items)

        Holder.items.append(1)
        holder = Holder(x * 2)
        if x.sum() > 0:
            Holder.items.append(2)
        Holder.items.append(3)
        return holder.get(), Holder.items, holder.name, type(holder) is Holder

    check(program, X, "t", graphs=2, breaks=1, recompiles=None, warm=False)


class ComparedByName(type):
    def __eq__(cls, other):
        return cls.__name__ == other.__name__

    def __lt__(cls, other):
        return NotImplemented

    def __len__(cls):
        return 0

    def __contains__(cls, item):
        return [item]


def test_classes_that_compare_in_their_own_way_are_made_by_python():
    def program(x):
        class A(metaclass=ComparedByName):
            pass

        first = A

        class A(metaclass=ComparedByName):
            pass

        try:
            first < A
        except TypeError as error:
            text = str(error)
        return x + 1, first == A, first is A, first != A, bool(A), 3 in A, text

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None, warm=False)


def test_abstract_classes_ask_for_names_that_are_set_later():
    def program(x):
        found = []
        for abstract, name in ((Iterable, "__iter__"), (Callable, "__call__"), (Hashable, "__hash__")):
            Made = type("Made", (), {"__hash__": None})
            setattr(Made, name, lambda *args: 0)
            found += [isinstance(Made(), abstract), issubclass(Made, abstract)]
            Other = type("Other", (), {"__hash__": None})
            found += [isinstance(Other(), abstract)]
            setattr(Other, name, None)
            found += [issubclass(type("Third", (Other,), {}), abstract)]
        return x + 1, found

    check(program, torch.ones(2), graphs=1, breaks=0)


def test_abstract_classes_ask_for_names_that_are_set_on_classes_that_exist():
    def make():
        class Plain:
            pass

        def program(x):
            Plain.__len__ = lambda self: 3
            return x + 1, isinstance(Plain(), Sized), issubclass(Plain, Sized)

        return program, (torch.ones(2),)

    check_fresh(make, graphs=None, breaks=None, recompiles=None)


def test_none_on_a_class_made_inside_says_that_it_cannot():
    def refused(x):
        class Item:
            __hash__ = None
            __reversed__ = None

            def __len__(self):
                return 1

            def __getitem__(self, index):
                return index

        seen = []
        for attempt in (hash, reversed, lambda item: {item: 1}, lambda item: {item}, lambda item: item in {}):
            try:
                attempt(Item())
            except TypeError as error:
                seen.append(str(error))
        return seen, x * 2

    check(refused, torch.ones(2))
