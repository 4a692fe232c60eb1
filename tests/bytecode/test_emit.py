"""Emission: each verb, run for real; encoding of arguments, jumps, tables and sizes."""

from __future__ import annotations

import dis
import math
import operator
import sys
import traceback
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from graphlift.bytecode.emit import Emitter, Header, Pools, assemble
from graphlift.bytecode.instruction import Instruction, Label, TryBegin, TryEnd
from graphlift.bytecode.operands import BINARY_OPERATORS
from graphlift.bytecode.verify import verify_code
from graphlift.bytecode.versions import LAYOUT, VERSION
from graphlift.errors import InternalError


def template(x, y=None, z=None):
    return x


HEADER = Header.of(template.__code__)


def code_of(build: Callable[[Emitter], None], header: Header = HEADER) -> types.CodeType:
    """The code that `build` emits behind a prologue, checked for soundness."""
    emitter = Emitter()
    emitter.prologue(header.cellvars, header.freevars)
    build(emitter)
    code = assemble(emitter.items, header)
    verify_code(code)
    return code


def run(build: Callable[[Emitter], None], *args: Any, **scope: Any) -> Any:
    """What the emitted function returns for up to three arguments; warmed up, so specialised as well."""
    function = types.FunctionType(code_of(build), scope, argdefs=(None, None))
    results = [function(*args) for _ in range(20)]
    assert all(repr(result) == repr(results[0]) for result in results)
    return results[-1]


def names(code: types.CodeType) -> list[str]:
    return [item.opname for item in dis.get_instructions(code)]


def result(*verbs: tuple[Any, ...]) -> Callable[[Emitter], None]:
    """A builder that says some verbs, given as (name, arguments...), and returns the top."""

    def build(e: Emitter) -> None:
        for verb, *args in verbs:
            getattr(e, verb)(*args)
        e.return_value()

    return build


# --- the shape that an entry has -----------------------------------------------------------------


def test_entry_of_a_plain_frame_is_exactly_this() -> None:
    def build(e: Emitter) -> None:
        e.prepare_call()
        e.load_global("__compiled_fn_0")
        e.callable_ready()
        e.load_fast("x")
        e.call(1)
        e.store_fast("graph_out_0")
        e.load_fast("graph_out_0")
        e.load_const(0)
        e.subscr()
        e.return_value()

    code = code_of(build)
    precall = ["PRECALL"] if VERSION == (3, 11) else []
    assert names(code) == [
        "RESUME",
        "LOAD_GLOBAL",
        "LOAD_FAST",
        *precall,
        "CALL",
        "STORE_FAST",
        "LOAD_FAST",
        "LOAD_CONST",
        "BINARY_SUBSCR",
        "RETURN_VALUE",
    ]
    assert next(item.arg for item in dis.get_instructions(code) if item.opname == "LOAD_GLOBAL") & 1
    assert code.co_varnames == ("x", "y", "z", "graph_out_0")
    assert run(build, 3, __compiled_fn_0=lambda v: (v * 2,)) == 6


# --- verbs ---------------------------------------------------------------------------------------

X, Y = ("load_fast", "x"), ("load_fast", "y")


@pytest.mark.parametrize(
    ("verbs", "args", "expected"),
    [
        ([X, ("copy",), ("build_tuple", 2)], (1,), (1, 1)),
        ([X, Y, ("copy", 2), ("build_list", 3)], (1, 2), [1, 2, 1]),
        ([X, Y, ("swap", 2), ("build_tuple", 2)], (1, 2), (2, 1)),
        ([X, Y, ("pop",)], (1, 2), 1),
        ([X, Y, X, ("rotate_down", 3), ("build_tuple", 3)], (1, 2), (1, 1, 2)),
        ([X, Y, ("build_set", 2)], (1, 2), {1, 2}),
        ([X, Y, ("build_map", 1)], (1, 2), {1: 2}),
        ([X, Y, ("build_const_key_map", ("a", "b"))], (1, 2), {"a": 1, "b": 2}),
        ([X, Y, ("build_string", 2)], ("a", "b"), "ab"),
        ([X, Y, ("build_slice",)], (1, 2), slice(1, 2)),
        ([X, Y, X, ("build_slice", 3)], (1, 2), slice(1, 2, 1)),
        ([("build_list", 0), X, ("list_append",)], (5,), [5]),
        ([("build_list", 0), X, ("list_extend",), ("list_to_tuple",)], ([1, 2],), (1, 2)),
        ([("build_set", 0), X, ("set_add",), Y, ("set_update",)], (1, [2, 3]), {1, 2, 3}),
        ([("build_map", 0), X, Y, ("map_add",)], (1, 2), {1: 2}),
        ([("build_map", 0), X, ("dict_update",), Y, ("dict_update",)], ({1: 2}, {1: 3}), {1: 3}),
        ([X, ("unpack_sequence", 2), ("build_tuple", 2)], ("ab",), ("b", "a")),
        ([X, ("unpack_ex", 1, 1), ("build_tuple", 3)], ("abcd",), ("d", ["b", "c"], "a")),
        ([X, Y, ("subscr",)], ({1: "one"}, 1), "one"),
        ([X, ("load_attr", "real")], (7,), 7),
        ([X, ("load_method", "upper"), ("call", 0)], ("abc",), "ABC"),
        ([X, ("load_method", "replace"), Y, Y, ("call", 2)], ("abc", "b"), "abc"),
        ([X, ("unary", "-")], (3,), -3),
        ([X, ("unary", "~")], (3,), -4),
        ([X, ("unary", "+")], (True,), 1),
        ([X, ("unary", "not")], ([],), True),
        ([X, ("unary", "not"), ("unary", "not")], ([],), False),
        ([X, Y, ("compare", "<"), ("unary", "not")], (1, 2), False),
        ([X, Y, ("is_",)], (None, None), True),
        ([X, Y, ("is_", True)], (None, None), False),
        ([X, Y, ("contains",)], (1, [1]), True),
        ([X, Y, ("contains", True)], (1, [1]), False),
        ([X, ("format_value",)], (1.5,), "1.5"),
        ([X, ("format_value", "r")], ("a",), "'a'"),
        ([X, Y, ("format_value", "", True)], (1.5, ".3f"), "1.500"),
        ([X, Y, ("format_value", "r", True)], ("a", ">5"), "  'a'"),
        ([X, Y, ("format_value", "a", True)], ("é", ">7"), "'\\xe9'".rjust(7)),
        ([X, ("get_iter",), ("unpack_sequence", 2), ("build_tuple", 2)], ("ab",), ("b", "a")),
        ([("load_fast_check", "x")], (4,), 4),
        (
            [("load_const", 0), ("load_const", None), ("import_name", "math"), ("load_attr", "e")],
            (0,),
            math.e,
        ),
        (
            [("load_const", 0), ("load_const", ("e",)), ("import_name", "math"), ("import_from", "e")],
            (0,),
            math.e,
        ),
    ],
)  # fmt: skip
def test_verbs(verbs: list[tuple[Any, ...]], args: tuple[Any, ...], expected: object) -> None:
    assert run(result(*verbs), *args, __builtins__=__builtins__) == expected


@pytest.mark.parametrize("symbol", BINARY_OPERATORS)
@pytest.mark.parametrize("inplace", [False, True])
def test_binary_operators(symbol: str, inplace: bool) -> None:
    class Matrix(int):
        def __matmul__(self, other):
            return "matmul"

        def __imatmul__(self, other):
            return "imatmul"

    left, right = Matrix(9), Matrix(2)
    words = "add and_ floordiv lshift matmul mul mod or_ pow rshift sub truediv xor".split()
    name = dict(zip(BINARY_OPERATORS, words))[symbol]
    expected = getattr(operator, "i" + name.rstrip("_") if inplace else name)(left, right)
    assert run(result(X, Y, ("binary", symbol, inplace)), left, right) == expected


@pytest.mark.parametrize("symbol", dis.cmp_op)
def test_comparisons_also_when_specialised(symbol: str) -> None:
    """CPython's specialised comparison reads the mask of the argument, so all outcomes are tried often."""
    function = types.FunctionType(code_of(result(X, Y, ("compare", symbol))), {})
    compare = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt,
               ">=": operator.ge}[symbol]  # fmt: skip
    for kind in (int, float, str):
        for _ in range(200):
            for a, b in ((1, 2), (2, 1), (1, 1)):
                assert function(kind(a), kind(b), None) is compare(kind(a), kind(b))


def test_attributes_and_items_are_stored_and_deleted() -> None:
    box = types.SimpleNamespace(gone=1)
    run(result(Y, X, ("store_attr", "a"), ("load_const", None)), box, 5)
    assert box.a == 5
    types.FunctionType(code_of(result(X, ("delete_attr", "gone"), X)), {})(box, None, None)
    assert not hasattr(box, "gone")
    table = {1: 2, 3: 4}
    run(result(Y, X, ("load_const", 9), ("store_subscr",), X), table, 5)
    types.FunctionType(code_of(result(X, ("load_const", 1), ("delete_subscr",), X)), {})(table, None, None)
    assert table == {3: 4, 9: 5}


def test_globals() -> None:
    scope: dict[str, Any] = {"old": 1}
    build = result(X, ("store_global", "new"), ("delete_global", "old"), ("load_global", "new"))
    assert types.FunctionType(code_of(build), scope)(3, None, None) == 3
    assert scope["new"] == 3 and "old" not in scope


def test_locals_come_with_their_first_store_and_go() -> None:
    build = result(X, ("store_fast", "t"), ("load_fast", "t"), ("delete_fast", "t"))
    assert run(build, 3) == 3
    with pytest.raises(UnboundLocalError):
        run(result(X, ("store_fast", "t"), ("delete_fast", "t"), ("load_fast_check", "t")), 1)


def test_constants_returned() -> None:
    for value in (None, 3, "a", (1, (2.5, None)), -0.0, Ellipsis, b"x", frozenset({1})):
        assert repr(run(lambda e, value=value: e.return_const(value), 0)) == repr(value)


# --- calls ---------------------------------------------------------------------------------------


def collect(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    return args, kwargs


@pytest.mark.parametrize("loaded", ["global", "local", "attribute", "constant"])
@pytest.mark.parametrize(("count", "keywords"), [(0, ()), (2, ()), (2, ("a",)), (2, ("a", "b"))])
def test_calls(loaded: str, count: int, keywords: tuple[str, ...]) -> None:
    def build(e: Emitter) -> None:
        e.prepare_call()
        if loaded == "global":
            e.load_global("collect")
        elif loaded == "local":
            e.load_fast("x")
        elif loaded == "attribute":
            e.load_global("box")
            e.load_attr("collect")
        else:
            e.load_const(collect)
        e.callable_ready()
        for value in range(count):
            e.load_const(value)
        e.call(count, keywords)
        e.return_value()

    plain = count - len(keywords)
    expected = (tuple(range(plain)), dict(zip(keywords, range(plain, count))))
    assert run(build, collect, collect=collect, box=types.SimpleNamespace(collect=collect)) == expected


@pytest.mark.parametrize(
    ("count", "keywords"), [(0, ()), (1, ()), (3, ()), (1, ("a",)), (3, ("a", "b")), (3, ("a", "b", "c"))]
)
@pytest.mark.parametrize("target", [collect, types.MethodType(collect, "self"), print, dict, "".join])
def test_call_of_what_is_on_the_stack_already(
    count: int, keywords: tuple[str, ...], target: Callable[..., Any]
) -> None:
    def build(e: Emitter) -> None:
        e.load_const("below")
        e.load_fast("x")
        for value in range(count):
            e.load_const(value)
        e.call_on_stack(count, keywords)
        e.build_tuple(2)
        e.return_value()

    plain = count - len(keywords)
    args, kwargs = tuple(range(plain)), dict(zip(keywords, range(plain, count)))
    try:
        expected = ("below", target(*args, **kwargs))
    except Exception as error:
        with pytest.raises(type(error)):
            run(build, target)
    else:
        assert run(build, target) == expected


@pytest.mark.parametrize("keywords", [False, True])
def test_calls_with_unpacked_arguments(keywords: bool) -> None:
    def build(e: Emitter) -> None:
        e.prepare_call()
        e.load_fast("x")
        e.callable_ready()
        e.load_fast("y")
        if keywords:
            e.load_fast("z")
        e.call_ex(keywords)
        e.return_value()

    assert run(build, collect, (1, 2), {"k": 3}) == ((1, 2), {"k": 3} if keywords else {})


def test_null_never_joins_across_a_label() -> None:
    """A jump to the label must find the stack as it is on the other path."""

    def build(e: Emitter) -> None:
        again = Label()
        e.load_fast("y")
        e.place(again)
        e.pop()
        e.prepare_call()
        e.place(Label())
        e.load_global("len")
        e.place(Label())
        e.callable_ready()
        e.load_fast("x")
        e.call(1)
        e.return_value()

    assert run(build, "abc", len=len) == 3
    assert "PUSH_NULL" in names(code_of(build))


def test_keyword_errors_are_the_callees() -> None:
    def build(e: Emitter) -> None:
        e.prepare_call()
        e.load_global("f")
        e.callable_ready()
        e.load_const(1)
        e.call(1, ("wrong",))
        e.return_value()

    with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
        run(build, 0, f=lambda a: a)


# --- jumps, loops, handlers ------------------------------------------------------------------------


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("value", [0, 1, [], [0], "", None])
def test_conditional_jump(truth: bool, value: object) -> None:
    def build(e: Emitter) -> None:
        there = Label()
        e.load_fast("x")
        e.pop_jump_if(there, truth)
        e.return_const("went on")
        e.place(there)
        e.return_const("jumped")

    assert run(build, value) == ("jumped" if bool(value) is truth else "went on")


@pytest.mark.parametrize("none", [True, False])
@pytest.mark.parametrize("value", [0, None])
def test_jump_if_none(none: bool, value: object) -> None:
    def build(e: Emitter) -> None:
        there = Label()
        e.load_fast("x")
        e.pop_jump_if_none(there, none)
        e.return_const("went on")
        e.place(there)
        e.return_const("jumped")

    assert run(build, value) == ("jumped" if (value is None) is none else "went on")


def test_backward_conditional_jump() -> None:
    def build(e: Emitter) -> None:
        top = Label()
        e.place(top)
        e.load_fast("x")
        e.load_const(1)
        e.binary("-", True)
        e.store_fast("x")
        e.load_fast("x")
        e.load_const(0)
        e.compare(">")
        e.pop_jump_if(top)
        e.load_fast("x")
        e.return_value()

    assert run(build, 100) == 0


def summing(e: Emitter) -> None:
    """The sum of `x` from `y` on."""
    top, done = Label("top"), Label("done")
    e.load_fast("y")
    e.store_fast("total")
    e.load_fast("x")
    e.get_iter()
    e.place(top)
    e.for_iter(done)
    e.load_fast("total")
    e.swap(2)
    e.binary("+", True)
    e.store_fast("total")
    e.jump(top)
    e.end_for(done)
    e.load_fast("total")
    e.return_value()


@pytest.mark.parametrize("items", [[], [1, 2, 3], range(5), (n for n in range(0)), {1, 2}])
def test_loop(items: Any) -> None:
    items = list(items) if isinstance(items, types.GeneratorType) else items
    assert run(summing, items, 10) == 10 + sum(items)
    assert types.FunctionType(code_of(summing), {})((n for n in range(4)), 0, None) == 6


def guarded_division(e: Emitter) -> None:
    """x / y, or the handled ZeroDivisionError, with a value below the protected range's depth."""
    handler, other, cleanup = Label("handler"), Label("other"), Label("cleanup")
    e.load_const("below")
    with e.protected(handler):
        e.load_fast("x")
        e.load_fast("y")
        e.binary("/")
        e.build_tuple(2)
        e.return_value()
    e.place(handler)
    with e.protected(cleanup, lasti=True) as range_of_handler:
        e.push_exc_info()
        e.load_global("ZeroDivisionError")
        e.check_exc_match()
        e.pop_jump_if(other, False)
        e.store_fast("error")
        with e.outside(range_of_handler):
            e.pop_except()
            e.load_fast("error")
            e.build_tuple(2)
            e.return_value()
        e.place(other)
        e.reraise()
    e.handler_end(cleanup)


def test_handler() -> None:
    assert run(guarded_division, 6, 2) == ("below", 3.0)
    function = types.FunctionType(code_of(guarded_division), {"__builtins__": __builtins__})
    below, error = function(1, 0, None)
    assert below == "below" and isinstance(error, ZeroDivisionError)
    assert sys.exc_info() == (None, None, None)
    with pytest.raises(TypeError):
        function(1, "a", None)


def test_inner_range_goes_before_outer() -> None:
    def build(e: Emitter) -> None:
        outer, inner = Label(), Label()
        with e.protected(outer):
            with e.protected(inner):
                e.load_fast("x")
                e.load_const(1)
                e.binary("+")
                e.pop()
            e.load_fast("y")
            e.load_const(1)
            e.binary("+")
            e.return_value()
        for label, text in ((inner, "inner"), (outer, "outer")):
            e.place(label)
            e.push_exc_info()
            e.pop()
            e.pop_except()
            e.return_const(text)

    assert run(build, 1, 2) == 3
    assert run(build, "a", 2) == "inner"
    assert run(build, 1, "a") == "outer"


def entered_in_its_middle(e: Emitter, depth: int | None) -> None:
    """A range whose middle is reached by a jump before its start is reached."""
    handler, start, middle = Label("handler"), Label("start"), Label("middle")
    begin = TryBegin(handler, depth=depth)
    e.load_fast("x")
    e.pop_jump_if(middle, False)
    e.jump(start)
    e.place(start)
    e.items.append(begin)
    e.emit("NOP")
    e.place(middle)
    e.load_const(1)
    e.load_fast("x")
    e.binary("/")
    e.return_value()
    e.items.append(TryEnd(begin))
    e.place(handler)
    e.push_exc_info()
    e.pop()
    e.pop_except()
    e.return_const("handled")


@pytest.mark.parametrize("depth", [None, 0])
def test_range_entered_in_its_middle(depth: int | None) -> None:
    assert run(lambda e: entered_in_its_middle(e, depth), 2) == 0.5
    assert run(lambda e: entered_in_its_middle(e, depth), 0) == "handled"


def test_with_block() -> None:
    """The code that the compiler makes for ``with x: return y()``, in verbs."""

    def build(e: Emitter) -> None:
        handler, cleanup, suppressed = Label(), Label(), Label()
        e.load_fast("x")
        e.before_with()
        begin = TryBegin(handler, lasti=True, depth=1)
        e.items.append(begin)
        e.pop()
        e.prepare_call()
        e.load_fast("y")
        e.callable_ready()
        e.call(0)
        e.items.append(TryEnd(begin))
        e.swap(2)
        e.load_const(None)
        e.copy()
        e.copy()
        e.call_on_stack(3)
        e.pop()
        e.return_value()
        e.place(handler)
        with e.protected(cleanup, lasti=True):
            e.push_exc_info()
            e.with_except_start()
            e.pop_jump_if(suppressed)
            e.reraise(2)
            e.place(suppressed)
            e.pop()
        e.pop_except()
        e.pop()
        e.pop()
        e.return_const("suppressed")
        e.handler_end(cleanup)

    class Manager:
        def __init__(self, suppress: bool) -> None:
            self.suppress, self.seen = suppress, []

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            self.seen.append(exc[0])
            return self.suppress

    function = types.FunctionType(code_of(build), {})
    manager = Manager(suppress=True)
    assert function(manager, lambda: 5, None) == 5
    assert function(manager, lambda: 1 / 0, None) == "suppressed"
    assert manager.seen == [None, ZeroDivisionError]
    with pytest.raises(ZeroDivisionError):
        function(Manager(suppress=False), lambda: 1 / 0, None)
    assert sys.exc_info() == (None, None, None)


@pytest.mark.parametrize("distance", [1, 127, 128, 254, 255, 256, 257, 33_000, 70_000])
def test_jumps_of_any_length(distance: int) -> None:
    def build(e: Emitter) -> None:
        top, over, end = Label(), Label(), Label()
        e.place(top)
        e.load_fast("x")
        e.pop_jump_if(over, False)
        e.load_const(0)
        e.store_fast("x")
        for _ in range(distance):
            e.emit("NOP")
        e.jump(top)
        e.place(over)
        e.jump(end)
        e.place(end)
        e.load_fast("x")
        e.return_value()

    code = code_of(build)
    assert types.FunctionType(code, {})(3, None, None) == 0


def test_arguments_of_any_size() -> None:
    def build(e: Emitter) -> None:
        for n in range(70_000):
            e.load_const(n)
            e.pop()
        e.load_const(69_999)
        e.return_value()

    assert types.FunctionType(code_of(build), {})(0, None, None) == 69_999


# --- closures, functions, generators ---------------------------------------------------------------


def test_cells_and_functions() -> None:
    """``def f(x, y): def g(a=x, *, b=y): return x, a, b; x = x + 1; return g``"""
    inner_header = Header(
        name="g",
        qualname="f.<locals>.g",
        filename="a.py",
        firstlineno=3,
        flags=0x13,
        argcount=1,
        kwonlyargcount=1,
        varnames=("a", "b"),
        freevars=("x",),
    )
    inner = code_of(
        result(("load_deref", "x"), ("load_fast", "a"), ("load_fast", "b"), ("build_tuple", 3)), inner_header
    )

    def build(e: Emitter) -> None:
        e.load_deref("x")
        e.build_tuple(1)
        e.load_fast("y")
        e.build_const_key_map(("b",))
        e.load_closure("x")
        e.build_tuple(1)
        e.load_const(inner)
        e.make_function(("defaults", "kwdefaults", "closure"))
        e.load_deref("x")
        e.load_const(1)
        e.binary("+")
        e.store_deref("x")
        e.return_value()

    function = types.FunctionType(code_of(build, replace(HEADER, cellvars=("x",))), {})
    made = function(1, 2, None)
    assert made() == (2, 1, 2) and made(7, b=8) == (2, 7, 8)
    assert made.__qualname__ == "f.<locals>.g"


def test_parts_of_a_function_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="out of order"):
        Emitter().make_function(("closure", "defaults"))


def test_local_and_free_variable_of_one_name() -> None:
    header = replace(HEADER, freevars=("x",))
    code = code_of(result(("load_fast", "x"), ("load_deref", "x.free"), ("build_tuple", 2)), header)
    function = types.FunctionType(code, {}, closure=(types.CellType("free"),))
    assert function("local", None, None) == ("local", "free")


def test_generator() -> None:
    emitter = Emitter()
    emitter.generator_prologue()
    emitter.load_fast("x")
    emitter.yield_value()
    emitter.return_value()
    code = assemble(emitter.items, replace(HEADER, flags=HEADER.flags | 0x20))
    verify_code(code)
    generator = types.FunctionType(code, {})(5, None, None)
    assert next(generator) == 5
    with pytest.raises(StopIteration) as stop:
        generator.send("sent")
    assert stop.value.value == "sent"


# --- header, pools, positions ----------------------------------------------------------------------


def test_header_names_the_users_function() -> None:
    code = code_of(result(X))
    assert Header.of(code) == HEADER
    assert code.co_name == "template" and code.co_filename == __file__


def test_header_of_every_kind_of_parameter() -> None:
    def f(a, /, b, *c, d, **e):
        t = a
        return t

    assert Header.of(f.__code__) == Header(
        name="f", qualname=f.__qualname__, filename=__file__, firstlineno=f.__code__.co_firstlineno,
        flags=f.__code__.co_flags, argcount=2, posonlyargcount=1, kwonlyargcount=1,
        varnames=("a", "b", "d", "c", "e", "t"),
    )  # fmt: skip


def test_constants_are_told_apart_by_type_and_bits() -> None:
    pools = Pools(HEADER)
    nan = float("nan")
    numbers = [0, False, 0.0, -0.0, 0j, -0j, complex(-0.0, 0.0), nan, float("nan")]
    containers = [
        (),
        (0,),
        (False,),
        (0.0,),
        (-0.0,),
        ((0,),),
        frozenset(),
        frozenset({0}),
        frozenset({False}),
    ]
    values = [*numbers, *containers, "", b"", "0", ..., [], []]
    indices = [pools.const(value) for value in values]
    assert len(set(indices)) == len(values)
    assert [pools.const(value) for value in values] == indices
    assert pools.const(None) == 0 and pools.consts[0] is None
    assert pools.const((0, "a" * 2)) == pools.const((0, "aa"))


def test_positions_reach_the_traceback() -> None:
    def build(e: Emitter) -> None:
        with e.at((HEADER.firstlineno + 1, HEADER.firstlineno + 1, 4, 12)):
            e.load_fast("x")
            e.load_const(0)
            e.binary("/")
            e.return_value()

    with pytest.raises(ZeroDivisionError) as caught:
        run(build, 1)
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (frame.name, frame.lineno, frame.colno, frame.end_colno) == (
        "template",
        HEADER.firstlineno + 1,
        4,
        12,
    )
    assert frame.line == "return x"


def test_code_without_position_is_at_the_functions_first_line() -> None:
    """Never at no line: debuggers and test runners fail on such traceback entries."""
    with pytest.raises(ZeroDivisionError) as caught:
        run(result(X, ("load_const", 0), ("binary", "/")), 1)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].lineno == HEADER.firstlineno


# --- what is refused -------------------------------------------------------------------------------


def refuse(match: str, *items: Any) -> None:
    with pytest.raises(InternalError, match=match):
        assemble([Instruction("RESUME", 0), *items], HEADER)


def test_refused() -> None:
    leave = Instruction("RETURN_VALUE")
    load = Instruction("LOAD_FAST", "x")
    refuse("no local 'nothing'", Instruction("LOAD_FAST", "nothing"), leave)
    refuse("too few values", leave)
    refuse("runs off the end", load)
    refuse("before no instruction", Instruction("JUMP_FORWARD", Label("nowhere")))
    here = Label()
    refuse("cannot jump in that direction", here, Instruction("JUMP_FORWARD", here))
    refuse("reached at depths", here, load, Instruction("JUMP_BACKWARD", here))
    with pytest.raises(InternalError, match="no instructions"):
        assemble([], HEADER)


def test_null_order_is_the_layouts() -> None:
    code = code_of(result(("prepare_call",), X, ("callable_ready",), ("call", 0)))
    order = [name for name in names(code) if name in ("LOAD_FAST", "PUSH_NULL")]
    assert order == (["LOAD_FAST", "PUSH_NULL"] if LAYOUT.null_after_callable else ["PUSH_NULL", "LOAD_FAST"])
