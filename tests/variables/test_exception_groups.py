"""Exception groups and ``except*``. (PYTEST_DONT_REWRITE)"""

from __future__ import annotations

import pytest
import torch

import graphlift
from graphlift.testing.check import check

X = torch.arange(3.0)


class Own(ExceptionGroup):
    def derive(self, excs):
        return Own(self.message + "'", excs)


class Odd(ExceptionGroup):
    def derive(self, excs):
        return 3


def two_clauses(x):
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as e:
        y = x + 1, e.exceptions, type(e), str(e)
    except* TypeError as e:
        z = x + 2, repr(e), e.__traceback__ is not None
    else:
        z = "else"
    return y, z


def single(x):
    log = []
    try:
        raise ValueError(1)
    except* (KeyError, ValueError) as e:
        log.append((repr(e), e.exceptions[0].args, e.__context__, type(e)))
    finally:
        log.append("finally")
    return x + 1, log


def nothing_raised(x):
    try:
        y = x * 2
    except* ValueError:
        y = x
    else:
        y = y + 1
    return y


def rest_goes_on(x):
    inner = ExceptionGroup("h", [ValueError(3), KeyError(4)])
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2), inner])
        except* ValueError as e:
            taken = e
    except ExceptionGroup as e:
        return x + 1, taken, e, e.__traceback__.tb_lineno - taken.__traceback__.tb_lineno


def raised_in_clauses(x):
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2), KeyError(3)])
        except* ValueError as e:
            raise RuntimeError("anew") from e.exceptions[0]
        except* TypeError:
            raise
    except ExceptionGroup as e:
        anew, rest = e.exceptions
        return x + 1, e.message, anew, anew.__context__, anew.__cause__, rest, e.__context__


def raised_named(x):
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
        except* ValueError as e:
            raise e
    except ExceptionGroup as e:
        return x + 1, e, [error.__context__ for error in e.exceptions]


def one_raised(x):
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1)])
        except* ValueError:
            raise KeyError(x.shape[0])
    except KeyError as e:
        return x + 1, e, e.__context__


def nested_stars(x):
    log = []
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError:
        try:
            raise ExceptionGroup("h", [KeyError(3), TypeError(4)])
        except* KeyError as e:
            log.append((e.exceptions, e.__context__.exceptions))
        except* TypeError as e:
            log.append((e.exceptions, e.__context__.exceptions))
    except* TypeError as e:
        log.append(e.exceptions)
    return x + 1, log


def own_group(x):
    try:
        raise Own("g", [ValueError(1), TypeError(2)])
    except* ValueError as e:
        first = type(e) is Own, e.message
    except* TypeError as e:
        first += (type(e) is Own, e.message)
    return x + 1, first


def across_a_break(x):
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as e:
        y = x + len(e.exceptions)
        graphlift.graph_break()
    except* TypeError as e:
        z = y + 1, e.exceptions
    return y, z


def patterns(x):
    out = []
    for pattern in (ExceptionGroup, 3, (ValueError, int), (KeyError, Own)):
        try:
            try:
                raise ExceptionGroup("g", [ValueError(1)])
            except* pattern:
                pass
        except TypeError as e:
            out.append((str(e), repr(e.__context__)))
    return x + 1, out


def split(x):
    g = ExceptionGroup("g", [ValueError(1), TypeError(2), ExceptionGroup("h", [ValueError(3)])])
    g.add_note("a note")
    g.__cause__ = KeyError(7)
    first, second = g.split(ValueError)
    third = g.subgroup(lambda e: isinstance(e, TypeError))
    fourth = g.derive((KeyError(1),))
    same, none = g.split(ExceptionGroup)
    first.__notes__.append("another")
    return (
        x + 1,
        g,
        first,
        second,
        third,
        fourth,
        same is g,
        none,
        g.subgroup((KeyError, OSError)),
        first.__cause__ is g.__cause__,
    )


def refused(x):
    out = []
    g = ExceptionGroup("g", [ValueError(1)])
    for call in (
        lambda: g.split(3),
        lambda: g.split((ValueError, 3)),
        lambda: g.subgroup("ab"),
        lambda: g.split(int),
        lambda: g.split(),
        lambda: g.split(len),
        lambda: ExceptionGroup("g"),
        lambda: ExceptionGroup(1, [ValueError()]),
        lambda: ExceptionGroup("g", []),
        lambda: ExceptionGroup("g", [1]),
        lambda: ExceptionGroup("g", [KeyboardInterrupt()]),
        lambda: Own("g", [KeyboardInterrupt()]),
        lambda: Own("g", [ValueError()], k=1),
        lambda: ExceptionGroup("g", 3),
        lambda: Odd("g", [ValueError(), TypeError()]).split(ValueError),
    ):
        try:
            out.append(type(call()))
        except Exception as e:
            out.append((type(e), str(e)))
    return x + 1, out


def made(x):
    items = (ValueError(1), KeyError(2))
    listed = [TypeError(1)]
    one, two, three = (
        BaseExceptionGroup("a", items),
        BaseExceptionGroup("b", [SystemExit(1)]),
        ExceptionGroup("c", listed),
    )
    listed.append(1)
    return (
        x + 1,
        one,
        type(one),
        type(two),
        one.exceptions is items,
        three.args,
        three.exceptions,
        str(three),
        repr(three),
        str(one),
    )


CAPTURED = (
    two_clauses,
    single,
    nothing_raised,
    rest_goes_on,
    raised_in_clauses,
    raised_named,
    one_raised,
    nested_stars,
    own_group,
    patterns,
    split,
    refused,
    made,
)


@pytest.mark.parametrize("program", CAPTURED, ids=lambda f: f.__name__)
def test_captured(program):
    check(program, X, graphs=1)


def test_a_break_inside_a_clause():
    check(across_a_break, X, graphs=2, breaks=1)


def leaves_partly(x):
    y = x + 1
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(y.shape[0])])
    except* ValueError:
        pass


def leaves_chained(x):
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as e:
        raise KeyError("x") from e


@pytest.mark.parametrize("program", [leaves_partly, leaves_chained], ids=lambda f: f.__name__)
def test_what_leaves_the_function(program):
    check(program, X, graphs=0)


def test_a_group_from_outside():
    def program(x, group):
        try:
            raise group
        except* ValueError as e:
            taken = e
        except* TypeError as e:
            taken = taken, e
        return x + 1, taken, group.split(KeyError)[0]

    check(program, X, ExceptionGroup("g", [ValueError(1), TypeError(2)]), graphs=None, breaks=None)
