"""Cuts while an exception that captured code raised is being handled: it goes on with the traceback, cause
and context that it has in plain Python."""

from __future__ import annotations

import gc
import sys
import traceback
import weakref

import pytest
import torch

import graphlift
from graphlift.testing.check import check
from graphlift.testing.forced_breaks import check_forced_breaks


class Special(ValueError):
    def __init__(self, text, x):
        super().__init__(text)
        self.x = x


class Manager:
    def __init__(self, log, swallow):
        self.log = log
        self.swallow = swallow

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(kind.__name__)
        self.log.append(lines(trace))
        return self.swallow


def lines(trace):
    return [
        (frame.name, frame.lineno, frame.end_lineno, frame.colno, frame.end_colno)
        for frame in traceback.extract_tb(trace)
        if frame.name != "outcome"
    ]


def raising(x):
    y = x + 1
    raise Special("deep", y)


def through(x):
    return (
        1,
        raising(x * 2),
    )


def reraising(x):
    try:
        return through(x)
    except Special:
        y = x * 3
        raise


def chaining(x):
    try:
        through(x)
    except Special as error:
        y = x * 4
        raise KeyError(y.shape) from error


def generator(x):
    try:
        yield x * 2
        raising(x)
    finally:
        x = x + 1


def caught(x, log):
    try:
        y = through(x)
    except (KeyError, Special) as error:
        y = error.x * 2
        log.append(lines(error.__traceback__))
        kept = error
    return y, kept.args, lines(kept.__traceback__)


def caught_twice(x, log):
    try:
        reraising(x)
    except Special as error:
        log.append(lines(error.__traceback__))
        x = x + 1
    try:
        1 // (x.dim() - 1)
    except ZeroDivisionError:
        log.append(lines(sys.exc_info()[2]))
        x = x * 2
    return x


def chained(x, log):
    try:
        chaining(x)
    except KeyError as error:
        x = x + 1
        log.append(lines(error.__traceback__))
        log.append(lines(error.__cause__.__traceback__))
        log.append(error.__context__ is error.__cause__)
    return x


def nested(x, log):
    try:
        try:
            through(x)
        except Special:
            x = x + 1
            reraising(x)
        finally:
            x = x * 2
    except ValueError as error:
        x = x * 3
        log.append(lines(error.__traceback__))
        log.append(lines(error.__context__.__traceback__))
    return x


def managed(x, log):
    with Manager(log, True):
        x = x + 1
        through(x)
    with Manager(log, False):
        x = x + 1
        through(x)
    return x


def from_generator(x, log):
    try:
        for y in generator(x):
            x = x + y
    except Special as error:
        x = x * 2
        log.append(lines(error.__traceback__))
    return x


def leaving(x, log):
    error = Special("made here", x)
    try:
        raise error
    except Special:
        x = x + 1
        log.append("again")
    raise error


class Ended(StopIteration):
    pass


class Quiet(StopIteration):
    def __init__(self, text):
        self.text = text


def value_of_the_end(x, log):
    def numbers():
        yield 1
        return 9

    found = []
    for make in (lambda: next(exhausted(numbers())), lambda: raise_(Ended(5, 6)), lambda: raise_(Quiet("q"))):
        try:
            make()
        except StopIteration as error:
            y = x * 2
            found.append((error.value, error.args))
            error.args = (3,)
            found.append((error.value, error.args))
    return y, found


def exhausted(generator):
    list(zip(range(1), generator))
    return generator


def raise_(error):
    raise error


PROGRAMS = {
    value_of_the_end: [raise_],
    caught: [through, raising, Special.__init__],
    caught_twice: [reraising, through, raising],
    chained: [chaining, raising],
    nested: [reraising, raising],
    managed: [Manager.__exit__, through],
    from_generator: [raising],
    leaving: [],
}


def outcome(fn):
    log = []
    x = torch.arange(3.0)
    try:
        result = repr(fn(x, log))
    except Exception as error:
        result = type(error), error.args, lines(error.__traceback__)
    return result, log, sys.exc_info()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_cut_before_each_instruction(program):
    codes = [function.__code__ for function in [program, *PROGRAMS[program]]]
    assert check_forced_breaks(program, codes, outcome) > 20


def test_a_handler_with_a_cut_is_captured():
    def program(x):
        try:
            through(x)
        except Special as error:
            y = error.x * 3
            if y.sum().item() > 0:
                y = y + 1
        return y * 2

    sizes = []

    def backend(module, inputs):
        sizes.append(sum(node.op not in ("placeholder", "output") for node in module.graph.nodes))
        return module.forward

    x = torch.ones(2)
    assert torch.equal(graphlift.compile(program, backend=backend)(x), program(x))
    assert sizes == [4, 2]


def test_an_existing_exception_keeps_its_traceback_and_gets_more():
    def program(x, error):
        try:
            raise error
        except ValueError:
            y = x + 1
        return y

    errors = []
    for run in (program, graphlift.compile(program, backend="eager")):
        error = ValueError("kept")
        try:
            raise error
        except ValueError:
            pass
        for _ in range(2):
            run(torch.ones(2), error)
        errors.append(lines(error.__traceback__))
    assert errors[0] == errors[1]
    assert len(errors[0]) == 3


def test_an_exception_that_was_caught_dies_when_nobody_has_it():
    def program(x):
        try:
            through(x)
        except ValueError as error:
            return x + 1, error

    def frames_above(trace):
        return trace.tb_frame.f_back, trace.tb_next.tb_frame.f_back

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    for _ in range(2):
        gc.disable()
        try:
            error = compiled(torch.ones(2))[1]
            assert frames_above(error.__traceback__) == (None, None)
            gone = weakref.ref(error)
            del error
            assert gone() is None
        finally:
            gc.enable()


def test_a_traceback_keeps_nothing_of_the_program():
    def program(x):
        try:
            through(x)
        except Special as error:
            kept = error
        return kept

    error = graphlift.compile(program, backend="eager")(torch.ones(2))
    trace = error.__traceback__
    while trace is not None:
        assert not trace.tb_frame.f_locals
        trace = trace.tb_next


class Empty:
    pass


def test_what_a_failed_look_up_looked_for():
    def program(x):
        empty, found = Empty(), []
        try:
            empty.nothing
        except AttributeError as error:
            found.append((error.name, error.obj is empty))
        try:
            not_defined  # noqa: B018, F821
        except NameError as error:
            found.append(error.name)
        for made in (AttributeError("text", name="given", obj=3), NameError("text"), AttributeError()):
            found.append((made.args, made.name, getattr(made, "obj", "none")))
        return x + 1, found

    assert repr(graphlift.compile(program, backend="eager", fullgraph=True)(torch.ones(2))) == repr(
        program(torch.ones(2))
    )


def test_super_objects_and_methods_of_c_types_behind_a_cut():
    class Loud(list):
        def append(self, value):
            parent = super()
            method = super().append
            if value.sum().item() > 0:
                parent.append(value + 1)
            method(value * 2)

    def program(x):
        loud = Loud()
        loud.append(x)
        return list(loud)

    assert repr(graphlift.compile(program, backend="eager")(torch.ones(2))) == repr(program(torch.ones(2)))


def bare(x):
    y = x + 1
    raise


def nothing_to_raise_again(x):
    try:
        bare(x)
    except RuntimeError as error:
        return x + 1, [entry.lineno for entry in traceback.extract_tb(error.__traceback__)]


def test_the_error_of_a_bare_raise_comes_from_its_line():
    check(nothing_to_raise_again, torch.ones(2), graphs=None, breaks=None)


# --- what callers handle ------------------------------------------------------------------------


def asks(x):
    return x + 1, sys.exc_info()[1], sys.exception()


def catches(x):
    try:
        raise ValueError(1)
    except ValueError as error:
        return x + 1, error.__context__


def catches_a_failing_look_up(x):
    try:
        {}["absent"]
    except KeyError as error:
        return x + 1, error.__context__


def raises_again(x):
    try:
        raise
    except Exception as error:
        return x + 1, error


def asks_behind_a_cut(x):
    graphlift.graph_break()
    return asks(x)


def catches_behind_a_cut(x):
    graphlift.graph_break()
    return catches(x)


@pytest.mark.parametrize(
    "inner",
    [asks, catches, catches_a_failing_look_up, raises_again, asks_behind_a_cut, catches_behind_a_cut],
)
def test_an_exception_that_callers_handle_is_seen(inner):
    def handling(function, x):
        try:
            raise IndexError(7)
        except IndexError as error:
            found = function(x)
            return found, [value is error for value in found]

    compiled = graphlift.compile(inner, backend="eager")
    x = torch.ones(2)
    if inner is not raises_again:
        assert repr(compiled(x)) == repr(inner(x))
    for _ in range(2):
        assert repr(handling(compiled, x)) == repr(handling(inner, x))
    if inner is not raises_again:
        assert repr(compiled(x)) == repr(inner(x))
    check(lambda x: handling(inner, x), x, graphs=None, breaks=None, recompiles=None, warm=False)


def raised_again_behind_a_cut(x):
    try:
        raise ValueError(1)
    except ValueError as error:
        graphlift.graph_break()
        try:
            raise error
        except ValueError as again:
            return x + 1, again is error, again.__context__


def contexts_in_a_circle(x):
    try:
        raise ValueError(1)
    except ValueError as first:
        try:
            graphlift.graph_break()
            raise KeyError(2) from first
        except KeyError as second:
            graphlift.graph_break()
            try:
                raise first
            except ValueError as again:
                return x + 1, again.__context__ is second, second.__context__, second.__cause__ is first


@pytest.mark.parametrize("program", [raised_again_behind_a_cut, contexts_in_a_circle])
def test_no_exception_becomes_its_own_context(program):
    check(program, torch.ones(2), graphs=1, breaks=None)
