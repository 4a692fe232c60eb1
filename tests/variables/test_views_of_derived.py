"""Views and iterators over objects whose classes derive from builtin containers, made real and compared."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from types import MappingProxyType

import pytest
import torch

from graphlift.testing import check


class Table(dict):
    def items(self):
        return ["mine"]


class Listed(list):
    pass


class Ordered(OrderedDict):
    pass


class Default(defaultdict):
    pass


@pytest.mark.parametrize("cls", [dict, Table, Ordered, Default, Counter])
def test_views_show_what_comes_behind_a_cut(cls):
    def program(x):
        table = cls()
        table[1] = 2
        views = table.keys(), table.values(), dict.items(table) if cls is Table else table.items()
        proxies = table.keys().mapping, MappingProxyType(table)
        dir()
        table[3] = 4
        return x + 1, [list(view) for view in views], [dict(proxy) for proxy in proxies], proxies[0] == table

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)


@pytest.mark.parametrize("cls", [dict, Table, Default, Counter])
def test_iterators_go_on_over_the_object(cls):
    def program(x):
        table = cls()
        table[1] = 2
        table[3] = 4
        iterator = iter(dict.items(table))
        next(iterator)
        dir()
        table[3] = 5
        found = [next(iterator)]
        table[6] = 7
        try:
            next(iterator)
        except RuntimeError as error:
            return x + 1, found, str(error)

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)


def test_an_iterator_over_a_derived_list_sees_it_grow():
    def program(x):
        items = Listed([1, 2])
        iterator = iter(items)
        next(iterator)
        dir()
        items.append(3)
        return x + 1, list(iterator), items

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)


def test_keys_that_are_tuples_are_compared_with_items():
    def program(x):
        left, right = {(1, 1): 11, (2, 2): 22}, {1: 1, 2: 2}
        return x + 1, left.keys() == right.items(), left.items() == right.keys(), left.keys() <= right.items()

    check(program, torch.ones(2), graphs=1, breaks=0)


def _said(function):
    try:
        return function()
    except KeyError as error:
        return str(error)


@pytest.mark.parametrize("cls", [OrderedDict, Ordered])
def test_methods_of_dict_leave_the_order_behind(cls):
    def program(x):
        found = []
        for change in (dict.__delitem__, dict.pop):
            table = cls()
            table["a"] = 1
            table["b"] = 2
            change(table, "a")
            found += [_said(lambda table=table: repr(table)), len(table)]
        return x + 1, found, type(dict.items(cls())), dict.__repr__(cls(a=1))

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)


def test_methods_past_those_of_a_nearer_class_in_c():
    def program(x):
        return x + 1, int.__repr__(True), int.__and__(True, False), dict.__repr__(defaultdict(int))

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)


def test_an_ordered_dictionary_asks_for_hashes_at_each_step():
    def program(x):
        asked = []

        class Key:
            def __hash__(self):
                asked.append(1)
                return 5

        table = OrderedDict()
        table[Key()] = 1
        found = list(table.values()), len(asked)
        dir()
        return x + 1, found, list(table.values()), len(asked), table.copy() == table, len(asked)

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)
