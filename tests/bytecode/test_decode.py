"""Decoding: steps with operands ready, whatever CPython has made of the bytes in the meantime."""

from __future__ import annotations

import dis
import gc
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from graphlift.bytecode.decode import Decoded, decode, scan
from graphlift.bytecode.versions import VERSION


def texts(function: Callable[..., Any]) -> list[str]:
    decoded = decode(function.__code__)
    return [decoded.text(index) for index in range(len(decoded))]


def operands(function: Callable[..., Any], op: str) -> list[Any]:
    return [step.operand for step in decode(function.__code__).steps() if step.op == op]


def test_text_of_the_trace_log() -> None:
    def f(x, y):
        z = x * y
        return z + 1

    begin = ["LOAD_FAST_LOAD_FAST x y"] if VERSION >= (3, 13) else ["LOAD_FAST x", "LOAD_FAST y"]
    rest = ["BINARY_OP 5", "STORE_FAST z", "LOAD_FAST z", "LOAD_CONST 1", "BINARY_OP 0", "RETURN_VALUE None"]
    assert texts(f) == ["RESUME 0", *begin, *rest]


def test_operands_are_ready() -> None:
    def f(self, items, *rest):
        import os.path as path

        a, *b, c = items
        self.total += len(items) @ 2
        if a is not b and c in rest:
            del self.gone
        for item in items:
            self.use(item, key=1)
        return f"{a!r:>10}{b}", items[1:2], {"k": c, "l": a}, lambda: self

    assert operands(f, "UNPACK_EX") == [(1, 1)]
    assert operands(f, "BINARY_OP") == [("@", False), ("+", True)]
    assert operands(f, "IS_OP") == [True]
    assert operands(f, "CONTAINS_OP") == [False]
    assert operands(f, "DELETE_ATTR") == ["gone"]
    assert operands(f, "STORE_ATTR") == ["total"]
    assert operands(f, "IMPORT_NAME") == ["os.path"]
    assert ("len", True) in operands(f, "LOAD_GLOBAL")
    methods = operands(f, "LOAD_METHOD") or operands(f, "LOAD_ATTR")
    assert ("use", True) in methods
    assert ("total", False) in operands(f, "LOAD_ATTR")
    assert "self" in operands(f, "MAKE_CELL")
    names = operands(f, "KW_NAMES") or [item for item in operands(f, "LOAD_CONST") if item == ("key",)]
    assert names == [("key",)]


def test_formatting() -> None:
    def f(a):
        return f"{a!r:>10}{a}"

    if VERSION >= (3, 13):
        assert operands(f, "CONVERT_VALUE") == ["r"]
    else:
        assert operands(f, "FORMAT_VALUE") == [("r", True), ("", False)]


def test_making_functions() -> None:
    def f(a):
        def g(x=1, *, y=2) -> int:
            return a

        return g

    every = ("defaults", "kwdefaults", "annotations", "closure")
    if VERSION >= (3, 13):
        assert operands(f, "MAKE_FUNCTION") == [()]
        assert operands(f, "SET_FUNCTION_ATTRIBUTE") == list(reversed(every))
    else:
        assert operands(f, "MAKE_FUNCTION") == [every]
    inner = f(0)
    assert operands(inner, "COPY_FREE_VARS") == [("a",)]
    assert operands(inner, "LOAD_DEREF") == ["a"]


def test_super() -> None:
    class Child(list):
        def append(self, x):
            super().append(x)
            return super(Child, self).__len__

    steps = decode(Child.append.__code__).steps()
    if VERSION >= (3, 12):
        found = [step.operand for step in steps if step.op == "LOAD_SUPER_ATTR"]
        assert found == [("append", True, False), ("__len__", False, True)]


def test_comparison_says_whether_a_bool_is_wanted() -> None:
    def f(a, b):
        if a < b:
            return a == b

    assert operands(f, "COMPARE_OP") == [("<", VERSION >= (3, 13)), ("==", False)]


def test_what_does_nothing_is_gone() -> None:
    def f(a):
        while True:
            try:
                pass
            finally:
                a(a)

    ops = {step.op for step in decode(f.__code__).steps()}
    assert not ops & {"NOP", "CACHE", "PRECALL", "EXTENDED_ARG"}
    assert {"NOP"} <= {item.opname for item in dis.get_instructions(f)}


def test_jumps_are_step_indices() -> None:
    def f(items):
        for item in items:
            if item:
                continue
            return item
        return None

    decoded = decode(f.__code__)
    steps = decoded.steps()
    (loop,) = [at for at, step in enumerate(steps) if step.op == "FOR_ITER"]
    landing = steps[steps[loop].operand]
    assert landing.op in ("LOAD_CONST", "RETURN_CONST")  # behind what an exhausted loop skips
    back = [step for step in steps if step.op.startswith("JUMP_BACKWARD")]
    assert back and all(step.operand == loop for step in back)
    assert all(decoded.index_at(step.offset) == at for at, step in enumerate(steps))


def test_fused_opcode_lists_two_handlers() -> None:
    def f(a, b):
        return a, b

    fused = [step for step in decode(f.__code__).steps() if len(step.handlers) == 2]
    if VERSION < (3, 13):
        assert fused == []
    else:
        assert [(step.op, step.handlers, step.operand) for step in fused] == [
            ("LOAD_FAST_LOAD_FAST", ("LOAD_FAST", "LOAD_FAST"), ("a", "b"))
        ]


def test_long_arguments() -> None:
    lines = [f"    if x == {n + 300}: x = y{n}" for n in range(300)]
    scope: dict[str, Any] = {}
    exec("\n".join(["def f(x):", *lines, "    return x"]), scope)
    constants = [value for value in operands(scope["f"], "LOAD_CONST") if value]
    assert constants == list(range(300, 600))
    assert [name for name, _ in operands(scope["f"], "LOAD_GLOBAL")] == [f"y{n}" for n in range(300)]


@pytest.mark.skipif(VERSION < (3, 12), reason="comprehensions are functions on 3.11")
def test_a_name_that_is_local_and_free_has_two_slots() -> None:
    def outer():
        x = 1

        def inner(n):
            return [x for x in range(n)], x

        return inner

    inner = outer()
    decoded = decode(inner.__code__)
    assert decoded.slots == ("n", "x", "x.free")
    assert operands(inner, "COPY_FREE_VARS") == [("x.free",)]
    assert operands(inner, "LOAD_DEREF") == ["x.free"]
    assert operands(inner, "LOAD_FAST_AND_CLEAR") == ["x"]


def test_regions() -> None:
    def f(x):
        try:
            x.a()
        except ValueError:
            x.b()
        return x

    decoded = decode(f.__code__)
    (call,) = [at for at, step in enumerate(decoded.steps()) if step.operand == ("a", True)]
    region = decoded.region(call)
    assert region is not None and region.depth == 0 and not region.lasti
    assert decoded.op(region.target) == "PUSH_EXC_INFO"
    assert decoded.region(0) is None


def test_positions() -> None:
    def f(x):
        y = x.a
        return y

    decoded = decode(f.__code__)
    (load,) = [at for at, step in enumerate(decoded.steps()) if step.op == "LOAD_ATTR"]
    line, end, start, stop = decoded.position(load)
    assert line == end == f.__code__.co_firstlineno + 1 == decoded.line(load)
    assert stop - start == len("x.a")


def test_a_step_is_entered_at_its_first_prefix() -> None:
    lines = [f"    y{n}(x, k=z)" for n in range(300)]
    scope: dict[str, Any] = {}
    exec("\n".join(["def f(x, z):", *lines, "    return x"]), scope)
    code = scope["f"].__code__
    decoded = decode(code)
    raws = {raw.offset: raw for raw in scan(code.co_code)}
    assert decoded.start(0) == 0
    for at, offset in enumerate(decoded.offsets):
        assert decoded.end(at) == raws[offset].end
        before = decoded.start(at)
        while before < offset and before in raws:  # what lies between does nothing by itself
            assert dis.opname[raws[before].number] in ("PRECALL", "NOP")
            before = raws[before].end
        assert before == raws[offset].start


def test_specialised_code_reads_as_compiled() -> None:
    def f(n):
        total = 0
        for i in range(n):
            total += i * 2
        return total

    fresh = Decoded(f.__code__).steps()
    for _ in range(100):
        f(20)
    adaptive = [item.opname for item in dis.get_instructions(f, adaptive=True)]
    assert any(name not in dis.opmap for name in adaptive)  # it was specialised
    assert Decoded(f.__code__).steps() == fresh


@pytest.mark.skipif(VERSION < (3, 12), reason="no sys.monitoring on 3.11")
def test_instrumented_code_reads_as_compiled() -> None:
    def f(n):
        for i in range(n):
            if i > 1:
                return i
        return None

    fresh = Decoded(f.__code__).steps()
    tool, every = 4, sys.monitoring.events
    sys.monitoring.use_tool_id(tool, "test")
    try:
        wanted = every.LINE | every.INSTRUCTION | every.CALL | every.PY_START | every.PY_RETURN | every.BRANCH
        sys.monitoring.set_local_events(tool, f.__code__, wanted)
        f(4)
        assert Decoded(f.__code__).steps() == fresh
    finally:
        sys.monitoring.set_local_events(tool, f.__code__, 0)
        sys.monitoring.free_tool_id(tool)


def test_decoded_once_and_kept_as_long_as_the_code() -> None:
    scope: dict[str, Any] = {}
    exec("def f(): return 1", scope)
    code = scope["f"].__code__
    decoded = decode(code)
    assert decode(code) is decoded and decoded.code is code
    gone = weakref.ref(code)
    copy = code.replace()
    assert copy == code and decode(copy) is not decoded  # told apart by identity
    scope.clear()
    del code
    gc.collect()
    assert gone() is None
    with pytest.raises(ReferenceError):
        _ = decoded.code


def test_ten_thousand_codes_leave_nothing_behind() -> None:
    from graphlift.bytecode import decode as module

    before = len(module._cache)
    template = test_decoded_once_and_kept_as_long_as_the_code.__code__
    for line in range(10_000):
        decode(template.replace(co_firstlineno=line + 1))
    assert len(module._cache) == before


def test_binding_gives_pairs_and_fuses() -> None:
    def f(x, y):
        return x + y

    class Table(dict):
        def __missing__(self, name: str) -> Callable[..., Any]:
            handler = self[name] = types.FunctionType((lambda: None).__code__, {}, name)
            return handler

    fused: list[tuple[Any, ...]] = []

    def fuse(handlers: tuple[Any, ...]) -> Any:
        fused.append(handlers)
        return handlers[0]

    table = Table()
    decoded = Decoded(f.__code__)
    steps = decoded.bind(table, fuse)
    assert [handler.__name__ for handler, _, _ in steps] == [step.handlers[0] for step in decoded.steps()]
    assert [operand for _, operand, _ in steps] == decoded.operands
    assert [behind for _, _, behind in steps] == list(range(1, len(steps) + 1))
    assert decoded.bind(table, fuse) is steps
    assert len(fused) == (VERSION >= (3, 13))


def test_binding_without_a_handler() -> None:
    with pytest.raises(KeyError):
        Decoded((lambda: 0).__code__).bind({}, lambda handlers: handlers[0])


def test_scan_leaves_nothing_out() -> None:
    code = dis.findlinestarts.__code__
    raws = list(scan(code.co_code))
    real = [item for item in dis.get_instructions(code) if item.opname != "EXTENDED_ARG"]
    assert [(raw.offset, raw.number, raw.arg) for raw in raws] == [
        (item.offset, item.opcode, item.arg or 0) for item in real
    ]
    assert raws[-1].end == len(code.co_code)
    targets = [item.argval if item.opcode in dis.hasjrel else -1 for item in real]
    assert [raw.target for raw in raws] == targets
