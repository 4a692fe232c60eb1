"""The closed lists of continuations agree: which instructions can be cut inside, and what is left of them."""

from __future__ import annotations

import re
from pathlib import Path

import graphlift
from graphlift.bytecode.decode import decode
from graphlift.codegen import continuations
from graphlift.codegen.continuations import Finish, call_exits, operands_of
from graphlift.codegen.originals import original
from graphlift.codegen.shapes import Shape
from graphlift.interpreter import operations
from graphlift.variables import user_defined

SOURCES = Path(graphlift.__file__).parent


def used_finishes():
    """The names that slots give to `last_call`, or hand on to it."""
    text = "\n".join(path.read_text() for path in (SOURCES / "variables").rglob("*.py"))
    text += (SOURCES / "interpreter/handlers/with_blocks.py").read_text()
    calls = re.findall(r"(?:last_call|_last|_last_getter)\(([^\n]*)\)", text)
    names = {name for call in calls for name in re.findall(r'"([a-z_]+)"', call) if not name.startswith("__")}
    return names | set(user_defined._LAST.values()) | {"binary", "compare"}


def test_every_finish_that_slots_name_can_be_emitted():
    assert used_finishes() | {"push"} == set(continuations._FINISH)


def test_every_listed_instruction_says_what_it_takes():
    for handler in (*operations._SPECIAL, "BINARY_OP", "COMPARE_OP"):
        if handler != "UNARY_POSITIVE":  # an intrinsic function from 3.12 on
            assert handler in continuations._TAKEN


def step_of(function, op):
    decoded = decode(function.__code__)
    return next(at for at in range(len(decoded)) if decoded.handlers(at)[-1] == op)


def exits(function, op, finish, stack=()):
    code = function.__code__
    index = step_of(function, op)
    live = original(code).alive.before(index)
    found = call_exits(original(code), Shape(index, live, stack), operands_of(decode(code), index), finish)
    return {leave.kind: leave.shape.stack for leave in found}


def test_where_a_loop_leads():
    def loop(steps):
        for step in steps:
            step()

    assert exits(loop, "FOR_ITER", Finish("item"), ("value",)) == {"next": ("value", "value"), "jump": ()}


def test_where_a_store_leads():
    def store(owner):
        owner.name = 1
        return owner

    assert exits(store, "STORE_ATTR", Finish("discard")) == {"next": ()}


def test_what_a_with_statement_finds_on_the_stack():
    def block(manager):
        with manager:
            return 1

    assert exits(block, "BEFORE_WITH", Finish("enter", 1))["next"] == ("value", "value")


def test_a_load_of_a_method_leaves_a_pair():
    def call(owner):
        return owner.method()

    stack = exits(call, "LOAD_ATTR", Finish("getter", 1))["next"]
    assert sorted(stack) == ["null", "value"]
