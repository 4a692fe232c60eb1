"""Objects of the program in the protocols of builtins: iteration, comparison, formatting, indexing."""

from __future__ import annotations

import collections
import collections.abc
import copy
import decimal
import enum
import functools
import itertools
import operator

import pytest
import torch

from graphlift.testing.check import check


class It:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        self.i = 0
        return self

    def __next__(self):
        if self.i >= self.n:
            raise StopIteration
        self.i += 1
        return self.i


class Eq:
    __hash__ = None

    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return NotImplemented if not isinstance(other, Eq) else self.v == other.v


class Fmt:
    def __str__(self):
        return "STR"

    def __repr__(self):
        return "REPR"

    def __format__(self, spec):
        return "F[" + spec + "]"


class BadLen:
    def __len__(self):
        return -1


class Two:
    def __index__(self):
        return 2


class N(enum.IntEnum):
    A = 1
    B = 2


class Pair(collections.namedtuple("Pair", "a b")):
    __slots__ = ()

    def s(self):
        return self.a + self.b


def iterated(x):
    i = It(3)
    return (
        x + 1,
        list(i),
        [v for v in i],
        sum(i),
        max(i),
        tuple(i),
        list(zip(i, "ab")),
        2 in i,
        [*i],
        list(map(str, i)),
        sorted(i, reverse=True),
        any(v == 3 for v in i),
        set(i) == {1, 2, 3},
        functools.reduce(operator.mul, i),
        list(itertools.islice(i, 2)),
        dict.fromkeys(i),
        ",".join(map(str, i)),
    )


def compared(x):
    a, b = Eq(1), Eq(1)
    return (
        x + 1,
        a == b,
        a != b,
        a == 1,
        a in [b],
        [a] == [b],
        [a].index(b),
        (a,) == (b,),
        a != 1,
        [1, a].count(b),
        {"k": a} == {"k": b},
        [a] != [Eq(2)],
        a is b,
    )


def formatted(x):
    o = Fmt()
    return (
        x + 1,
        str(o),
        repr(o),
        f"{o}",
        f"{o!r}",
        f"{o:>3}",
        format(o, "q"),
        "%s %r" % (o, o),
        "%5s|%-6s|%d%%" % (o, "a", 3),
        "{} {!r} {:z}".format(o, o, o),
        str([o]),
        "{0.__class__.__name__}".format(o),
        f"{[o]}",
        str({1: o}),
        str((o,)),
        "%(k)s" % {"k": o},
        f"{'a':>{5}}",
        "%s" % o,
    )


def bad_lengths(x):
    found = []
    for ask in (len, bool, list):
        try:
            ask(BadLen())
        except (ValueError, TypeError) as e:
            found.append((type(e).__name__, str(e)))
    return x + 1, found


def indexed(x):
    c, l = Two(), [1, 2, 3, 4]
    return (
        x + l[c],
        l[:c],
        l[c:],
        "abcd"[c],
        "abcd"[:c],
        range(10)[c],
        [0] * c,
        list(range(c)),
        (5, 6, 7)[c],
        "ab" * c,
        l.pop(c),
        slice(c, None).indices(5),
        operator.index(c),
    )


def enumerated(x, n):
    return (
        x * n,
        n + 1,
        n == 1,
        N.B > n,
        [10, 20, 30][n],
        int(n),
        n.value,
        isinstance(n, int),
        N(2) is N.B,
        max(N.A, N.B),
        sum([N.A, N.B]),
        f"{n:d}",
        n in {1, 2},
    )


def set_that_changes(x):
    s = {1, 2}
    try:
        for v in s:
            s.add(v + 100)
    except RuntimeError as e:
        return x + 1, str(e), len(s)


def deque_that_changes(x):
    d = collections.deque([1, 2, 3])
    try:
        for v in d:
            d.append(v)
    except RuntimeError as e:
        return x + 1, str(e), d


def dict_that_changes(x):
    d = {"a": 1, "b": 2}
    try:
        for k in d:
            del d[k]
    except RuntimeError as e:
        return x + 1, str(e), d


def list_filled_while_sorted(x):
    l = [3, 1, 2]

    def key(v):
        l.append(1)
        return v

    try:
        l.sort(key=key)
    except ValueError as e:
        return x + 1, str(e), l


def half_extended(x):
    def g():
        yield 1
        yield 2
        raise KeyError("k")

    l = [0]
    try:
        l.extend(g())
    except KeyError as e:
        return x + 1, l, e.args


def not_a_number(x):
    nan = float("nan")
    l = [nan]
    return (
        x + 1,
        nan in l,
        l == [nan],
        l.index(nan),
        nan == nan,
        [nan] == [float("nan")],
        {nan: 1}[nan],
        l.count(nan),
        (nan,) == (nan,),
    )


def equal_numbers(x):
    return (
        x + 1,
        1 == True,
        {1: "a", True: "b", 1.0: "c"},
        {True: 1}[1],
        [1, True, 1.0].count(1),
        (1,) == (True,),
        {0: 1, -0.0: 2},
        hash(1) == hash(1.0),
        -0.0 == 0.0,
        str(-0.0),
        {1, 1.0, True},
    )


def tensor_keys(x):
    d = {x: 1}
    return x + d[x], x in d, len(d), list(d)[0] is x, {x, x} == {x}


def shared_iterators(x):
    i = iter([1, 2, 3, 4, 5])
    j = iter([1, 2, 3])
    return x + 1, list(zip(i, i)), list(zip(j, [1])), next(j)


def named(x):
    p = Pair(1, 2)
    return (
        x + p.s(),
        p,
        p._replace(a=5),
        p.a,
        p[1],
        [*p],
        Pair._make([7, 8]),
        p == (1, 2),
        p + (1,),
        repr(p),
        str(p),
        tuple.__repr__(p),
    )


def abstract(x):
    return (
        x + 1,
        isinstance(It(1), collections.abc.Iterator),
        isinstance({}.keys(), collections.abc.Set),
        isinstance(len, collections.abc.Callable),
        isinstance(Eq(1), collections.abc.Hashable),
        isinstance([], collections.abc.MutableSequence),
        issubclass(dict, collections.abc.Mapping),
        isinstance("", collections.abc.Collection),
        isinstance(Two(), collections.abc.Sized),
    )


def matched(x):
    found = []
    for v in ([1, 2, 3], {"k": 1, "j": 2}, "s", Pair(1, 5), 5, None, (1,)):
        match v:
            case Pair(a=1, b=q):
                found.append(("pair", q))
            case [1, *r]:
                found.append(("sequence", r))
            case {"k": k, **rest}:
                found.append(("mapping", k, rest))
            case str(s):
                found.append(("text", s))
            case None:
                found.append("none")
            case _:
                found.append("other")
    return x + 1, found


MADE_INSIDE = [
    iterated,
    compared,
    formatted,
    bad_lengths,
    indexed,
    set_that_changes,
    deque_that_changes,
    dict_that_changes,
    list_filled_while_sorted,
    half_extended,
    not_a_number,
    equal_numbers,
    tensor_keys,
    shared_iterators,
    named,
    abstract,
    matched,
]


@pytest.mark.parametrize("fn", MADE_INSIDE, ids=lambda fn: fn.__name__)
def test_protocol(fn):
    check(fn, torch.ones(2), fullgraph=True)


def test_members_of_enumerations_are_numbers():
    check(enumerated, torch.ones(2), N.A, fullgraph=True)


class CountsAs:
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count


class Index:
    def __index__(self):
        return 4


@pytest.mark.parametrize("count", [True, Index(), 0, -1, "1", 1 << 70, None], ids=repr)
def test_len_is_an_integer(count):
    def fn(x, a):
        try:
            return x + 1, len(a), type(len(a)), bool(a)
        except Exception as error:
            return x + 2, type(error), str(error)

    check(fn, torch.ones(2), CountsAs(count), fullgraph=True, recompiles=None)


class NoIterator:
    def __iter__(self):
        return [1, 2]


class NoProtocols:
    __iter__ = __contains__ = __bool__ = __len__ = __getitem__ = __neg__ = __call__ = __add__ = __eq__ = None
    __hash__ = None


def test_special_methods_that_are_none():
    def fn(x, a, b):
        found = []
        for ask in (
            lambda: list(a),
            lambda: [*b],
            lambda: 1 in b,
            lambda: bool(b),
            lambda: len(b),
            lambda: b[0],
            lambda: -b,
            lambda: b(),
            lambda: b + 1,
            lambda: b == 1,
            lambda: {b: 1},
        ):
            try:
                found.append(ask())
            except TypeError as error:
                found.append(str(error))
        return x + 1, found

    check(fn, torch.ones(2), NoIterator(), NoProtocols(), fullgraph=True)


def test_which_nan_it_is_is_guarded():
    def fn(x, a, b):
        return x + 1, a in [b], [a] == [b], (a,) == (b,), [b].count(a)

    one, two = float("nan"), float("nan")
    check(fn, torch.ones(2), one, one, then=[(torch.ones(2), one, two)], recompiles=1, fullgraph=True)


class Shown:
    def __repr__(self):
        return "by the class"


def test_special_methods_are_not_asked_of_the_instance():
    def fn(x, a):
        return (
            x + 1,
            str(a),
            repr(a),
            f"{a}",
            format(a),
            str(ValueError(a)),
            repr(ValueError(a)),
            str(KeyError(a)),
        )

    a = Shown()
    a.__repr__ = a.__str__ = a.__format__ = lambda *_: "by the instance"
    check(fn, torch.ones(2), a, fullgraph=True)


class Empty:
    def __setstate__(self, state):
        self.got = state


def test_an_object_without_attributes_has_no_state():
    check(lambda x, a: (x + 1, copy.copy(a).__dict__), torch.ones(2), Empty(), fullgraph=True)


@pytest.mark.filterwarnings("always")
def test_operations_that_warn_warn_at_each_call():
    def fn(x, flag):
        y = x + 1
        return y * ~flag if NotImplemented else y

    check(fn, torch.ones(2), True, graphs=None, breaks=None, recompiles=None)


# --- abstract classes that look at classes written to --------------------------------------------------


class Written:
    def __hash__(self):
        return 1


def test_classes_made_and_then_written_to_are_asked_as_they_are():
    def program(x):
        class Made:
            pass

        class Plain:
            pass

        Plain.size = 3
        Made.__len__ = lambda self: 0
        for name in ("send", "throw", "close", "__iter__", "__next__"):
            setattr(Plain, name, lambda self: 0)
        found = isinstance(Made(), collections.abc.Sized), issubclass(Made, collections.abc.Sized)
        return x + 1, found, issubclass(Plain, collections.abc.Generator)

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None, warm=False)


def test_existing_classes_written_to_are_asked_as_they_are():
    def program(x):
        Written.__len__ = lambda self: 0
        found = isinstance(Written(), collections.abc.Sized)
        del Written.__len__
        before, Written.__hash__ = Written.__hash__, None
        found = found, issubclass(Written, collections.abc.Hashable)
        Written.__hash__ = before
        return x + 1, found

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None, warm=False)


def test_abstract_classes_remember_what_they_answered():
    def program(x):
        class Made:
            def __len__(self):
                return 0

        before = issubclass(Made, collections.abc.Sized)
        del Made.__len__
        return x + 1, before, issubclass(Made, collections.abc.Sized)

    check(program, torch.ones(2))


def test_other_attributes_of_classes_are_no_matter_to_abstract_ones():
    def program(x):
        class Made:
            pass

        Made.size = 3
        return x + 1, issubclass(Made, collections.abc.Sized)

    check(program, torch.ones(2))


class Ends(collections.namedtuple("Ends", "left right"), enum.Enum):
    A = 1, [2]
    B = 3, [4]


def test_members_of_an_enumeration_of_named_tuples():
    def program(x):
        one = Ends.A
        return x + one.left, one.right, one[0], len(one), list(one), one.value, one == (1, [2])

    check(program, torch.ones(2))


def test_what_has_bases_counts_as_a_class():
    class Has:
        __bases__ = (int,)

    class Reads:
        @property
        def __bases__(self):
            raise KeyError("asked")

    def program(x):
        found = []
        for ask in (
            lambda: issubclass(Has(), int),
            lambda: issubclass(bool, Has()),
            lambda: isinstance(True, Has()),
            lambda: issubclass(bool, Reads()),
            lambda: isinstance(True, Reads()),
            lambda: isinstance(True, 3),
            lambda: issubclass(4, 3),
            lambda: issubclass(int, (str, 3)),
        ):
            try:
                found.append(ask())
            except (TypeError, KeyError) as error:
                found.append(str(error))
        return x + 1, found

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)


def reflected_set_inside(x):
    class D:
        def __add__(self, other):
            return "d"

        def __radd__(self, other):
            return "r"

        def __divmod__(self, other):
            return ("d",)

        def __rdivmod__(self, other):
            return ("r",)

    class E(D):
        def __radd__(self, other):
            return "e"

        def __rdivmod__(self, other):
            return ("e",)

    class G(D):
        pass

    results = [D() + E(), D() + G(), G() + D(), divmod(D(), E()), divmod(D(), G()), divmod(3, D())]
    G.__radd__ = lambda self, other: "new"
    G.__rdivmod__ = lambda self, other: ("new",)
    results += [D() + G(), divmod(D(), G())]
    del G.__radd__, G.__rdivmod__
    return *results, D() + G(), divmod(D(), G()), x * 2


def test_reflected_methods_of_classes_made_inside():
    check(reflected_set_inside, torch.ones(2), fullgraph=True)


def test_a_class_in_c_that_looks_up_attributes_in_its_own_way():
    def program(x):
        with decimal.localcontext() as context:
            context.prec = 30
            context.traps[decimal.Inexact] = 1
            return x * 2, context.prec, hasattr(context, "traps"), hasattr(context, "absent")

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)
