"""Objects of the user's classes: attributes, slots, descriptors, special methods."""

from __future__ import annotations

import copy
import enum
import functools

import pytest
import torch

import graphlift
from graphlift.testing.check import check, check_fresh

X = torch.arange(3.0)


@pytest.fixture(autouse=True)
def _no_entries_of_other_tests():
    graphlift.reset()


class Thing:
    scale = 3

    def __init__(self, w):
        self.w = w
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return self.f(x) + self.prop

    def f(self, x):
        return x * self.w * self.scale

    @property
    def prop(self):
        return self.w + 1

    def __add__(self, other):
        return self.w + other

    def __bool__(self):
        return self.w > 0

    def __len__(self):
        return 7

    def __getitem__(self, k):
        return k * self.w

    def __eq__(self, other):
        return isinstance(other, Thing) and other.w == self.w

    __hash__ = None


def using(x, a):
    return a(x), a.calls, len(a), a[4], a + 3, (1 if a else 0), not a, a == a, a != Thing(99), a == 3


def writing(x, a):
    a.new = x + 1
    a.w = 9
    del a.calls
    a.__dict__["direct"] = 5
    a.__dict__.update(z=1)
    vars(a)["v"] = 2
    return (
        a.new * a.w,
        hasattr(a, "calls"),
        getattr(a, "zzz", 4),
        a.direct,
        a.z,
        a.v,
        list(a.__dict__),
        "w" in a.__dict__,
        a.__class__.__name__,
        type(a) is Thing,
    )


def unhashable(x, a):
    out = []
    for call in (lambda: {a: 1}, lambda: {a}, lambda: hash(a)):
        try:
            call()
        except TypeError as e:
            out.append(str(e))
    return x + 1, out


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Slots:
    __slots__ = ("p", "q")

    def __init__(self, p):
        self.p = p


class SlotsAndDict(Slots):
    __slots__ = ("r", "__dict__")


def slots(x, s):
    out = []
    for call in (lambda: s.q, lambda: setattr(Slots(1), "zz", 1), lambda: delattr(s, "q")):
        try:
            call()
        except AttributeError as e:
            out.append(str(e))
    s.q = x * s.p
    s.p += 1
    made = Slots(4)
    made.q = 3
    d = s.q + 1
    del s.q
    return d, made.p + made.q, made, out, hasattr(s, "q")


class SlotsWithFallback(Slots):
    __slots__ = ("r",)

    def __getattr__(self, name):
        if name == "ghost":
            return 1000
        raise AttributeError("missing " + name)


def slots_with_fallback(x, s):
    try:
        s.r
    except AttributeError as e:
        text = str(e)
    s.r = getattr(s, "q", 0) + 1
    return x + s.ghost, text, s.r


def slots_and_dict(x, s):
    s.q = x
    s.r = 2
    s.c = 5
    made = SlotsAndDict(1)
    made.r, made.c = 1, 2
    return s.q + s.r, s.__dict__, made


class Descriptor:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner):
        return self if instance is None else getattr(instance, self.name, 0) + 1

    def __set__(self, instance, value):
        setattr(instance, self.name, value * 2)

    def __delete__(self, instance):
        delattr(instance, self.name)


class NonData:
    def __get__(self, instance, owner):
        return ("got", instance is None, owner.__name__)


class Described:
    d = Descriptor()
    n = NonData()

    @functools.cached_property
    def once(self):
        self.k = getattr(self, "k", 0) + 1
        return self.k

    @property
    def checked(self):
        return self._checked

    @checked.setter
    def checked(self, value):
        if value < 0:
            raise ValueError("negative")
        self._checked = value

    @checked.deleter
    def checked(self):
        del self._checked

    @property
    def fixed(self):
        return 1

    def __getattr__(self, name):
        if name.startswith("dyn"):
            return name
        raise AttributeError(name)


def descriptors(x, h):
    h.d = 4
    h.checked = 3
    new = Described()
    first = new.once
    n1 = h.n
    h.__dict__["n"] = "own"
    d = h.d
    del h.d
    out = []
    for call in (
        lambda: setattr(h, "checked", -1),
        lambda: setattr(h, "fixed", 3),
        lambda: delattr(h, "fixed"),
        lambda: h.zz,
    ):
        try:
            call()
        except (ValueError, AttributeError) as e:
            out.append(str(e))
    checked = h.checked
    del h.checked
    return (
        x * d,
        checked,
        first,
        new.once,
        new.dyn_x,
        hasattr(new, "nope"),
        new.d,
        type(h).d.name,
        h.once,
        h.d,
        n1,
        h.n,
        Described.n,
        out,
        hasattr(h, "checked"),
        hasattr(h, "_checked"),
    )


class Hooked:
    def __init__(self):
        self.q = 1

    def __getattribute__(self, name):
        if name == "magic":
            return 42
        if name == "broken":
            raise AttributeError("broken")
        return super().__getattribute__(name)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return "fallback " + name

    def __setattr__(self, name, value):
        super().__setattr__(name, value if name != "doubled" else value * 2)

    def __delattr__(self, name):
        super().__delattr__("q")


def hooks(x, g):
    g.doubled = 4
    out = g.magic, g.q, g.broken, g.missing, g.doubled
    del g.anything
    return x + 1, out, g.q


class Remap:
    """As configuration objects of model libraries: names that stand for others."""

    attribute_map = {"hidden": "n_embd"}

    def __init__(self):
        self.n_embd = 3

    def __setattr__(self, key, value):
        if key in super().__getattribute__("attribute_map"):
            key = super().__getattribute__("attribute_map")[key]
        super().__setattr__(key, value)

    def __getattribute__(self, key):
        if key != "attribute_map" and key in super().__getattribute__("attribute_map"):
            key = super().__getattribute__("attribute_map")[key]
        return super().__getattribute__(key)


def remapped(x, c):
    a = c.hidden
    c.hidden = 5
    return x * a + c.n_embd, getattr(c, "nope", None)


class Operand:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        if isinstance(other, str):
            return NotImplemented
        return Operand(self.v + (other.v if isinstance(other, Operand) else other))

    def __radd__(self, other):
        return Operand(other + self.v)

    def __iadd__(self, other):
        self.v += other
        return self

    def __neg__(self):
        return Operand(-self.v)

    def __invert__(self):
        return "inverted"

    def __lt__(self, other):
        return self.v < other.v

    def __matmul__(self, other):
        return "mm"

    def __contains__(self, item):
        return item == self.v

    def __setitem__(self, k, v):
        self.v = (k, v)

    def __delitem__(self, k):
        self.v = ("deleted", k)

    def __format__(self, spec):
        return f"<{spec}>"

    def __repr__(self):
        return "Operand!"

    def __index__(self):
        return 1


class Low(Operand):
    def __radd__(self, other):
        return "low first"


def operators(x):
    a = Operand(1)
    b = a
    b += 5
    try:
        a + "s"
    except TypeError as e:
        text = str(e)
    out = [
        (a + b).v,
        (3 + a).v,
        a is b,
        (-a).v,
        ~a,
        a < Operand(99),
        a > Operand(2),
        a @ 1,
        text,
        a + Low(1),
        6 in a,
        f"{a:z}",
        f"{a!r}",
        str(a),
        [7, 8][a],
    ]
    a[1] = 2
    out.append(a.v)
    del a[3]
    return (x + Operand(2)).v, out, a.v


class Counting:
    def __init__(self, n):
        self.i = 0
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.i >= self.n:
            raise StopIteration(self.n)
        self.i += 1
        return self.i


class Indexed:
    def __getitem__(self, i):
        if i > 2:
            raise IndexError
        return i * 10


def iterating(x, it):
    def delegated():
        r = yield from Counting(2)
        yield "returned", r

    out = (
        [x * i for i in Counting(3)],
        list(Indexed()),
        20 in Indexed(),
        sum(Counting(4)),
        tuple(zip(Counting(2), "ab")),
    )
    try:
        next(Counting(0))
    except StopIteration as e:
        value = e.value
    a, *rest = Counting(3)
    return (
        out,
        value,
        a,
        rest,
        list(delegated()),
        next(it),
        list(it),
        next(it, "done"),
        dict(zip("ab", Counting(2))),
    )


class Sized:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


def truth(x):
    return (
        x + 1,
        bool(Sized(0)),
        bool(Sized(2)),
        [1 if s else 0 for s in (Sized(0), Sized(1))],
        not Sized(0),
        all([Sized(1)]),
    )


class Node:
    def __init__(self, v):
        self.v = v


def identity(x, n, m):
    d = {n: x, Node: 2, len: 3}
    return d[n] + 1, d[Node], d[len], n is m, n == m, m in d, n in [m], [m, n].index(n)


def copying(x, n):
    m = copy.copy(n)
    m.v = x + 1
    return m, n.v, m.v


def cyclic(x):
    a = Node(x + 1)
    a.me = a
    b = Node(a)
    a.others = [b, {"a": a}]
    return a, b


class Wrapped:
    def __init__(self, f):
        self.f = f
        functools.update_wrapper(self, f)

    def __call__(self, *a, **k):
        return self.f(*a, **k)


@Wrapped
def wrapped(x, k=2):
    return x * k


def callable_objects(x):
    return wrapped(x), wrapped.__name__, wrapped.f(x, k=3), callable(wrapped), callable(Node(1))


@pytest.mark.parametrize("program", [operators, truth, cyclic, callable_objects], ids=lambda f: f.__name__)
def test_program(program):
    check(program, X)


@pytest.mark.parametrize(
    ("program", "make"),
    [
        (using, lambda: Thing(2)),
        (using, lambda: Thing(0)),
        (writing, lambda: Thing(2)),
        (unhashable, lambda: Thing(2)),
        (slots, lambda: Slots(2)),
        (slots_and_dict, lambda: SlotsAndDict(2)),
        (slots_with_fallback, lambda: SlotsWithFallback(2)),
        (descriptors, Described),
        (hooks, Hooked),
        (remapped, Remap),
        (iterating, lambda: Counting(3)),
        (copying, lambda: Node(3)),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_with_an_object(program, make):
    check(program, X, make())


def test_identity():
    n = Node(1)
    check(identity, X, n, Node(1), then=[(X, n, n)], warm=False, recompiles=None)


def test_attributes_are_guarded_one_by_one():
    def program(x, n):
        return x * n.v

    a, b = Node(2), Node(2)
    b.unread = 5
    check(program, X, a, then=[(X, b)], recompiles=0)
    graphlift.reset()
    check(program, X, a, then=[(X, Node(7))], recompiles=1)


def test_absent_attributes_are_guarded():
    compiled = graphlift.compile(lambda x, n: x + getattr(n, "extra", 0), backend="eager", fullgraph=True)
    n = Node(1)
    assert torch.equal(compiled(X, n), X)
    n.extra = 3
    assert torch.equal(compiled(X, n), X + 3)
    del n.extra
    Node.extra = 4
    try:
        assert torch.equal(compiled(X, n), X + 4)
    finally:
        del Node.extra
    assert torch.equal(compiled(X, n), X)


def test_unset_slots_are_guarded():
    compiled = graphlift.compile(lambda x, s: x + getattr(s, "q", 0), backend="eager", fullgraph=True)
    s = Slots(1)
    assert torch.equal(compiled(X, s), X)
    s.q = 3
    assert torch.equal(compiled(X, s), X + 3)


def test_a_new_property_is_seen():
    class Local:
        def __init__(self):
            self.v = 2

    compiled = graphlift.compile(lambda x, n: x * n.v, backend="eager", fullgraph=True)
    n = Local()
    assert torch.equal(compiled(X, n), X * 2)
    Local.v = property(lambda self: 5)
    assert torch.equal(compiled(X, n), X * 5)


def test_a_new_class_is_seen():
    class Other(Node):
        v = 9

        def __getattribute__(self, name):
            return 4

    compiled = graphlift.compile(lambda x, n: x * n.v, backend="eager", fullgraph=True)
    n = Node(2)
    assert torch.equal(compiled(X, n), X * 2)
    n.__class__ = Other
    assert torch.equal(compiled(X, n), X * 4)


def test_shared_objects_stay_one():
    def make():
        shared = Node(1)
        a, b = Node(shared), Node(shared)

        def program(x, a, b):
            a.v.v += 1
            return x * b.v.v, a.v is b.v

        return program, (X, a, b)

    check_fresh(make)


def test_a_descriptor_that_only_sets():
    class OnlySets:
        def __set__(self, instance, value):
            instance.__dict__["v"] = value

    class Holder:
        v = OnlySets()

    def program(x):
        holder = Holder()
        before = holder.v is Holder.v
        holder.v = 42
        return x + holder.v, before, holder.v

    check(program, X)


def test_methods_in_c_stand_on_classes_under_any_name():
    def program(x):
        class Local(list):
            add = list.append
            __hash__ = object.__hash__
            __repr__ = list.__len__

        local = Local()
        local.add(x)
        try:
            repr(local)
        except TypeError as error:
            return local[0] + len(local), {local: 1}[local], str(error)

    check(program, X)


def test_names_of_attributes_must_be_strings():
    def program(x):
        try:
            type.__getattribute__(int, 3)
        except TypeError as error:
            return x + 1, str(error)

    check(program, X)


def test_a_slot_that_is_deleted_and_filled_again_is_full():
    def program(x, s):
        del s.p
        s.p = x
        s.q = 1
        del s.q
        return x + 1

    def same_again(x, s):
        before = s.p
        del s.p
        s.p = before
        return x + 1

    check(program, X, SlotsAndDict(3))
    check(same_again, X, Slots(3))


def test_a_key_whose_hash_is_python_code_is_guarded_as_absent():
    def program(x, table, number):
        return x + table.get(Colour(number), 0), Colour(number) in table

    with graphlift.config.patch(check_guards=True):
        check(program, X, {Colour.RED: 3, "a": 1, 2: 2}, 2)


class Measured:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


class Judged:
    def __init__(self, n):
        self.n = n

    def __bool__(self):
        return self.n


@pytest.mark.parametrize("values", [(1, 3, 2.0, 5.0, 2), (2.0, 3.0, 1), (1, 2, 3, -1, 0, -2, 4), ([], [1])])
def test_numbers_that_vary_are_no_length_and_no_truth_unless_they_are(values):
    def programs():
        yield lambda x, n: (x + 1, len(Measured(n)))
        yield lambda x, n: (x + 1, bool(Measured(n)))
        yield lambda x, n: (x + 1, bool(Judged(n)))

    def outcome(program, n):
        try:
            return program(X, n)[1]
        except (TypeError, ValueError) as error:
            return repr(error)

    for program in programs():
        compiled = graphlift.compile(program, backend="eager")
        got = [outcome(compiled, n) for n in values]
        assert repr(got) == repr([outcome(program, n) for n in values])
