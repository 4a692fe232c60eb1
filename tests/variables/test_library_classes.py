"""Classes made by the library inside captured functions: data classes, enumerations, named tuples, types."""

import collections
import dataclasses
import enum
import inspect
import sys
import typing
from dataclasses import dataclass, field

import pytest
import torch

from graphlift.testing import check

X = torch.ones(2, 2)
T = typing.TypeVar("T")


def dc_plain(x):
    @dataclass
    class A:
        a: int
        b: int = 3

    v = A(2)
    w = A(2, b=3)
    return x * v.a + v.b, v == w, repr(v), A.__name__, A.__match_args__


def dc_frozen(x):
    @dataclass(frozen=True)
    class A:
        a: int
        b: int = 3

    v = A(2)
    try:
        v.a = 3
    except dataclasses.FrozenInstanceError as e:
        m = str(e)
    return x * v.a + v.b, m, hash(v) == hash(A(2))


def dc_slots(x):
    @dataclass(slots=True)
    class A:
        a: int
        b: int = 3

    v = A(2)
    return x * v.a + v.b, A.__slots__


def dc_order(x):
    @dataclass(order=True)
    class A:
        a: int
        b: int = 3

    return x * (A(1) < A(2)), sorted([A(3), A(1)])[0].a


def dc_kw(x):
    @dataclass(kw_only=True)
    class A:
        a: int
        b: list = field(default_factory=list)

    v = A(a=2)
    v.b.append(x)
    return v.b[0] * v.a


def dc_post(x):
    @dataclass
    class A:
        a: int
        s: dataclasses.InitVar[int]
        c: int = field(init=False, repr=False)

        def __post_init__(self, s):
            self.c = self.a + s

    v = A(2, 5)
    return x * v.c, repr(v), [f.name for f in dataclasses.fields(v)]


def dc_inherit(x):
    @dataclass
    class A:
        a: int = 1

    @dataclass
    class B(A):
        b: int = 2

    v = B()
    return (
        x * v.a + v.b,
        dataclasses.asdict(v),
        dataclasses.replace(v, b=5).b,
        dataclasses.is_dataclass(v),
        dataclasses.astuple(v),
    )


def dc_make(x):
    A = dataclasses.make_dataclass("A", [("a", int), ("b", int, 3)])
    return x * A(2).b


def enum_plain(x):
    class E(enum.Enum):
        A = 1
        B = 2

    return x * E.A.value + E["B"].value, [e.name for e in E], E(2).name


def enum_int(x):
    class E(enum.IntEnum):
        A = 1
        B = 2

    return x * E.A + E.B


def enum_flag(x):
    class E(enum.Flag):
        A = enum.auto()
        B = enum.auto()

    return x * (E.A | E.B).value, E.A in (E.A | E.B)


def enum_str(x):
    class E(enum.StrEnum):
        A = enum.auto()

    return x * len(E.A), E.A.value


def enum_method(x):
    class E(enum.Enum):
        A = 1
        B = 2

        def twice(self):
            return self.value * 2

        @property
        def third(self):
            return self.value * 3

    return x * E.A.twice() + E.B.third


def enum_functional(x):
    E = enum.Enum("E", "A B C")
    return x * E.C.value


def nt_fn(x):
    A = collections.namedtuple("A", "a b", defaults=[3])
    v = A(2)
    return x * v.a + v.b, repr(v), v._replace(a=7).a, v._asdict(), A._fields


def nt_cls(x):
    class A(typing.NamedTuple):
        a: int
        b: int = 3

        def total(self):
            return self.a + self.b

    v = A(2)
    return x * v.a + v.b, repr(v), v.total()


def typed_dict(x):
    class A(typing.TypedDict, total=False):
        a: int
        b: int

    v: A = {"a": 1}
    w = A(a=3)
    return x * v["a"] + w["a"], w


def protocol(x):
    class A(typing.Protocol):
        def f(self): ...

    class B(A):
        def f(self):
            return 4

    return x * B().f()


def protocol_rt(x):
    @typing.runtime_checkable
    class A(typing.Protocol):
        def f(self): ...

    class B:
        def f(self):
            return 4

    return x * B().f(), isinstance(B(), A)


def generic(x):
    class A(typing.Generic[T]):
        def __init__(self, v: T):
            self.v = v

    return x * A(3).v


def derived(x):
    class M(int):
        def __new__(cls, v, tag=None):
            self = super().__new__(cls, v)
            self.tag = tag
            return self

        def twice(self):
            return self * 2

    class S(str):
        def shout(self):
            return self.upper() + "!"

    class F(float):
        def __repr__(self):
            return "F(" + super().__repr__() + ")"

    m = M(3, "t")
    s = S("ab")
    f = F(1.5)
    return (
        x * m + f,
        m.twice(),
        m + 1,
        m == 3,
        hash(m) == hash(3),
        {m: 1}[3],
        f"{m} {s} {f!r}",
        s.shout(),
        len(s),
        s[0],
        s + "c",
        m.tag,
        list(range(m)),
        isinstance(m, int),
        str(m),
        repr(s),
        "%d" % m,
        [1, 2, 3, 4][m],
        bool(M(0)),
        -m,
        divmod(m, 2),
        M("12"),
        m.bit_length(),
        int(m),
        float(f),
        round(f),
        s == "ab",
        "ab" == s,
        s in {"ab"},
        m < 4,
        4 > m,
        max(m, 2) is m,
    )


def enum_more(x):
    class C(enum.Enum):
        RED = 1
        GREEN = 2
        CRIMSON = 1

        @classmethod
        def first(cls):
            return cls.RED

        def __str__(self):
            return "C:" + self.name

    @enum.unique
    class D(enum.Enum):
        A = "a"
        B = "b"

    class F(enum.Flag):
        X = 1
        Y = 2
        XY = 3

    class Mode(enum.IntFlag):
        R = 4
        W = 2

    try:
        C(7)
    except ValueError as e:
        m = str(e)
    try:
        C["Q"]
    except KeyError as e:
        m2 = str(e)
    return (
        x * C.first().value,
        C.CRIMSON is C.RED,
        str(C.GREEN),
        repr(D.A),
        list(C.__members__),
        m.split(".")[-1],
        m2,
        len(C),
        C.RED in C,
        (F.X | F.Y) is F.XY,
        (F.XY & F.X).name,
        Mode.R | Mode.W,
        int(Mode.R | Mode.W),
        bool(F(0)),
        ~F.X == F.Y,
        C.RED == C.RED,
        C.RED != C.GREEN,
        {C.RED: 1}[C.CRIMSON],
        isinstance(C.RED, C),
        C.RED.name,
        D("b").name,
        hash(C.RED) == hash(C.RED),
    )


def enum_unique_fail(x):
    try:

        @enum.unique
        class D(enum.Enum):
            A = 1
            B = 1
    except ValueError as e:
        return x + 1, str(e).split("<locals>")[-1]


def enum_init(x):
    class Planet(enum.Enum):
        A = (1.0, 2.0)
        B = (3.0, 4.0)

        def __init__(self, m, r):
            self.m = m
            self.r = r

        @property
        def g(self):
            return self.m / self.r

    return x * Planet.A.g + Planet.B.m


def enum_auto_custom(x):
    class A(str, enum.Enum):
        def _generate_next_value_(name, start, count, last_values):
            return name.lower()

        ONE = enum.auto()
        TWO = enum.auto()

    class B(enum.Enum):
        _ignore_ = ["t"]
        Z = 5

        @classmethod
        def _missing_(cls, v):
            return cls.Z

    return x + len(A.TWO), A.ONE.value, A.ONE == "one", B(99).value


def enum_setattr(x):
    class A(enum.Enum):
        P = 1

    try:
        A.P = 3
    except AttributeError as e:
        m = str(e)
    try:

        class B(A):
            Q = 2
    except TypeError as e:
        m2 = type(e).__name__
    return x + 1, m.replace("<", "").split(".")[-1][:5], m2


def dc_more(x):
    @dataclass(frozen=True, order=True, slots=True)
    class A:
        a: int
        b: float = 2.0
        c: tuple = field(default=(), compare=False)

    @dataclass(unsafe_hash=True)
    class B:
        v: int
        w: dict = field(default_factory=dict, hash=False, repr=False)

    @dataclass(eq=False)
    class C:
        v: int

    @dataclass
    class K:
        a: int
        _: dataclasses.KW_ONLY
        k: int = 4

    a, a2 = A(1), A(1, 2.0, (3,))
    match a2:
        case A(q, r):
            mm = q + r
    try:
        A()
    except TypeError as e:
        msg = str(e)
    try:
        A(1).z = 3
    except Exception as e:
        ty = type(e).__name__
    return (
        x * a.b,
        a == a2,
        a <= a2,
        hash(a) == hash(a2),
        repr(B(3)),
        hash(B(3)) == hash(B(3)),
        C(1) == C(1),
        K(1, k=3).k,
        mm,
        msg,
        ty,
        [f.name for f in dataclasses.fields(A)],
        dataclasses.replace(a, b=9.0).b,
        A.__slots__,
        hasattr(a, "__dict__"),
        A.__doc__,
        dataclasses.asdict(B(1, {"q": [1]})),
    )


def dc_mutable_default(x):
    try:

        @dataclass
        class A:
            a: list = []
    except ValueError as e:
        return x + 1, str(e)


def dc_ret(x):
    @dataclass
    class A:
        a: object

    return A(x + 1).a, dataclasses.make_dataclass("Q", ["z"])(3).z


def nt_more(x):
    A = collections.namedtuple("A", ["a", "b"])
    B = collections.namedtuple("B", "x y x", rename=True)

    class C(A):
        __slots__ = ()

        @property
        def s(self):
            return self.a + self.b

    try:
        collections.namedtuple("D", "a class")
    except ValueError as e:
        m = str(e)
    try:
        A(1)
    except TypeError as e:
        m2 = str(e)
    a = A(1, 2)
    q, r = a
    return (
        x * C(1, 2).s,
        B._fields,
        m,
        m2,
        a == (1, 2),
        q,
        r,
        a[1],
        a.index(2),
        A._make([3, 4]),
        a._asdict(),
        A.__doc__,
        A.a.__doc__,
        A.__module__ == __name__,
        C(1, 2),
        len(a),
        a + (3,),
        hash(a) == hash((1, 2)),
        sorted([A(2, 1), A(1, 5)]),
        isinstance(a, tuple),
    )


def nt_typed_more(x):
    class P(typing.NamedTuple):
        "doc"

        a: int
        b: "str" = "z"

        @property
        def d(self):
            return self.a * 2

    G = typing.NamedTuple("G", [("u", int), ("v", float)])
    return (
        x * P(3).d,
        P.__annotations__["a"],
        P._field_defaults,
        P(1, b="q"),
        G(1, 2.0).v,
        P.__doc__,
        P.__new__.__defaults__,
    )


def td_more(x):
    class A(typing.TypedDict):
        a: int

    class B(A, total=False):
        b: typing.NotRequired[int]

    C = typing.TypedDict("C", {"q": int})
    return (
        x + B(a=1, b=2)["b"],
        B.__required_keys__,
        B.__optional_keys__,
        A.__total__,
        C(q=1),
        type(B(a=1)) is dict,
    )


def protocol_more(x):
    @typing.runtime_checkable
    class HasF(typing.Protocol):
        n: int

        def f(self) -> int: ...

    class Y:
        n = 1

        def f(self):
            return 3

    class N:
        def f(self):
            return 3

    try:
        HasF()
    except TypeError as e:
        m = str(e)
    return x * Y().f(), isinstance(Y(), HasF), isinstance(N(), HasF), m


def typ(x):
    a = typing.Optional[int]
    b = typing.List[int]
    c = typing.Callable[[int], str]
    d = typing.Literal["a"]
    e = list[int]
    f = typing.Annotated[int, 3]
    return (
        x + 1,
        a.__args__,
        b.__origin__,
        typing.get_args(c),
        typing.get_origin(a),
        d.__args__,
        e.__origin__,
        typing.get_args(e),
        typing.get_origin(f),
        f.__metadata__,
        repr(a),
        repr(b),
        a == typing.Optional[int],
        b.__module__,
        a.__module__,
    )


def typ2(x):
    def f(a: typing.Optional[int] = None, *b: "torch.Tensor", c: list[int] = ()) -> typing.Dict[str, int]: ...

    return x + 1, f.__annotations__, typing.get_type_hints(f)["return"].__args__


def newtype(x):
    N = typing.NewType("N", int)
    return x * N(3), N.__name__, N.__supertype__ is int


def cast_etc(x):
    v = typing.cast(int, 3)
    typing.assert_type(v, int)

    @typing.overload
    def f(a: int) -> int: ...
    @typing.overload
    def f(a: str) -> str: ...
    def f(a):
        return a

    @typing.final
    class C:
        pass

    return x * f(v), C.__final__, typing.TYPE_CHECKING


@pytest.mark.parametrize(
    "program",
    [
        dc_plain,
        dc_frozen,
        dc_slots,
        dc_order,
        dc_kw,
        dc_post,
        dc_inherit,
        dc_make,
        enum_plain,
        enum_int,
        enum_flag,
        enum_str,
        enum_method,
        enum_functional,
        nt_fn,
        nt_cls,
        typed_dict,
        protocol,
        protocol_rt,
        generic,
        derived,
        enum_more,
        enum_unique_fail,
        enum_init,
        enum_auto_custom,
        enum_setattr,
        dc_more,
        dc_mutable_default,
        dc_ret,
        nt_more,
        nt_typed_more,
        td_more,
        protocol_more,
        typ,
        typ2,
        newtype,
        cast_etc,
    ],
    ids=lambda f: f.__name__,
)
def test_program(program):
    check(program, X)


def test_classes_in_c_have_no_annotations():
    def program(x):
        try:
            object.__annotations__  # noqa: B018
        except AttributeError as error:
            said = str(error)
        return x + 1, said, getattr(int, "__annotations__", 3)

    check(program, X)


class WithWrapped:
    pass


WithWrapped.__wrapped__ = inspect.cleandoc


def test_unwrapping_looks_at_classes_where_python_does():
    def unwraps(x):
        return inspect.unwrap(WithWrapped), inspect.unwrap(WithWrapped()), x * 2

    check(unwraps, torch.ones(2))
