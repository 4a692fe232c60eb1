"""The symbolic machine by its own measures: tables, handlers, kinds of frames, branches, literal graphs."""

from __future__ import annotations

import dis
import sys

import pytest
import torch

import graphlift
from graphlift import convert_frame
from graphlift.bytecode import versions
from graphlift.interpreter import base, inline, root
from graphlift.interpreter.dispatch import HANDLERS
from graphlift.protocol import Var
from graphlift.testing import EagerAndRecordGraphs, check

X = torch.arange(8.0)


@pytest.fixture(autouse=True)
def _nothing_captured_before():
    graphlift.reset()


def graph_of(function, *inputs):
    """The only graph of a call, as (op, name, target's name, arguments as text)."""
    recorded = EagerAndRecordGraphs()
    result = graphlift.compile(function, backend=recorded)(*inputs)
    assert torch.equal(result, function(*inputs))
    (module,) = recorded.graphs
    named = [(n.op, n.name, getattr(n.target, "__name__", n.target), str(n.args)) for n in module.graph.nodes]
    return named, module


# --- the table of handlers ------------------------------------------------------------------------

#: Numbers up to 255 in `dis.opmap`: all of them, and how many are instrumented ones.
REAL_OPCODES = {(3, 11): (110, 0), (3, 12): (129, 18), (3, 13): (138, 19)}


#: Opcodes that CPython keeps to itself or that the decoder folds into the next one.
NEVER_IN_CODE = {
    "CACHE", "EXTENDED_ARG", "INTERPRETER_EXIT", "RESERVED", "ENTER_EXECUTOR", "EXIT_INIT_CHECK",
    "INSTRUMENTED_INSTRUCTION", "INSTRUMENTED_LINE",
}  # fmt: skip


def test_every_real_opcode_has_a_handler():
    real = {name: number for name, number in dis.opmap.items() if number <= 255}
    plain = {name for name in real if not name.startswith("INSTRUMENTED_")}
    known = {dis.opname[n] for n, row in enumerate(versions.ROWS) if row is not None}
    assert plain <= known
    table = base.InstructionTranslatorBase.dispatch_table
    missing = HANDLERS["UNEXPECTED_OPCODE"]
    assert len(table) == 256
    unexpected = {name for name in plain if table[real[name]] is missing}
    assert all(versions.ROWS[real[name]].handlers == ("UNEXPECTED_OPCODE",) for name in unexpected)
    assert "CACHE" in plain and unexpected <= NEVER_IN_CODE
    assert (len(real), len(real) - len(plain)) == REAL_OPCODES[sys.version_info[:2]]
    assert all(table[number] is missing for number in set(range(256)) - set(real.values()))


def test_handlers_are_named_like_their_opcodes():
    assert all(handler.__name__ == name for name, handler in HANDLERS.items())
    table = base.InstructionTranslatorBase.dispatch_table
    for number, row in enumerate(versions.ROWS):
        if row is not None and len(row.handlers) == 1 and not dis.opname[number].startswith("INSTRUMENTED_"):
            assert table[number] is HANDLERS[row.handlers[0]]


def test_the_table_is_built_once_with_the_class():
    table = base.InstructionTranslatorBase.dispatch_table
    assert root.InstructionTranslator.dispatch_table is table
    assert inline.InliningInstructionTranslator.dispatch_table is table


def test_instrumented_opcodes_share_the_plain_handler():
    table = base.InstructionTranslatorBase.dispatch_table
    numbers = [n for n in range(256) if dis.opname[n].startswith("INSTRUMENTED_")]
    for number in numbers:
        plain = dis.opmap.get(dis.opname[number].removeprefix("INSTRUMENTED_"))
        if plain is not None:
            assert table[number] is table[plain], dis.opname[number]


def test_an_opcode_without_handler_is_a_break(monkeypatch):
    def program(x):
        return x + 1

    def missing(tx, operand):
        tx.missing("BINARY_OP")

    monkeypatch.setitem(base.HANDLERS, "BINARY_OP", missing)
    versions_of = convert_frame.InstructionTranslator
    assert versions_of is root.InstructionTranslator
    with pytest.raises(graphlift.exc.Unsupported, match="Missing bytecode handler"):
        graphlift.compile(program, backend="eager", fullgraph=True)(X)


# --- frames ---------------------------------------------------------------------------------------


def callee(a):
    b = a + 1
    return b


def test_stack_and_locals_hold_trackers(monkeypatch):
    seen = []
    plain = HANDLERS["RETURN_VALUE"]

    def looking(tx, operand):
        seen.append((type(tx), list(tx.stack), dict(tx.symbolic_locals)))
        return plain(tx, operand)

    def program(x):
        y = x * 2
        return callee(y)

    monkeypatch.setitem(base.HANDLERS, "RETURN_VALUE", looking)
    graphlift.compile(program, backend="eager")(X)
    assert [kind for kind, *_ in seen] == [inline.InliningInstructionTranslator, root.InstructionTranslator]
    for _, stack, symbolic_locals in seen:
        assert type(symbolic_locals) is dict and all(isinstance(value, Var) for value in stack)
        assert all(isinstance(value, Var) for value in symbolic_locals.values())
    assert set(seen[0][2]) == {"a", "b"} and set(seen[1][2]) == {"x", "y"}


def test_a_call_of_ones_own_function_is_part_of_the_graph():
    def inner(x):
        return x * 2

    def middle(x):
        return inner(x) + 1

    check(lambda x: middle(x) - inner(x), X)


# --- literal graphs -------------------------------------------------------------------------------


def f(x, y):
    z = x * y
    return z + 1


def test_the_graph_of_the_first_example():
    named, module = graph_of(f, X, X + 1)
    assert named == [
        ("placeholder", "L_x_", "L_x_", "()"),
        ("placeholder", "L_y_", "L_y_", "()"),
        ("call_function", "z", "mul", "(L_x_, L_y_)"),
        ("call_function", "add", "add", "(z, 1)"),
        ("output", "output", "output", "((add,),)"),
    ]
    printed = module.print_readable(print_output=False, include_stride=True, include_device=True)
    for part in ('L_x_: "f32[8][1]cpu"', 'L_y_: "f32[8][1]cpu"', 'z: "f32[8][1]cpu" = L_x_ * L_y_',
                 'add: "f32[8][1]cpu" = z + 1', "return (add,)"):  # fmt: skip
        assert part in printed, printed


def g(x):
    scale = 2
    parts = []
    for i in range(3):
        parts.append(x * (scale + i))
    return sum(parts)


def test_the_graph_of_a_loop_and_a_sum():
    named, _ = graph_of(g, X)
    work = [(target, args) for op, _, target, args in named if op == "call_function"]
    names = [name for op, name, *_ in named if op == "call_function"]
    products = [row for row in work if row[0] == "mul"]
    assert products == [("mul", f"(L_x_, {n})") for n in (2, 3, 4)]
    sums = [row for row in work if row[0] == "add"]
    first, second, third = (name for name, row in zip(names, work, strict=True) if row[0] == "mul")
    added = [name for name, row in zip(names, work, strict=True) if row[0] == "add"]
    assert sums == [
        ("add", f"(0, {first})"),
        ("add", f"({added[0]}, {second})"),
        ("add", f"({added[1]}, {third})"),
    ]
    assert len(work) == 6


def test_constants_are_computed_at_once():
    def program(x, n):
        m = (n + 3) * 2 - 1
        return x * m

    named, _ = graph_of(program, X, 4)
    assert [row for row in named if row[0] == "call_function"] == [
        ("call_function", "mul", "mul", "(L_x_, 13)")
    ]


def test_nodes_carry_the_users_stack_and_the_value():
    _, module = graph_of(f, X, X + 1)
    for node, line in zip([n for n in module.graph.nodes if n.op == "call_function"], (1, 2), strict=True):
        assert f'File "{__file__}", line {f.__code__.co_firstlineno + line}, in f' in node.stack_trace
        value = node.meta["example_value"]
        assert (value.shape, value.dtype, value.device.type) == ((8,), torch.float32, "cpu")


def test_inputs_that_are_not_used_have_neither_tracker_nor_guard():
    def program(a, b, c, d, e, f, g, h, i, j):
        return c + i

    inputs = [torch.ones(2) for _ in range(10)]
    found = graphlift.explain(program)(*inputs)
    of_the_process = ("torch's global state", "no attribute of class `Parameter`")
    guarded = sorted(line.split()[0] for line in found.guards if not line.startswith(of_the_process))
    assert guarded == ["c", "i"]
    compiled = graphlift.compile(program, backend="eager")
    compiled(*inputs)
    compiled(1, "two", inputs[2], None, {}, [], (), 3.5, inputs[8], object())
    assert len(compiled.report()) == 1


# --- branches -------------------------------------------------------------------------------------


class Sized:
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length


class Answering(Sized):
    def __bool__(self):
        return self.length != 3


class ByTensor:
    def __init__(self, tensor):
        self.tensor = tensor

    def __bool__(self):
        return bool(self.tensor.sum() > 0)


def branching(x, condition):
    if condition:
        return x + 1
    return x - 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 0),
        ("a", ""),
        (True, False),
        (0.5, 0.0),
        ([1], []),
        ((1,), ()),
        ({1: 2}, {}),
        ({1}, set()),
        (range(3), range(0)),
        (Sized(1), Sized(0)),
        (Answering(0), Answering(3)),
        (torch.nn.ModuleList([torch.nn.ReLU()]), torch.nn.ModuleList()),
        (torch.nn.Sequential(torch.nn.ReLU()), torch.nn.Sequential()),
        (object(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_known_decides_and_is_guarded(first, second):
    check(branching, X, first, then=[(X, second), (X, first)], recompiles=None)


def test_a_constant_that_decided_is_guarded():
    def program(x, n):
        return x + 1 if n > 0 else x - 1

    check(program, X, 3, then=[(X, -3), (X, 3)], recompiles=1)


@pytest.mark.parametrize("condition", [torch.ones(1), ByTensor(torch.ones(2))], ids=["tensor", "object"])
def test_a_tensor_breaks(condition):
    with pytest.raises(graphlift.exc.Unsupported, match="Data-dependent"):
        graphlift.compile(branching, backend="eager", fullgraph=True)(X, condition)
    check(branching, X, condition, graphs=None, breaks=None)
