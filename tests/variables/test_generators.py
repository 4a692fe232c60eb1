"""Generators made by the program: run on, sent to, thrown into, closed, delegated to."""

from __future__ import annotations

import pytest
import torch

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
    import graphlift

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
