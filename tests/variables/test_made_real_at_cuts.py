"""Values that become real at a cut: partials, functions, instance dictionaries, iterators of others."""

from __future__ import annotations

import collections
import functools

import pytest
import torch

import graphlift
from graphlift.testing import check, check_fresh

X = torch.ones(2)


def partial_with_keywords(x):
    scaled = functools.partial(torch.add, alpha=x.shape[0])
    graphlift.graph_break()
    return scaled(x, x + 1)


def partial_of_a_list_in_a_keyword(x):
    def total(y, items):
        return y + items[0]

    held = [x + 1]
    partial = functools.partial(total, items=held)
    graphlift.graph_break()
    held[0] = x + 5
    return partial(x)


def wrapped(x):
    decorate = functools.wraps(wrapped)
    graphlift.graph_break()

    @decorate
    def inner(y):
        return y * 2

    return inner(x), inner.__name__


def renamed_behind_the_cut(x):
    def inner(y):
        return y * 2

    graphlift.graph_break()
    inner.__name__ = "other"
    inner.__doc__ = "Doc."
    inner.tag = x + 1
    graphlift.graph_break()
    return inner(x), inner.__name__, inner.__doc__, inner.tag


def dictionary_of_a_function(x):
    def inner(y):
        return y * 2

    own = inner.__dict__
    graphlift.graph_break()
    own["tag"] = x
    return inner.tag, own is inner.__dict__


class Thing:
    a = 1


def dictionary_of_an_object(x):
    thing = Thing()
    thing.a = x
    own = vars(thing)
    graphlift.graph_break()
    own["b"] = x + 1
    return thing.a, thing.b, list(own), own is thing.__dict__


def backwards_through_a_deque(x):
    items = reversed(collections.deque([x, x + 1, x + 2]))
    next(items)
    graphlift.graph_break()
    return list(items)


@pytest.mark.parametrize(
    "program",
    [
        partial_with_keywords,
        partial_of_a_list_in_a_keyword,
        wrapped,
        renamed_behind_the_cut,
        dictionary_of_a_function,
        dictionary_of_an_object,
        backwards_through_a_deque,
    ],
    ids=lambda program: program.__name__,
)
def test_goes_on_as_it_was(program):
    check(program, X, graphs=None, breaks=None)


def test_a_function_of_the_caller_is_written_to():
    def program(x, function):
        function.__doc__ = "New."
        function.tag = 3
        return function(x)

    def make():
        def function(y):
            return y + 1

        return function

    check_fresh(lambda: (program, (X.clone(), make())))


def test_an_iterator_of_the_caller_over_a_counter():
    def program(x, entries):
        return [(key, x * count) for key, count in entries]

    check_fresh(lambda: (program, (X.clone(), iter(collections.Counter("aab").items()))))


def test_an_object_whose_dictionary_is_met_first():
    def program(x, own, thing):
        own["b"] = 1
        return x + thing.b * thing.a, hasattr(thing, "c")

    def make():
        thing = Thing()
        thing.a = 2
        return program, (X.clone(), thing.__dict__, thing)

    check_fresh(make)
