"""Exceptions with fields of their own in C; tracebacks read by the program. (PYTEST_DONT_REWRITE)"""

from __future__ import annotations

import errno

import pytest
import torch

import graphlift
from graphlift.testing.check import check

X = torch.arange(3.0)


class Missing(OSError):
    pass


class Coded(OSError):
    def __init__(self, code):
        super().__init__(code, "coded")
        self.code = code


class Made(OSError):
    def __new__(cls, code):
        return super().__new__(cls, code, "made", "file")

    def __init__(self, code):
        self.code = code


class Wrong(ImportError):
    def __init__(self, name):
        super().__init__(f"no {name}", name=name)


def every(e):
    names = (
        "errno",
        "strerror",
        "filename",
        "filename2",
        "name",
        "path",
        "msg",
        "code",
        "lineno",
        "offset",
        "text",
    )
    more = ("encoding", "object", "start", "end", "reason", "args")
    return type(e), str(e), repr(e), [getattr(e, name, "-") for name in (*names, *more)]


def system_errors(x):
    out = []
    for args in (
        (),
        ("text",),
        (2, "no such file"),
        (2, "no such file", "f"),
        (errno.EEXIST, "there", "a", None, "b"),
        (None, None),
        (17,),
        ("a", "b"),
        (1, 2, 3, 4, 5, 6),
        (99999, "unknown"),
    ):
        try:
            raise OSError(*args)
        except OSError as e:
            out.append(every(e))
            out.append(e)
    return x + len(out), out


def subclasses(x):
    out = []
    for make in (
        lambda: Missing(2, "m", "f"),
        lambda: Coded(2),
        lambda: Made(3),
        lambda: PermissionError(1, "p"),
    ):
        try:
            raise make()
        except OSError as e:
            out += [every(e), e, vars(e)]
    return x + 1, out


def imports(x):
    out = [every(ImportError("a", name="n", path="p")), every(ImportError("a", "b")), every(Wrong("m"))]
    for make in (lambda: ImportError("a", nope=1), lambda: OSError(nope=1), lambda: SyntaxError(nope=1)):
        try:
            make()
        except TypeError as e:
            out.append(str(e))
    return x + 1, out, ModuleNotFoundError("m", name="n")


def exits(x):
    out = [SystemExit(), SystemExit(3), SystemExit(1, 2), SystemExit(x.shape)]
    return x + 1, out, [e.code for e in out], out[2].code is out[2].args


def syntax(x):
    out = []
    for args in ((), ("m",), ("m", ("f", 1, 2, "t")), ("m", ("f", 1, 2, "t", 3, 4)), ("m", (1,)), ("m", 3)):
        try:
            e = SyntaxError(*args)
            out += [every(e), e]
        except (TypeError, IndexError) as e:
            out.append((type(e), str(e)))
    return x + 1, out


def unicode_errors(x):
    out = []
    for call in (
        lambda: b"\xff".decode("utf8"),
        lambda: "é".encode("ascii"),
        lambda: UnicodeDecodeError("utf8", b"ab", 0, 1, "why"),
        lambda: UnicodeTranslateError("ab", 0, 1, "why"),
        lambda: UnicodeEncodeError("utf8", "ab", 0, 1),
    ):
        try:
            out.append(every(call()))
        except (UnicodeError, TypeError) as e:
            out += [every(e), e]
    return x + 1, out


def notes(x):
    e = ValueError("a")
    e.add_note("n")
    try:
        e.add_note(3)
    except TypeError as wrong:
        return x + 1, str(wrong), e, repr(ValueError([KeyError(1)], "a"))


def lines(x):
    def inner():
        raise KeyError(1)

    try:
        inner()
    except KeyError as e:
        trace = e.__traceback__
        kept = e
    same = kept.__traceback__ is trace, trace.tb_next is not trace, trace is not None
    return (
        x + 1,
        trace.tb_next.tb_lineno - trace.tb_lineno,
        trace.tb_next.tb_next,
        same,
        ValueError().__traceback__,
    )


def traces_written(x):
    try:
        raise KeyError(1)
    except KeyError as e:
        first = e
    second = ValueError(2).with_traceback(first.__traceback__)
    third = ValueError(3)
    third.__traceback__ = None
    try:
        raise first.with_traceback(None)
    except KeyError as e:
        again = e.__traceback__.tb_next
    out = []
    for value in (3, first):
        try:
            third.__traceback__ = value
        except TypeError as e:
            out.append(str(e))
    return x + 1, second, third, again, out


PROGRAMS = (
    system_errors,
    subclasses,
    imports,
    exits,
    syntax,
    unicode_errors,
    notes,
    lines,
    traces_written,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_captured(program):
    check(program, X, graphs=1)


def test_a_traceback_that_was_set_is_the_others_behind_a_cut():
    def program(x):
        try:
            raise KeyError(1)
        except KeyError as e:
            first = e
        second = ValueError(2).with_traceback(first.__traceback__)
        y = x + 1
        graphlift.graph_break()
        return y, second.__traceback__ is first.__traceback__

    check(program, X, graphs=1, breaks=1)
