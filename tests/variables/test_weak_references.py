"""Weak references that captured code makes: they give what a local variable holds, and keep nothing alive."""

from __future__ import annotations

import weakref

import pytest
import torch

import graphlift
from graphlift.testing.check import check

X = torch.arange(3.0)


class Thing:
    def f(self):
        return 3


def while_it_is_held(x):
    thing = Thing()
    ref = weakref.ref(thing)

    def inner():
        return ref() is thing

    return x + ref().f(), ref() is thing, weakref.ref(thing) is ref, inner(), ref, thing


def of_an_argument(x, thing):
    ref = weakref.ref(thing)
    return x + ref().f(), ref() is thing


def of_what_cannot_be_referred_to(x):
    found = []
    for value in (3, (1, 2), "text"):
        try:
            weakref.ref(value)
        except TypeError as error:
            found.append(str(error))
    return x + 1, found


def let_go(x):
    thing = Thing()
    ref = weakref.ref(thing)
    held = ref() is thing
    thing = None
    return x + 1, held, ref() is None


@pytest.mark.parametrize(
    "program", [while_it_is_held, of_what_cannot_be_referred_to], ids=lambda f: f.__name__
)
def test_program(program):
    check(program, X)


def across_a_cut(x):
    thing = Thing()
    ref = weakref.ref(thing)
    graphlift.graph_break()
    return x + 1, ref() is None


def proxies(x):
    thing = Thing()
    proxy = weakref.proxy(thing)
    return x + 1, proxy.f()


def callbacks(x):
    seen = []
    thing = Thing()
    ref = weakref.ref(thing, lambda _: seen.append(1))
    return x + 1, len(seen), ref() is thing


def sets(x):
    thing = Thing()
    known = weakref.WeakSet([thing])
    y = x + len(known)
    return y, len(known)


@pytest.mark.parametrize("program", [across_a_cut, proxies, callbacks, sets], ids=lambda f: f.__name__)
def test_locals_live_as_long_as_the_frame(program):
    check(program, X, graphs=None, breaks=None)


def test_of_an_argument():
    check(of_an_argument, X, Thing())


def test_let_go():
    check(let_go, X, graphs=None, breaks=None)


def test_what_leaves_keeps_nothing_alive():
    def program(x):
        thing = Thing()
        return x + 1, weakref.ref(thing)

    checked = check(program, X)
    assert checked.result[1]() is None


def test_an_object_whose_deallocation_was_put_off_is_gone():
    """CPython puts long chains of deallocations off; callbacks of references run meanwhile, under guards that
    read references to objects of the chain."""

    class Link:
        def __init__(self, parent):
            if parent is None:
                return
            own = weakref.ref(self)

            def callback(_):
                seen.append(own() is None)

            self.parent = weakref.ref(parent, callback)

    def chain():
        table = weakref.WeakKeyDictionary()
        root = last = Link(None)
        for _ in range(150):
            table[last] = last = Link(last)
        del root, last

    def program(x):
        y = x + 1
        chain()
        return y * 2

    seen = []
    chain()
    expected, seen = seen, []
    compiled = graphlift.compile(program, backend="eager")
    for _ in range(3):
        seen.clear()
        assert torch.equal(compiled(X), (X + 1) * 2)
        assert seen == expected
