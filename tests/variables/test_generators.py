"""Generators made by the program: run on, sent to, thrown into, closed, delegated to."""

from __future__ import annotations

import pytest
import torch

import graphlift
from graphlift.testing.check import check

X = torch.arange(3.0)


def sending(x):
    def g():
        s = 0
        for i in range(4):
            r = yield x * i
            if r:
                s += r
        return s

    it = g()
    out = [next(it), it.send(5)]
    out += list(it)

    def h():
        v = yield from g()
        yield v

    return out, list(h())


def throwing(x):
    log = []

    def g():
        try:
            yield 1
        except ValueError as e:
            yield e.args
        finally:
            log.append("f")

    it = g()
    first = next(it)
    second = it.throw(ValueError("v"))
    it.close()
    other = g()
    next(other)
    try:
        other.throw(KeyError)
    except KeyError:
        log.append("k")
    return x + 1, first, second, log


def delegated(x):
    def inner():
        try:
            yield 1
            yield 2
        except ValueError:
            yield "caught"
        return x * 2

    def outer():
        r = yield from inner()
        yield r
        yield from [7, 8]

    it = outer()
    return next(it), it.throw(ValueError()), list(it)


def closing(x):
    log = []

    def g():
        try:
            yield 1
        finally:
            log.append("closed")

    it = g()
    it.close()
    it = g()
    next(it)
    it.close()
    try:
        next(it)
    except StopIteration:
        log.append("stop")

    def stubborn():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    it = stubborn()
    next(it)
    try:
        it.close()
    except RuntimeError as e:
        log.append(str(e))
    return x + 1, log


def expressions(x):
    return (
        sum(x * i for i in range(3)),
        [y for y in (i * 2 for i in range(3))],
        any(i > 1 for i in range(3)),
        dict((i, i) for i in "ab"),
    )


def leaking(x):
    def g():
        yield 1
        raise StopIteration(5)

    try:
        list(g())
    except RuntimeError as e:
        return x + 1, str(e), type(e.__cause__).__name__


def returning(x):
    def g():
        yield 1
        return 9

    it = g()
    next(it)
    try:
        next(it)
    except StopIteration as e:
        return x + 1, e.value


def errors(x):
    def g():
        yield 1

    out = []
    try:
        g().send(3)
    except TypeError as e:
        out.append(str(e))

    def me():
        try:
            next(box[0])
        except ValueError as e:
            yield str(e)

    box = []
    box.append(me())
    out.append(next(box[0]))
    return x + 1, out


def partly_used(x):
    def g():
        for i in range(5):
            yield x + i

    it = g()
    a = next(it)
    rest = [v for v in it]
    return a, rest, list(it)


@pytest.mark.parametrize(
    "program",
    [sending, throwing, delegated, closing, expressions, leaking, returning, errors, partly_used],
    ids=lambda f: f.__name__,
)
def test_program(program):
    check(program, X)


def test_generators_that_leave():
    def program(x):
        k = 3

        def g(a, *rest, b=2, **named):
            def inner():
                return a

            yield a * k
            yield inner() + b, rest, named

        return g(x + 1, 7, b=4, z=1), (v * k for v in [1, 2]), x * 2

    made = graphlift.compile(program, backend="eager", fullgraph=True)(X)
    plain = program(X)
    first, second = list(made[0]), list(plain[0])
    assert (
        torch.equal(first[0], second[0])
        and torch.equal(first[1][0], second[1][0])
        and first[1][1:] == second[1][1:]
    )
    assert list(made[1]) == [3, 6] and made[1].__name__ == "<genexpr>"
    assert made[0].__qualname__ == plain[0].__qualname__


# --- closing and throwing through `yield from` ---------------------------------------------------------


class Receiver:
    """An iterator of the program with what `yield from` may ask for."""

    def __init__(self, log, closing=None):
        self.log = log
        self.closing = closing

    def __iter__(self):
        return self

    def __next__(self):
        return 1

    def close(self):
        self.log.append("closed")
        if self.closing is not None:
            raise self.closing


def delegates(receiver, log):
    try:
        return (yield from receiver)
    except BaseException as error:
        log.append((type(error).__name__, str(error), type(error.__context__).__name__))
        raise


def yields_when_closed():
    try:
        yield 1
    finally:
        yield 2


def returns_when_closed(log):
    try:
        yield 1
    except GeneratorExit:
        log.append("exit")
        return 5


def raises_when_closed():
    try:
        yield 1
    finally:
        raise KeyError("closing")


@pytest.mark.parametrize("by", ["close", "throw", "throw class"])
@pytest.mark.parametrize("kind", ["yields", "returns", "raises", "own", "own raises", "list"])
def test_generator_exit_closes_what_is_delegated_to(kind, by):
    def program(x, by, kind):
        log = []
        receiver = {
            "yields": yields_when_closed,
            "returns": lambda: returns_when_closed(log),
            "raises": raises_when_closed,
            "own": lambda: Receiver(log),
            "own raises": lambda: Receiver(log, ValueError("closing")),
            "list": lambda: [1, 2],
        }[kind]()
        made = delegates(receiver, log)
        next(made)
        thrown = GeneratorExit("thrown")
        try:
            if by == "close":
                log.append(made.close())
            else:
                log.append(made.throw(thrown if by == "throw" else GeneratorExit))
        except BaseException as error:
            log.append((type(error).__name__, str(error), error is thrown, type(error.__context__).__name__))
        log.append(next(made, "ended"))
        return x + 1, log

    check(program, torch.ones(2), by, kind, recompiles=None, warm=False)


def test_throw_goes_to_an_iterator_that_has_one():
    class Takes(Receiver):
        def throw(self, error):
            self.log.append(error)
            return 7

    def program(x):
        log = []
        made = delegates(Takes(log), log)
        next(made)
        found = made.throw(KeyError("thrown")), made.throw(ValueError)
        seen = str(log)
        made.close()
        return x + 1, found, seen

    check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None, warm=False)


def test_what_a_closed_generator_returns():
    def program(x):
        log = []
        made = returns_when_closed(log)
        next(made)
        return x + 1, made.close(), made.close(), log

    check(program, torch.ones(2))


def test_a_generator_has_the_names_of_its_function():
    def program(x):
        def function():
            yield 1

        made = [function()]
        function.__name__, function.__qualname__ = "name", "qualified"
        made += [function(), function(), function()]
        next(made[2])
        list(made[3])
        try:
            function(1)
        except TypeError as error:
            text = str(error)
        return x + 1, [(each.__name__, each.__qualname__) for each in made], made, text

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    x = torch.ones(2)
    (_, names, made, text), (_, expected, _, message) = compiled(x), program(x)
    assert names == expected and text == message
    assert [(each.__name__, each.__qualname__) for each in made] == expected
