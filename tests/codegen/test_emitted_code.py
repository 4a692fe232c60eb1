"""The code that stands for a captured frame: instruction by instruction, and how long its global lives."""

from __future__ import annotations

import dis
import gc
import re
import sys

import pytest
import torch

import graphlift
from graphlift import events
from graphlift.testing import CompileCounter

X = torch.ones(3)


def f(x):
    return torch.sin(x) + 1


def with_effect(x, items):
    y = x * 2
    items.append(y)
    return y + 1


def modified(function, *inputs):
    """The new code objects that one call makes."""
    graphlift.reset()
    made = []
    with events.subscribed(lambda event: made.append(event.modified), events.BytecodeMade, this_thread=True):
        graphlift.compile(function, backend="eager")(*inputs)
    return made


def instructions(code):
    return [
        (i.opname, i.argval)
        for i in dis.get_instructions(code)
        if i.opname not in ("RESUME", "CACHE", "PRECALL", "EXTENDED_ARG", "PUSH_NULL")
    ]


def test_the_eight_instructions():
    (code,) = modified(f, X)
    (load, product), *rest = instructions(code)
    assert load == "LOAD_GLOBAL" and re.fullmatch(r"__compiled_fn_\d+_[0-9a-f]{32}", product)
    assert rest == [
        ("LOAD_FAST", "x"),
        ("CALL", 1),
        ("STORE_FAST", "graph_out_0"),
        ("LOAD_FAST", "graph_out_0"),
        ("LOAD_CONST", 0),
        ("BINARY_SUBSCR", None),
        ("RETURN_VALUE", None),
    ]
    shown = [i.opname for i in dis.get_instructions(code)]
    if sys.version_info[:2] == (3, 12):
        assert "PUSH_NULL" not in shown and len(shown) == 9  # with RESUME


def test_order_of_the_parts_on_every_python():
    (code,) = modified(with_effect, X, [])
    names = instructions(code)
    at = {what: next(i for i, row in enumerate(names) if row[1] == what) for what in ("graph_out_0",)}
    assert names[0][0] == "LOAD_GLOBAL" and names[0][1].startswith("__compiled_fn_")
    call = next(i for i, row in enumerate(names) if row[0] == "CALL")
    assert 0 < call < at["graph_out_0"] and names[at["graph_out_0"]][0] == "STORE_FAST"
    assert names[-1][0] == "RETURN_VALUE"


def globals_of_products():
    return {name for name in globals() if name.startswith("__compiled_fn_")}


def test_the_global_comes_with_the_entry_and_goes_with_it():
    graphlift.reset()
    gc.collect()
    before = globals_of_products()
    compiled = graphlift.compile(f, backend="eager")
    assert globals_of_products() == before
    compiled(X)
    (name,) = globals_of_products() - before
    assert callable(globals()[name])
    graphlift.reset()
    del compiled
    gc.collect()
    assert globals_of_products() == before


def test_a_failed_capture_leaves_no_global(monkeypatch):
    def broken(module, inputs):
        raise LookupError("no")

    before = globals_of_products()
    assert torch.equal(graphlift.compile(f, backend=broken)(X), f(X))
    assert globals_of_products() == before


def test_inputs_come_in_a_fixed_order():
    def program(a, b, c):
        return c * a + b

    counter = CompileCounter()
    for _ in range(3):
        graphlift.reset()
        names = []
        compiled = graphlift.compile(
            program,
            backend=lambda gm, ex, names=names: (
                names.append([n.name for n in gm.graph.nodes if n.op == "placeholder"]) or counter(gm, ex)
            ),
        )
        assert torch.equal(compiled(X, X * 2, X * 3), X * 5)
        assert names == [["L_c_", "L_a_", "L_b_"]]
