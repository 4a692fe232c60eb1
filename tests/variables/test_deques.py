"""Deques that existed before the captured code, and classes derived from deque, set and frozenset."""

from collections import deque

import torch

from graphlift.testing import check, check_fresh

X = torch.ones(2)


def raised(function):
    """What a function gives, or what its error says."""
    try:
        return function()
    except Exception as error:
        return type(error).__name__, str(error)


def test_an_existing_deque_is_read():
    def program(x, found):
        for item in found:
            x = x + item
        facts = [len(found), bool(found), 2 in found, found.index(3), found.count(1), found.maxlen]
        made = [list(reversed(found)), found + found, found * 2, repr(found)]
        return x * found[0], facts, found == deque([1, 2, 3]), made

    check(program, X, deque([1, 2, 3]), then=[[X, deque([1, 2, 4, 3])], [X, deque([1, 3])]], recompiles=2)


def test_a_buffer_of_tensors():
    class Buffer:
        def __init__(self):
            self.kept = deque(maxlen=3)

        def push(self, value):
            self.kept.append(value)
            return sum(self.kept)

    def program(x, buffer):
        return buffer.push(x) + buffer.push(x + 1), buffer.kept[-1]

    check(program, X, Buffer())


def test_a_full_buffer_needs_no_other_capture():
    def program(x, kept):
        kept.append(x)
        return sum(kept)

    full = deque([X, X * 2, X * 3], maxlen=3)
    check(program, X, full, then=[[X * 5, deque([X * 4, X, X], maxlen=3)]])


def test_adding_asks_nothing_of_a_deque():
    def program(x, found):
        found.append(x + 1)
        found.extend([1, 2])
        found.appendleft(3)
        return x * 2

    check(program, X, deque([0], maxlen=5), then=[[X, deque()], [X, deque([1, 2, 3], maxlen=1)]])


def test_every_change_of_an_existing_deque():
    def program(x, found):
        found.append(4)
        first, last = found.popleft(), found.pop()
        found.appendleft(x)
        found.rotate(1)
        found.rotate(-5)
        found.insert(1, "new")
        found[0] = "set"
        del found[-1]
        found.remove(2)
        found.reverse()
        found += [7, 8]
        found *= 2
        found.extendleft("ab")
        found.extend(found)
        return x + 1, first, last, len(found), found.copy(), [item for item in found if item != 8][1:3]

    check(program, X, deque([1, 2, 3, 5]), then=[[X, deque([2, 2, 3, 5], maxlen=6)]], recompiles=1)


def test_a_changed_greatest_length():
    def program(x, found):
        found.append(9)
        return x * len(found)

    check(program, X, deque([1, 2]), then=[[X, deque([1, 2], maxlen=2)]], recompiles=1)


def test_changes_meanwhile():
    def program(x, found):
        def grow():
            for item in found:
                found.append(item)

        def shrink_backwards():
            for _ in reversed(found):
                found.pop()

        def write():
            for index, item in enumerate(found):
                found[index] = item * 2

        return x + 1, raised(grow), raised(shrink_backwards), raised(write)

    check(program, X, deque([1, 2]))


def test_errors():
    def program(x, found):
        empty = deque()
        return x + 1, [
            raised(empty.pop),
            raised(empty.popleft),
            raised(lambda: empty[0]),
            raised(lambda: found[5]),
            raised(lambda: found["a"]),
            raised(lambda: found[0:1]),
            raised(lambda: found.remove(77)),
            raised(lambda: found.index(77)),
            raised(lambda: found.insert("a", 1)),
            raised(lambda: found.rotate("a")),
            raised(lambda: deque(maxlen=-1)),
            raised(lambda: deque(1)),
            raised(lambda: deque([], 1, 2)),
            raised(lambda: deque(other=1)),
            raised(lambda: found + [1]),
            raised(lambda: found < 1),
            raised(lambda: deque([1, 2], 2).insert(0, 1)),
            raised(lambda: setattr(found, "maxlen", 3)),
        ]

    check(program, X, deque([1, 2]))


def test_what_an_iterator_gave_before_it_failed_stays():
    def program(x, found):
        def some():
            yield 1
            raise KeyError("end")

        return x + 1, raised(lambda: found.extend(some())), found

    check(program, X, deque())


def test_iterators_over_deques_become_real():
    def program(x, found):
        made = deque([1, 2, 3])
        iterators = [iter(made), reversed(made), iter(found), reversed(found), iter(deque())]
        return x + 1, [next(iterator, None) for iterator in iterators], iterators

    check(program, X, deque([4, 5, 6]))


def test_two_names_for_one_deque():
    def program(x, a, b):
        a.append(x)
        return x + 1, len(b)

    def make(same):
        one = deque([1])
        return [X, one, one if same else deque([1])]

    check(program, *make(False), then=[make(True)], recompiles=1)


class Stack(deque):
    def push(self, value):
        self.append(value)
        self.count = len(self)
        return self[-1]


def test_a_class_derived_from_deque():
    def program(x, found):
        made = Stack([1, 2], maxlen=2)
        made.note = x
        top, other = made.push(3), found.push(4)
        return x * top, made, made.maxlen, made == deque([2, 3]), other, list(found), len(found)

    check(program, X, Stack([1, 2]))


class Names(set):
    def both(self, other):
        return self | other


class Fixed(frozenset):
    def count(self):
        return len(self)


def test_classes_derived_from_sets():
    def program(x, given):
        made = Names([1, 2])
        made.add(3)
        made.discard(1)
        made.label = x
        fixed = Fixed("ab")
        given.add(9)
        results = (made | {1}, made.copy(), fixed.copy(), fixed | {"c"}, given & {9})
        kinds = [type(value).__name__ for value in results]
        answers = [made == {2, 3}, 3 in made, hash(fixed) == hash(frozenset("ab"))]
        return x * fixed.count(), made, fixed, kinds, answers, made.both({7}), sorted(given)

    check(program, X, Names([5, 6]))


class Key:
    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return self.name == other.name


class Table(dict):
    pass


def test_derived_classes_with_keys_of_the_programs_own():
    def program(x):
        table = Table()
        table[Key("a")] = x
        table[Key("a")] = x + 1
        return table[Key("a")], table, Names([Key("b"), Key("b")]), Fixed([Key("c")])

    def make():
        return program, (X,)

    check_fresh(make)
