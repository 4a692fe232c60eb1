"""Keys of dictionaries and sets whose ``__hash__`` and ``__eq__`` are the program's own."""

from collections import Counter, OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass

import torch

import graphlift
from graphlift.testing import check, check_fresh


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

    def __hash__(self):
        return hash((self.x, self.y))


class Colliding(Point):
    """All have one hash."""

    def __eq__(self, other):
        return isinstance(other, Colliding) and self.x == other.x

    def __hash__(self):
        return 7


class Counted:
    """Tells how often and in which order it is hashed and compared."""

    log: list = []

    def __init__(self, name, value=3):
        self.name, self.value = name, value

    def __hash__(self):
        Counted.log.append(("hash", self.name))
        return self.value

    def __eq__(self, other):
        Counted.log.append(("eq", self.name, getattr(other, "name", other)))
        return self.name == getattr(other, "name", other)


@dataclass(frozen=True)
class Frozen:
    a: int
    b: str


Pair = namedtuple("Pair", "a b")


def test_equal_objects_are_one_key():
    def program(x):
        found = {Point(1, 2): x}
        found[Point(1, 2)] = x + 1
        found[Point(3, 4)] = x + 2
        return (
            found[Point(1, 2)] * len(found),
            Point(3, 4) in found,
            Point(9, 9) in found,
            found.get(Point(0, 0)),
        )

    check(program, torch.ones(2))


def test_made_dictionaries_and_sets_become_real():
    def program(x):
        found = {Point(1, 2): 1, Point(3, 4): 2, "name": 3, (Point(5, 6), 1): 4}
        del found[Point(3, 4)]
        chosen = {Point(1, 2), Point(1, 2), Point(7, 8)}
        chosen.discard(Point(7, 8))
        return x + 1, found, chosen, frozenset([Point(1, 1)]), OrderedDict({Point(2, 2): 1})

    check(program, torch.ones(2))


def test_keys_of_one_hash():
    def program(x):
        found = {Colliding(1, 0): 1, Colliding(2, 0): 2, Colliding(1, 5): 3, 7: 4}
        chosen = {Colliding(1, 0), Colliding(2, 0), Colliding(2, 1), 7}
        return (
            x * found[Colliding(1, 1)],
            len(found),
            [key.y for key in found if key != 7],
            found,
            len(chosen),
            chosen,
        )

    check(program, torch.ones(2))


def test_each_look_up_hashes_once_and_compares_stored_with_wanted():
    def program(x):
        Counted.log = []
        a, b = Counted("a"), Counted("b")
        found = {a: 1, b: 2}
        found[a] = 3
        found[Counted("b")] = 4
        results = [
            found.get(Counted("c")),
            found.setdefault(Counted("d"), 5),
            Counted("d") in found,
            3 in found,
            found.pop(Counted("a")),
        ]
        return x + 1, results, list(found.values()), list(Counted.log)

    check(program, torch.ones(2))


def test_nothing_is_hashed_again_when_objects_become_real():
    def program(x, given):
        Counted.log = []
        made = {Counted("a"): 1, Counted("b"): 2}
        chosen = {Counted("c"), Counted("d")}
        given[Counted("e")] = x
        given[Counted("f")] = 2
        given.pop(Counted("f"))
        merged = {**made, Counted("g"): 1}
        return x + 1, made, chosen, merged, list(Counted.log)

    check(program, torch.ones(2), {})


def test_a_stored_hash_outlives_what_it_was_made_from():
    def program(x):
        key = Point(1, 2)
        found = {key: x}
        key.x = 5
        return x + 1, found, Point(1, 2) in found, Point(5, 2) in found, key in found

    check(program, torch.ones(2))


def test_a_dictionary_that_existed():
    def program(x, found):
        found[Frozen(9, "z")] = x
        found[Frozen(1, "a")] = 5
        del found[Frozen(2, "b")]
        return x * found[Frozen(1, "a")], len(found), [key.a for key in found], Frozen(4, "c") in found

    given = {Frozen(1, "a"): 3, Frozen(2, "b"): 4}
    check(program, torch.ones(2), given, then=[[torch.ones(2), defaultdict(int, given)]], recompiles=1)
    ordered = OrderedDict(given)  # going through it asks each key for its hash once more
    check(program, torch.ones(2), ordered, graphs=None, breaks=None, recompiles=None)


def test_other_contents_of_a_dictionary_that_existed():
    def program(x, found):
        return x * found.get(Frozen(1, "a"), 7)

    given = [torch.ones(2), {Frozen(1, "a"): 3}]
    then = [
        [given[0], {Frozen(1, "b"): 3}],
        [given[0], {}],
        [given[0], {Frozen(2, "c"): 1, Frozen(1, "a"): 3}],
    ]
    check(program, *given, then=then, recompiles=None)


def test_a_dictionary_whose_key_was_changed_after_it_was_stored():
    def program(x, found, key):
        return x + 1, found.get(key), key in found

    stale = {Point(1, 2): 1}
    next(iter(stale)).x = 9
    compiled = graphlift.compile(program, backend="eager")
    for found in ({Point(9, 2): 1}, stale, {Point(9, 2): 1}):
        assert (
            compiled(torch.ones(2), found, Point(9, 2))[1:] == program(torch.ones(2), found, Point(9, 2))[1:]
        )


def test_a_set_that_existed():
    def program(x, found, other):
        found.add(Point(1, 2))
        found.add(Point(8, 8))
        found.discard(Point(3, 4))
        found |= {Point(1, 2), Point(6, 6)}
        found -= {Point(6, 6)}
        found.intersection_update([Point(1, 2), Point(8, 8), Point(7, 7)])
        return x * len(found), Point(1, 2) in found, other.isdisjoint(found), found <= other, found == other

    def make():
        kept = [Point(1, 2), Point(3, 4)]
        return program, (torch.ones(2), set(kept), frozenset([kept[0], Point(8, 8)]))

    check_fresh(make)


def test_operators_of_sets():
    def program(x):
        a, b = {Point(1, 2), Point(3, 4)}, {Point(3, 4), Point(5, 6)}
        sizes = [len(made) for made in (a & b, a | b, a - b, a ^ b, a.union([Point(1, 2)]), b.copy())]
        return (
            x + 1,
            sizes,
            a <= b,
            a == {Point(3, 4), Point(1, 2)},
            a.isdisjoint(b),
            a.issuperset([Point(1, 2)]),
        )

    check(program, torch.ones(2))


def test_what_counts_and_groups():
    def program(x):
        count = Counter([Point(1, 2), Point(1, 2), Point(3, 4)])
        groups = defaultdict(list)
        for point in [Point(1, 2), Point(3, 4), Point(1, 2)]:
            groups[point].append(x * point.x)
        return sum(groups[Point(1, 2)]) * count[Point(1, 2)], dict.fromkeys([Point(1, 1), Point(1, 1)], 4)

    check(program, torch.ones(2))


def test_comparison_of_dictionaries():
    def program(x):
        left, right = {Point(1, 2): [1], "k": 2}, {"k": 2, Point(1, 2): [1]}
        return x + 1, left == right, left != right, left == {Point(1, 3): [1], "k": 2}, left | right == right

    check(program, torch.ones(2))


class NoHash:
    def __eq__(self, other):
        return True


class TextHash:
    def __hash__(self):
        return "text"


class BigHash:
    def __hash__(self):
        return 1 << 100

    def __eq__(self, other):
        return True


class Failing:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise LookupError("not comparable")


def raised(function):
    try:
        return function()
    except Exception as error:
        return type(error), str(error)


def test_what_hash_and_eq_may_do():
    def program(x):
        return (
            x + 1,
            raised(lambda: {NoHash(): 1}),
            raised(lambda: {TextHash(): 1}),
            raised(lambda: {1: 0}[NoHash()]),
            {BigHash(): 5}[BigHash()],
            raised(lambda: {Failing(): 1, Failing(): 2}),
            raised(lambda: {1, Failing()}),
            hash(Point(1, 2)) == hash((1, 2)),
            hash((Point(1, 2), 3)) == hash(((1, 2), 3)),
        )

    check(program, torch.ones(2))


class Changing:
    def __init__(self, table):
        self.table = table

    def __hash__(self):
        return 1

    def __eq__(self, other):
        self.table.setdefault("more", 1)
        return False


def test_a_comparison_that_changes_the_dictionary():
    def program(x):
        table = {}
        table[Changing(table)] = 1
        table[Changing(table)] = 2
        return x + 1, len(table)

    check(program, torch.ones(2), graphs=None, breaks=None)


class Cutting:
    def __init__(self, x):
        self.x = x

    def __hash__(self):
        return 5

    def __eq__(self, other):
        return bool((self.x == other.x).all())


def test_a_comparison_that_needs_a_tensor_cuts_the_graph():
    def program(x):
        found = {Cutting(x): 1}
        found[Cutting(x + 0)] = 2
        found[Cutting(x + 1)] = 3
        return x + 1, list(found.values())

    check(program, torch.ones(2), graphs=None, breaks=None)


def test_named_tuples_are_tuples():
    def program(x, found):
        return x * found[Pair(1, 2)], found[3, 4], (1, 2) in found, len({Pair(1, 2), (1, 2)})

    check(program, torch.ones(2), {Pair(1, 2): 3, Pair(3, 4): 5})


def test_whether_two_tensors_are_one_key():
    def program(x, a, b):
        return x * len({a: 1, b: 2}), a in {b}

    def pair(same):
        a = torch.zeros(1)
        return [torch.ones(2), a, a if same else torch.zeros(1)]

    check(program, *pair(False), then=[pair(True), pair(False)], recompiles=1)


def test_sets_of_known_hashes_are_gone_through_in_order():
    def program(x):
        points = {Point(number, -number) for number in range(20)} | {(1, 2), (3, Point(4, 5)), "text"}
        kept = points - {Point(3, -3)}
        kept.discard((1, 2))
        return x + 1, [getattr(point, "x", 0) for point in points], [getattr(point, "x", 0) for point in kept]

    check(program, torch.ones(2))
