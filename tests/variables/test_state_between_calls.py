"""State that the program changes between two calls is seen by the very next one."""

import builtins
import datetime
import functools
import json
import math
import os
import re
import string
import types

import pytest
import torch

import graphlift

X = torch.arange(3.0)


@pytest.fixture(autouse=True)
def _nothing_captured_before():
    graphlift.reset()


MODULE = types.ModuleType("made_here")
exec("SCALE = 2\ndef scaled(x): return x * SCALE", vars(MODULE))

factor = 2
table = {"k": 2}
items = [1, 2]
pattern = re.compile("a")


def helper(x, k=2, *, m=3):
    return x * k + m


def make_counter():
    count = 2

    def get(x):
        return x * count

    def put(value):
        nonlocal count
        count = value

    return get, put


get, put = make_counter()


class Thing:
    size = 2

    def __init__(self):
        self.own = 3

    def area(self):
        return self.size * self.own

    @property
    def twice(self):
        return self.own * 2


thing = Thing()
partial = functools.partial(helper, k=4)


def other_code(x, k=2, *, m=3):
    return x - k - m


def set_global(name, value):
    globals()[name] = value


#: name: (program, steps that change what it reads)
CASES = {
    "global": (lambda x: x * factor, [lambda: set_global("factor", 3), lambda: set_global("factor", 3.5)]),
    "global replaced by a tensor": (lambda x: x * factor, [lambda: set_global("factor", torch.ones(3))]),
    "dictionary": (
        lambda x: x * table["k"] + len(table),
        [lambda: table.update(k=5), lambda: table.update(j=1), lambda: table.pop("j")],
    ),
    "list": (
        lambda x: x * sum(items),
        [lambda: items.append(4), lambda: items.reverse(), lambda: items.clear()],
    ),
    "cell": (lambda x: get(x), [lambda: put(7), lambda: put("ab".__len__()), lambda: put(0.5)]),
    "default": (
        lambda x: helper(x),
        [lambda: setattr(helper, "__defaults__", (9,)), lambda: helper.__kwdefaults__.update(m=1)],
    ),
    "keyword defaults": (lambda x: helper(x), [lambda: setattr(helper, "__kwdefaults__", {"m": -1})]),
    "code": (lambda x: helper(x), [lambda: setattr(helper, "__code__", other_code.__code__)]),
    "function in a module": (
        lambda x: MODULE.scaled(x),
        [lambda: setattr(MODULE, "SCALE", 5), lambda: setattr(MODULE, "scaled", lambda x: x - 1)],
    ),
    "class attribute": (
        lambda x: x * thing.area(),
        [
            lambda: setattr(Thing, "size", 5),
            lambda: setattr(thing, "size", 7),
            lambda: delattr(thing, "size"),
            lambda: setattr(thing, "own", 11),
            lambda: setattr(Thing, "area", lambda self: 13),
            lambda: setattr(thing, "area", lambda: 17),
        ],
    ),
    "property": (
        lambda x: x * thing.twice,
        [lambda: setattr(thing, "own", 5), lambda: setattr(Thing, "twice", 8)],
    ),
    "class of an object": (
        lambda x: x * thing.size,
        [lambda: setattr(thing, "__class__", type("Other", (Thing,), {"size": 21}))],
    ),
    "partial": (lambda x: partial(x), [lambda: partial.keywords.update(k=6)]),
    "builtin": (
        lambda x: x * len(oct(9)),
        [lambda: setattr(builtins, "oct", lambda value: "x"), lambda: set_global("oct", lambda value: "")],
    ),
    "function of math": (lambda x: x * math.sqrt(4), [lambda: setattr(math, "sqrt", lambda v: 100.0)]),
    "environment": (
        lambda x: x * int(os.environ.get("GRAPHLIFT_TEST", "2")) + len(os.getenv("GRAPHLIFT_OTHER", "")),
        [
            lambda: os.environ.update(GRAPHLIFT_TEST="5"),
            lambda: os.environ.update(GRAPHLIFT_OTHER="abc"),
            lambda: os.environ.pop("GRAPHLIFT_TEST"),
        ],
    ),
    "pattern": (
        lambda x: x * bool(pattern.match("abc")),
        [lambda: set_global("pattern", re.compile("b")), lambda: set_global("pattern", re.compile("(?i)A"))],
    ),
    "table that becomes text": (
        lambda x: x * len(json.dumps(table)),
        [
            lambda: table.update(k=12345),
            lambda: table.update(k=[1, {"a": None}]),
            lambda: table["k"].append(2),
        ],
    ),
    "function of the library": (
        lambda x: x * len(json.dumps([1])),
        [lambda: setattr(json, "dumps", lambda value: "12345678")],
    ),
    "constant of a module": (
        lambda x: x * len(string.digits),
        [lambda: setattr(string, "digits", "01")],
    ),
    "class of a module": (
        lambda x: x * datetime.timedelta(2).days,
        [lambda: setattr(datetime, "timedelta", lambda n: types.SimpleNamespace(days=9))],
    ),
}

#: What the steps write to: (namespace, names).
_KEPT = [
    (globals(), ("factor", "table", "items", "pattern", "partial", "thing", "oct")),
    (vars(builtins), ("oct",)),
    (vars(math), ("sqrt",)),
    (vars(json), ("dumps",)),
    (vars(string), ("digits",)),
    (vars(datetime), ("timedelta",)),
    (vars(MODULE), ("SCALE", "scaled")),
]


@pytest.fixture
def _state_is_put_back():
    kept = [(space, {name: space[name] for name in names if name in space}) for space, names in _KEPT]
    code, defaults, keywords = helper.__code__, helper.__defaults__, dict(helper.__kwdefaults__)
    members = {name: vars(Thing)[name] for name in ("size", "area", "twice")}
    environment = dict(os.environ)
    set_global("table", dict(table))
    set_global("items", list(items))
    set_global("thing", Thing())
    set_global("partial", functools.partial(helper, k=4))
    yield
    for (space, names), (_, known) in zip(_KEPT, kept, strict=True):
        for name in names:
            space.pop(name, None)
        space.update(known)
    helper.__code__, helper.__defaults__, helper.__kwdefaults__ = code, defaults, keywords
    for name, value in members.items():
        setattr(Thing, name, value)
    put(2)
    os.environ.clear()
    os.environ.update(environment)


@pytest.mark.parametrize("name", CASES)
def test_seen_by_the_next_call(name, _state_is_put_back):
    program, steps = CASES[name]
    compiled = graphlift.compile(program, backend="eager")
    for step in [lambda: None, lambda: None, *steps]:
        step()
        assert compiled(X).tolist() == program(X).tolist()
        assert compiled(X).tolist() == program(X).tolist()


def test_the_compiled_function_itself():
    def program(x, k=2, *, m=1):
        return x * k + m

    compiled = graphlift.compile(program, backend="eager")
    expected = []
    for step in [
        lambda: None,
        lambda: setattr(program, "__defaults__", (3,)),
        lambda: setattr(program, "__kwdefaults__", {"m": 5}),
        lambda: setattr(program, "__code__", other_code.__code__),
    ]:
        step()
        expected.append(program(X).tolist())
        assert compiled(X).tolist() == expected[-1]
    assert len({str(value) for value in expected}) == 4


@pytest.mark.parametrize("name", ["len", "isinstance", "all", "getattr"])
def test_a_builtin_that_captures_need_is_replaced(name):
    original = getattr(builtins, name)

    def program(x, values):
        return x * len(values) + isinstance(x, int) + all(values) + getattr(x, "absent", 3)

    compiled = graphlift.compile(program, backend="eager")
    assert compiled(X, [1, 2]).tolist() == program(X, [1, 2]).tolist()
    # The program's own from now on: what pytest and torch do meanwhile must still work.
    setattr(builtins, name, lambda *args: 40 if args[0] == [1, 2] else original(*args))
    try:
        got = [compiled(X, [1, 2]).tolist(), compiled(X, (1, 2)).tolist(), compiled(X, [1, 2]).tolist()]
        expected = [program(X, values).tolist() for values in ([1, 2], (1, 2), [1, 2])]
    finally:
        setattr(builtins, name, original)
    assert got == expected
    assert compiled(X, [1, 2]).tolist() == program(X, [1, 2]).tolist()


def test_no_plain_run_under_fullgraph_while_builtins_are_replaced(monkeypatch):
    original = len
    compiled = graphlift.compile(lambda x, items: x * len(items), backend="eager", fullgraph=True)
    monkeypatch.setattr(builtins, "len", lambda value: original(value))
    with pytest.raises(graphlift.exc.Unsupported, match="captures themselves need"):
        compiled(torch.ones(2), [1])
    monkeypatch.undo()
    assert torch.equal(compiled(torch.ones(2), [1, 2]), torch.full((2,), 2.0))


class Above:
    def __add__(self, other):
        return 1

    def __radd__(self, other):
        return 2

    def __lt__(self, other):
        return 3

    def __gt__(self, other):
        return 4

    def __divmod__(self, other):
        return 5

    def __rdivmod__(self, other):
        return 6


class Below(Above):
    pass


def nine(self, other):
    return 9


@pytest.mark.parametrize(
    "name, operate",
    [
        ("__radd__", lambda left, right: left + right),
        ("__rdivmod__", divmod),
        ("__gt__", lambda left, right: left < right),
    ],
)
def test_the_operand_that_is_asked_first(name, operate):
    """A class below has the reflected method of its own, or not, or the very method that it would inherit."""

    def program(x):
        return x * operate(Above(), Below())

    compiled = graphlift.compile(program, backend="eager")
    seen = []
    for change in (
        lambda: None,
        lambda: setattr(Below, name, nine),
        lambda: setattr(Below, name, getattr(Above, name)),
        lambda: delattr(Below, name),
    ):
        change()
        expected = program(X)
        assert torch.equal(compiled(X), expected)
        seen.append(expected[1].item())
    assert len(set(seen)) == 2
    assert 9 in seen


class Position:
    pass


def test_a_class_begins_to_be_an_index():
    def program(x, items):
        try:
            return x * items[Position()], items * Position()
        except TypeError as error:
            return x, str(error)

    compiled = graphlift.compile(program, backend="eager")
    for change in (
        lambda: None,
        lambda: setattr(Position, "__index__", lambda self: 2),
        lambda: delattr(Position, "__index__"),
    ):
        change()
        got, expected = compiled(X, [1, 2, 3]), program(X, [1, 2, 3])
        assert torch.equal(got[0], expected[0])
        assert got[1] == expected[1]


def test_all_global_names_are_those_of_the_program():
    """Compiled code stands in its module under names of its own, which come and go."""
    space = {"torch": torch, "breaks": lambda: None, "A1": 1, "A2": 2}
    exec(
        "def program(x, n):\n"
        "    found = [name for name in globals() if name.startswith('A')]\n"
        "    globals()['A%d' % n] = n\n"
        "    return x * len(found), found, len(globals()) == len(list(globals().items()))\n"
        "def other(x):\n"
        "    return x * 2\n",
        space,
    )
    plain = dict(space)
    compiled = graphlift.compile(space["program"], backend="eager", fullgraph=True)
    expected = types.FunctionType(space["program"].__code__, plain)
    for n in (2, 2, 1):
        assert str(compiled(X, n)) == str(expected(X, n))
        graphlift.compile(space["other"], backend="eager")(X)
    for n in (3, 4):
        assert str(compiled(X, n)) == str(expected(X, n))
    assert len([name for name in space if name.startswith("A")]) == 4


def test_global_names_in_another_order():
    space = {"A1": 1, "A2": 2}
    exec(
        "def program(x):\n"
        "    names = globals()\n"
        "    names['A1'] = names.pop('A1') + 1\n"
        "    return x * 2, [name for name in names if name.startswith('A')]\n",
        space,
    )
    expected = types.FunctionType(space["program"].__code__, dict(space))
    compiled = graphlift.compile(space["program"], backend="eager")
    for _ in range(4):
        assert str(compiled(X)) == str(expected(X))
