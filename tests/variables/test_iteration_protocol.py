"""What iterating asks of objects, in which order, and the errors where they do not answer."""

import torch

from graphlift.testing import check

X = torch.ones(2)


def raised(function):
    """What a function gives, or what its error says."""
    try:
        return function()
    except Exception as error:
        return type(error).__name__, str(error), str(error.__context__), str(error.__cause__)


class GivesNumber:
    def __iter__(self):
        return 5


class NoIter:
    __iter__ = None
    __contains__ = None

    def __getitem__(self, index):
        return 1


class NotReversible:
    __reversed__ = None

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return 1


class OnlyNext:
    def __next__(self):
        return 1


def test_what_is_no_iterable():
    def program(x):
        def unpack(value):
            a, b = value

        def unpack_starred(value):
            a, *b = value

        def assign(value):
            [1, 2][:] = value

        def assign_extended(value):
            [1, 2][::2] = value

        verbs = [iter, list, tuple, set, sorted, sum, max, enumerate, unpack, unpack_starred, assign]
        verbs += [assign_extended, reversed, zip, ",".join, [].extend, lambda value: 1 in value]
        values = [5, GivesNumber(), NoIter(), NotReversible(), OnlyNext()]
        # Items without an end, and texts that name an address, are left out.
        skipped = [(NotReversible, verb) for verb in verbs if verb is not reversed]
        return (
            x + 1,
            [
                [raised(lambda verb=verb, value=value: (verb(value), 0)[1]) for verb in verbs]
                for value in values
                if (type(value), verbs[0]) not in skipped
            ],
            raised(lambda: reversed(NotReversible())),
        )

    check(program, X)


class Hinted:
    def __init__(self, log, length=None, hint=None):
        self.log, self.length, self.hint = log, length, hint

    def __iter__(self):
        self.log.append("iter")
        return iter([1, 2])

    def __len__(self):
        self.log.append("len")
        if isinstance(self.length, Exception):
            raise self.length
        return self.length


class OnlyHint:
    def __init__(self, hint):
        self.hint = hint

    def __iter__(self):
        return iter("ab")

    def __length_hint__(self):
        if isinstance(self.hint, Exception):
            raise self.hint
        return self.hint


def given(*items):
    return items


def test_who_is_asked_for_a_length():
    def program(x):
        log = []
        results = []
        for length in (2, 7, ValueError("no length"), TypeError("no length")):
            spread = (lambda value: [*value], lambda value: [0] + [*value], lambda value: given(*value))
            for verb in (list, tuple, sorted, set, *spread, lambda value: given(0, *value)):
                results.append(raised(lambda verb=verb, length=length: verb(Hinted(log, length))))
                log.append("|")
        hints = [3, -1, "x", NotImplemented, TypeError("t"), ValueError("v")]
        return x + 1, results, log, [raised(lambda hint=hint: list(OnlyHint(hint))) for hint in hints]

    check(program, X)


def test_displays_and_updates_of_dictionaries():
    def program(x):
        return x + 1, [
            raised(lambda: {**5}),
            raised(lambda: {**[1]}),
            raised(lambda: dict(5)),
            raised(lambda: dict([1])),
            raised(lambda: dict([(1, 2, 3)])),
            raised(lambda: {}.update(["ab", 5])),
            raised(lambda: set(1, 2)),
            raised(lambda: {1}.__init__(1, 2)),
        ]

    check(program, X)


def test_a_set_is_initialised_again():
    def program(x):
        found = {1, 2}
        found.__init__([3])
        return x + 1, found

    check(program, X)


def test_arguments_of_the_methods_of_generators():
    def program(x):
        def numbers():
            yield 1

        return x + 1, [
            raised(lambda: numbers().throw()),
            raised(lambda: numbers().throw(1)),
            raised(lambda: numbers().throw(int)),
            raised(lambda: numbers().send()),
            raised(lambda: numbers().send(1)),
            raised(lambda: numbers().send(1, 2)),
            raised(lambda: numbers().close(1)),
            raised(lambda: numbers().throw(KeyError("k"))),
        ]

    check(program, X)


def test_throw_with_a_class_and_a_value():
    def program(x):
        def numbers():
            try:
                yield 1
            except ValueError as error:
                yield str(error)

        made = numbers()
        next(made)
        return x + 1, made.throw(ValueError, "text")

    check(program, X, graphs=None, breaks=None)


class Version:
    def __init__(self, number, name):
        self.number, self.name = number, name

    def __hash__(self):
        return self.name

    def __lt__(self, other):
        return self.number < other.number


def test_sorting_a_set_of_what_is_neither_before_nor_behind():
    def program(x):
        versions = {Version(number % 2, 50 - 3 * number) for number in range(8)}
        return x + 1, [version.name for version in sorted(versions)]

    check(program, X)
    check(lambda x: (x + 1, sorted({3, 1, 2}), sorted({"b", "a"})), X)


class BeginsAgain:
    def __init__(self, n):
        self.n, self.log = n, []

    def __iter__(self):
        self.at = 0
        self.log.append("iter")
        return self

    def __length_hint__(self):
        self.log.append("hint")
        return 3

    def __next__(self):
        self.at += 1
        if self.at > 3:
            raise StopIteration
        return self.at * self.n


def test_a_starred_target_asks_for_an_iterator_and_for_a_hint():
    def first(x, numbers):
        one, *rest = numbers
        return x + 1, one, rest

    def between(x, numbers):
        one, *rest, last, end = iter(numbers)
        return x + 1, one, rest, last, end

    def too_few(x, numbers):
        def take():
            one, *rest, last, end, more = numbers

        def none_left():
            one, two, three, four, five, *rest = numbers

        return x + 1, raised(take), raised(none_left)

    check(first, X, BeginsAgain(2))
    check(between, X, BeginsAgain(2))
    check(too_few, X, BeginsAgain(2))
