"""Dictionaries of all builtin kinds: what captured programs do to them is what plain Python does."""

from __future__ import annotations

import collections
from collections import Counter, OrderedDict, defaultdict
from types import MappingProxyType

import pytest
import torch

import graphlift
from graphlift.testing.check import check


def build(x):
    d = {"a": 1, 2: x + 1, None: [x], (1, "t"): 3, 1.5: True}
    return d, d[2], {**d, "b": 2}, dict(a=1, b=x), dict([("k", 1)]), dict({"q": 1}, r=2), {}


def read(x, d):
    return (
        x * d["a"],
        d.get("zz"),
        d.get("b", 7),
        d.get("zz", 8),
        "a" in d,
        "zz" in d,
        "b" not in d,
        len(d),
        bool(d),
        bool({}),
    )


def write(x, d):
    d["new"] = x + 1
    d["a"] += 10
    del d["b"]
    d["b"] = 5
    d.setdefault("s", []).append(1)
    d.setdefault("a", 99)
    return x * d["a"], list(d), d.pop("new"), d.pop("nope", None)


def order(x, d):
    first = list(d)
    d["z"] = 1
    d["a"] = 0
    v = d.pop("b")
    d["b"] = v
    return x + 1, first, list(d), list(d.values()), list(d.items()), list(reversed(d)), d.popitem()


def update(x, d):
    d.update({"u": 1, "a": 2})
    d.update([("v", 3), ("w", 4)])
    d.update(k=x, **{"l": 5})
    d |= {"m": 6}
    e = d | {"n": 7}
    return x + len(d), e, list(d)


def views(x, d):
    keys = d.keys()
    n = len(keys)
    d["later"] = 1
    return (
        x + len(keys),
        n,
        "later" in keys,
        1 in d.values(),
        ("a", 1) in d.items(),
        sorted(keys & {"a", "q"}),
        sorted(keys | {"q"}),
        sorted(keys - {"a"}),
        sorted(keys ^ {"a", "q"}),
        keys == d.keys(),
        keys >= {"a"},
        keys.isdisjoint({"nope"}),
        [k for k in keys],
        [(k, v) for k, v in d.items()],
        list(reversed(d.items())),
    )


def compare(x, d):
    return (
        x + 1,
        d == {"a": 1, "b": 2},
        d == {"b": 2, "a": 1},
        d != {},
        d == [1],
        {} == {},
        {"a": [1]} == {"a": [1]},
    )


def iterate_write_values(x, d):
    for k in d:
        d[k] = d[k] * 2
    return x + d["a"]


def copy_clear(x, d):
    c = d.copy()
    d.clear()
    d["only"] = 1
    c["more"] = x + 1
    return c, d, c is d


def fromkeys(x):
    return x + 1, dict.fromkeys("abca"), dict.fromkeys([1, 2], 0), OrderedDict.fromkeys("ba", 1)


def keys_of_kinds(x):
    d = {1: "int", True: "bool", 1.0: "float", "1": "str", x.dtype: "dtype", int: "type", len: "builtin"}
    return x + len(d), d[1], d[int], d[torch.float32], d[len], list(d.values())


def tensor_values(x, d):
    d["t"] = x * 2
    d["t2"] = d["t"] + d["a"]
    return sum(v for v in d.values() if isinstance(v, torch.Tensor))


def self_containing(x):
    d = {"x": x + 1}
    d["self"] = d
    return d


def nested(x, d):
    d["n"] = {"deep": {"deeper": [x]}}
    d["n"]["deep"]["deeper"].append(x + 1)
    return d["n"]["deep"]["deeper"][1]


def kwargs(x, d):
    def f(**kw):
        kw["c"] = 3
        return kw

    return x + 1, f(**d), f(**d, q=1), f()


def comprehension(x, d):
    return x + 1, {v: k for k, v in d.items()}, {k: x * v for k, v in d.items()}


def default_dict(x):
    g = defaultdict(list)
    g["a"].append(x + 1)
    g["a"].append(2)
    g["b"]
    n = defaultdict(lambda: len(n) + 10)
    values = n["a"], n["b"], n["a"]
    c = g.copy()
    c["z"].append(1)
    return g, values, dict(n), type(c).__name__, g.get("none"), "none" in g, g.default_factory is list


def default_dict_input(x, d):
    d["t"].append(x.shape[0])
    d["u"]
    return x + len(d), d.default_factory is list


def ordered(x):
    d = OrderedDict([("a", 1), ("b", 2), ("c", 3)])
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    first = d.popitem(last=False)
    d["c"] = 9
    e = OrderedDict(d)
    return (
        x + 1,
        d,
        first,
        d == e,
        d == dict(d),
        OrderedDict(a=1, b=2) == OrderedDict(b=2, a=1),
        list(reversed(d)),
        type(d.copy()),
    )


def ordered_input(x, d):
    d.move_to_end("a")
    d["z"] = 5
    k, v = d.popitem(last=False)
    return x + v, k, list(d)


def counter(x, words):
    c = Counter(words)
    c.update("aab")
    c["a"] += 1
    return (
        x * c["a"],
        c.most_common(1),
        dict(c - Counter("a")),
        c["missing"],
        sum(c.values()),
        sorted(c.elements()),
    )


def proxy(x, d):
    p = MappingProxyType(d)
    d["later"] = 1
    return x + p["a"], len(p), "later" in p, list(p), p.get("zz")


def chain_map(x, d):
    m = collections.ChainMap({}, d)
    m["a"] = 5
    return x + m["a"], m["b"], len(m), d["a"]


PLAIN = [
    read,
    write,
    order,
    update,
    views,
    compare,
    iterate_write_values,
    copy_clear,
    tensor_values,
    nested,
    kwargs,
    comprehension,
    proxy,
    chain_map,
]


@pytest.mark.parametrize("fn", PLAIN, ids=lambda fn: fn.__name__)
def test_dict(fn):
    check(fn, torch.ones(2), {"a": 1, "b": 2}, fullgraph=True)


@pytest.mark.parametrize(
    "fn", [build, fromkeys, keys_of_kinds, self_containing, default_dict, ordered], ids=lambda fn: fn.__name__
)
def test_made_inside(fn):
    check(fn, torch.ones(2), fullgraph=True)


def test_inputs_of_other_kinds():
    check(default_dict_input, torch.ones(2), defaultdict(list, {"t": [0]}), fullgraph=True)
    check(ordered_input, torch.ones(2), OrderedDict(a=1, b=2, c=3), fullgraph=True)
    check(counter, torch.ones(2), "abca", fullgraph=True)


def test_changed_size_while_iterating():
    def fn(x, d):
        for k in d:
            d[k + "!"] = 1
        return x + 1

    check(fn, torch.ones(2), {"a": 1}, graphs=None, breaks=None)


def test_another_order_of_keys_is_another_entry():
    def fn(x, d):
        return x + 1, list(d)

    check(fn, torch.ones(2), {"a": 1, "b": 2}, then=[(torch.ones(2), {"b": 1, "a": 2})], recompiles=1)


def test_a_key_that_appears_is_noticed():
    def fn(x, d):
        return x + d.get("k", 1)

    check(
        fn,
        torch.ones(2),
        {"a": 1},
        then=[(torch.ones(2), {"a": 1, "k": 5}), (torch.ones(2), {"b": 3})],
        recompiles=1,
    )


def test_order_of_an_ordered_dict_is_guarded():
    def fn(x, d):
        return x + 1, list(d)

    moved = OrderedDict(a=1, b=2)
    moved.move_to_end("a")
    check(fn, torch.ones(2), OrderedDict(a=1, b=2), then=[(torch.ones(2), moved)], recompiles=1)


def test_union_with_a_derived_class_on_the_right():
    def fn(x, a, b, c):
        return x + 1, a | b, b | a, a | c, c | a, b | c

    check(fn, torch.ones(2), {"a": 1}, OrderedDict(b=2, a=3), defaultdict(int, c=1), fullgraph=True)


class NotesStores(defaultdict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setitem__("noted", key)


def test_a_default_is_stored_by_the_class_s_own_method():
    def fn(x, d):
        d["a"].append(1)
        return x + 1

    check(fn, torch.ones(2), NotesStores(list), fullgraph=True)


def test_a_key_exchanged_for_an_equal_one():
    def fn(x, d, e):
        size = len(d)
        del d[1]
        d[True] = 2
        e.pop(1)
        e[1.0] = size
        return x + 1, list(d), list(e)

    check(fn, torch.ones(2), {1: 1}, {1: 1, 2: 2}, fullgraph=True)


Pair = collections.namedtuple("Pair", "a b")


def test_items_contain_named_tuples():
    def fn(x, d, pair):
        return x + 1, pair in d.items(), Pair("a", 2) in d.items()

    check(fn, torch.ones(2), {"a": 1}, Pair("a", 1), fullgraph=True)


class Plain:
    def __init__(self):
        self.t, self.u = 1, 2


def test_a_key_is_stored_and_deleted_without_having_been_read():
    def by_item(x, owner, mapping):
        mapping["t"] = x
        del mapping["t"]
        return x + 1

    def and_back(x, owner, mapping):
        mapping["t"] = x
        mapping.pop("t")
        mapping["t"] = x + 1
        return x + 1

    def by_attribute(x, owner, mapping):
        owner.__dict__["t"] = x
        del owner.t
        return x + 1

    def through_vars(x, owner, mapping):
        vars(owner).update(t=x)
        del owner.__dict__["t"]
        return x + 1

    for program in (by_item, and_back, by_attribute, through_vars):
        check(program, torch.ones(2), Plain(), {"t": 1, "z": 2})


class Closed(dict):
    def __iter__(self):
        raise AssertionError("asked")

    def __contains__(self, key):
        raise AssertionError("asked")


def test_a_subclass_is_written_past_what_it_overrides():
    def program(x, mapping):
        mapping["a"] = x
        mapping.n = 2
        mapping["new"] = x + 1
        return x + 1

    check(program, torch.ones(2), Closed(a=1, z=2))


def test_a_derived_dictionary_on_the_right_of_a_union_makes_one_of_its_kind():
    def program(x, mapping):
        made = {"a": 1} | defaultdict(lambda: x, a=2, b=3)
        both = defaultdict(int, c=1) | defaultdict(list, c=2)
        given = mapping | defaultdict(list, k=[x])
        return made["z"], made, both["y"], both, given["n"], given, x + 1

    def inner(x, mapping):
        return mapping | defaultdict(int), {"a": x} | mapping, {"z": x} | OrderedDict(a=x), x + 1

    check(program, torch.ones(2), {"k": 1, "l": 2})
    check(inner, torch.ones(2), OrderedDict(a=1))


class Plain:
    pass


class InModule(torch.nn.Module):
    def forward(self, x):
        return x


@pytest.mark.parametrize("kind", [Plain, InModule])
@pytest.mark.parametrize("first", ["with", "without"])
def test_an_attribute_stored_and_deleted_unread(kind, first):
    """Where it was not there before, nothing is left to be done; where it was, it is gone."""

    def program(x, o):
        o.n = 4
        y = x + 1
        del o.n
        return y

    def made(there):
        o = kind()
        if there:
            o.n = 1
        return o

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    for there in (first == "with", first != "with", first == "with"):
        o = made(there)
        compiled(torch.ones(2), o)
        assert not hasattr(o, "n")


def test_a_key_stored_and_deleted_unread_that_another_call_finds():
    def program(x, d):
        d["n"] = 4
        del d["n"]
        return x + 1

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    for d in ({}, {"n": 1}, {}):
        compiled(torch.ones(2), d)
        assert d == {}


def test_a_key_written_over_unread_is_gone_when_all_are():
    def cleared(x, d):
        d["b"] = x + 1
        d.clear()
        return x * 2

    def deleted_when_known(x, d):
        d["b"] = x + 1
        count = len(d)
        del d["b"]
        return x * count

    check(cleared, torch.ones(2), {"a": 1, "b": 2}, recompiles=None)
    check(deleted_when_known, torch.ones(2), {"a": 1, "b": 2}, recompiles=None)
