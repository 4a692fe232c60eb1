"""Python functions: calls, defaults, closures, fields, decorators, partials."""

from __future__ import annotations

import functools
import inspect
import os
from types import FunctionType, MethodType

import pytest
import torch

import graphlift
from graphlift.testing.check import check, check_fresh

X = torch.arange(3.0)


def calls(x):
    def g(y, k=2, /, m=1, *rest, z=3, **more):
        return y * k + z + m, rest, more

    return g(x), g(x, 4, 5, 6, 7), g(x, z=1, w=2), g(x, m=2, k=9)


def closures(x):
    n = 0

    def inc(by=1):
        nonlocal n
        n += by
        return n

    inc()
    inc(by=4)
    adders = [lambda y, i=i: y + i + n for i in range(3)]
    return x * n, [add(x) for add in adders]


def recursion(x):
    def down(n, y):
        return y if n == 0 else down(n - 1, y + 1)

    return down(5, x)


def fields(x):
    def f(a, b=x, *, c=(1, 2)):
        """Doc."""
        return a + b + c[0]

    f.tag = 4
    f.__name__ = "renamed"
    f.__dict__["more"] = 5
    return (
        f(x),
        f.tag,
        f.more,
        f.__name__,
        f.__qualname__,
        f.__doc__,
        f.__module__,
        f.__code__.co_argcount,
        hasattr(f, "nope"),
        f.__defaults__[0] is x,
        sorted(f.__dict__),
    )


def errors(x):
    def f(a, b, *, c):
        pass

    def g(a, b=1, /, d=2):
        pass

    out = []
    for call in (
        lambda: f(1),
        lambda: f(1, 2),
        lambda: f(1, 2, 3, c=1),
        lambda: f(1, 2, c=1, d=4),
        lambda: f(1, 2, c=1, a=3),
        lambda: f(c=1),
        lambda: g(1, 2, 3, 4),
        lambda: g(a=1),
        lambda: g(),
        lambda: g(1, e=3),
    ):
        try:
            call()
        except TypeError as e:
            out.append(str(e))
    return x + 1, out


def decorator(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs) + 1

    return wrapper


@decorator
def decorated(x, s=2):
    """Decorated."""
    return x * s


def decorators(x):
    @decorator
    def inner(x):
        """Inner."""
        return x

    return decorated(x) + decorated(x, s=4), inner(x), inner.__name__, inner.__doc__, inner.__wrapped__(x)


bound_outside = functools.partial(decorated, s=7)


def partials(x):
    p = functools.partial(lambda a, b, c=1: a * b + c, x, c=5)
    q = functools.partial(p, 2)
    return p(3), p(b=2, c=0), q(), q.args, q.keywords, bound_outside(x), bound_outside.func is decorated


class Powers:
    def power(self, x, p):
        return x**p

    square = functools.partialmethod(power, p=2)


def partial_methods(x):
    return Powers().square(x), Powers.square(Powers(), x), Powers.power.__get__(Powers())(x, 3)


class Holder:
    def __init__(self):
        self.k = 3
        self.calls = [self.method, functools.partial(self.method, k=4), MethodType(function_of, self)]

    def method(self, x, k=1):
        return x * k * self.k


def function_of(self, x):
    return x - self.k


def bound_methods(x, h):
    m = h.method
    return (
        [f(x) for f in h.calls],
        m(x),
        m.__self__ is h,
        m.__func__ is Holder.method,
        m.__name__,
        MethodType(function_of, h)(x),
    )


def keywords(x):
    def f(*, a, **kw):
        return a, kw

    d = {"a": 1}
    return x + 1, f(**d, b=2), f(**{**d, "z": 2})


def signatures(x):
    def f(a, b=2, *args, c, d=4, **kw):
        pass

    s = inspect.signature(f)
    return (
        x + len(s.parameters),
        list(s.parameters),
        "b" in s.parameters,
        s.parameters["b"].default,
        s.parameters["a"].default is inspect.Parameter.empty,
        s.parameters["c"].kind is inspect.Parameter.KEYWORD_ONLY,
        [p.name for p in inspect.signature(decorated).parameters.values()],
    )


def environment(x):
    return (
        x + len(os.environ.get("GRAPHLIFT_TEST_NAME", "four")),
        os.getenv("GRAPHLIFT_TEST_NONE"),
        "HOME" in os.environ,
    )


@pytest.mark.parametrize(
    "program",
    [
        calls,
        closures,
        recursion,
        fields,
        errors,
        decorators,
        partials,
        partial_methods,
        keywords,
        signatures,
        environment,
    ],
    ids=lambda f: f.__name__,
)
def test_program(program):
    check(program, X)


def test_bound_methods():
    check(bound_methods, X, Holder())


def test_fresh_closures_share_one_capture():
    def make(k):
        return lambda y: y * k

    def program(x, f):
        return f(x)

    check(program, X, make(2), then=[(X, make(2))], recompiles=0)


def test_new_code_is_seen():
    def program(x):
        return helper(x)

    def helper(x):
        return x + 1

    def other(x):
        return x * 5

    import graphlift

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), X + 1)
    helper.__code__ = other.__code__
    assert torch.equal(compiled(X), X * 5)


def test_new_defaults_are_seen():
    import graphlift

    def helper(x, k=2, *, m=3):
        return x * k + m

    compiled = graphlift.compile(lambda x: helper(x), backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), X * 2 + 3)
    helper.__defaults__ = (4,)
    assert torch.equal(compiled(X), X * 4 + 3)
    helper.__kwdefaults__ = {"m": 0}
    assert torch.equal(compiled(X), X * 4)


def test_environment_is_guarded(monkeypatch):
    import graphlift

    compiled = graphlift.compile(
        lambda x: x + len(os.environ.get("GRAPHLIFT_TEST_NAME", "")), backend="eager"
    )
    assert torch.equal(compiled(X), X)
    monkeypatch.setenv("GRAPHLIFT_TEST_NAME", "abc")
    assert torch.equal(compiled(X), X + 3)
    monkeypatch.setenv("GRAPHLIFT_TEST_NAME", "abcde")
    assert torch.equal(compiled(X), X + 5)


def test_functions_that_leave():
    import graphlift

    def program(x):
        k = x * 2
        cycle = []

        def f(a, b=3, *, c=k):
            return a + b + k, c, cycle

        f.attr = k
        cycle.append(f)
        return f, functools.partial(f, 1), [f]

    f, p, (again,) = graphlift.compile(program, backend="eager", fullgraph=True)(X)
    assert f is again and p.func is f and f(0)[2][0] is f
    assert torch.equal(f(1)[0], X * 2 + 4) and f.__defaults__ == (3,) and f.__kwdefaults__["c"] is f.attr
    assert f.__qualname__ == program.__qualname__ + ".<locals>.f" and f.__module__ == __name__


def test_shared_cells_stay_shared():
    def make():
        n = 0

        def inc(x):
            nonlocal n
            n += 1
            return x + n

        return lambda x: (inc(x), inc(x), n, lambda: n), (X,)

    got = check_fresh(make)
    assert got is not None


@pytest.mark.parametrize("cut", [False, True])
def test_annotations_of_a_function_made_inside(cut):
    def program(x):
        kind = type(x)

        def f(a: kind, *rest: int, b: "later" = 1) -> float:  # noqa: F821, UP037
            return a

        if cut:
            graphlift.graph_break()
        f.__annotations__["more"] = x.dtype
        return f, f.__annotations__, f.__annotations__ is f.__annotations__, x + 1

    plain, compiled = program(X), graphlift.compile(program, backend="eager", fullgraph=not cut)(X)
    assert plain[1:3] == compiled[1:3] and len(plain[1]) == 5
    assert compiled[0].__annotations__ is compiled[1]


def _of_no_module(source):
    namespace = {"__builtins__": __builtins__}
    exec(source, namespace)
    return namespace


@pytest.mark.parametrize("stable", [True, False])
def test_globals_of_no_module_are_guarded_and_written(stable):
    source = "scale = 2\ndef body(x):\n    global seen\n    seen = scale\n    return x * scale\n"
    namespace = _of_no_module(source)
    body = namespace["body"]

    if stable:

        def program(body_, x):
            return held[0](x) + 1

        held = [body]
    else:

        def program(body_, x):
            return body_(x) + 1

    compiled = graphlift.compile(program, backend="eager")
    for scale in (2, 5):
        namespace["scale"] = scale
        assert torch.equal(compiled(body, torch.ones(2)), torch.full((2,), scale + 1.0))
        assert namespace["seen"] == scale
    other = _of_no_module(source)
    other["scale"] = 7
    if not stable:
        other_body = FunctionType(body.__code__, other)
        assert torch.equal(compiled(other_body, torch.ones(2)), torch.full((2,), 8.0))
        assert other["seen"] == 7
        assert namespace["seen"] == 5


def _counter():
    n = 0

    def more():
        nonlocal n
        n += 1

    def get():
        return n

    return more, get


def test_that_two_functions_share_a_cell_is_guarded():
    def program(x, more, get):
        more()
        return x + get()

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    (more, get), (_, other) = _counter(), _counter()
    assert torch.equal(compiled(X, more, get), X + 1)
    assert torch.equal(compiled(X, more, other), X)
    assert torch.equal(compiled(X, more, get), X + 3)


def test_a_cell_of_the_captured_function_may_be_that_of_an_argument():
    def make():
        n = 0

        def get():
            return n

        def program(x, get):
            nonlocal n
            n += 1
            return x + get()

        return program, get

    program, get = make()
    _, other = make()
    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X, get), X + 1)
    assert torch.equal(compiled(X, other), X)
    assert torch.equal(compiled(X, get), X + 3)


def test_that_functions_share_their_keyword_defaults_is_guarded():
    def make(k):
        def function(*, k=k):
            return k

        return function

    one, two = make(1), make(1)
    two.__kwdefaults__ = one.__kwdefaults__
    compiled = graphlift.compile(lambda x, f, g: x + f() + g(), backend="eager", fullgraph=True)
    assert torch.equal(compiled(X, one, two), X + 2)
    assert torch.equal(compiled(X, one, make(10)), X + 11)


class Callable_:
    def __call__(self, n):
        return n + 1


_cached_object = functools.lru_cache(Callable_())


def test_what_is_under_a_cache_need_not_be_a_function():
    check(lambda x: x + _cached_object(1), X, graphs=None, breaks=None)


# --- merged keyword arguments ------------------------------------------------------------------------


def listed(**named):
    return list(named.items())


def test_keywords_from_several_dictionaries_come_in_order():
    def program(x, first, second):
        made = {"c": x + 1}
        return listed(**first, z=1, **made, **second), first, second

    check(program, torch.ones(2), {"b": 2, "a": 3}, {"y": 4, "d": 5})


@pytest.mark.parametrize("second", [{"b": 1, "a": 5}, {1: 2}, {"c": 1, None: 2}])
def test_keywords_that_do_not_merge_are_the_error_of_the_call(second):
    graphlift.reset()

    def program(x, first, second):
        try:
            return listed(x=x + 1, **first, **second)
        except TypeError as error:
            return str(error), x * 2

    check(program, torch.ones(2), {"a": 1}, second)


def test_a_mapping_is_asked_for_keys_and_items_unless_it_is_a_dictionary_that_iterates_as_one():
    class Hidden(dict):
        def keys(self):
            return reversed(list(super().keys()))

        def __getitem__(self, key):
            return key * 2

    class Asked(Hidden):
        def __iter__(self):
            return super().__iter__()

    def program(x):
        hidden, asked = Hidden(a=1, b=2), Asked(a=1, b=2)
        made = listed(**hidden), listed(q=0, **hidden), listed(**asked), listed(q=0, **asked)
        return x + 1, made, {} | hidden, {} | asked, {**hidden}, {**asked}

    check(program, torch.ones(2))


def test_a_dictionary_that_changed_is_merged_as_it_is_then():
    def program(x, named):
        return [(name, x * value) for name, value in listed(one=1, **named)]

    compiled = graphlift.compile(program, backend="eager", fullgraph=True)
    for named in ({"a": 2}, {"a": 2, "b": 3}, {"b": 3, "a": 2}):
        expected = [(name, value.tolist()) for name, value in program(torch.ones(2), named)]
        assert [(name, value.tolist()) for name, value in compiled(torch.ones(2), named)] == expected


def test_what_is_merged_does_not_change_the_dictionaries():
    def change(**named):
        named["new"] = 1
        return named

    def program(x, named):
        made = {"m": x}
        return change(**named, **made), change(**made), made, named, x + 1

    check(program, torch.ones(2), {"a": 2})


def test_defaults_that_the_program_replaces():
    def program(x):
        def f(a=1, *, b=2):
            return a, b

        seen = [f(), f.__kwdefaults__]
        f.__kwdefaults__["b"] = 3
        seen.append(f())
        f.__defaults__, f.__kwdefaults__ = (5,), {"b": 7}
        seen += [f(), f(6), f(b=8)]
        del f.__kwdefaults__
        f.__defaults__ = None
        for wrong in (("__defaults__", [1]), ("__kwdefaults__", ()), ("__name__", 1), ("__annotations__", 1)):
            try:
                setattr(f, *wrong)
            except TypeError as error:
                seen.append(str(error))
        for args, kwargs in (((), {}), ((1,), {}), ((1,), {"b": 2})):
            try:
                seen.append(f(*args, **kwargs))
            except TypeError as error:
                seen.append(str(error))
        return x + 1, seen, f.__defaults__, f.__kwdefaults__

    check(program, torch.ones(2))


def test_defaults_of_an_existing_function_that_the_program_replaces():
    def make():
        def f(a=1, *, b=2):
            return a, b

        def program(x):
            before = f()
            f.__kwdefaults__["b"] = 4
            f.__defaults__ = (3,)
            return x + 1, before, f(), f

        return program, [torch.ones(2)]

    check_fresh(make)


def test_errors_of_calls_name_the_module_of_a_function_made_inside():
    def program(x, bad):
        def made(*args, **kwargs):
            return args

        found = []
        for call in (lambda: made(*bad), lambda: made(**bad), lambda: made(**{"a": 1}, **{"a": 2})):
            try:
                call()
            except TypeError as error:
                found.append(str(error))
        return x + 1, found

    check(program, X, 5, fullgraph=True)


def test_fields_of_functions_that_are_set_to_what_they_cannot_be_or_deleted():
    def program(x):
        def made():
            return 1

        seen = []
        for name in ("__name__", "__qualname__", "__defaults__", "__annotations__", "__type_params__"):
            for change in (lambda: setattr(made, name, 42), lambda: delattr(made, name)):
                try:
                    change()
                except TypeError as error:
                    seen.append(str(error))
        return x + 1, seen, getattr(made, "__type_params__", None), made

    check(program, X)
