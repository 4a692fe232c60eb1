"""Caches and dispatchers of ``functools`` that captured functions make or call."""

import functools

import pytest
import torch

import graphlift
from graphlift.testing import check, check_fresh

X = torch.ones(2, 2)


@functools.singledispatch
def sd(v):
    return 1


@sd.register(int)
def _(v):
    return 2


@sd.register(torch.Tensor)
def _(v):
    return v + 5


class SDM:
    @functools.singledispatchmethod
    def f(self, v):
        return 1

    @f.register
    def _(self, v: int):
        return 2


def lru_inside(x):
    @functools.lru_cache(maxsize=2)
    def f(n):
        return n * 2

    return x * f(1) + f(1) + f(2), f.cache_info()


def cache_inside(x):
    calls = []

    @functools.cache
    def fib(n):
        calls.append(n)
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return x * fib(8), calls, fib.cache_info()


def cache_tensor(x):
    @functools.cache
    def f(n):
        return x * n

    return f(2) + f(2), f(2) is f(2)


def sd_inside(x):
    @functools.singledispatch
    def f(v):
        return 1

    @f.register
    def _(v: int):
        return 2

    @f.register(str)
    def _(v):
        return 3

    return x * f(1.0) + f(2) + f("a"), f(True)


def sd_out(x):
    return sd(x) * sd(3) + sd("s")


def sdm_inside(x):
    class A:
        @functools.singledispatchmethod
        def f(self, v):
            return 1

        @f.register
        def _(self, v: int):
            return 2

    return x * A().f(1) + A().f("s")


def sdm_out(x):
    return x * SDM().f(1) + SDM().f("s")


def cp_inside(x):
    class A:
        n = 0

        @functools.cached_property
        def f(self):
            self.n += 1
            return x * 3

    a = A()
    return a.f + a.f, a.n, "f" in a.__dict__


def lru_more(x):
    log = []

    @functools.lru_cache(maxsize=2)
    def f(a, b=0):
        log.append((a, b))
        return x * (a + b)

    f(1)
    f(2)
    f(1)
    f(3)
    f(2)
    f(1, b=2)
    f(1, b=2)
    f(b=2, a=1)
    i1 = f.cache_info()

    @functools.lru_cache(maxsize=0)
    def z(a):
        log.append(a)
        return a

    z(1)
    z(1)

    @functools.lru_cache(typed=True)
    def t(a):
        log.append(a)
        return a

    t(1)
    t(1.0)
    t(True)
    t(1)

    @functools.cache
    def bad(a):
        log.append("bad")
        raise ValueError(a)

    for _ in range(2):
        try:
            bad(1)
        except ValueError as e:
            log.append(str(e))
    try:
        f([])
    except TypeError as e:
        log.append(str(e))
    f.cache_clear()

    class A:
        @functools.lru_cache
        def m(self, n):
            log.append(n)
            return n

    a = A()
    a.m(1)
    a.m(1)
    A().m(1)
    return (
        f(1) + 1,
        log,
        i1,
        z.cache_info(),
        t.cache_info(),
        bad.cache_info(),
        f.cache_info(),
        A.m.cache_info(),
        f.__name__,
        f.__wrapped__(4),
        f.cache_parameters(),
    )


def lru_ret(x):
    @functools.lru_cache
    def f(a):
        return a

    return x + 1, f.cache_info()


def sd_ret(x):
    @functools.singledispatch
    def f(v):
        return "o"

    f.register(int, lambda v: "i")
    f(3)
    return x + 1, f.__name__


@pytest.mark.parametrize(
    "program",
    [
        lru_inside,
        cache_inside,
        cache_tensor,
        sd_inside,
        sd_out,
        sdm_inside,
        sdm_out,
        cp_inside,
        lru_more,
        lru_ret,
        sd_ret,
    ],
    ids=lambda f: f.__name__,
)
def test_program(program):
    check(program, X)


def test_an_empty_cache_becomes_real():
    def program(x):
        @functools.lru_cache(maxsize=3)
        def f(a):
            return a + 1

        return x + 1, f

    _, f = graphlift.compile(program, backend="eager", fullgraph=True)(X)
    assert f(1) == 2 == f(1)
    assert f.cache_info() == (1, 1, 3, 1)
    assert f.__name__ == "f"


def test_a_cache_that_holds_something_runs_plainly_where_it_must_be_real():
    def program(x):
        @functools.cache
        def f(a):
            return a + 1

        f(1)
        graphlift.graph_break()
        f(1)
        return x + 1, f.cache_info()

    check(program, X, graphs=None, breaks=None, recompiles=None)


def test_a_dispatcher_becomes_real():
    def program(x):
        @functools.singledispatch
        def f(v):
            return "other"

        f.register(int, lambda v: "int")
        return x + len(f(1)), f

    _, f = graphlift.compile(program, backend="eager", fullgraph=True)(X)
    assert [f(1), f("a"), f(1)] == ["int", "other", "int"]
    f.register(str, lambda v: "str")
    assert f("a") == "str"


def test_a_late_registration_is_seen():
    @functools.singledispatch
    def f(v):
        return 1

    def program(x):
        return x * f(3)

    compiled = graphlift.compile(program, backend="eager")
    assert torch.equal(compiled(X), X)
    f.register(int, lambda v: 2)
    assert torch.equal(compiled(X), X * 2)


def test_state_of_caches_that_existed():
    def make():
        @functools.lru_cache(maxsize=2)
        def cached(n):
            return n * 2

        def program(x):
            y = x * cached(1) + cached(2) + cached(1)
            info = cached.cache_info()
            cached.cache_clear()
            return y + cached(3), info, cached.cache_info()

        return program, (X,)

    check_fresh(make, graphs=None, breaks=None, recompiles=None)
