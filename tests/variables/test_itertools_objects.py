"""Iterators of `itertools` as objects: their classes, derived ones, where they stand when they leave; ids."""

from __future__ import annotations

import itertools

import pytest
import torch

import graphlift
from graphlift.testing import check

MADE = [
    lambda: itertools.product("ab", (1, 2)),
    lambda: itertools.product("ab", repeat=2),
    lambda: itertools.permutations("abc", 2),
    lambda: itertools.combinations("abc", 2),
    lambda: itertools.combinations_with_replacement("ab", 2),
]


@pytest.mark.parametrize("gone", [0, 1, 99])
@pytest.mark.parametrize("number", range(len(MADE)))
def test_combinations_leave_as_what_they_are(number, gone):
    make = MADE[number]

    def program(x):
        iterator = make()
        for _ in range(gone):
            next(iterator, None)
        return x + 1, iterator, type(iterator)

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    x = torch.ones(2)
    (_, ours, kind), (_, theirs, expected) = compiled(x), program(x)
    assert type(ours) is type(theirs) is kind is expected
    assert list(ours) == list(theirs)


@pytest.mark.parametrize("cls", [itertools.repeat, itertools.chain, itertools.product, itertools.count])
def test_derived_classes(cls):
    class Derived(cls):
        pass

    def program(x):
        made = Derived((1, 2)) if cls is not itertools.count else Derived(3)
        return x + 1, next(made), isinstance(made, Derived), type(made) is Derived

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)


def test_from_iterable_of_a_derived_class():
    class Derived(itertools.chain):
        pass

    def program(x):
        made = Derived.from_iterable([[1], [2]])
        return x + 1, list(made), type(made) is Derived

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)


def test_ids_of_objects_that_lived_at_once_differ():
    def program(x):
        ids = [id(pair) for pair in list(zip("abc", "def", strict=True))]
        return x + 1, ids

    compiled = graphlift.compile(program, backend="eager")
    assert len({*compiled(torch.ones(2))[1]}) == 3


class Fails:
    """An iterator that goes on behind an error."""

    def __init__(self):
        self.count = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.count += 1
        if self.count == 2:
            raise ValueError("two")
        if self.count > 5:
            raise StopIteration
        return self.count


def bad(*values):
    if 2 in values:
        raise ValueError("two")
    return values[-1]


def failing():
    yield 1
    raise ValueError("within")


ERRORS = {
    "starmap": lambda: itertools.starmap(bad, [(1,), (2,), (3,)]),
    "starmap of no tuples": lambda: itertools.starmap(bad, Fails()),
    "takewhile": lambda: itertools.takewhile(bad, [1, 2, 3, 0, 4]),
    "takewhile over errors": lambda: itertools.takewhile(bool, Fails()),
    "dropwhile": lambda: itertools.dropwhile(lambda value: bad(value) < 4, [1, 2, 3, 4, 2]),
    "dropwhile over errors": lambda: itertools.dropwhile(lambda value: value < 3, Fails()),
    "filterfalse": lambda: itertools.filterfalse(bad, [1, 0, 2, 0]),
    "accumulate": lambda: itertools.accumulate([1, 2, 3], bad),
    "accumulate from": lambda: itertools.accumulate(Fails(), initial=7),
    "chain": lambda: itertools.chain([1], failing(), [3]),
    "chain over errors": lambda: itertools.chain(Fails(), [3]),
    "chain of no iterable": lambda: itertools.chain([1], 2, [3]),
    "from_iterable": lambda: itertools.chain.from_iterable(map(lambda value: [bad(value)], [1, 2, 3])),
    "islice": lambda: itertools.islice(Fails(), 0, None, 2),
    "islice over errors": lambda: itertools.islice(Fails(), 3),
    "pairwise": lambda: itertools.pairwise(Fails()),
    "compress": lambda: itertools.compress(Fails(), [1, 0, 1, 1]),
    "compress by errors": lambda: itertools.compress([1, 2, 3, 4], Fails()),
    "zip_longest": lambda: itertools.zip_longest([1, 2, 3], Fails()),
    "groupby": lambda: (key for key, _ in itertools.groupby(Fails())),
    "groupby by errors": lambda: itertools.groupby([1, 1, 2, 3], bad),
    "tee": lambda: itertools.tee(Fails())[1],
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_does_not_end_an_iterator(name):
    """But where C lets go of what it iterates over."""
    make = ERRORS[name]

    def program(x):
        iterator, told = make(), []
        for _ in range(7):
            try:
                found = next(iterator, "end")
                told.append(found[0] if name.startswith("groupby by") else found)
            except (ValueError, TypeError) as error:
                told.append(str(error))
        return x + 1, told

    check(program, torch.ones(2), graphs=1, breaks=0, recompiles=None)


def test_groups():
    def program(x):
        nan = float("nan")
        groups = itertools.groupby([nan, nan, 1, 1.0, True, 2, float("nan")])
        told = [(str(key), list(map(str, group))) for key, group in groups]
        groups = itertools.groupby("aabbc", key=str.upper)
        key, first = next(groups)
        one = next(first)
        following = next(groups)[0]
        kinds = (
            type(groups).__name__,
            type(first).__name__,
            [type(tee).__name__ for tee in itertools.tee("a")],
        )
        return x + 1, told, key, one, following, list(first), [key for key, _ in groups], kinds

    check(program, torch.ones(2), graphs=1, breaks=0)


def test_iterators_of_one_tee():
    def program(x):
        one, two, three = itertools.tee(iter([1, 2, 3]), 3)
        told = next(one), next(one), next(two), list(one), list(two), next(one, "end")
        return x + 1, told, list(three), itertools.tee(5, 0), itertools.tee("ab")

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    ours, theirs = compiled(torch.ones(2)), program(torch.ones(2))
    assert ours[1:4] == theirs[1:4]
    assert [type(tee) for tee in ours[4]] == [type(tee) for tee in theirs[4]]
    assert [next(ours[4][0]), *ours[4][1], *ours[4][0]] == ["a", "a", "b", "b"]


class Place:
    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number if self.number != 9 else 1 // 0


def test_numbers_of_slices():
    def program(x, n, items):
        told = []
        for numbers in (
            (n,),
            (n, None),
            (Place(1), Place(2)),
            (True, 3),
            (Place(9),),
            (-1,),
            ("a",),
            (1, 2, 0),
        ):
            try:
                told.append(list(itertools.islice(items, *numbers)))
            except ValueError as error:
                told.append((str(error), error.__context__))
        return x * n, told

    check(
        program,
        torch.ones(2),
        2,
        [1, 2, 3, 4],
        then=[(torch.ones(2), n, [1, 2, 3, 4]) for n in (3, 0, 5, 1)],
        breaks=0,
        recompiles=None,
    )


class Only:
    """What an `__iter__` of the program's gives: it is asked for items alone."""

    def __init__(self):
        self.count = 0

    def __next__(self):
        self.count += 1
        if self.count > 3:
            raise StopIteration
        return self.count


class Gives:
    def __init__(self, log):
        self.log = log

    def __iter__(self):
        self.log.append("asked")
        return Only()


OVER = {
    "map": lambda made: map(abs, made),
    "zip": lambda made: zip(made, [1, 2], strict=False),
    "filter": lambda made: filter(None, made),
    "enumerate": lambda made: enumerate(made, 3),
    "filterfalse": lambda made: itertools.filterfalse(None, made),
    "takewhile": lambda made: itertools.takewhile(bool, made),
    "dropwhile": lambda made: itertools.dropwhile(bool, made),
    "starmap": lambda made: itertools.starmap(max, zip(made, [2, 2, 2], strict=True)),
    "compress": lambda made: itertools.compress(made, made),
    "accumulate": lambda made: itertools.accumulate(made, initial=2),
    "chain": lambda made: itertools.chain(made, [4]),
    "islice": lambda made: itertools.islice(made, 2),
    "pairwise": lambda made: itertools.pairwise(made),
    "zip_longest": lambda made: itertools.zip_longest(made, [1]),
    "groupby": lambda made: (str(key) for key, _ in itertools.groupby(made)),
    "cycle": lambda made: itertools.islice(itertools.cycle(made), 5),
    **({"batched": lambda made: itertools.batched(made, 2)} if hasattr(itertools, "batched") else {}),
}


@pytest.mark.parametrize("name", OVER)
def test_iterators_that_leave_ask_for_no_iterator_again(name):
    make = OVER[name]

    def program(x):
        log = []
        return x + 1, make(Gives(log)), log

    compiled = graphlift.compile(program, backend="eager")
    for _ in range(2):
        _, ours, log = compiled(torch.ones(2))
        _, theirs, expected = program(torch.ones(2))
        assert type(ours) is type(theirs)
        assert log == expected
        assert list(ours) == list(theirs)
        assert log == expected


def test_a_tee_that_what_it_goes_over_holds():
    def program(x):
        class Gives:
            def __iter__(self):
                return self

            def __next__(self):
                return self.item

        gives = Gives()
        one, _ = itertools.tee(gives)
        gives.item = one
        return x + 1, one

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    _, one = compiled(torch.ones(2))
    assert next(one) is one


def test_iterators_of_one_tee_leave():
    def program(x):
        log = []
        return x + 1, itertools.tee(Itself(log)), log

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    for function in (compiled, program):
        _, (one, two), log = function(torch.ones(2))
        assert log == ["asked", "asked"]
        assert [next(one), next(two), next(two), next(one)] == [1, 1, 2, 2]
        assert log == ["asked", "asked"]


class Itself(Only):
    def __init__(self, log):
        super().__init__()
        self.log = log

    def __iter__(self):
        self.log.append("asked")
        return self


WRONG_CALLS = [
    lambda: itertools.takewhile(predicate=bool, iterable=[1]),
    lambda: itertools.dropwhile(bool, iterable=[1]),
    lambda: itertools.starmap(),
    lambda: itertools.pairwise(iterable=[1]),
    lambda: list(itertools.compress(data=[1, 2], selectors=[0, 1])),
    lambda: itertools.islice([1], -5),
    lambda: itertools.islice([1], 0, "a"),
    lambda: itertools.islice([1], 0, -1),
    lambda: itertools.islice([1], 0, -3),
    lambda: itertools.islice([1], -1, 2),
    lambda: itertools.islice([1], "a", 2),
    lambda: itertools.islice([1], 0, 2, -1),
    lambda: itertools.islice([1], 2**70),
]


@pytest.mark.parametrize("number", range(len(WRONG_CALLS)))
def test_wrong_calls(number):
    call = WRONG_CALLS[number]

    def program(x):
        try:
            return x + 1, call()
        except (TypeError, ValueError) as error:
            return x + 1, type(error), str(error)

    check(program, torch.ones(2), graphs=1, breaks=0, recompiles=None)


def test_a_tee_that_is_entered_again():
    def program(x):
        class Asks:
            def __iter__(self):
                return self

            def __next__(self):
                return next(self.other)

        asks = Asks()
        one, asks.other = itertools.tee(asks)
        try:
            return x + 1, next(one)
        except RuntimeError as error:
            return x + 1, str(error)

    check(program, torch.ones(2), graphs=1, breaks=0)


def test_no_capture_goes_on_without_end():
    def program(x):
        return x + next(itertools.compress(itertools.count(), itertools.repeat(0)), 1)

    unsure = graphlift.compile(program, backend="eager", fullgraph=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphlift.variables.slots.iteration.LIMIT", 1000)
        with pytest.raises(graphlift.exc.Unsupported, match="more than"):
            unsure(torch.ones(2))
