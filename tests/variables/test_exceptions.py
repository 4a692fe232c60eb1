"""Exceptions: raised, caught, chained, of the user's classes, leaving the program. (PYTEST_DONT_REWRITE)"""

from __future__ import annotations

import sys
import traceback
import unittest

import pytest
import torch

import graphlift
from graphlift.testing.check import check, check_fresh

X = torch.arange(3.0)


class Custom(Exception):
    def __init__(self, code, extra=3):
        self.code = code
        self.extra = extra


class Told(ValueError):
    def __init__(self, text, code=3):
        super().__init__(text)
        self.code = code

    def __str__(self):
        return f"{self.args[0]}!{self.code}"


def caught(x):
    try:
        raise ValueError("a", 3)
    except ValueError as e:
        return x + e.args[1], str(e), repr(e), type(e) is ValueError


def users(x):
    try:
        try:
            raise Custom(4, extra=5)
        except KeyError:
            pass
        finally:
            x = x + 1
    except (TypeError, Custom) as e:
        return x * e.code, e.args, e.extra, isinstance(e, Exception)


def told(x):
    try:
        raise Told("hey")
    except ValueError as e:
        return x + e.code, str(e), f"{e}", e.args


def chained(x):
    try:
        try:
            raise ValueError(1)
        except ValueError as e:
            raise KeyError(2) from e
    except KeyError as k:
        first = (
            type(k.__cause__) is ValueError,
            k.__cause__.args,
            k.__context__ is k.__cause__,
            k.__suppress_context__,
        )
    try:
        try:
            raise ValueError(1)
        except ValueError:
            raise KeyError(2)
    except KeyError as k:
        second = k.__cause__, k.__context__.args, k.__suppress_context__
    return x + 1, first, second


def reraised(x):
    log = []

    def f():
        try:
            raise KeyError("k")
        except KeyError:
            log.append(1)
            raise
        finally:
            log.append(2)

    try:
        f()
    except Exception as e:
        log.append(type(e).__name__)
        log.append(e.args)
    else:
        log.append("else")
    return x + 1, log


def texts(x):
    out = []
    for call in (
        lambda: {}["k"],
        lambda: [][3],
        lambda: None.nope,
        lambda: 1 + "s",
        lambda: int("x"),
        lambda: (_ for _ in ()).nope,
        lambda: undefined_name,  # noqa: F821
        lambda: [1, 2].index(3),
        lambda: 1 / 0,
    ):
        try:
            call()
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    return x + 1, out


def assertion(x):
    try:
        assert x.shape[0] == 4, "bad"
    except AssertionError as e:
        return x + 1, str(e)


def stop_iteration(x):
    it = iter([1, 2])
    out = []
    while True:
        try:
            out.append(next(it))
        except StopIteration as e:
            return x + 1, out, e.value, next(it, "d")


def info(x):
    before = sys.exc_info()
    try:
        raise KeyError(3)
    except KeyError as e:
        kind, value, _ = sys.exc_info()
        inside = kind is KeyError, value is e, sys.exception() is e
    return x + 1, before, inside, sys.exc_info()


def not_exceptions(x):
    out = []
    for call in (lambda: throw(3), lambda: throw(int), lambda: catch(3)):
        try:
            call()
        except TypeError as e:
            out.append(str(e))
    return x + 1, out


def throw(what):
    raise what


def catch(what):
    try:
        raise ValueError
    except what:
        pass


def returned(x):
    e = Told("r")
    e.payload = x * 2
    return e.payload + 1, e


def notes(x):
    try:
        raise ValueError("n")
    except ValueError as e:
        e.add_note("one")
        e.add_note("two")
        return x + 1, e.__notes__


@pytest.mark.parametrize(
    "program",
    [
        caught,
        users,
        told,
        chained,
        reraised,
        texts,
        assertion,
        stop_iteration,
        info,
        not_exceptions,
        returned,
        notes,
    ],
    ids=lambda f: f.__name__,
)
def test_program(program):
    check(program, X)


def raises_late(x, log):
    y = x + 1
    log.append(1)
    raise Custom(y.shape[0])


def test_leaving():
    check(raises_late, X, [], graphs=None, breaks=None)


def test_unittest_asserts_that_something_is_raised():
    case = unittest.TestCase()

    def program(x):
        with case.assertRaises(ValueError) as context:
            int("a")
        case.assertRaises(KeyError, {}.__getitem__, 1)
        return x + 1, context.exception, context.exception.__traceback__, str(context.exception)

    checked = check(program, torch.ones(2))
    assert checked.result[2] is None


def test_a_traceback_is_dropped_and_put_back():
    def program(x):
        try:
            raise ValueError(1)
        except ValueError as error:
            first = error.__traceback__
            error.with_traceback(None)
            dropped = error.__traceback__
            try:
                raise error
            except ValueError:
                second = error.__traceback__
            error.with_traceback(first)
            return x + 1, error, dropped, error.__traceback__ is second

    check(program, torch.ones(2), breaks=None, graphs=None)


def test_frames_of_an_error_from_outside_are_really_cleared():
    def fails(held):
        raise ValueError

    def make():
        def program(x):
            held = []
            try:
                graphlift.disable(fails)(held)
            except ValueError as error:
                traceback.clear_frames(error.__traceback__)
                return x + 1, sys.getrefcount(held)

        return program, [torch.ones(2)]

    check_fresh(make, breaks=None, graphs=None)


def test_notes_that_are_no_list():
    def program(x):
        e = ValueError("a")
        e.__notes__ = 42
        try:
            e.add_note("n")
        except TypeError as wrong:
            return x + 1, str(wrong), e.__notes__

    check(program, X, graphs=1)


def test_where_frames_of_a_traceback_stand():
    def swallowed_by_nobody():
        try:
            1 / 0
        except TypeError:
            pass

    def finally_behind():
        try:
            1 / 0
        finally:
            pass

    def program(x):
        out = []
        for call in (swallowed_by_nobody, finally_behind):
            try:
                call()
            except ZeroDivisionError as e:
                inner = e.__traceback__.tb_next
                first = call.__code__.co_firstlineno
                out.append((inner.tb_lineno - first, inner.tb_frame.f_lineno - first))
        return x + 1, out

    check(program, X, graphs=None, breaks=None, recompiles=None, warm=False)


def test_code_without_lines_shows_none():
    def failing():
        1 / 0

    failing.__code__ = failing.__code__.replace(co_linetable=b"\xf8\xf8\xf8\xf9\xf8\xf8\xf8")

    def program(x):
        try:
            failing()
        except ZeroDivisionError as e:
            inner = e.__traceback__.tb_next
            return x + 1, inner.tb_lineno, inner.tb_frame.f_lineno

    check(program, X, graphs=None, breaks=None)


def test_frames_of_a_traceback_know_the_names_of_locals():
    def misspelt():
        blech = None  # noqa: F841
        print(bluch)  # noqa: F821

    def program(x):
        try:
            misspelt()
        except NameError as e:
            return x + 1, e.__traceback__.tb_next.tb_frame.f_code.co_varnames

    check(program, X, graphs=None, breaks=None)


def test_a_capture_that_finds_no_room_leaves_the_program_as_it_is():
    def recurse():
        try:
            return 1 / 0
        except ZeroDivisionError:
            return recurse()

    def program(x):
        limit = sys.getrecursionlimit()
        depth = len(traceback.extract_stack())
        y = x + 1
        try:
            sys.setrecursionlimit(depth + 12)
            try:
                recurse()
            except RecursionError as e:
                text = str(e)
        finally:
            sys.setrecursionlimit(limit)
        return y, text, sys.getrecursionlimit() == limit

    check(program, X, graphs=None, breaks=None, recompiles=None, warm=False)


def test_links_between_exceptions_are_checked():
    def program(x):
        e, f = ValueError(1), KeyError(2)
        e.__cause__ = f
        out = [e.__suppress_context__]
        e.__suppress_context__ = False
        for name, value in (("__cause__", 3), ("__context__", "a"), ("__suppress_context__", 1), ("args", 3)):
            try:
                setattr(e, name, value)
            except TypeError as wrong:
                out.append(str(wrong))
        for name in ("__cause__", "__context__", "__traceback__", "args"):
            try:
                delattr(e, name)
            except TypeError as wrong:
                out.append(str(wrong))
        e.args = [1, 2]
        return x + 1, out, e, str(e)

    check(program, X, graphs=1)


def test_devices_that_there_are_not():
    def program(x):
        out = []
        for call in (lambda: x.to("nodev"), lambda: torch.zeros(2, device="nodev")):
            try:
                call()
            except RuntimeError as e:
                out.append(str(e))
        return x + 1, out

    check(program, X, graphs=1)
