"""`with` on objects of the user's and of contextlib, which is looked into like any Python code."""

from __future__ import annotations

import contextlib

import pytest
import torch

from graphlift.testing.check import check

X = torch.arange(3.0)


@contextlib.contextmanager
def manager(log):
    log.append("in")
    try:
        yield 5
    except KeyError:
        log.append("key")
    finally:
        log.append("out")


class Manager:
    def __enter__(self):
        self.n = 1
        return self

    def __exit__(self, kind, value, traceback):
        self.seen = kind, traceback is None
        return kind is ValueError


class Decorator(contextlib.ContextDecorator):
    log: list

    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, *exc):
        self.log.append("out")
        return False


def generated(x):
    log = []
    with manager(log) as v:
        y = x * v
    with manager(log) as v:
        raise KeyError(1)
    try:
        with manager(log):
            raise TypeError("t")
    except TypeError as e:
        log.append(e.args[0])
    return y, log


def standard(x):
    log = []
    with contextlib.suppress(ValueError), contextlib.nullcontext(3) as k:
        log.append(k)
        raise ValueError
    with contextlib.closing(Closable(log)):
        x = x + 1
    return x, log


class Closable:
    def __init__(self, log):
        self.log = log

    def close(self):
        self.log.append("closed")


def users(x):
    c = Manager()
    with c as d:
        x = x + d.n
        raise ValueError("q")
    seen = c.seen
    with c:
        pass
    return x, seen, c.seen


def stack(x):
    log = []
    with contextlib.ExitStack() as st:
        a = st.enter_context(manager(log))
        st.callback(log.append, "cb")
        x = x * a
    with contextlib.ExitStack() as st:
        st.enter_context(Manager())
        raise ValueError
    return x, log


def decorating(x):
    log = []

    @Decorator(log)
    def f(y):
        log.append("f")
        return y + 1

    return f(x), f(x), log


def refusing(x):
    out = []
    for value in (3, object()):
        try:
            with value:
                pass
        except TypeError as e:
            out.append(str(e))
    return x + 1, out


@pytest.mark.parametrize(
    "program", [generated, standard, users, stack, decorating, refusing], ids=lambda f: f.__name__
)
def test_program(program):
    check(program, X)
