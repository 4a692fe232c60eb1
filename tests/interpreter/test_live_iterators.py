"""Generators and iterators that captured code has begun and that are live at a cut: they become real as they
stand."""

from __future__ import annotations

import inspect
import sys
import traceback

import pytest
import torch

import graphlift
from graphlift.testing.forced_breaks import check_forced_breaks


def counting(x, n=3):
    for i in range(n):
        got = yield x * i
        if got is not None:
            x = x + got
    return x


def delegating(x):
    result = yield from counting(x + 1, 2)
    yield result * 2


def guarded(x, log):
    try:
        yield x + 1
        yield x + 2
    except KeyError as error:
        log.append(error.args)
        yield x + 3
    finally:
        log.append("finally")


class Manager:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")

    def __exit__(self, *error):
        self.log.append("out")


def managing(x, log):
    with Manager(log):
        try:
            raise ValueError(1)
        except ValueError:
            yield x * 2
            log.append(type(sys.exception()).__name__)
        yield x * 3


def closing_over(x):
    total = x

    def add(y):
        nonlocal total
        total = total + y
        return total

    for i in range(3):
        yield add(i)


def started(x, log):
    steps = counting(x)
    y = next(steps)
    y = y + steps.send(x)
    y = y * 2
    return y, list(steps), list(steps)


def delegated(x, log):
    steps = delegating(x)
    y = next(steps)
    y = y * 2
    return y, [*steps]


def looped(x, log):
    y = x
    for part in counting(x):
        y = y + part
        log.append(1)
    return y


def thrown(x, log):
    steps = guarded(x, log)
    y = next(steps)
    y = y * 2
    y = y + steps.throw(KeyError("thrown"))
    log.append("closing")
    steps.close()
    return y, list(steps)


def managed(x, log):
    steps = managing(x, log)
    y = next(steps)
    y = y * 2
    return y, list(steps)


def closure(x, log):
    steps = closing_over(x)
    y = next(steps)
    y = y * 2
    return y, next(steps), list(steps)


def expression(x, log):
    scale = x + 1
    parts = (scale * i for i in range(3))
    y = next(parts)
    y = y * 2
    return y, list(parts)


def finished(x, log):
    steps = counting(x, 1)
    y = sum(steps)
    y = y * 2
    log.append((steps.__name__, steps.__qualname__, inspect.getgeneratorstate(steps)))
    return y, list(steps)


def failing(x, log):
    steps = guarded(x, log)
    y = next(steps)
    y = y * 2
    steps.throw(LookupError("through"))


def mappings(x, log):
    made = {"a": x, "b": x * 2, "c": x * 3}
    values, items, backwards = iter(made.values()), enumerate(made.items()), reversed(made)
    y = next(values) + next(items)[1][1]
    log.append(next(backwards))
    y = y + 1
    pairs = zip(made, [1, 2, 3])
    log.append(next(pairs))
    y = y * 2
    return y, list(values), list(items), list(backwards), list(pairs), made


def grown(x, log):
    made = {1: x}
    keys = iter(made)
    y = x + 1
    made[2] = x
    y = y * 2
    try:
        next(keys)
    except RuntimeError as error:
        log.append(str(error))
    return y


PROGRAMS = {
    started: [counting],
    delegated: [delegating, counting],
    looped: [counting],
    thrown: [guarded],
    managed: [managing, Manager.__exit__],
    closure: [closing_over],
    expression: [],
    finished: [counting],
    failing: [guarded],
    mappings: [],
    grown: [],
}


def outcome(fn):
    log = []
    x = torch.arange(3.0)
    try:
        result = repr(fn(x, log))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        result = type(error), error.args, [(f.name, f.lineno) for f in frames if f.name != "outcome"]
    return result, log, sys.exc_info()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_cut_before_each_instruction(program):
    codes = [function.__code__ for function in [program, *PROGRAMS[program]]]
    assert check_forced_breaks(program, codes, outcome) > 20


def sizes_of(program, *inputs):
    """Operations of each graph of a program, and whether it gives what plain Python gives."""
    sizes = []

    def backend(module, values):
        sizes.append(sum(node.op not in ("placeholder", "output") for node in module.graph.nodes))
        return module.forward

    assert repr(graphlift.compile(program, backend=backend)(*inputs)) == repr(program(*inputs))
    return sizes


def test_a_frame_with_a_started_generator_is_captured():
    def program(x):
        steps = delegating(x)
        y = next(steps) + next(steps)
        if y.sum().item() > 0:
            y = y * 2
        return y, list(steps)

    assert sizes_of(program, torch.ones(2)) == [5, 1]


def test_a_frame_with_an_iterator_over_a_dictionary_made_inside_is_captured():
    def program(x):
        made = {"a": x + 1, "b": x + 2}
        values = iter(made.values())
        y = next(values)
        if y.sum().item() > 0:
            y = y * 2
        return y, list(values)

    assert sizes_of(program, torch.ones(2)) == [3, 1]


def test_an_iterator_over_a_dictionary_that_the_program_had_made_longer():
    def program(x, table):
        table["new"] = x + 1
        for key in table:
            x = x + table[key]
            if x.sum().item() > 3:
                x = x * 2
        return x

    compiled = graphlift.compile(program, backend="eager")
    x = torch.ones(2)
    assert torch.equal(compiled(x, {"old": x}), program(x, {"old": x}))


@pytest.mark.parametrize("how", ["break", "del", "return"])
def test_cleanup_of_a_generator_that_is_dropped(how):
    def program(x, log):
        steps = guarded(x, log)
        if how == "break":
            for y in guarded(x, log):
                x = x + y
                break
        else:
            x = x + next(steps)
            if how == "del":
                del steps
        log.append("behind")
        return x + 1

    logs = []
    for run in (program, graphlift.compile(program, backend="eager")):
        log = []
        run(torch.ones(2), log)
        logs.append(log)
    assert logs[0] == logs[1]
    assert "finally" in logs[0]


def test_an_iterator_that_its_own_dictionary_holds():
    def program(x):
        made = {}
        values = iter(made.values())
        made["own"] = values
        y = x + 1
        if y.sum().item() > 0:
            y = y * 2
        return y, type(made["own"]).__name__

    assert repr(graphlift.compile(program, backend="eager")(torch.ones(2))) == repr(program(torch.ones(2)))


def test_an_iterator_beyond_what_a_list_holds_as_yet():
    def program(x, items):
        steps, backwards = iter(items), iter([1])
        for _ in range(2):
            items.append(next(steps) + 1)
        items += [x, x]
        backwards = reversed(items)
        y = next(steps) + next(steps) + next(backwards)
        if y.sum().item() > 0:
            y = y * 2
        return y, list(steps), list(backwards)

    compiled = graphlift.compile(program, backend="eager")
    x = torch.ones(2)
    assert repr(compiled(x, [x, x])) == repr(program(x, [x, x]))
