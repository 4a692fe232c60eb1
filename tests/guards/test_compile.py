"""Compiling guards: order, sharing, what is kept; explanations; comparing the faces at run time."""

import abc
import collections.abc
import gc
import weakref
from types import ModuleType

import pytest
import torch

from graphlift.guards.compile import GuardFacesDisagreeError, compile_guards
from graphlift.guards.explain import failed_guard
from graphlift.guards.guard import Guard, kind_named
from graphlift.metadata import record_of
from graphlift.sources import (
    AnchorSource,
    AttrSource,
    CellContentsSource,
    FunctionFieldSource,
    FunctionSource,
    GlobalSource,
    KeySource,
    ModuleDictSource,
    ObjectSource,
    ParamSource,
    SlotSource,
    TypeLookupSource,
)

SELF = ParamSource(None, (0, "self"))
N = ParamSource(None, (1, "n"))
FUNCTION = FunctionSource(None, "subject")
GLOBALS = FUNCTION.child(FunctionFieldSource, "__globals__")
FLAG = 3


def subject(self, n):
    captured = n
    return lambda: (captured, FLAG)


class Model:
    width = 7

    def __init__(self, scale=2):
        self.scale = scale
        self.layers = [{"w": 1}]


def place(function, text):
    """A place as captures give it: the first instruction of the line that has `text`."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    wanted = next(first + i for i, line in enumerate(lines) if text in line)
    code = function.__code__
    return (code, next(start for start, _, line in code.co_lines() if line == wanted), None), wanted


# --- the program ---


def test_places_are_read_once():
    guards = [
        Guard("type", SELF, (Model,)),
        Guard("constant", SELF.attr("scale"), (2,)),
        Guard("type", SELF.attr("layers"), (list,)),
        Guard("length", SELF.attr("layers"), (1,)),
        Guard("constant", SELF.attr("layers").item(0).value_of("w"), (1,)),
    ]
    compiled = compile_guards(guards, [SELF.attr("layers"), N])
    accessors = [row for row in compiled.rows if row[0] in ("param", "instance_dict", "dict_value", "item")]
    assert len(accessors) == 7
    assert len(accessors) == len(set(accessors))
    assert len(compiled.checks) == len(guards)
    model = Model()
    assert compiled.program.bind(subject, (model, 5)) == (model.layers, 5)


def test_order_of_checks():
    guards = [
        Guard("distinct", SELF, (N,)),
        Guard("constant", SELF.attr("scale"), (2,)),
        Guard("constant", N, (3,)),
        Guard("torch_state", None),
        Guard("type", SELF, (Model,)),
    ]
    names = [check.kind.name for check in compile_guards(guards).checks]
    assert names == ["torch_state", "constant", "type", "constant", "distinct"]


def test_rows_of_checks_are_found():
    guards = [Guard("constant", SELF.attr(f"a{i}"), (i,)) for i in range(20)]
    compiled = compile_guards(guards, [N])
    model = Model()
    for i in range(20):
        setattr(model, f"a{i}", i)
    assert failed_guard(compiled, subject, (model, 1)) is None
    for i in reversed(range(20)):
        setattr(model, f"a{i}", -1)
        check, text = failed_guard(compiled, subject, (model, 1))
        assert check is compiled.checks[i]
        assert f"`self.a{i}` was {i}, now it is -1" in text
    assert compiled.check_of_row(len(compiled.rows) - 1) is None


def test_a_place_that_only_the_binding_needs():
    compiled = compile_guards([], [SELF.attr("gone")], check=True)
    check, text = failed_guard(compiled, subject, (Model(), 1))
    assert check is None
    assert text == "`self.gone` is no longer there"


def test_unknown_kinds_are_refused():
    with pytest.raises(KeyError):
        compile_guards([Guard("nonsense", SELF)])


def test_nothing_of_the_users_is_kept():
    class Made:
        __slots__ = ("__weakref__", "x")

        def method(self):
            pass

        @property
        def prop(self):
            return 1

    thing, key = Made(), Model()
    thing.x = 1
    table = {key: 1}
    where, _ = place(subject, "captured = n")
    guards = [
        Guard("type", SELF, (Made,), where),
        Guard("is", SELF, (thing,), where),
        Guard("constant", SELF.child(SlotSource, Made.x), (1,)),
        Guard("is", SELF.type().child(TypeLookupSource, "prop"), (Made.prop,)),
        Guard("type_lookup", AnchorSource(None, Made), ("method", Made.method)),
        Guard("keys", N, ((key,),)),
        Guard("constant", N.child(KeySource, key), (1,)),
    ]
    compiled = compile_guards(guards, check=True)
    params = (thing, table)
    assert compiled.program.check(subject, params) == -1
    watched = [weakref.ref(item) for item in (Made, thing, key)]
    # The interned children of module-level sources keep their keys; a capture's sources go with it.
    for source in (SELF, N):
        source._children = None
    SELF.type()._children = None
    del Made, thing, key, table, guards, params
    gc.collect()
    assert [ref() for ref in watched] == [None, None, None]
    assert compiled.program.check(subject, (Model(), {})) >= 0
    assert len(compiled.lines()) == 7
    assert failed_guard(compiled, subject, (Model(), {})) is not None


# --- explanations ---


def explained(guard, *params, function=subject):
    failure = failed_guard(compile_guards([guard], check=True), function, params)
    assert failure is not None
    return failure[1]


def test_sentences():
    closure = subject(None, 5)
    cell = FUNCTION.child(FunctionFieldSource, "__closure__").item(0)
    captured = cell.child(CellContentsSource, "captured")
    attr = ObjectSource(None, "torch").child(ModuleDictSource, "__dict__").child(AttrSource, "thing")
    assert explained(Guard("constant", N, (3,)), None, 4) == "argument `n` was 3, now it is 4"
    assert explained(Guard("constant", N, (3,)), None, True) == "argument `n` was 3, now it is True (bool)"
    assert explained(Guard("constant", SELF.attr("scale"), (3,)), Model()) == (
        "attribute `self.scale` was 3, now it is 2"
    )
    assert explained(Guard("constant", GLOBALS.child(GlobalSource, "FLAG"), (4,))) == (
        "global `FLAG` was 4, now it is 3"
    )
    assert explained(Guard("constant", captured, (4,)), function=closure) == (
        "closure variable `captured` was 4, now it is 5"
    )
    assert explained(Guard("type", SELF, (Model,)), 3) == (
        "argument `self` was of class `Model`, now it is of class `int`"
    )
    assert explained(Guard("length", SELF.attr("layers"), (3,)), Model()) == (
        "attribute `self.layers` had length 3, now it has 1"
    )
    assert explained(Guard("constant", SELF.attr("layers").item(0).value_of("w"), (0,)), Model()) == (
        "`self.layers[0]['w']` was 0, now it is 1"
    )
    assert explained(Guard("constant", attr, (1,))) == "attribute `torch.thing` is no longer there"
    assert explained(Guard("same", SELF, (N,)), 1, 2) == (
        "argument `self` and argument `n` were one object, now they are two"
    )
    assert explained(Guard("expression", None, (("int", N), 4, "*", 8, "<=")), None, 3) == (
        "(argument `n` * 4) <= 8 was true; now argument `n` is 3"
    )
    assert explained(Guard("is", SELF, (len,)), max) == (
        "argument `self` was function `len`, now it is function `max`"
    )
    lookup = Guard("type_lookup", AnchorSource(None, Model), ("width", len))
    assert explained(lookup) == "class attribute `Model.width` was function `len`, now it is 7"


def test_sentences_run_no_code_of_the_users():
    class Meta(type):
        def __getattribute__(cls, name):
            raise AssertionError(f"asked for {name}")

    class Made(metaclass=Meta):
        __class__ = property(lambda self: 1 / 0)

    bare = ModuleType.__new__(ModuleType)
    name = "test_sentences_run_no_code_of_the_users.<locals>.Made"
    for now, shown in [
        (Made, f"class `{name}`"),
        (Made(), f"an object of class `{name}`"),
        (bare, "a module without a name"),
    ]:
        text = explained(Guard("is", SELF, (len,)), now)
        assert text == f"argument `self` was function `len`, now it is {shown}"


def test_sentences_about_tensors():
    guard = Guard("tensor", N, (record_of(torch.zeros(2, 3)),))
    for value, text in [
        (torch.zeros(2, 4), "its size in dimension 1 was 3, now it is 4"),
        (torch.zeros(2), "it had 2 dimensions, now it has 1"),
        (torch.zeros(3, 2).t(), "its stride in dimension 0 was 3, now it is 1"),
        (torch.zeros(2, 3, dtype=torch.int8), "its dtype was torch.float32, now it is torch.int8"),
        (torch.zeros(2, 3, device="meta"), "its device was cpu, now it is meta"),
        (torch.zeros(2, 3, requires_grad=True), "its requires_grad was False, now it is True"),
    ]:
        assert explained(guard, None, value) == f"argument `n`: {text}"
    assert "now it is of class `int`" in explained(guard, None, 3)


def test_sentences_about_state():
    compiled = compile_guards([Guard("torch_state", None)], check=True)
    for change, word in [(torch.no_grad(), "grad"), (torch.autocast("cpu"), "autocast")]:
        with change:
            assert word in failed_guard(compiled, subject, ())[1]


def test_the_users_line_is_named():
    where, line = place(subject, "captured = n")
    compiled = compile_guards([Guard("constant", N, (3,), where)])
    expected = f"{__file__}:{line}"
    assert failed_guard(compiled, subject, (None, 4))[1].endswith(f"(read at {expected})")
    assert compiled.lines() == [f"n == 3  # {expected}"]


def test_lines():
    guards = [
        Guard("type", SELF, (Model,)),
        Guard("constant", SELF.attr("scale"), (2,)),
        Guard("tensor", N, (record_of(torch.zeros(2)),)),
        Guard("expression", None, (("size", N, 0), 3, "<")),
    ]
    assert compile_guards(guards).lines() == [
        "self is of class `Model`",
        "n is a Tensor torch.float32[2] on cpu",
        "self.scale == 2",
        "n.size(0) < 3",
    ]


# --- abstract base classes ---


def test_registering_a_class_is_noticed():
    class Base(abc.ABC):
        pass

    class Mine:
        pass

    class Other:
        pass

    guard = Guard("subclass", AnchorSource(None, Mine), (Base, False))
    compiled = compile_guards([guard], check=True)
    assert compiled.program.check(subject, ()) == -1
    collections.abc.Sized.register(Other)
    assert compiled.program.check(subject, ()) == -1
    Base.register(Mine)
    assert "now it is one" in failed_guard(compiled, subject, ())[1]


# --- comparing faces ---


def test_disagreement_is_raised(monkeypatch):
    compiled = compile_guards([Guard("length", SELF, (1,))], check=True)
    assert compiled.program.check(subject, ([1],)) == -1
    monkeypatch.setattr(type(kind_named("length")), "holds", lambda self, payload, *values: False)
    with pytest.raises(GuardFacesDisagreeError, match="only Python"):
        compiled.program.check(subject, ([1],))
    monkeypatch.setattr(type(kind_named("length")), "holds", lambda self, payload, *values: True)
    with pytest.raises(GuardFacesDisagreeError, match="only the program"):
        compiled.program.check(subject, ([1, 2],))
