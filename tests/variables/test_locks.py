"""Locks in captured functions: made there, or shared with other threads."""

import threading

import pytest
import torch

import graphlift
from graphlift.testing import check

X = torch.ones(2, 2)


class Counter:
    def __init__(self):
        self.lock = threading.Lock()
        self.n = 0

    def bump(self):
        with self.lock:
            self.n += 1
        return self.n


def lock_in(x):
    l = threading.Lock()
    with l:
        y = x + 1
    return y * 2, l.locked()


def rlock_in(x):
    l = threading.RLock()
    with l:
        y = x + 1
    return y * 2


def counter(x):
    c = Counter()
    c.bump()
    c.bump()
    return x * c.n, c.lock.locked()


def lock_misuse(x):
    l = threading.Lock()
    try:
        l.release()
    except RuntimeError as e:
        m = str(e)
    a = l.acquire()
    b = l.acquire(False)
    try:
        l.acquire(False, 3)
    except ValueError as e:
        m2 = str(e)
    r = threading.RLock()
    with r:
        with r:
            pass
    return x + 1, m, a, b, m2, l.locked(), l.acquire(blocking=False)


def lock_ret(x):
    l = threading.Lock()
    l.acquire()
    return x + 1, l.locked()


def held_twice(x):
    lock = threading.RLock()
    lock.acquire()
    lock.acquire()
    return x + 1, lock


@pytest.mark.parametrize(
    "program",
    [
        lock_in,
        rlock_in,
        counter,
        lock_misuse,
        lock_ret,
    ],
    ids=lambda f: f.__name__,
)
def test_program(program):
    check(program, X)


def test_a_made_lock_becomes_real_as_it_is_held():
    _, lock = graphlift.compile(held_twice, backend="eager", fullgraph=True)(X)
    lock.release()
    lock.release()
    with pytest.raises(RuntimeError):
        lock.release()


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock])
def test_a_shared_lock_costs_one_cut(make):
    lock = make()

    def with_statement(x):
        with lock:
            y = x + 1
        return y * 2

    def in_turn(x):
        lock.acquire()
        try:
            y = x + 1
        finally:
            lock.release()
        return y * 2

    check(with_statement, X, graphs=1, breaks=1, recompiles=None)
    check(in_turn, X, graphs=1, breaks=1, recompiles=None)
    assert lock.acquire(blocking=False)
    lock.release()


def test_errors_let_go():
    lock = threading.Lock()

    def program(x):
        try:
            with lock:
                y = x @ torch.ones(3)
        except RuntimeError:
            y = x
        return y + 1

    check(program, X, breaks=None, graphs=None)
    assert not lock.locked()


def test_letting_go_what_nobody_holds():
    lock = threading.Lock()

    def program(x):
        y = x + 1
        lock.release()
        return y

    def used(x, hold):
        if hold:
            lock.acquire()
        return program(x)

    compiled = graphlift.compile(program, backend="eager")
    lock.acquire()
    compiled(X)
    assert not lock.locked()
    with pytest.raises(RuntimeError, match="release unlocked lock"):
        compiled(X)


def test_what_a_lock_protects_is_written_before_it_is_let_go():
    counter = Counter()

    @graphlift.compile(backend="eager")
    def program(x):
        y = x + 1
        with counter.lock:
            counter.n += 1
            y = y * 2
        return y + 1

    def work():
        for _ in range(150):
            program(X)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.n == 600


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock])
def test_that_a_lock_is_held_is_no_lasting_assumption(make):
    def lets_go(lock, log, x):
        lock.release()
        log.append("behind")
        return x * 2

    def lets_go_twice(lock, log, x):
        lock.release()
        lock.release()
        log.append("behind")
        return x * 2

    def told(function, times):
        lock, log = make(), []
        for _ in range(times):
            lock.acquire()
        try:
            function(lock, log, torch.ones(2))
        except RuntimeError as error:
            log.append(str(error))
        return log

    for program in (lets_go, lets_go_twice):
        compiled = graphlift.compile(program, backend="eager")
        for times in (1, 0, 1):
            assert told(compiled, times) == told(program, times)
