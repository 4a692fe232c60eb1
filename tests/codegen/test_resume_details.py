"""Segments at their edges: what is refused, shared, released; signals, exception state, size, real code."""

from __future__ import annotations

import _thread
import argparse
import difflib
import gc
import json.decoder
import json.encoder
import signal
import sys
import textwrap
import traceback
import weakref
from collections import defaultdict
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import pytest

from graphlift import _C
from graphlift.bytecode.decode import decode
from graphlift.bytecode.verify import verify_code
from graphlift.codegen import originals
from graphlift.codegen.originals import original
from graphlift.codegen.resume import (
    Shape,
    call_code,
    exits_of,
    operands_of,
    resume_code,
    segment_function,
    step_code,
)
from graphlift.errors import InternalError

ALWAYS = _C.GuardProgram([])


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT is a KeyboardInterrupt, also where a shell had it ignored."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


def index_of(function: Any, op: str, nth: int = 0) -> int:
    decoded = decode(function.__code__)
    return [at for at in range(len(decoded)) if decoded.op(at) == op][nth]


def depth_at(function: Any, index: int) -> int:
    depth = original(function.__code__).depths[index]
    assert depth is not None
    return depth


# --- what is refused -------------------------------------------------------------------------------


def test_generators_and_class_bodies_are_refused() -> None:
    def generator():
        yield 1

    async def coroutine():
        pass

    body = next(c for c in compile("class C:\n x = 1", "", "exec").co_consts if hasattr(c, "co_code"))
    for code in (generator.__code__, coroutine.__code__, body):
        with pytest.raises(InternalError, match="only the code of plain functions"):
            exits_of(code, Shape(original(code).first + 1, (), ()))


def test_shapes_that_cannot_be_are_refused() -> None:
    def f(x):
        y = x + 1
        return y

    code = f.__code__
    with pytest.raises(InternalError, match="behind the prologue"):
        resume_code(code, Shape(0, ("x",), ()))
    with pytest.raises(InternalError, match="the stack is 0 deep, not 1"):
        resume_code(code, Shape(1, ("x",), ("value",)))
    with pytest.raises(InternalError, match="live are"):
        resume_code(code, Shape(1, ("x", "y"), ()))
    unknown = len(decode(code))
    with pytest.raises(InternalError, match="behind the prologue"):
        exits_of(code, Shape(unknown, (), ()))


def test_calls_say_what_they_take() -> None:
    def f(g):
        return [g(1, 2)]

    index = index_of(f, "CALL")
    operands = operands_of(decode(f.__code__), index)
    assert operands == depth_at(f, index) == 4
    shape = Shape(index, (), ())
    exits = exits_of(f.__code__, shape, operands)
    assert [leave.kind for leave in exits] == ["next"] and exits[0].shape.stack == ("value",)
    with pytest.raises(InternalError, match="the stack is 4 deep, not 3"):
        call_code(f.__code__, shape, operands - 1, exits, ["target"])
    with pytest.raises(KeyError):
        operands_of(decode(f.__code__), index + 1)


def test_super_needs_its_first_argument_in_place() -> None:
    class C:
        def m(self):
            me = self
            del self
            return super().m() or me

        def n(*args):
            x = args
            return super().n(x)

    index = index_of(C.m, "DELETE_FAST") + 1
    live = tuple(name for name in original(C.m.__code__).alive.before(index) if name != "self")
    with pytest.raises(InternalError, match="another first argument"):
        resume_code(C.m.__code__, Shape(index, live, ()))
    with pytest.raises(InternalError, match="another first argument"):
        resume_code(C.n.__code__, Shape(index_of(C.n, "RESUME") + 1, ("args", "__class__"), ()))


# --- exits -------------------------------------------------------------------------------------------


def test_an_unbound_local_is_no_parameter_behind_the_step() -> None:
    def f(x):
        del x
        return x

    index = index_of(f, "DELETE_FAST")
    (leave,) = exits_of(f.__code__, Shape(index, ("x",), ()))
    assert leave.shape == Shape(index + 1, (), ())


def test_handlers_are_told_the_line_that_failed() -> None:
    def f(m):
        with m:
            m.a = m.b
            m.c = m.d

    shapes = set()
    for at in range(index_of(f, "LOAD_ATTR"), index_of(f, "STORE_ATTR", 1) + 1):
        alive = original(f.__code__).alive.before(at)
        leave = exits_of(f.__code__, Shape(at, alive, ("value",) * depth_at(f, at)))[-1]
        assert leave.kind == "handler" and leave.shape.stack[0] == leave.shape.stack[2] == "value"
        shapes.add(leave.shape)
    assert len(shapes) == 2


def test_a_method_is_pushed_in_one_form_only() -> None:
    def f(x):
        return x.m(1)

    index = next(at for at in range(9) if decode(f.__code__).op(at) in ("LOAD_METHOD", "LOAD_ATTR"))
    (leave,) = exits_of(f.__code__, Shape(index, (), ("value",)))
    assert sorted(leave.shape.stack) == ["null", "value"]
    assert len(leave.shape.parameters) == 1


# --- sharing and lifetime ----------------------------------------------------------------------------


def test_resume_code_is_shared_and_goes_with_the_users_code() -> None:
    scope: dict[str, Any] = {}
    exec("def f(x):\n y = x + 1\n return y * 2", scope)
    code = scope["f"].__code__
    shape = Shape(index_of(scope["f"], "STORE_FAST"), (), ("value",)) if sys.version_info < (3, 13) else None
    shape = shape or Shape(index_of(scope["f"], "BINARY_OP"), (), ("value", "value"))
    made = resume_code(code, shape)
    assert resume_code(code, Shape(*shape)) is made
    reference, rows = weakref.ref(made), len(originals._known)
    assert code in originals._known
    del made, code, scope
    gc.collect()
    assert reference() is None and len(originals._known) < rows


def test_an_exception_does_not_outlive_its_handler(host: Any) -> None:
    class Error(Exception):
        pass

    def f(log):
        try:
            raise Error
        except Error as error:
            log.append(weakref.ref(error))
        return log[0]() is None

    assert f([])
    gc.disable()
    try:
        assert host.cut(f)([])
    finally:
        gc.enable()


# --- exception state -----------------------------------------------------------------------------------


def test_inside_a_handler_of_the_caller(host: Any) -> None:
    def f(log):
        log.append(sys.exception())
        try:
            [].pop()
        except IndexError as error:
            log.append(error.__context__)
            try:
                raise
            except LookupError:
                log.append(sys.exception() is error)
        log.append(sys.exception())
        raise KeyError("new")

    first = ValueError("first")
    run = host.cut(f)
    log: list[Any] = []
    try:
        raise first
    except ValueError:
        with pytest.raises(KeyError) as caught:
            run(log)
        assert sys.exception() is first
    assert log == [first, first, True, first] and caught.value.__context__ is first


def test_the_line_that_failed_is_put_back_when_an_exit_does_not_suppress(host: Any) -> None:
    class Manager:
        def __enter__(self):
            return None

        def __exit__(self, *error):
            return False

    def f(manager):
        with manager:
            with manager:
                raise ValueError

    def frame_line(run: Any) -> int:
        try:
            run(Manager())
        except ValueError as error:
            frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
            lines = [frame.f_lineno for frame in frames if frame.f_code.co_name == "f"]
        assert len(lines) == 1
        return lines[0]

    run = host.cut(f)
    expected = frame_line(f)
    assert expected == f.__code__.co_firstlineno + 3
    assert frame_line(run) == expected
    (chain,) = host.chains.values()
    for shape in list(chain.names):
        with chain.resumed_at(shape.index):
            assert frame_line(run) == expected


class Witness:
    """Something whose end is noticed."""


@pytest.mark.parametrize(
    "op, nth, log_then",
    [
        ("LOAD_GLOBAL", 0, ["KeyboardInterrupt"]),
        ("FOR_ITER", 0, ["KeyboardInterrupt"]),
        ("STORE_SUBSCR", 0, ["KeyboardInterrupt"]),
        ("LOAD_GLOBAL", 1, ["KeyboardInterrupt"]),
        ("RAISE_VARARGS", 0, ["KeyboardInterrupt"]),
        ("PUSH_EXC_INFO", 0, []),  # the handler has begun, and does not handle its own errors
    ],
)
def test_a_signal_on_the_way_in_meets_the_users_handlers(
    op: str, nth: int, log_then: list[str], host: Any, interruptible: None
) -> None:
    """The resume code looks for signals where the user's handlers are in force, and at the user's line."""

    def f(log):
        try:
            for _ in range(2):
                log[0] = int
                raise ValueError
        finally:
            log.append(type(sys.exception()).__name__)

    run = host.cut(f)
    with pytest.raises(ValueError):
        run([0])
    (chain,) = host.chains.values()
    index = index_of(f, op, nth)
    (shape,) = [shape for shape in chain.names if shape.index == index]
    settings = object()
    rest = segment_function(resume_code(f.__code__, shape), f.__globals__)
    target = _C.CompiledFunction(rest, settings, lambda compiled, params: NotImplemented)
    # With an entry, no Python code runs on the way that could see the signal earlier.
    _C.cache_of(rest.__code__, settings).add(_C.Entry(ALWAYS, rest))
    chain.namespace[chain.names[shape]] = with_signal(target, len(shape.parameters))
    log: list[Any] = [0]
    with pytest.raises(KeyboardInterrupt) as caught:
        run(log)
    (place,) = [entry for entry in traceback.extract_tb(caught.tb) if entry.name == "f"]
    behind = op == "PUSH_EXC_INFO"  # it has no line, and has been carried out when the signal is seen
    assert place.lineno == decode(f.__code__).line(index + behind)
    assert log[1:] == log_then
    assert sys.exc_info() == (None, None, None)


def with_signal(target: _C.CompiledFunction, count: int) -> _C.CompiledFunction:
    """A segment that jumps to `target` with a signal pending that no Python code has seen yet."""
    references: list[Any] = []
    names = ", ".join(f"p{at}" for at in range(count))
    scope: dict[str, Any] = {"Witness": Witness, "ref": weakref.ref, "references": references}
    scope |= {"Jump": _C.Jump, "target": target}
    # A callable in C that ignores what it is given.
    scope["interrupt"] = defaultdict(_thread.interrupt_main).__getitem__
    # The witness dies when this frame has been left.
    text = f"""
def jump({names}):
    witness = Witness()
    reference = ref(witness, interrupt)
    hash(reference)
    references.append(reference)
    return Jump(target, ({names}{"," if names else ""}))
"""
    exec(text, scope)
    return _C.CompiledFunction(scope["jump"], object(), lambda compiled, params: NotImplemented)


def test_called_functions_are_entered_through_call_code(host: Any) -> None:
    """Value and error of an inner frame reach the outer one as if it had called it, once a call each."""

    def inner(x, *, y=1):
        return x // y

    def outer(f):
        try:
            return f(6, y=2) + f(4) + f(1, y=0)
        except ZeroDivisionError as error:
            return [place.name for place in traceback.extract_tb(error.__traceback__)]

    assert host.cut(outer)(host.cut(inner)) == outer(inner) == ["outer", "inner"]
    assert host.entered == 3


# --- size ------------------------------------------------------------------------------------------------


def test_far_jumps_many_locals_and_constants(host: Any) -> None:
    params = ", ".join(f"x{k}={k}" for k in range(300))
    lines = [f"def f(n, {params}):", " total = x0", " for i in range(n):"]
    lines += [f"  total += i + {k + 1000}" for k in range(60)]
    lines += [
        "  try:",
        "   y = total // i",
        "  except ZeroDivisionError:",
        "   total += x299",
        "   z = x298",
        " return total, y, z",
    ]
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)
    f = scope["f"]
    expected = f(3)
    run = host.cut(f)
    assert run(3) == expected
    (chain,) = host.chains.values()
    for shape in list(chain.names)[:: len(chain.names) // 15]:
        with chain.resumed_at(shape.index):
            assert run(3) == expected


# --- real code ---------------------------------------------------------------------------------------------


def parse_arguments() -> Any:
    parser = argparse.ArgumentParser(prog="p", add_help=False)
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--flag", action="store_true")
    parser.add_argument("files", nargs="*")
    parsed = vars(parser.parse_args(["--level", "5", "a", "--flag"]))
    try:
        argparse.ArgumentParser(prog="p", exit_on_error=False).parse_known_args(["--help=3"])
    except argparse.ArgumentError as error:
        parsed["error"] = str(error)
    return parsed


def wrap_text() -> Any:
    text = "The quick brown fox, incomprehensibilities notwithstanding, jumps over - the lazy dog. " * 3
    return textwrap.wrap(text, 18, max_lines=7), textwrap.shorten(text, 30)


def match_sequences() -> Any:
    matcher = difflib.SequenceMatcher(
        None, "private Thread currentThread;", "private volatile Thread currentThread;"
    )
    return (
        matcher.get_opcodes(),
        round(matcher.ratio(), 3),
        difflib.get_close_matches("appel", ["ape", "apple", "peach"]),
    )


def scan_strings() -> Any:
    results: list[Any] = [json.decoder.py_scanstring('"a\\u0041\\n\\ud834\\udd20"x', 1, True)]
    for bad in ('"abc', '"a\nb"', '"\\u12"', '"\\x"'):
        try:
            json.decoder.py_scanstring(bad, 1, True)
        except json.decoder.JSONDecodeError as error:
            results.append((str(error), error.pos))
    return results


REAL = [
    (
        parse_arguments,
        argparse.ArgumentParser,
        ["_parse_known_args", "parse_known_args", "_get_values", "_parse_optional"],
    ),
    (wrap_text, textwrap.TextWrapper, ["_wrap_chunks", "_handle_long_word", "wrap", "_split"]),
    (match_sequences, difflib.SequenceMatcher, ["find_longest_match", "get_matching_blocks", "get_opcodes"]),
    (scan_strings, json.decoder, ["py_scanstring"]),
]


@pytest.mark.parametrize("scenario, owner, names", REAL, ids=lambda part: getattr(part, "__name__", ""))
def test_functions_of_the_standard_library(
    scenario: Any, owner: Any, names: list[str], host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = scenario()
    module = sys.modules[getattr(owner, "__module__", owner.__name__)]
    before = set(vars(module))
    for name in names:
        function = vars(owner)[name]
        assert isinstance(function, FunctionType)
        monkeypatch.setattr(owner, name, host.cut(function))
    try:
        assert scenario() == expected
        assert len(host.chains) >= len(names) - 1
        for chain in list(host.chains.values()):
            for shape in list(chain.names)[:: max(1, len(chain.names) // 20)]:
                with chain.resumed_at(shape.index):
                    assert scenario() == expected
    finally:
        for name in set(vars(module)) - before:
            delattr(module, name)


def codes_in(code: Any) -> Any:
    yield code
    for const in code.co_consts:
        if hasattr(const, "co_code"):
            yield from codes_in(const)


@pytest.mark.parametrize("module", ["contextlib", "inspect", "asyncio.base_events", "subprocess", "zipfile"])
def test_every_step_of_whole_modules_has_sound_segments(module: str) -> None:
    """All shapes that can be reached in all functions: few, and every seventh made and verified."""
    import importlib.util

    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    with open(spec.origin, "rb") as file:
        top = compile(file.read(), spec.origin, "exec")
    count = 0
    for code in codes_in(top):
        if code.co_flags & 0x2A0 or code.co_flags & 3 != 3:
            continue
        shapes = reachable(code)
        for shape, exits in shapes.items():
            count += 1
            if count % 7 == 0:
                verify_code(step_code(code, shape, exits, ["target"] * len(exits)))
            if count % 49 == 0:
                verify_code(resume_code(code, shape))
    assert count > 500


def reachable(code: Any) -> dict[Shape, Any]:
    source = original(code)
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    slots = source.decoded.slots
    bound = {*code.co_varnames[:count], *code.co_cellvars, *slots[len(slots) - len(code.co_freevars) :]}
    alive = source.alive.before(source.first)
    waiting = [Shape(source.first, tuple(name for name in alive if name in bound), ())]
    shapes: dict[Shape, Any] = {}
    while waiting:
        shape = waiting.pop()
        if shape not in shapes:
            shapes[shape] = exits_of(code, shape)
            waiting += [leave.shape for leave in shapes[shape]]
    return shapes
