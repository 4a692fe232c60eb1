"""What looks at code and frames: exec and eval of known texts, signatures, type hints, frames, patterns."""

import collections
import inspect
import re
import sys
import types
import typing
import warnings
from dataclasses import dataclass

import pytest
import torch

import graphlift
from graphlift import events
from graphlift.testing import check

X = torch.ones(2, 2)


@dataclass
class DC:
    a: int
    b: list


def sigf(a, b: int = 3, *args, c=None, **kw) -> int: ...


def sig(x):
    s = inspect.signature(sigf)
    return (
        x + len(s.parameters),
        str(s),
        s.parameters["b"].annotation is int,
        s.return_annotation is int,
        [str(v) for v in s.parameters.values()],
    )


def sig_bind(x):
    b = inspect.signature(sigf).bind(1, 2, 3, c=4, d=5)
    b.apply_defaults()
    return x + 1, b.arguments, b.args, b.kwargs


def sig_inside(x):
    def f(a, b: int = 2): ...

    return x + 1, str(inspect.signature(f))


def hints_inside(x):
    def f(a: int, b: "int" = 3) -> str: ...

    class A:
        v: int

    return x + 1, typing.get_type_hints(f), typing.get_type_hints(A)


def exec_eval(x):
    ns = {}
    exec("def g(v):\n    return v * k\nk = 3\ny = [i for i in range(k)]", ns)
    z = 4
    w = eval("z + 1")
    f = eval("lambda q: q * 2")
    code = compile("a + b", "<c>", "eval")
    return (
        ns["g"](x),
        ns["y"],
        w,
        f(x),
        eval(code, {"a": 1}, {"b": 2}),
        sorted(k for k in ns if not k.startswith("__")),
        "__builtins__" in ns,
    )


def exec_ret(x):
    ns = {"t": 5}
    exec("def g(v):\n    return v * t", ns)
    return x + 1, ns["g"](2)


def getframe(x):
    import sys

    def inner():
        return (
            sys._getframe(1).f_code.co_name,
            sys._getframe().f_lineno,
            sys._getframe().f_globals["__name__"],
            sys._getframe().f_back.f_code.co_name,
        )

    return x + 1, inner()


def exec_globals(x):
    names = {"__builtins__": {"len": lambda v: 7}, "k": 2}
    exec("def size(v): return len(v) * k", names)
    return x + 1, names["size"]([1]), eval("[k for k in (1, 2)]", {}), sorted(names)


def exec_in_module(x):
    exec("MADE_HERE = 5", globals())
    return x * MADE_HERE  # noqa: F821


def eval_reads_variables(x):
    a, b = 2, 3

    def inner():
        return eval("a + 1", {"a": b}), a

    return x * eval("a * b"), inner(), eval("(lambda q: q + 1)(a)")


def returned(x):
    names = {"k": 2}
    exec("def f(v):\n    global n\n    n = v\n    return v * k", names)
    return x + 1, names["f"], names


def substituted(x):
    found = []

    def twice(match):
        found.append(match.start())
        return match.group() * 2

    return x + 1, re.sub("a|b", twice, "cab"), re.compile("x*").subn(twice, "axb", count=2), found


def unwrapped(x):
    def f(a):
        return a

    def g(*args):
        return f(*args)

    g.__wrapped__ = f

    class Loop:
        def __repr__(self):
            return "a loop"

    loop = Loop()
    loop.__wrapped__ = loop
    try:
        inspect.unwrap(loop)
    except ValueError as error:
        said = str(error)
    return x + 1, inspect.unwrap(g) is f, str(inspect.signature(g)), said


@pytest.mark.parametrize(
    "program",
    [
        sig,
        sig_bind,
        sig_inside,
        hints_inside,
        exec_eval,
        exec_ret,
        getframe,
        exec_globals,
        eval_reads_variables,
        substituted,
        unwrapped,
    ],
    ids=lambda f: f.__name__,
)
def test_program(program):
    check(program, X)


def test_writes_to_the_module():
    check(exec_in_module, X)
    assert globals().pop("MADE_HERE") == 5


def test_what_exec_made_becomes_real():
    compiled = graphlift.compile(returned, backend="eager", fullgraph=True)
    _, function, names = compiled(X)
    assert function(3) == 6
    assert names["n"] == 3
    assert names["f"] is function
    assert function.__globals__ is names


def test_texts_that_the_compiler_speaks_of_are_left_to_it():
    def program(x):
        with pytest.raises(SyntaxError):
            exec("def (", {})
        return x + 1

    check(program, X, graphs=None, breaks=None)


@pytest.mark.parametrize("text", ["~True", "1if 1else 2", "(1)()if 0 else 1", "'\\d'"])
def test_what_the_compiler_warns_of_it_says_at_each_run(text):
    def said(x):
        return eval(text), x * 2

    def told(function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                function(torch.ones(2))
        return [(one.category, str(one.message), one.lineno) for one in caught]

    assert told(graphlift.compile(said, backend="eager")) == told(said)


def test_names_that_end_as_keywords_do_are_no_reason_to_cut():
    check(lambda x: (eval("bin(5), 3 if x is None else b_in", {"x": 1, "b_in": 2}), x * 2), torch.ones(2))


def breaks():
    graphlift.graph_break()
    return 3


def cut_in_a_text(x):
    names = {"breaks": breaks}
    exec("def outer(x):\n    y = x * 2\n    a = breaks()\n    breaks()\n    return y + a", names)
    return names["outer"](x * 2), x + 1


def cut_in_a_class_of_a_text(x):
    names = {"breaks": breaks}
    exec("def outer(x):\n    class A:\n        a = breaks()\n        b = x\n    return A.b + A.a", names)
    return names["outer"](x * 2), x + 1


def cut_of_a_copied_function(x, k=3):
    def outer(x):
        y = x * 2
        breaks()
        return y + k_global  # noqa: F821

    copied = types.FunctionType(outer.__code__, {"breaks": breaks, "k_global": k})
    graphlift.graph_break()
    return copied(x) + 1


@pytest.mark.parametrize("program", [cut_in_a_text, cut_in_a_class_of_a_text, cut_of_a_copied_function])
def test_graphs_are_cut_in_functions_whose_globals_are_made_anew(program):
    compiled, x = graphlift.compile(program, backend="eager"), torch.ones(2)
    for _ in range(4):
        for got, expected in zip(compiled(x), program(x), strict=True):
            assert torch.equal(got, expected)


def test_functions_of_one_code_with_other_globals():
    def outer(x):
        y = x * 2
        breaks()
        return y + k_global  # noqa: F821

    def copied(k):
        return types.FunctionType(outer.__code__, {"breaks": breaks, "k_global": k})

    def calls(function, x):
        return function(x) + 1

    compiled, x = graphlift.compile(calls, backend="eager"), torch.ones(2)
    kept = copied(5)
    for k in (3, 3, 4, 3, 4):
        assert torch.equal(compiled(copied(k), x), calls(copied(k), x))
        assert torch.equal(compiled(kept, x), calls(kept, x))


def of_this_module(x):
    y = x * 2
    breaks()
    return y + 1


def test_a_function_of_a_module_and_one_of_its_code_with_other_globals():
    reasons = []

    def calls(function, x):
        return function(x) + 1

    compiled, x = graphlift.compile(calls, backend="eager"), torch.ones(2)
    copied = types.FunctionType(of_this_module.__code__, {"breaks": breaks})
    with events.subscribed(lambda event: reasons.extend(event.failures), events.Recompiling):
        for function in (of_this_module, copied, of_this_module, copied, of_this_module):
            assert torch.equal(compiled(function, x), calls(function, x))
    told = "`of_this_module` was a function with other global names"
    assert any(told in reason for reason in reasons)


def test_builtins_of_functions_that_leave():
    """A function keeps the builtins that its globals had when it was made, though filled after it."""

    def program(x):
        kept, seen = {"__builtins__": {}, "q": 1}, {"__builtins__": {"len": sum}, "q": 2}
        made = collections.namedtuple("P", "a b")
        holder = types.SimpleNamespace(f=eval("lambda v: len(v)", seen), of=seen)
        return x * 2, made, eval("lambda: len", kept), holder

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    for _ in range(2):
        _, made, function, holder = compiled(torch.ones(2))
        assert made.__new__.__builtins__ == {}
        assert list(made.__new__.__globals__) == ["_tuple_new", "__builtins__", "__name__"]
        assert function.__builtins__ is function.__globals__["__builtins__"]
        with pytest.raises(NameError, match="name 'len' is not defined"):
            function()
        assert holder.f([1, 2, 3]) == 6
        assert holder.f.__globals__ is holder.of and list(holder.of) == ["__builtins__", "q"]
