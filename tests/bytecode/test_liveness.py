"""Live locals: what must be kept at each place, and no more."""

from __future__ import annotations

import difflib
import json.decoder
import json.encoder
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any

import pytest

from graphlift.bytecode.decode import decode
from graphlift.bytecode.emit import Header, Pools, assemble
from graphlift.bytecode.instruction import Instruction, Item
from graphlift.bytecode.liveness import live_locals
from graphlift.bytecode.reassemble import disassemble
from graphlift.bytecode.verify import verify_code
from graphlift.bytecode.versions import LAYOUT, VERSION


def live_at(function: Callable[..., Any], op: str, operand: Any = ...) -> tuple[str, ...]:
    """Live locals before the only step with this opcode (and operand)."""
    decoded = decode(function.__code__)
    (at,) = [
        index
        for index, step in enumerate(decoded.steps())
        if step.op == op and (operand is ... or operand == step.operand[0])
    ]
    return live_locals(function.__code__).before(at)


def test_straight_line() -> None:
    def f(a, b, c):
        d = a.first()
        e = d.second(b)
        return e.third()

    method = "LOAD_METHOD" if VERSION == (3, 11) else "LOAD_ATTR"
    assert live_at(f, method, "first") == ("b",)
    assert live_at(f, method, "second") == ("b",)
    assert live_at(f, method, "third") == ()
    assert live_at(f, "RESUME") == ("a", "b")


def test_loop_keeps_what_the_next_turn_reads() -> None:
    def f(items, factor, unused):
        total = 0
        for item in items:
            total = total + item * factor
        return total

    assert live_at(f, "FOR_ITER") == ("factor", "total")
    assert live_at(f, "GET_ITER") == ("factor", "total")


def test_branch_takes_both_sides() -> None:
    def f(x, a, b):
        if x.flag:
            return a
        return b

    assert live_at(f, "LOAD_ATTR") == ("a", "b")


def test_handler_reads_what_the_body_has() -> None:
    def f(x, spare):
        try:
            y = x.risky()
        except ValueError:
            y = spare
        return y

    method = "LOAD_METHOD" if VERSION == (3, 11) else "LOAD_ATTR"
    assert live_at(f, method, "risky") == ("spare",)
    assert live_at(f, "PUSH_EXC_INFO") == ("spare",)


def test_old_value_lives_while_the_new_one_may_fail() -> None:
    def f(x):
        y = 1
        try:
            y = x.risky()
        except ValueError:
            pass
        return y

    method = "LOAD_METHOD" if VERSION == (3, 11) else "LOAD_ATTR"
    assert "y" in live_at(f, method, "risky")


def test_cells_are_slots() -> None:
    def f(x, y):
        def g():
            return x

        x = y
        return g

    assert live_at(f, "MAKE_CELL") == ("x", "y")
    assert live_at(f, "STORE_DEREF") == ("x", "g")  # the cell is needed to write into it
    assert live_at(f, "RETURN_VALUE") == ()


def test_free_variables_come_with_their_copy() -> None:
    def outer(a):
        def f(b):
            return a + b

        return f

    f = outer(1)
    assert live_at(f, "COPY_FREE_VARS") == ("b",)
    assert live_at(f, "RESUME") == ("b", "a")


@pytest.mark.parametrize("word", ["locals()", "vars()", "dir()", "eval('a')", "sys._getframe()"])
def test_code_that_looks_at_its_frame_keeps_all(word: str) -> None:
    scope: dict[str, Any] = {"sys": sys}
    exec(f"def f(a, b):\n    {word}\n    return 1", scope)
    live = live_locals(scope["f"].__code__)
    assert all(live.before(at) == ("a", "b") for at in range(len(decode(scope["f"].__code__))))


def test_a_method_named_like_a_builtin_keeps_nothing() -> None:
    def f(model, b):
        model.eval()
        return 1

    assert live_at(f, "RETURN_CONST" if VERSION > (3, 11) else "RETURN_VALUE") == ()


def test_super_reads_its_argument_from_the_frame() -> None:
    class Child(list):
        def f(self, x):
            __class__
            make = super
            return make().append(x)

    live = live_locals(Child.f.__code__)
    last = len(decode(Child.f.__code__)) - 1
    assert live.before(last) == ("self", "__class__")


# --- the proof by running -------------------------------------------------------------------------


class Poison:
    """Stands in dead locals; whoever reads one finds out."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("a dead local was read")

    __call__ = __iter__ = __add__ = __radd__ = __bool__ = __eq__ = __getitem__ = __len__ = __index__ = (
        __lt__
    ) = __contains__ = lambda *args: Poison.__getattribute__(*args[:1], "")
    __hash__ = None


POISON = Poison()


def poisoned(code: types.CodeType) -> types.CodeType:
    """The code with every dead plain local overwritten before every instruction."""
    code = code.replace(
        co_consts=tuple(poisoned(c) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    )
    live, decoded = live_locals(code), decode(code)
    plain = set(code.co_varnames) - set(code.co_cellvars)
    items: list[Item] = []
    started, skipped = False, 0
    index = 0
    for item in disassemble(code):
        if isinstance(item, Instruction) and item.op not in ("NOP", "PRECALL"):
            # What a loop's end jumps over must stay where it is, and the prologue has no frame yet.
            skipped = len(LAYOUT.for_iter_skips) if item.op == "END_FOR" else skipped
            if started and skipped == 0 and item.op not in LAYOUT.inseparable.values():
                for name in plain - set(live.before(index)):
                    items.append(Instruction("LOAD_CONST", POISON, item.position))
                    items.append(Instruction("STORE_FAST", name, item.position))
            skipped = max(skipped - 1, 0)
            started = started or item.op == "RESUME"
            index += 1
        items.append(item)
    assert index == len(decoded)
    made = assemble(items, Header.of(code), Pools(Header.of(code), code.co_consts, code.co_names))
    verify_code(made)
    return made


def poisoned_module(module: types.ModuleType) -> dict[str, Any]:
    """The namespace of a module whose code was poisoned."""
    with open(module.__file__, encoding="utf-8") as file:
        code = compile(file.read(), module.__file__, "exec")
    scope = {"__name__": module.__name__, "__package__": module.__package__, "__spec__": module.__spec__}
    exec(poisoned(code), scope)
    return scope


def test_dead_locals_are_never_read_in_real_programs() -> None:
    text = textwrap.dedent(textwrap.__doc__) * 3 + "\n\n  indented\n\ttabs   and   spaces " * 9
    wrap = poisoned_module(textwrap)
    assert wrap["wrap"](text, 30) == textwrap.wrap(text, 30)
    assert wrap["shorten"](text, 50) == textwrap.shorten(text, 50)
    assert wrap["indent"](text, "> ") == textwrap.indent(text, "> ")
    lines = text.splitlines()
    diff = poisoned_module(difflib)
    for other in (lines[2:], lines[::-1], [line + "x" for line in lines]):
        assert list(diff["ndiff"](lines, other)) == list(difflib.ndiff(lines, other))
        assert list(diff["unified_diff"](lines, other)) == list(difflib.unified_diff(lines, other))
    data = {"a": [1, 2.5, None, True, {"b": 'ü\n"', "c": []}], "d": {}, "e": [[], {}, [[1]]]}
    encode = poisoned_module(json.encoder)
    for options in ({"indent": 2}, {"sort_keys": True}, {"indent": None, "ensure_ascii": False}):
        made = encode["JSONEncoder"](**options)
        made.c_make_encoder = None
        assert "".join(made.iterencode(data)) == "".join(json.encoder.JSONEncoder(**options).iterencode(data))
    scan = poisoned_module(json.decoder)
    scan["JSONDecoder"].__init__.__globals__["scanner"] = types.SimpleNamespace(
        make_scanner=json.scanner.py_make_scanner
    )
    decoder = scan["JSONDecoder"]()
    decoder.parse_string, decoder.parse_object = scan["py_scanstring"], scan["JSONObject"]
    decoder.scan_once = json.scanner.py_make_scanner(decoder)
    assert decoder.decode(json.dumps(data, indent=1)) == data
    with pytest.raises(Exception, match="Expecting"):
        decoder.decode("[1, 2")


def test_poison_would_be_noticed() -> None:
    """The proof above proves something: a live local overwritten ends the program."""

    def f(a, b):
        return a + b

    items = disassemble(f.__code__)
    at = next(n for n, item in enumerate(items) if isinstance(item, Instruction) and item.op == "RESUME")
    items[at + 1 : at + 1] = [Instruction("LOAD_CONST", POISON), Instruction("STORE_FAST", "b")]
    broken = types.FunctionType(assemble(items, Header.of(f.__code__)), {})
    with pytest.raises(AssertionError, match="dead local"):
        broken(1, 2)
