"""The text of code objects for logs: readable, and the same on every run."""

from __future__ import annotations

from graphlift.bytecode.emit import Emitter, Header, assemble
from graphlift.bytecode.listing import listing


def f(x):
    return x


def test_listing_of_emitted_code() -> None:
    emitter = Emitter()
    emitter.prologue()
    emitter.prepare_call()
    emitter.load_global("__compiled_fn_0")
    emitter.callable_ready()
    emitter.load_fast("x")
    emitter.call(1)
    emitter.store_fast("graph_out_0")
    emitter.load_fast("graph_out_0")
    emitter.load_const(0)
    emitter.subscr()
    emitter.return_value()
    text = listing(assemble(emitter.items, Header.of(f.__code__)), "MODIFIED CODE")
    head, *lines = text.splitlines()
    assert head == f"MODIFIED CODE f ({__file__}, line {f.__code__.co_firstlineno})"
    assert lines[0].split() == [str(f.__code__.co_firstlineno), "RESUME", "0"]
    assert [line.split() for line in lines[1:] if "PRECALL" not in line] == [
        ["LOAD_GLOBAL", "__compiled_fn_0", "+", "NULL"],
        ["LOAD_FAST", "x"],
        ["CALL", "1"],
        ["STORE_FAST", "graph_out_0"],
        ["LOAD_FAST", "graph_out_0"],
        ["LOAD_CONST", "0"],
        ["BINARY_SUBSCR"],
        ["RETURN_VALUE"],
    ]


def test_jumps_ranges_and_nested_code() -> None:
    def g(items):
        for item in items:
            try:
                item.run(lambda: item + 1)
            except ValueError:
                return None

    text = listing(g.__code__)
    assert " at 0x" not in text
    assert "<code test_jumps_ranges_and_nested_code.<locals>.g.<locals>.<lambda>>" in text
    assert any(
        line.split()[:2] in (["LOAD_METHOD", "run"], ["LOAD_ATTR", "run"]) for line in text.splitlines()
    )
    (jump,) = [line for line in text.splitlines() if "FOR_ITER" in line]
    target = jump.split()[-1]
    assert (
        sum(line.split()[:1] == [target] or line.split()[1:2] == [target] for line in text.splitlines()) == 1
    )
    assert "range, on error to L" in text and "end of range" in text


def test_operators_are_spelled_out() -> None:
    def g(a, b):
        a += b
        return a * b

    assert "(+=)" in listing(g.__code__) and "(*)" in listing(g.__code__)
