"""New instructions in front of old bytes: what follows runs as it always did."""

from __future__ import annotations

import sys
import traceback
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from graphlift.bytecode.decode import Decoded, decode, scan
from graphlift.bytecode.emit import Emitter, Header
from graphlift.bytecode.graft import graft
from graphlift.bytecode.verify import flow_of, verify_code
from graphlift.errors import InternalError


def index_of(decoded: Decoded, op: str, nth: int = 0) -> int:
    return [at for at, step in enumerate(decoded.steps()) if step.op == op][nth]


def entered(
    function: Callable[..., Any],
    index: int,
    stack: tuple[Any, ...] = (),
    cells: tuple[str, ...] = (),
) -> Callable[..., Any]:
    """A function of all locals that goes on at a step of `function`, with constants on the stack.

    `cells` are cell variables without argument: they become free variables, in the same slots.
    """
    code = function.__code__
    free = (*cells, *code.co_freevars)
    header = replace(
        Header.of(code),
        argcount=len(code.co_varnames),
        kwonlyargcount=0,
        flags=code.co_flags & ~0xC,
        cellvars=tuple(name for name in code.co_cellvars if name not in cells),
        freevars=free,
    )
    emitter = Emitter()
    emitter.prologue(free=free)
    for value in stack:
        emitter.load_const(value)
    made = graft(emitter.items, code, decode(code).start(index), header, len(stack))
    verify_code(made)
    closure = (*(types.CellType(None) for _ in cells), *(function.__closure__ or ()))
    return types.FunctionType(made, function.__globals__, closure=closure or None)


def f(x, y):
    total = x * 2
    for item in y:
        try:
            total += 10 // item
        except ZeroDivisionError:
            total += 1000
    return total


def test_entered_between_statements() -> None:
    decoded = decode(f.__code__)
    after_first = index_of(decoded, "STORE_FAST") + 1
    rest = entered(f, after_first)
    for total in (0, 7):
        assert rest(1, [1, 0, 5], total, None) == total + 10 + 1000 + 2
    assert f(1, [1, 0, 5]) == 1014  # the original is as it was


def test_entered_inside_a_protected_range_with_a_stack() -> None:
    decoded = decode(f.__code__)
    division = next(at for at, step in enumerate(decoded.steps()) if step.operand == ("//", False))
    rest = entered(f, division, stack=(iter([2]), 500, 10, 0))
    # 10 // 0 is handled by the function's own handler, then the loop goes on.
    assert rest(None, None, 500, None) == 500 + 1000 + 5


def test_entered_at_every_step_with_a_known_stack() -> None:
    """Whatever the offset, jumps, ranges and lines of the old code are shifted alike."""
    decoded = decode(f.__code__)
    for index in range(len(decoded)):
        depth = stack_depth_before(f.__code__, decoded.start(index))
        if depth is None:
            continue
        code = f.__code__
        header = replace(Header.of(code), argcount=len(code.co_varnames))
        emitter = Emitter()
        emitter.prologue()
        for _ in range(depth):
            emitter.load_const(None)
        made = graft(emitter.items, code, decoded.start(index), header, depth)
        verify_code(made)
        behind = len(made.co_code) - len(code.co_code)
        assert made.co_code[behind:] == code.co_code
        assert list(made.co_positions())[behind // 2 :] == list(code.co_positions())


def stack_depth_before(code: types.CodeType, offset: int) -> int | None:
    raws = list(scan(code.co_code))
    index = {raw.start: at for at, raw in enumerate(raws)}
    return flow_of(code, raws, index).depths[index[offset]]


def test_tracebacks_show_the_users_function_and_line() -> None:
    decoded = decode(f.__code__)
    rest = entered(f, index_of(decoded, "STORE_FAST") + 1)
    with pytest.raises(TypeError) as caught:
        rest(1, [None], 0, None)
    entry = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (entry.name, entry.filename) == ("f", __file__)
    assert entry.lineno == f.__code__.co_firstlineno + 4


def test_handlers_and_with_blocks_of_the_old_code() -> None:
    log: list[object] = []

    class Manager:
        def __enter__(self):
            return "entered"

        def __exit__(self, *exc):
            log.append(exc[0])
            return True

    def g(manager, fail):
        with manager:
            value = fail()
            log.append(value)
        return "behind"

    decoded = decode(g.__code__)
    manager = Manager()
    body = index_of(decoded, "STORE_FAST")
    rest = entered(g, body, stack=(manager.__exit__, "value"))
    assert rest(manager, None, None) == "behind"
    assert log == ["value", None]
    call = index_of(decoded, "POP_TOP") + 1
    rest = entered(g, call, stack=(manager.__exit__,))
    assert rest(manager, lambda: 1 / 0, None) == "behind"
    assert log[2:] == [ZeroDivisionError]
    assert sys.exc_info() == (None, None, None)


def test_cells_keep_their_slots() -> None:
    def g(a):
        inner = a + 1

        def h():
            return inner

        return h

    code = g.__code__
    decoded = decode(code)
    rest = entered(g, index_of(decoded, "RESUME") + 1, cells=("inner",))
    assert rest(4, None)() == 5


def test_free_variables_keep_their_slots() -> None:
    offset = 100

    def g(a):
        b = a * 2
        return a + b + offset

    rest = entered(g, index_of(decode(g.__code__), "STORE_FAST") + 1)
    assert rest(1, 5) == 106


def test_refused() -> None:
    code, decoded = f.__code__, decode(f.__code__)
    start = decoded.start(1)
    header = Header.of(code)
    emitter = Emitter()
    emitter.prologue()
    with pytest.raises(InternalError, match="has depth 0 at the graft, 1 is wanted"):
        graft(emitter.items, code, start, header, 1)
    with pytest.raises(InternalError, match="would become"):
        graft(emitter.items, code, start, replace(header, varnames=("new", *code.co_varnames)), 0)
    with pytest.raises(InternalError, match="line"):
        graft(emitter.items, code, start, replace(header, firstlineno=1), 0)


def test_far_entry() -> None:
    lines = [f"    x = x + {n + 1000}" for n in range(300)]
    scope: dict[str, Any] = {}
    exec("\n".join(["def g(x):", *lines, "    return x"]), scope)
    g = scope["g"]
    decoded = decode(g.__code__)
    rest = entered(g, index_of(decoded, "STORE_FAST", 298) + 1)
    assert decoded.start(index_of(decoded, "STORE_FAST", 298)) > 512
    assert rest(1) == 1 + 1299
