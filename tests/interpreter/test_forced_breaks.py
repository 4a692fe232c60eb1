"""The graph cut before each instruction in turn: nothing that the program does may change."""

from __future__ import annotations

import contextlib
import traceback

import pytest
import torch

import graphlift
from graphlift import events
from graphlift.testing.forced_breaks import check_forced_breaks


class Manager:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append("out" if kind is None else kind.__name__)
        return False


def helper(a, b=2):
    c = a * b
    return c + 1


def loops(x, log):
    y = x + 1
    z = []
    for i in range(3):
        if i == 1:
            continue
        z.append(y * i)
    log.append(len(z))
    return sum(z)


def handlers(x, log):
    try:
        v = helper(x) + helper(x, b=3)
        log[5]
    except IndexError as e:
        log.append(str(e))
        w = v * 2
    finally:
        log.append("fin")
    return w


def managers(x, log):
    with Manager(log):
        y = x * 2
        log.append(1)
    return y + 1


def closures(x, log):
    seen = {}

    def inner(k):
        nonlocal x
        x = x + k
        return x * k

    for a, b in zip([1, 2], (3, 4)):
        seen[f"{a}:{b}"] = inner(a) + b
    log.extend(seen)
    return [v for v in seen.values()], x


def grad_mode(x, log):
    with torch.no_grad():
        y = x * 2
        log.append(torch.is_grad_enabled())
    log.append(torch.is_grad_enabled())
    return y, x * 3


def chained(x, log):
    try:
        try:
            raise ValueError("a")
        except ValueError:
            log.append("v")
            x = x + 1
            raise KeyError("b")
    except KeyError as e:
        log.append(type(e.__context__).__name__)
    while len(log) < 5:
        log.append(len(log))
        x = x + 1
    else:
        log.append("e")
    return x, *log


def leaving(x, log):
    a, *b = [x, x + 1, x + 2]
    with Manager(log):
        with Manager(log):
            b = b[0] if len(b) > 1 else None
            raise RuntimeError("boom")
    return b


def constants_on_the_stack(x, log):
    from math import sqrt

    table = {"a": x, "b": x + 1}
    log.extend({"c": 1, "d": sqrt(4.0)}.items())
    return helper(table["a"], b=3), table


def tensors_as_keys(x, log):
    table = {x: 1}
    log.append(table[x])
    return x + 1


PROGRAMS = [
    *(loops, handlers, managers, closures, grad_mode, chained, leaving),
    *(constants_on_the_stack, tensors_as_keys),
]
INLINED = {
    handlers: [helper.__code__],
    managers: [Manager.__enter__.__code__, Manager.__exit__.__code__],
    closures: [constant for constant in closures.__code__.co_consts if hasattr(constant, "co_code")],
}


def outcome(fn):
    log = []
    x = torch.arange(3.0, requires_grad=True)
    try:
        result = repr(fn(x, log))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        result = type(error), error.args, [(f.name, f.lineno) for f in frames if f.name != "outcome"]
    return result, log, torch.is_grad_enabled()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_cut_before_each_instruction(program):
    places = check_forced_breaks(program, [program.__code__, *INLINED.get(program, [])], outcome)
    assert places > (20 if program is not tensors_as_keys else 10)
