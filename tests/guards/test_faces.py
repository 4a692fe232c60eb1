"""Every kind of guard, fed values that match and values that do not: both faces must say what is expected.

A row is (guard, values that match, values that do not); values are what the parameter holds.
"""

import collections
import collections.abc
import contextvars
import enum
import functools
import math
import operator
import types
import weakref
from collections import OrderedDict

import pytest
import torch

from graphlift import _C
from graphlift.guards.compile import compile_guards
from graphlift.guards.explain import failed_guard
from graphlift.guards.guard import Guard, all_kinds
from graphlift.guards.holding import NotGuardableError
from graphlift.guards.kinds import modules
from graphlift.guards.kinds.aliases import overlap_guard
from graphlift.guards.kinds.dictionaries import Lacks
from graphlift.guards.kinds.tensors import TensorSpec
from graphlift.metadata import record_of
from graphlift.sources import (
    AnchorSource,
    AttrSource,
    CellContentsSource,
    ContextValueSource,
    DictKeySource,
    DictValueSource,
    FunctionFieldSource,
    FunctionSource,
    GlobalSource,
    InstanceDictSource,
    IteratorSource,
    KeySource,
    MethodFunctionSource,
    MethodSelfSource,
    ModuleDictSource,
    ObjectSource,
    ParamSource,
    ReferentSource,
    SlotSource,
    StateSource,
    TypeLookupSource,
)
from graphlift.variables.library_states import read_bytearray

A = ParamSource(None, (0, "a"))
B = ParamSource(None, (1, "b"))
C = ParamSource(None, (2, "c"))
FUNCTION = FunctionSource(None, "subject")


def subject(a, b=None, c=None):
    """The function that guards are about."""


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mode(enum.IntFlag):
    X = 1
    Y = 2


class Word(str, enum.Enum):
    YES = "yes"
    NO = "no"


class Plain:
    size = 3

    def __init__(self, **attrs):
        self.__dict__.update(attrs)

    def method(self):
        pass

    @property
    def prop(self):
        return 1

    @classmethod
    def cls_method(cls):
        pass

    @staticmethod
    def static():
        pass


class Other(Plain):
    pass


class Slotted:
    __slots__ = ("x", "y")

    def __init__(self, x):
        self.x = x


class ListChild(list):
    def __len__(self):
        raise AssertionError("a guard ran user code")

    def __getitem__(self, index):
        raise AssertionError("a guard ran user code")


class Rude:
    """Whoever compares, hashes or looks into it runs user code."""

    def __eq__(self, other):
        raise AssertionError("a guard ran user code")

    __hash__ = None

    def __getattr__(self, name):
        raise AssertionError("a guard ran user code")

    def __bool__(self):
        raise AssertionError("a guard ran user code")


class RudeKey:
    """Has the hash of a string and an `__eq__` of the user's."""

    def __init__(self, like):
        self.like = like

    def __hash__(self):
        return hash(self.like)

    def __eq__(self, other):
        raise AssertionError("a guard ran user code")


NAN, OTHER_NAN = float("nan"), float("-nan")
BIG = 1 << 80
FN, FN2 = (lambda: 1), (lambda: 2)
CONTEXT_FIVE = contextvars.ContextVar("five", default=5)
CONTEXT_SIX = contextvars.ContextVar("six", default=5)
CONTEXT_SIX.set(6)
CONTEXT_UNSET = contextvars.ContextVar("unset")


def with_cell(value):
    def inner():
        return value

    return inner.__closure__[0]


EMPTY_CELL = types.CellType()


def ordered(keys, moved=None):
    made = OrderedDict.fromkeys(keys, 1)
    if moved is not None:
        made.move_to_end(moved)
    return made


def advanced(iterable, steps):
    made = iter(iterable)
    for _ in range(steps):
        next(made)
    return made


def exhausted(iterable):
    made = iter(iterable)
    for _ in made:
        pass
    return made


def constants():
    """For each constant its equals, made anew where they can be."""
    rows = [
        (1, [1], [True, 1.0, 2, BIG, "1", None]),
        (300, [int("300")], [301, 300.0, -300]),
        (BIG, [int(str(BIG))], [BIG + 1, -BIG, 1, float(BIG)]),
        (-1, [-1], [1, 2**63 - 1, 2**64 - 1]),
        (2**63 - 1, [int(str(2**63 - 1))], [-1, 2**63, -(2**63)]),
        (True, [True], [1, 1.0, False, None]),
        (0.0, [0.0], [-0.0, 0, False, NAN]),
        (-0.0, [-0.0], [0.0]),
        (NAN, [NAN, float("nan")], [OTHER_NAN, 0.0, None]),
        (1.5, [float("1.5")], [math.nextafter(1.5, 2)]),
        (1j, [complex(0, 1)], [complex(-0.0, 1), 1, 1.0]),
        ("ab", ["ab", "".join(["a", "b"])], ["aB", "abc", b"ab", "", type("S", (str,), {})("ab")]),
        ("é" * 3, ["".join(["é"] * 3)], ["e" * 3]),
        ("", [""], ["a", b"", None]),
        (b"xy", [bytes([120, 121])], [b"x", "xy", bytearray(b"xy")]),
        (None, [None], [False, 0, ...]),
        (..., [...], [None]),
        ((1, 2.0, "x"), [(1, 2.0, "x"), tuple([1, 2.0, "x"])], [(1, 2, "x"), [1, 2.0, "x"], (1, 2.0), ()]),
        ((1, (2, NAN)), [(1, (2, float("nan")))], [(1, (2, 0.0)), (True, (2, NAN))]),
        ((), [()], [(1,), [], None]),
        (frozenset({1, 2}), [frozenset([1, 2])], [frozenset({1, 3}), {1, 2}, frozenset({True, 2})]),
        (slice(1, None, 2), [slice(1, None, 2)], [slice(1, None, 1), slice(True, None, 2), 1]),
        (range(3), [range(3), range(0, 3)], [range(4), [0, 1, 2]]),
        (int, [int], [float, bool, Plain]),
        (torch.float32, [torch.float32], [torch.float64, "torch.float32"]),
        (torch.device("cpu"), [torch.device("cpu")], [torch.device("meta"), torch.device("cpu", 0), "cpu"]),
        (torch.strided, [torch.strided], [torch.sparse_coo]),
        (torch.contiguous_format, [torch.contiguous_format], [torch.channels_last]),
        (torch.Size([2, 3]), [torch.Size([2, 3])], [torch.Size([3, 2]), (2, 3), torch.Size([])]),
        (Color.RED, [Color.RED], [Color.BLUE, 1, Level.LOW]),
        (Level.LOW, [Level.LOW], [1, Level.HIGH, Mode.X, True]),
        (Mode.X | Mode.Y, [Mode(3)], [Mode.X, 3]),
        (Word.YES, [Word.YES], ["yes", Word.NO]),
    ]
    for value, same, different in rows:
        yield Guard("constant", A, (value,)), same, [*different, Rude()]


BASE = torch.arange(12.0).reshape(3, 4)
PARAMETER = torch.nn.Parameter(torch.zeros(2))
Child = type("Child", (torch.Tensor,), {})


def tensor_values():
    different = [
        torch.arange(12.0).reshape(4, 3),
        torch.arange(12.0).reshape(4, 3).t(),
        torch.arange(12).reshape(3, 4),
        torch.arange(12.0).reshape(3, 4).requires_grad_(),
        torch.empty(3, 4, device="meta"),
        torch.arange(12.0).reshape(3, 2, 2),
        torch.arange(12.0).reshape(3, 4).to(torch.complex64).conj(),
        torch.eye(3, 4).to_sparse(),
        torch.nn.Parameter(BASE.clone()),
        BASE.clone().as_subclass(Child),
        None,
        3,
        Rude(),
    ]
    with torch.inference_mode():
        different.append(BASE.clone())
    return different


def tensors():
    yield Guard("tensor", A, (record_of(BASE),)), [BASE, BASE.clone(), torch.zeros(3, 4)], tensor_values()
    free = TensorSpec(
        torch.Tensor, record_of(BASE).key_set, torch.float32, torch.device("cpu"), False, (None, 4), (4, None)
    )
    yield (
        Guard("tensor", A, (free,)),
        [BASE, torch.zeros(7, 4), torch.zeros(7, 8)[:, ::2].clone()],
        [torch.zeros(3, 5), torch.zeros(3), torch.zeros(7, 8)[:, ::2]],
    )
    yield Guard("tensor", A, (record_of(PARAMETER),)), [torch.nn.Parameter(torch.ones(2))], [torch.ones(2)]
    meta = torch.empty(2, device="meta")
    yield Guard("tensor", A, (record_of(meta),)), [torch.empty(2, device="meta")], [torch.empty(2)]
    for dtype in (
        torch.bool,
        torch.bfloat16,
        torch.float8_e4m3fn,
        torch.uint16,
        torch.int64,
        torch.complex128,
    ):
        made = torch.zeros(2, dtype=dtype)
        yield Guard("tensor", A, (record_of(made),)), [torch.zeros(2, dtype=dtype)], [torch.zeros(2)]
    yield Guard("tensor_field", A, ("storage_offset", 2)), [torch.zeros(9)[2:]], [torch.zeros(9), 2, None]
    result = PARAMETER * 2
    yield Guard("tensor_field", A, ("is_leaf", True)), [torch.zeros(1), PARAMETER], [result, None]
    yield Guard("tensor_field", A, ("grad_fn", None)), [torch.zeros(1)], [result, Rude()]
    yield Guard("tensor_field", A, ("_base", None)), [torch.zeros(9)], [torch.zeros(9)[2:]]
    with torch.no_grad():
        unfollowed = result[:1]
    others = [result, PARAMETER[:1], torch.zeros(9)[2:], result.unbind()[0], unfollowed, Rude()]
    yield Guard("writable_view", A, ()), [result[:1], result[0].view(-1)], others
    leaf = torch.zeros(2)
    with torch.no_grad():
        protected = leaf[:1]
    yield Guard("ordinary_view", A, ()), [result[:1], leaf[:1]], [protected, leaf.unbind(0)[0], leaf, None]


def identities():
    code = (lambda: 1).__code__
    for thing in (
        FN,
        Plain,
        Plain(),
        torch,
        code,
        len,
        torch.add,
        Color.RED,
        functools.partial(FN),
        operator.add,
    ):
        yield Guard("is", A, (thing,)), [thing], [FN2, None, Rude(), 3]
    for thing in (int, torch.Tensor.add, int.__add__, type.__dict__["__mro__"], torch.float32, None):
        yield Guard("is", A, (thing,)), [thing], [FN2, Rude(), 3]
    yield Guard("is", A, (Level.LOW,)), [Level.LOW], [1, Level.HIGH, Rude()]
    yield Guard("is_not", A, (FN,)), [FN2, None, Rude()], [FN]
    yield Guard("is_not", A, (None,)), [FN2, 0, Rude()], [None]
    for name in ("prop", "cls_method", "static"):
        thing = Plain.__dict__[name]
        yield (
            Guard("is", A, (thing,)),
            [thing],
            [property(FN), classmethod(FN), staticmethod(FN), None, Rude()],
        )
    yield Guard("is", A, (Slotted.x,)), [Slotted.x], [Slotted.y, int.__add__, None, Rude()]
    yield Guard("type", A, (Plain,)), [Plain(), Plain(x=1)], [Other(), Plain, None, Rude()]
    yield Guard("type", A, (int,)), [1, BIG], [True, 1.0, Level.LOW, None, Rude()]


def containers():
    yield (
        Guard("length", A, (2,)),
        [[1, 2], (1, 2), {1: 1, 2: 2}, {1, 2}, "ab", ListChild([1, 2])],
        [[1], ListChild([1]), 3, None, Rude()],
    )
    yield Guard("length", A, (0,)), [collections.deque(), OrderedDict(), torch.Size([])], [[1], Rude()]
    yield Guard("hashes", A, ((1, None),)), [{1: 0, "a": 0}, {1: 0, 7: 0}], [{2: 0, 3: 0}, {1: 0}, [1, 2]]
    yield Guard("hashes", A, ((3, 5),)), [{3, 5}, frozenset({3, 5}), {3: 0, 5: 0}], [{3, 6}, {3, 5, 7}]
    yield Guard("set_items", A, ((1, "a"),)), [], [{1}, {1, "b"}, [1, "a"], {True, "a"}]
    yield Guard("set_items", A, (tuple({3, 5}),)), [{3, 5}, frozenset({3, 5})], [{3, 6}, {3.0, 5}]
    yield (
        Guard("keys", A, (("a", 1),)),
        [{"a": 0, 1: 0}, OrderedDict([("a", 1), (1, 1)])],
        [
            {1: 0, "a": 0},
            {"a": 0},
            {"a": 0, True: 0},
            {"a": 0, 1: 0, 2: 0},
            {},
            None,
            ordered(["a", 1], "a"),
            Rude(),
        ],
    )
    yield Guard("keys", A, ((FN, Plain),)), [{FN: 1, Plain: 2}], [{FN2: 1, Plain: 2}]
    yield Guard("keys", A, (("b", "a"),)), [ordered("ab", "a"), {"b": 1, "a": 1}], [ordered("ab")]
    yield Guard("keys", A, ((),)), [{}, OrderedDict()], [{1: 1}, [], None]
    own = {"__compiled_fn_1_ab": 1, "a": 1, "__resume_2_f": 2, "b": 3, "__resume_30_": 3}
    other = [
        {"b": 1, "a": 1},
        {"a": 1},
        {"a": 1, "b": 1, "__resume_3": 1},
        {"a": 1, "b": 1, "__resume__": 1},
        {"a": 1, "b": 1, 3: 1},
        {},
        None,
    ]
    yield Guard("names", A, (("a", "b"),)), [own, {"a": 1, "b": 1}], other
    yield (
        Guard("absent", A, ("k",)),
        [{}, {"x": 1}, {1: 1, 2.5: 2}, {FN: 1}],
        [{"k": 1}, {1: 1, "k": 2}, None],
    )
    yield (
        Guard("namespace_lacks", A, (Lacks(("k", "l"), ("hooks", "more")),)),
        [{"hooks": {}, "more": OrderedDict()}, {"more": {}, "hooks": {}, "x": 1}],
        [
            {"hooks": {}, "more": {}, "k": 1},
            {"hooks": {}, "more": {}, "l": None},
            {"hooks": {}},
            {"hooks": {1: 2}, "more": {}},
            {"hooks": {}, "more": OrderedDict(a=1)},
            {"hooks": [], "more": {}},
            {},
            3,
        ],
    )
    for number, (found, passed) in enumerate(
        (("parameter", ()), ("buffer", ("_parameters",)), ("submodule", ("_parameters", "_buffers")))
    ):
        good: dict[str, object] = {table: {"x": 1} for table in passed}
        good[modules.TABLES[number]] = {"w": 1}
        yield (
            Guard(f"{found}_entry", A, ("w",)),
            [good, {**good, "v": 2}, {table: {} for table in modules.TABLES}],
            [
                {**good, "w": 1},
                *({**good, table: {"w": None}} for table in passed),
                *({**good, table: OrderedDict(w=1)} for table in good),
                *({key: good[key] for key in good if key != table} for table in good),
                {},
                3,
            ],
        )
    yield Guard("absent", A, (1,)), [{}, {"1": 1}, {2: 1}], [{1: 1}, {True: 1}, {1.0: 1}]
    yield Guard("absent", A, (FN,)), [{}, {FN2: 1}], [{FN: 1}]
    # Its hash is told by Python code, but nothing is equal to it.
    others = [{}, {Color.RED: 1}, {1: 1}, {"x": 1}, {(1, 2): 1, FN: 2, Color.RED: 3}]
    yield Guard("absent", A, (Color.BLUE,)), others, [{Color.BLUE: 1}, {Color.RED: 1, Color.BLUE: 2}, None]
    yield Guard("has_key", A, ("k",)), [{"k": 1}, {1: 1, "k": 2}, OrderedDict(k=1)], [{}, {"x": 1}, None]
    yield Guard("has_key", A, ((1, "x"),)), [{(1, "x"): 1}], [{(1, "y"): 1}]
    yield Guard("attr_absent", A, ("x",)), [Plain(), Plain(y=1), 3, torch.zeros(1)], [Plain(x=1)]
    yield Guard("attrs_empty", A), [Plain(), 3, torch.zeros(1)], [Plain(x=1)]


def lookups():
    yield Guard("type_absent", A, ("nothing",)), [Plain, int], [type("N", (), {"nothing": 1}), 3, None]
    yield (
        Guard("type_lookup", A, ("method", Plain.method)),
        [Plain, Other],
        [type("N", (Plain,), {"method": FN}), int, None],
    )
    prop = Plain.__dict__["prop"]
    yield (
        Guard("type_lookup", A, ("prop", prop)),
        [Plain, Other],
        [type("N", (Plain,), {"prop": property(FN)})],
    )
    x = A.child(InstanceDictSource, None).child(KeySource, "x")
    yield Guard("there", x), [Plain(x=1), Plain(x=None)], [Plain(), Plain(y=1), 3, None]
    yield Guard("cell_empty", A), [EMPTY_CELL], [with_cell(1), None]
    yield Guard("member_unset", A, (Slotted.y,)), [Slotted(1)], [Plain(), None]
    yield Guard("member_unset", A, (Slotted.x,)), [], [Slotted(1)]
    yield Guard("subclass", AnchorSource(None, Plain), (collections.abc.Sized, False)), [1], []
    yield Guard("subclass", AnchorSource(None, list), (collections.abc.Sized, True)), [1], []


def iterators():
    yield (
        Guard("iterator", A, (1,)),
        [advanced([1, 2], 1), advanced((1, 2), 1), advanced({1: 1, 2: 2}, 1)],
        [iter([1, 2]), exhausted([1]), iter(range(3)), 1, Rude()],
    )
    yield Guard("iterator", A, (0,)), [iter([]), iter({}.items()), iter({1: 1}.values())], [advanced([1], 1)]
    yield Guard("iterator", A, (None,)), [exhausted([1]), exhausted(()), exhausted({1: 1})], [iter([1]), 1]
    yield (
        Guard("iterator", A, ((4, 3, 2),)),
        [advanced(range(1, 10, 3), 1), iter(range(4, 10, 3))],
        [iter(range(1, 10, 3)), advanced(range(1, 10, 3), 2), 1, iter([1])],
    )


PLACE = {
    "attr": (A.attr("x"), Plain(x=5), Plain(x=6), Plain(), 3),
    "item": (A.item(1), [0, 5], [5, 0], [5], None),
    "tuple item": (A.item(0), (5,), (6,), (), {}),
    "value": (A.value_of("k"), {"k": 5}, {"k": 6}, {}, None),
    "int value": (A.value_of(3), {3: 5}, {3: 6}, {"3": 5}),
    "rude": (A.value_of("k"), {"k": 5, RudeKey("z"): 1}, {"k": 6}),
    "object key": (A.value_of(FN), {FN: 5}, {FN: 6}, {FN2: 5}),
    "value by place": (A.child(DictValueSource, 1), {"a": 0, 5: 5}, {"a": 5, 5: 0}, {5: 0}),
    "key": (A.child(DictKeySource, 1), {"a": 0, 5: 0}, {5: 0, "a": 0}, {5: 0}),
    "ordered key": (A.child(DictKeySource, 0), ordered([5, 6]), ordered([5, 6], 5), {}),
    "cell": (A.child(CellContentsSource, "v"), with_cell(5), with_cell(6), EMPTY_CELL, 3),
    "slot": (A.child(SlotSource, Slotted.x), Slotted(5), Slotted(6), Plain(x=5), None),
    "member": (A.child(SlotSource, slice.start), slice(5, 6), slice(6, 5), 5),
    "getset": (A.child(SlotSource, torch._C.TensorBase.ndim), torch.zeros([1] * 5), torch.zeros(1), 5),
    "method self": (A.child(MethodSelfSource, None), types.MethodType(FN, 5), types.MethodType(FN, 6), FN),
    "builtin self": (A.child(MethodSelfSource, None), (5).bit_length, (6).bit_length, 5),
    "global": (
        A.child(FunctionFieldSource, "__globals__").child(GlobalSource, "g"),
        types.FunctionType(FN.__code__, {"g": 5}),
        types.FunctionType(FN.__code__, {"g": 6}),
        FN,
        5,
    ),
    "default": (
        A.child(FunctionFieldSource, "__defaults__").item(0),
        types.FunctionType(FN.__code__, {}, None, (5,)),
        types.FunctionType(FN.__code__, {}, None, (6,)),
        FN,
    ),
    "function dict": (
        A.child(FunctionFieldSource, "__dict__").child(AttrSource, "x"),
        functools.wraps(Plain)(Plain(x=5).method.__func__) and Plain(x=5),
        Plain(x=6),
    ),
    "iterated": (A.child(IteratorSource, "list").item(0), iter([5]), iter([6]), exhausted([5]), 5),
    "module": (
        A.child(ModuleDictSource, "__dict__").child(AttrSource, "m"),
        (lambda m: setattr(m, "m", 5) or m)(types.ModuleType("m")),
        types.ModuleType("m"),
        Plain(m=5),
    ),
    "lookup": (
        A.type().child(TypeLookupSource, "v"),
        type("V", (), {"v": 5})(),
        type("V", (), {"v": 6})(),
        3,
    ),
}


def places():
    for source, good, *bad in PLACE.values():
        yield Guard("constant", source, (5,)), [good], bad
    yield (
        Guard("is", A.child(MethodFunctionSource, None), (FN,)),
        [types.MethodType(FN, 1)],
        [types.MethodType(FN2, 1), FN],
    )
    yield (
        Guard("is", A.child(ReferentSource, None), (FN,)),
        [weakref.ref(FN)],
        [weakref.ref(FN2), weakref.proxy(FN), FN],
    )
    yield (
        Guard("constant", A.child(ContextValueSource, None), (5,)),
        [CONTEXT_FIVE],
        [CONTEXT_SIX, CONTEXT_UNSET, 5],
    )
    yield (
        Guard("constant", A.child(StateSource, read_bytearray), (b"ab",)),
        [bytearray(b"ab"), b"ab"],
        [bytearray(b"abc"), bytearray(), None],
    )
    yield Guard("type", A.type(), (type,)), [Plain()], []
    yield Guard("constant", A.child(FunctionFieldSource, "__closure__"), (None,)), [FN], [3]
    yield Guard("is", A.child(FunctionFieldSource, "__code__"), (FN.__code__,)), [FN], [FN2]
    yield Guard("is", ObjectSource(None, "torch"), (torch,)), [1], []
    yield Guard("is", FUNCTION, (subject,)), [1], []
    yield Guard("type_lookup", AnchorSource(None, Plain), ("method", Plain.method)), [1], []
    yield Guard("absent", A.child(InstanceDictSource, None), ("x",)), [Plain(), Plain(y=1)], [Plain(x=1), 3]


def state():
    yield Guard("torch_state", None), [1], []
    yield Guard("class_version", None, (Plain, _C.class_version(Plain))), [1], []
    yield Guard("class_version", None, (Plain, 0)), [], [1]


ROWS = [
    *constants(), *tensors(), *identities(), *containers(), *lookups(), *iterators(), *places(), *state()
]  # fmt: skip


def verdict(guard, params, expected):
    """Run both faces, the explanation and the audit; all must say `expected`."""
    compiled = compile_guards([guard], check=True)
    (check,) = compiled.checks
    assert compiled.holds(check, subject, params) is expected, "Python face"
    assert (compiled.program.check(subject, params) == -1) is expected, "C face"
    failure = failed_guard(compiled, subject, params)
    assert (failure is None) is expected
    if failure is not None:
        assert failure[0] is check
        assert failure[1]
    assert len(compiled.lines()) == 1


@pytest.mark.parametrize("row", ROWS, ids=lambda row: repr(row[0])[:60])
def test_faces_agree(row):
    guard, good, bad = row
    for value in good:
        verdict(guard, (value, None, None), True)
    for value in bad:
        verdict(guard, (value, None, None), False)


MANY = [
    (Guard("same", A, (B,)), [(FN, FN), (None, None)], [(FN, FN2), ([], [])]),
    (Guard("distinct", A, (B, C)), [(FN, FN2, None)], [(FN, FN2, FN), (FN, FN, None)]),
    (
        Guard("same", A.attr("x"), (B.item(0),)),
        [(Plain(x=FN), [FN])],
        [(Plain(x=FN), [FN2]), (Plain(), [FN])],
    ),
]


@pytest.mark.parametrize("row", MANY, ids=lambda row: repr(row[0]))
def test_faces_agree_on_several_places(row):
    guard, good, bad = row
    for values in good:
        verdict(guard, (*values, None, None)[:3], True)
    for values in bad:
        verdict(guard, (*values, None, None)[:3], False)


@pytest.mark.parametrize("count", [2, 12, 13, 100, 1500])
def test_many_distinct_objects(count):
    sources = [A.item(i) for i in range(count)]
    guard = Guard("distinct", sources[0], tuple(sources[1:]))
    objects = [object() for _ in range(count)]
    verdict(guard, (objects, None, None), True)
    for at in {0, (count - 1) // 2, count - 2}:
        twins = list(objects)
        twins[-1] = twins[at]
        verdict(guard, (twins, None, None), False)


def test_overlap():
    base = torch.zeros(10)
    guard = overlap_guard([base[2:4], base[3:6], torch.zeros(2)], [A, B, C])
    other = torch.zeros(20)
    alone = torch.zeros(2)
    for values, expected in [
        ((other[5:7], other[6:9], alone), True),
        ((other[5:7], other[7:10], alone), False),
        ((other[5:7], torch.zeros(3), alone), False),
        ((other[5:7], other[6:9], other[12:14]), False),
        ((other[5:7], other[6:9], None), False),
    ]:
        verdict(guard, values, expected)


def test_memory_that_a_bytearray_shows():
    data = bytearray(8)
    guard = Guard("outside", A, (B,))
    verdict(guard, (data, torch.zeros(2), None), True)
    verdict(guard, (data, torch.frombuffer(data, dtype=torch.uint8)[3:], None), False)
    verdict(guard, (bytearray(), torch.zeros(0), None), True)
    verdict(guard, (data, 3, None), False)


def test_overlap_of_different_item_sizes():
    base = torch.zeros(16)
    guard = overlap_guard([base[2:4], base.view(torch.uint8)[8:12]], [A, B])
    verdict(guard, (base[2:4], base.view(torch.uint8)[8:12], None), True)
    verdict(guard, (base[3:5], base.view(torch.uint8)[9:13], None), False)
    verdict(guard, (base[3:5], base.view(torch.uint8)[12:16], None), True)


def test_storages_over_each_other_are_not_guardable():
    memory = bytearray(64)
    first, second = (torch.frombuffer(memory, dtype=torch.float32) for _ in range(2))
    with pytest.raises(NotGuardableError):
        overlap_guard([first, second], [A, B])
    guard = overlap_guard([torch.zeros(16), torch.zeros(16)], [A, B])
    verdict(guard, (first, second, None), False)
    verdict(guard, (first, torch.zeros(16), None), True)


EXPRESSIONS = [
    ((("int", A), 2, ">="), [2, 10, 2**62], [1, 2**70, True, 2.0, "x", None]),
    ((("int", A), ("int", B), "==", ("size", C, 0), 8, "%", 0, "==", "and"), [], [3]),
    ((("int", A), -3, "//", -2, "=="), [4, 5, 6], [7, 3, -4]),
    ((("int", A), 3, "%", 1, "=="), [1, -2, 4], [0, -1, 2]),
    ((("int", A), 3, "ceildiv", 2, "=="), [4, 5, 6], [3, 7]),
    ((("int", A), 2, "/", 1.5, "=="), [3], [2, 2**60]),
    ((("int", A), 2, "**", 49, "=="), [7, -7], [8, 2**40]),
    ((("int", A), ("int", A), "*", 0, ">="), [3, 2**31], [2**40, 2**62]),
    ((("int", A), 1, "+", 0, ">"), [0, 5], [2**63 - 1]),
    ((("int", A), "neg", 5, "=="), [-5], [5, -(2**63)]),
    ((("int", A), 3, "min", 3, "=="), [3, 9], [2]),
    ((("float", A), 0.0, "*", 0.0, "same"), [1.5], [-1.5, math.inf, 1]),
    ((("float", A), 1.5, "+", math.nan, "same", "not"), [1.5], [1, "x"]),
    ((("int", A), 3, "max", 3, "=="), [3, 1], [4]),
    ((("int", A), 0, "==", "not"), [1], [0]),
    ((("float", A), 0.0, ">"), [0.5, float("inf")], [0.0, -1.0, NAN, 1, None]),
    ((("float", A), 2.5, "//", 1.0, "=="), [2.5, 4.9], [5.0, -1.0]),
    ((("float", A), 3, "%", 2.0, "=="), [5.0, -1.0], [4.0, -5.5]),
    ((("float", A), "floor", -2, "=="), [-1.5, -2.0], [-1.0, 1e30, NAN]),
    ((("float", A), "round", 2, "=="), [1.5, 2.5, 2.2], [3.5, 1.2]),
    ((("float", A), 0.5, "**", 2.0, "=="), [4.0], [5.0, -4.0, NAN]),
    ((("int", A), 0, "/", 1.0, "=="), [], [1, 0]),
    ((("int", A), 0, "//", 1, "=="), [], [1, 0]),
    ((("int", A), 6, "&", 2, "=="), [2, 3], [4]),
    ((("int", A), 62, "<<", 0, ">"), [1], [2, 4]),
    ((("int", A), 1, ">>", -1, "=="), [-1, -2], [-3, 0]),
    ((("int", A), 9007199254740993, "==", ("int", A), 1.0, ">", "or"), [2], [2**53 + 2, 0]),
    ((("size", A, 1), 4, "=="), [torch.zeros(3, 4)], [torch.zeros(4), torch.zeros(4, 3), 4]),
    ((("stride", A, 0), ("size", A, 1), "=="), [torch.zeros(3, 4)], [torch.zeros(4, 3).t()]),
    ((("offset", A), 2, "=="), [torch.zeros(9)[2:]], [torch.zeros(9), 2]),
]


@pytest.mark.parametrize("row", EXPRESSIONS, ids=lambda row: " ".join(str(i) for i in row[0])[:60])
def test_expressions(row):
    items, good, bad = row
    for value in good:
        verdict(Guard("expression", None, items), (value, None, None), True)
    for value in bad:
        verdict(Guard("expression", None, items), (value, None, None), False)


def test_every_kind_is_tested():
    used = {row[0].kind for row in [*ROWS, *MANY]} | {"overlap", "outside", "expression"}
    assert used == set(all_kinds())


def test_a_key_that_only_user_code_could_compare_fails_the_guard():
    verdict_c = compile_guards([Guard("absent", A, ("k",))]).program
    assert verdict_c.check(subject, ({RudeKey("k"): 1},)) != -1
    assert verdict_c.check(subject, ({RudeKey("other"): 1},)) == -1
    found = compile_guards([Guard("constant", A.value_of("k"), (5,))]).program
    assert found.check(subject, ({RudeKey("k"): 1},)) != -1


@pytest.mark.parametrize(
    "guard",
    [
        Guard("is", A, ([],)),
        Guard("is", A, ({},)),
        Guard("constant", A, ([1],)),
        Guard("constant", A, ((1, FN),)),
        Guard("constant", A, (Plain(),)),
        Guard("absent", A, ((1, FN),)),
        Guard("is", A, (type("Number", (int,), {})(3),)),
    ],
    ids=repr,
)
def test_what_cannot_be_guarded_is_refused(guard):
    with pytest.raises(NotGuardableError):
        compile_guards([guard])


def test_both_readers_say_the_same():
    from graphlift.guards import torch_readers

    assert torch_readers.connected == ("fast", "fast")
    for value in [*tensor_values(), BASE, BASE[1:], PARAMETER, PARAMETER * 2]:
        if isinstance(value, torch.Tensor):
            assert _C.read_metadata(value) == torch_readers.read_plainly(value)
            if value.layout is torch.strided:
                assert _C.tensor_place(value) == torch_readers.place_plainly(value)
