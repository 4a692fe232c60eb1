"""Iterators that a program goes on with behind a cut: each stands where it stood, over what it ran over."""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque

import pytest
import torch

import graphlift
from graphlift.testing import check

X = torch.ones(2)


def over_computed_items(x):
    out = []
    items = [x, x + 1, x + 2]  # a display in the loop itself would be a tuple
    for item in items:
        out.append(item.sum().item())
    return out


def over_a_list_that_contains_itself(x):
    items = [x, x + 1]
    items.append(items)
    out = []
    for item in items:
        graphlift.graph_break()
        out.append(item)
    return out


def backwards_over_computed_items(x):
    out = []
    for item in reversed([x, x + 1, x + 2]):
        graphlift.graph_break()
        out.append(item)
    return out


def side_by_side(x):
    for a, b in zip([x, x + 1], (x * 2, x * 3), strict=True):
        graphlift.graph_break()
        x = x + a * b
    return x


def over_a_dictionary(x):
    out = []
    for key, value in {"a": x, "b": x + 1}.items():
        graphlift.graph_break()
        out.append(value)
    return out


def over_a_set_of_a_long_history(x):
    names = {"abc", "defg", "hijkl", "x", "yy", "zzz", "q"}
    names.update(map(str, range(20)))
    names -= {str(n) for n in range(3, 20)}
    out = []
    for name in names:
        graphlift.graph_break()
        out.append(x)
    return out, list(names)


def over_a_deque(x):
    out = []
    for item in deque([x, x + 1]):
        graphlift.graph_break()
        out.append(item)
    return out


@pytest.mark.parametrize(
    "program",
    [
        over_computed_items,
        over_a_list_that_contains_itself,
        backwards_over_computed_items,
        side_by_side,
        over_a_dictionary,
        over_a_set_of_a_long_history,
        over_a_deque,
    ],
    ids=lambda program: program.__name__,
)
def test_what_the_program_made(program):
    check(program, X, graphs=None, breaks=None, recompiles=None)


def test_an_iterator_stands_behind_the_former_end_of_its_list():
    def program(x, items):
        it = iter(items)
        next(it)
        items.extend([4, 5, 6])
        passed = [next(it), next(it), next(it)]
        graphlift.graph_break()
        return next(it), passed, x + 1

    check(program, X, [1, 2], graphs=None, breaks=1)


def test_an_iterator_of_the_caller_stands_behind_the_former_end_of_its_list():
    def program(x, items, it):
        next(it)
        items.extend([4, 5, 6])
        return next(it), next(it), x + 1

    items = [1, 2]
    check(program, X, items, iter(items))


def test_keys_written_before_the_iteration_began():
    def program(x, table):
        table["n"] = 1
        out = []
        for key in table:
            graphlift.graph_break()
            out.append(x * table[key])
        return out

    check(program, X, {"a": 3}, graphs=None, breaks=None, recompiles=None)


def test_keys_exchanged_before_the_iteration_began():
    def program(x, table):
        count = len(table)
        table["n"] = 1
        del table["b"]
        out = []
        for key in table:
            graphlift.graph_break()
            out.append(key)
        return x + count, out

    check(program, X, OrderedDict(a=1, b=2), graphs=None, breaks=None, recompiles=None)


def test_a_set_that_grows_meanwhile():
    def program(x, names):
        for name in names:
            graphlift.graph_break()
            names.add("more")
        return x + 1

    check(program, X, {"a", "b"}, graphs=None, breaks=None, recompiles=None)


def test_a_dictionary_that_grows_meanwhile():
    def program(x):
        table = {"a": x}
        for key in table:
            graphlift.graph_break()
            table["more"] = x
        return x + 1

    check(program, X, graphs=None, breaks=None, recompiles=None)


def test_a_list_that_is_shorter_than_its_iterator_has_come_when_the_graph_is_cut():
    def made_here(x):
        items, seen = [1], []
        for item in items:
            seen.append(item)
            if len(seen) > 5:
                break
            items[-1:] = []
            graphlift.graph_break()
            items.append(item)
        return seen, items, x + 1

    def given(x, items):
        seen = []
        for item in items:
            seen.append(item)
            if len(seen) > 5:
                break
            items.clear()
            graphlift.graph_break()
            items.extend((item, 4))
        return seen, x + 1

    check(made_here, torch.ones(2), graphs=None, breaks=None, recompiles=None)
    check(given, torch.ones(2), [1, 2], graphs=None, breaks=None, recompiles=None)


# --- classes of itertools ------------------------------------------------------------------------------

COMBINATORICS = {
    "product": lambda: itertools.product("ab", [1, 2], repeat=2),
    "combinations": lambda: itertools.combinations("abcd", 2),
    "combinations_with_replacement": lambda: itertools.combinations_with_replacement("abc", 2),
    "permutations": lambda: itertools.permutations("abc"),
    "nothing": lambda: itertools.combinations("a", 3),
}


@pytest.mark.parametrize("taken", [0, 2, 99])
@pytest.mark.parametrize("name", COMBINATORICS)
def test_combinatoric_iterators_keep_their_class(name, taken):
    def program(x, make, taken):
        made = make()
        head = [next(made, None) for _ in range(taken)]
        graphlift.graph_break()
        return x + 1, head, type(made).__name__, made.__sizeof__(), next(made, "end"), list(made), made

    check(program, X, COMBINATORICS[name], taken, graphs=None, breaks=None, recompiles=None, warm=False)


@pytest.mark.parametrize(
    "base, args",
    [
        (itertools.repeat, (1, 2)),
        (itertools.count, (1, 2)),
        (itertools.cycle, ("ab",)),
        (itertools.product, ("ab", "c")),
        (itertools.chain, ("ab", "c")),
        (itertools.filterfalse, (None, [0, 1])),
        (filter, (None, [0, 1])),
        (map, (int, "12")),
        (zip, ("ab", "cd")),
        (enumerate, ("ab",)),
        (reversed, ([1, 2],)),
        (property, (len,)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_classes_made_from_those_of_iterators(base, args):
    class Outside(base):
        pass

    def program(x, base, outside, args):
        class Inside(base):
            pass

        made = [kind(*args) for kind in (outside, Inside)]
        return x + 1, type(made[0]) is outside, type(made[1]) is Inside, isinstance(made[1], base)

    check(program, X, base, Outside, args, graphs=None, breaks=None, recompiles=None, warm=False)
