"""Methods of C types as values: bound ones that exist, the protocol of their descriptors."""

import collections

import pytest
import torch

import graphlift
from graphlift.testing import check, check_fresh

X = torch.arange(4.0)


def calls(method, x):
    return method(4), method.__name__, method.__self__, x * 2


@pytest.mark.parametrize("owner", [[], [5], {1}, collections.deque([1], maxlen=1)])
def test_bound_methods_are_arguments(owner):
    def make():
        mine = owner.copy()
        return calls, (mine.add if isinstance(mine, set) else mine.append, X)

    check_fresh(make, recompiles=None)


def test_of_tensors():
    check_fresh(lambda: (calls, (torch.ones(4).mul_, X)), recompiles=None)


@pytest.mark.parametrize("table", [{3: 1, 1: 5, 2: 0}, {3: 1, 1: 0, 2: 5}])
def test_as_keys_of_a_sort(table):
    def f(key, x):
        return sorted([3, 1, 2], key=key), x * 2

    check_fresh(lambda: (f, (table.get, X)), then=[([0, 3, 2, 1].__getitem__, X)], recompiles=1)


def test_bound_methods_of_closures():
    def make():
        log, table, queue = [1], {"a": 3}, collections.deque([1], maxlen=2)
        append, get, push, keys = log.append, table.get, queue.append, dict.fromkeys
        join, shown = "-".join, "{}:{:.1f}".format

        def remembers(n, x):
            append(n)
            push(n)
            return x * get("a") + get("b", 1), log, queue, keys("ab", n), join("ab"), shown(n, 2.0)

        return remembers, (2, X)

    check_fresh(make)


def test_writes_through_them_are_seen_by_the_next_call():
    def make():
        table = {"a": 3}
        get, put = table.get, table.__setitem__

        def f(x):
            put("a", get("a") + 1)
            return x * table["a"]

        return (lambda g, x: g(x)), (f, X)

    check_fresh(make)
    table = {"a": 3}
    get = table.get

    def reads(x):
        return x * get("a")

    compiled = graphlift.compile(reads, backend="eager")
    assert torch.equal(compiled(X), X * 3)
    table["a"] = "no number"
    with pytest.raises(TypeError):
        compiled(X)
    del table["a"]
    with pytest.raises(TypeError):
        compiled(X)
    table["a"] = 5
    assert torch.equal(compiled(X), X * 5)


class Pairs(list):
    def append(self, item):
        super().append((item, item))


def test_the_method_beneath_an_override():
    def both(one, two, x):
        one(1)
        two(2)
        return x * len(one.__self__), one == two, one.__self__ is two.__self__, one.__self__

    def make():
        pairs = Pairs()
        return both, (pairs.append, list.append.__get__(pairs), X)

    check_fresh(make)


def test_of_two_c_classes_that_share_a_name():
    def f(method, x):
        return method(True), x + 1

    check(f, True.__and__, X, then=[(int.__and__.__get__(True), X), (False.__and__, X)], recompiles=None)


def test_another_object_behind_the_same_name_is_seen():
    def f(length, x):
        return x * length()

    check(f, [1, 2].__len__, X, then=[((1, 2, 3).__len__, X), ([5].__len__, X)], recompiles=2)


class Closed:
    def __setattr__(self, name, value):
        raise AssertionError("not to be called")


SETTER = object.__setattr__.__get__


def sets(obj, x):
    setter = SETTER(obj)
    setter("first", x * 2)
    object.__setattr__.__get__(obj, Closed)("second", 3)
    return obj.first * obj.second, setter.__name__, setter.__self__ is obj, setter.__objclass__


def test_descriptors_bind():
    check(sets, Closed(), X)

    def binds(x):
        bound = list.append.__get__([1])
        bound(2)
        return (
            bound.__self__,
            str.upper.__get__("ab", str)(),
            list.append.__get__(None, list) is list.append,
            x + 1,
        )

    check(binds, X)


def test_descriptors_that_cannot_bind():
    def attempts(x):
        seen = []
        for descriptor in (list.append, list.__len__, object.__repr__):
            for arguments in ((3,), (None, None), (None,)):
                try:
                    seen.append(descriptor.__get__(*arguments).__name__)
                except TypeError as error:
                    seen.append(str(error))
        return seen, x + 1

    check(attempts, X)


def test_attributes():
    def shows(x):
        method, slot = [1].append, [1].__len__
        return (
            [(one.__name__, one.__qualname__, one.__doc__, one.__text_signature__) for one in (method, slot)],
            (method.__module__, slot.__objclass__, getattr(method, "__wrapped__", 3), hasattr(slot, "x")),
            (list.append.__doc__, list.__len__.__objclass__, list.append.__text_signature__),
            x + 1,
        )

    check(shows, X)
