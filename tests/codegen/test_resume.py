"""Functions run as chains of segments do what they do plainly: results, errors, tracebacks, side effects."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

Log = list[Any]


def cuttable(function: Any) -> Any:
    """In programs: functions that are cut, too, when the program is."""
    return _cut(function)


def _cut(function: Any) -> Any:
    return function


class Manager:
    """Logs what happens to it."""

    def __init__(self, log: Log, name: str, suppress: bool = False, fail: str = "") -> None:
        self.log, self.name, self.suppress, self.fail = log, name, suppress, fail

    def __enter__(self) -> str:
        self.log.append(f"enter {self.name}")
        if self.fail == "enter":
            raise OSError("enter")
        return self.name

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.log.append((f"exit {self.name}", kind and kind.__name__, str(error)))
        if self.fail == "exit":
            raise OSError("exit")
        return self.suppress


PROGRAMS: list[Callable[[Log], Any]] = []


def program(function: Callable[[Log], Any]) -> Callable[[Log], Any]:
    PROGRAMS.append(function)
    return function


# --- values, loops, branches ------------------------------------------------------------------------


@program
def expressions(log):
    a, b, *rest = range(6)
    c = (a + b * 2 - (rest[0] << 1)) ** 2 if a < b <= 3 and not rest == [] else -1
    d = {"x": [a, b, {c, 2}], **{"y": (1, *rest)}}
    e = [*rest, *d, f"{a!r:>{b + 4}} {c:05}"]
    first, (second, third) = d["x"][0], d["y"][1:3]
    d["x"][1] += 5
    del d["x"][0]
    rest[1:2] = [7, 8]
    return a, b, rest, c, d, e, first, second, third, ~a, -b, +b, e is d, a in rest, b not in rest


@program
def deep_stack(log):
    def f(*args, **kwargs):
        log.append((args, kwargs))
        return len(args)

    return (
        1,
        [f(1, f(2, x=f(3), *[4, f(5, f(6), y=f())]), **{"z": f(7) + f(8) * f(9, *(1, 2))})],
        f(10)[1:] if 0 else 3,
    )


@program
def methods(log):
    text = "a,b".split(",")
    log.append("x".join(text).upper().center(9, "*"))
    log.sort(key=str)
    getattr(log, "append")("end")
    return sorted([3, 1, 2], key=lambda x: -x, reverse=bool(text)), max(1, 2, key=None)


@program
def nested_loops(log):
    total = 0
    for i in range(4):
        for j in (1, 2, 3):
            if j == 2 and i == 1:
                continue
            if i == 3:
                break
            total += i * j
        else:
            log.append(("inner else", i))
        while total > 5:
            total -= 4
            if total == 2:
                break
        else:
            log.append(("while else", total))
    else:
        log.append("outer else")
    return total


@program
def logic(log):
    results = []
    for a in (0, 1, None, [], "x"):
        for b in (0, 2):
            results.append(
                (a and b, a or b, not a, a if a is not None else b, (a and b) or (b and 5), 0 < b < 3)
            )
            while a is None:
                break
    return results


@program
def star_and_slices(log):
    x = list(range(10))
    *start, last = x[1:-1]
    head, *middle, tail = x
    x[::2], y = [0] * 5, x[slice(1, 3)]
    return start, last, head, middle, tail, x, y, {**{"a": 1}, "b": 2}, [*x, *y], {*x}, (*x, 1)


@program
def global_names(log):
    global written
    written = 1
    written += len(log)
    log.append(written)
    del written
    try:
        return written
    except NameError as error:
        return str(error)


@program
def imports(log):
    import collections.abc
    import sys as s
    from os import path as p
    from os import sep

    return collections.abc.Sized, p.__name__, sep, s is sys


@program
def deleted_locals(log):
    x = 1
    y = x
    del x
    try:
        return x, y
    except UnboundLocalError as error:
        return str(error)


@program
def maybe_unbound(log):
    for flag in (False, True):
        try:
            if flag:
                z = 3
            log.append(z)
        except UnboundLocalError as error:
            log.append(str(error))
    return z


@program
def matching(log):
    class Point:
        __match_args__ = ("x", "y")

        def __init__(self, x, y):
            self.x, self.y = x, y

    for subject in (1, "a", [1, 2, 3], {"k": 1, "z": 2}, Point(1, [2]), Point(5, 6), None, (1, (2, 3))):
        match subject:
            case 1 | "a" as which:
                log.append(which)
            case [1, (2, 3) as pair]:
                log.append(pair)
            case [first, *others]:
                log.append((first, others))
            case {"k": value, **more}:
                log.append((value, more))
            case Point(x, y=[w]) if x:
                log.append((x, w))
            case Point(x=x):
                log.append(x)
            case _:
                log.append("other")


@program
def asserting(log):
    assert log == [], "not reached"
    try:
        assert log, ("message", 1)
    except AssertionError as error:
        return error.args


@program
def class_in_function(log):
    base = dict

    class C(base, metaclass=type):
        a: int = 5

        def m(self):
            return self.a, __class__.__name__

    return C().m(), C.__qualname__, C.__mro__[1]


@program
def defaults_and_annotations(log):
    def f(a, b=len(log), *, c: int = 3, d="x") -> str:
        return a, b, c, d

    return f(1), f(1, 2, c=4), f.__annotations__, (lambda *a, k=1: (a, k))(1, 2)


# --- cells --------------------------------------------------------------------------------------------


@program
def closures(log):
    n = 1

    def bump(by):
        nonlocal n
        n += by
        return n

    functions = [lambda: i * n for i in range(3)]
    log.append(bump(2))
    n *= 10
    log.append([f() for f in functions])
    del bump
    return n


@program
def cell_argument(log):
    @cuttable
    def outer(a, b=2, *c, d, **e):
        def inner():
            return a, b, c, d, e

        a += 1
        c += (9,)
        return inner()

    return outer(1, d=4), outer(1, 2, 3, d=4, z=5)


@program
def free_variables(log):
    x, y = 1, [2]

    @cuttable
    def middle():
        nonlocal x

        @cuttable
        def inner():
            nonlocal x
            x += 1
            y.append(x)
            return x

        x += 10
        return inner(), inner(), x

    return middle(), x, y


@program
def unbound_free(log):
    @cuttable
    def inner():
        return later

    try:
        inner()
    except NameError as error:
        log.append((type(error).__name__, str(error)))
    later = 5
    log.append(inner())
    del later
    try:
        return later
    except NameError as error:
        return type(error).__name__, str(error)


@program
def comprehensions(log):
    x = "outer"
    a = [x for x in range(3)]
    b = {k: [v * len(a) for v in range(k)] for k in a if k}
    c = {y for y in "abc"}
    d = sum(x for x in a)
    e = [[(lambda: z)() for z in range(w)] for w in range(3)]
    try:
        [1 // x for x in (1, 0)]
    except ZeroDivisionError:
        log.append(x)
    return x, a, b, c, d, e


@program
def comprehension_over_cells(log):
    x = 5
    f = lambda: x
    a = [lambda: x for x in range(3)]
    return f(), [g() for g in a], [x + y for y in range(x)]


@program
def supers(log):
    class A:
        def m(self, x):
            log.append(("A", x))
            return x

        @classmethod
        def make(cls, *args):
            return cls, args

    class B(A):
        @cuttable
        def m(self, x):
            first = super().m(x + 1)
            y = [super(B, self).m(z) for z in range(2)]

            def inner():
                return super(__class__, self).m(x)

            return first, y, inner(), super().m, __class__

        @classmethod
        @cuttable
        def make(cls, *args):
            return super().make(1, *args)

    class C(B):
        @cuttable
        def m(self, x):
            captured = lambda: self
            try:
                return super().m(x)[:3], captured() is self
            finally:
                log.append(super().m(0)[0])

    return C().m(3), C.make(2)[1], C.make(2)[0] is C


@program
def looks_at_its_frame(log):
    a, unused = 1, 2
    cell = 3
    f = lambda: cell
    first = dict(locals())
    second = eval("a + unused + cell")
    try:
        raise ValueError
    except ValueError as error:
        third = sorted(locals())
    return (
        first.pop("f") is f,
        sorted(map(str, first.items())),
        second,
        third,
        sorted(dir()),
        sys._getframe().f_code.co_name,
    )


@program
def local_names_of_cells(log):
    outer = [1]

    @cuttable
    def inner(a):
        b = a + 1
        keep = lambda: (a, b)
        keep()
        outer.append(b)
        for value in (1, 2):
            names = {k: v for k, v in sys._getframe().f_locals.items() if k not in ("keep", "names")}
        return sorted(map(str, names.items()))

    return inner(5)


# --- exceptions ----------------------------------------------------------------------------------------


@program
def try_except_else_finally(log):
    for divisor in (1, 0, "x", None):
        try:
            log.append(10 // divisor)
        except ZeroDivisionError:
            log.append("zero")
        except (TypeError, ValueError) as error:
            log.append(str(error))
            if divisor is None:
                continue
        else:
            log.append("else")
        finally:
            log.append("finally")
    return "end"


@program
def return_through_finally(log):
    for n in range(3):
        try:
            try:
                if n == 1:
                    return f"returned {n}"
            finally:
                log.append(n)
        finally:
            log.append("outer")


@program
def return_in_handlers(log):
    try:
        raise KeyError(1)
    except KeyError:
        try:
            raise IndexError(2)
        except IndexError:
            log.append(sys.exc_info()[0])
            return log[0], sys.exception().__context__.args


@program
def finally_overrides(log):
    while True:
        try:
            raise ValueError("lost")
        finally:
            log.append(type(sys.exception()))
            break
    try:
        return 1
    finally:
        return 2


@program
def bare_raise(log):
    try:
        try:
            {}["missing"]
        except KeyError:
            log.append("handling")
            raise
    except KeyError as error:
        log.append(error.args)
    try:
        raise
    except RuntimeError as error:
        return str(error)


@program
def uncaught(log):
    log.append("before")
    x = [1, 2]
    return x[len(log) + 3]


@program
def chained(log):
    try:
        try:
            int("x")
        except ValueError as error:
            raise KeyError("from") from error
    except KeyError as outer:
        try:
            raise IndexError("second")
        except IndexError:
            try:
                [].pop()
            finally:
                raise TypeError("third")


@program
def suppressed_context(log):
    try:
        raise ValueError(1)
    except ValueError:
        raise KeyError(2) from None


@program
def raised_again_elsewhere(log):
    saved = None
    for n in range(3):
        try:
            if saved is None:
                raise ValueError(n)
            raise saved
        except ValueError as error:
            saved = error
            log.append(len(traceback.extract_tb(error.__traceback__)))
    raise saved


@program
def handlers_restore_state(log):
    def state():
        return sys.exc_info()[0]

    log.append(state())
    try:
        raise ValueError
    except ValueError:
        log.append(state())
        try:
            raise KeyError
        except KeyError:
            log.append(state())
        log.append(state())
        for n in range(2):
            try:
                raise IndexError
            except IndexError:
                log.append(state())
                continue
        log.append(state())
    log.append(state())


@program
def no_matching_handler(log):
    try:
        try:
            raise ValueError("deep")
        except KeyError:
            log.append("wrong")
        finally:
            log.append(sys.exc_info()[0])
    except LookupError:
        log.append("wrong, too")


@program
def bad_handler(log):
    try:
        raise ValueError(1)
    except 5:
        pass


@program
def withs(log):
    with Manager(log, "a") as a, Manager(log, "b", suppress=True) as b:
        log.append((a, b))
        with Manager(log, "c") as c:
            log.append(c)
            raise ValueError("in c")
        log.append("not reached")
    for n in range(2):
        with Manager(log, f"loop {n}"):
            if n == 0:
                continue
            return log[0]


@program
def with_that_does_not_suppress(log):
    with Manager(log, "a"):
        log.append(1)
        with Manager(log, "b"):
            x = 5
            raise ValueError(x)


@program
def failing_exits(log):
    try:
        with Manager(log, "a", fail="exit"):
            log.append("body")
    except OSError as error:
        log.append(error.__context__)
    try:
        with Manager(log, "b"), Manager(log, "c", fail="enter"):
            log.append("no")
    except OSError as error:
        log.append(str(error))
    with Manager(log, "d", fail="exit"):
        raise KeyError("inside")


@program
def everything_nested(log):
    for n in range(4):
        try:
            with Manager(log, "m", suppress=n == 1):
                try:
                    if n:
                        raise ValueError(n)
                    log.append("fine")
                except KeyError:
                    log.append("no")
                finally:
                    try:
                        [][n]
                    except IndexError as error:
                        log.append((n, type(error.__context__).__name__))
                    log.append(type(sys.exception()).__name__)
        except ValueError as error:
            try:
                raise KeyError(n) from error
            except KeyError as second:
                log.append((second.__cause__ is error, second.__context__ is error))
                if n == 3:
                    raise


@program
def groups(log):
    def fail(*errors):
        raise ExceptionGroup("several", list(errors))

    for errors in ([ValueError(1)], [ValueError(1), KeyError(2)], [KeyError(3), OSError(4)]):
        try:
            try:
                fail(*errors)
            except* ValueError as group:
                log.append((sys.exc_info()[0].__name__, group.exceptions[0].args, sys.exception() is group))
            except* KeyError:
                log.append(("key", len(sys.exception().exceptions)))
        except ExceptionGroup as rest:
            log.append([type(error).__name__ for error in rest.exceptions])
    try:
        fail(ValueError(5))
    except* ValueError:
        raise KeyError("in the handler")


@program
def errors_in_called_functions(log):
    @cuttable
    def divide(a, b):
        try:
            return a // b
        except TypeError:
            log.append("type")
            raise
        finally:
            log.append((a, b))

    @cuttable
    def call(*args, **kwargs):
        log.append("call")
        result = [divide(*args, **kwargs), divide(4, b=2)]
        return result

    log.append(call(6, 3))
    try:
        call(1, "x")
    except TypeError as error:
        log.append(str(error))
    try:
        return log[0] + divide(a=1, b=0)
    finally:
        log.append("finally")


@program
def recursion(log):
    @cuttable
    def factorial(n):
        if n < 2:
            log.append(traceback.extract_stack()[-1].lineno - factorial_line)
            return 1
        return n * factorial(n - 1)

    factorial_line = sys._getframe().f_lineno
    return factorial(5)


@program
def many_locals(log):
    a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t = range(20)
    u = v = w = x = a
    y, z = t, s
    aa = bb = y
    cc, dd = bb, aa
    for a in range(2):
        ee, ff = (dd, cc)
        log.append((ee, ff, a, t))
        try:
            gg, hh = z, y
            t = hh // a
        except ZeroDivisionError:
            ii, jj = gg, hh
            log.append((ii, jj))
    return a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, bb, cc, dd


# --- comparing -----------------------------------------------------------------------------------------

HOSTS_OWN = {"outcome", "run", "act", "bridge", "start", "started"}


def described(error: BaseException | None) -> Any:
    """An exception as data: kind, words, where it passed, and those that belong to it."""
    if error is None:
        return None
    places = [
        (entry.name, entry.lineno, entry.colno, entry.end_colno)
        for entry in traceback.extract_tb(error.__traceback__)
        if entry.name not in HOSTS_OWN
    ]
    linked = (described(error.__cause__), described(error.__context__), error.__suppress_context__)
    return type(error).__name__, str(error), places, linked


def outcome(function: Any, *args: Any) -> Any:
    try:
        result: Any = ("returned", function(*args))
    except Exception as error:
        result = ("raised", described(error))
    assert sys.exc_info() == (None, None, None)
    return shown([result, *args])


def shown(value: Any) -> str:
    return "\n".join(map(str, value)).replace("_run.<locals>", "")


def plain_outcome(function: Any) -> Any:
    return normal(outcome(function, []))


def normal(text: str) -> str:
    """Without addresses."""
    import re

    return re.sub(r"0x[0-9a-f]+", "0x", text)


all_programs = pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)


@all_programs
def test_one_step_after_the_other(function: Any, host: Any) -> None:
    expected = plain_outcome(function)
    with cutting(host):
        run = host.cut(function)
        assert normal(outcome(run, [])) == expected
        assert normal(outcome(run, [])) == expected
        with host.without_calls():
            assert normal(outcome(run, [])) == expected


@all_programs
def test_the_rest_in_one_piece_from_every_step(function: Any, host: Any) -> None:
    expected = plain_outcome(function)
    with cutting(host):
        run = host.cut(function)
        assert normal(outcome(run, [])) == expected
        chains = list(host.chains.values())
        for chain in chains:
            for index in sorted({shape.index for shape in chain.names}):
                with chain.resumed_at(index):
                    assert normal(outcome(run, [])) == expected, index


class cutting:
    def __init__(self, host: Any) -> None:
        self.host = host

    def __enter__(self) -> None:
        global _cut
        self.plain, _cut = _cut, self.host.cut

    def __exit__(self, *error: Any) -> None:
        global _cut
        _cut = self.plain
