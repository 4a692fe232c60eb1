"""`compile` keeps the kind of callable, forwards what it stands for, and compiles it."""

from __future__ import annotations

import abc
import copy
import functools
import inspect
import pickle
import typing

import pytest
import torch

import graphlift
from graphlift.testing import CompileCounter, check

X = torch.arange(3.0)


def plain(x: torch.Tensor, y: float = 2.0, *, z: int = 1) -> torch.Tensor:
    """Of the plain function."""
    return x * y + z


plain.tag = "tag"  # type: ignore[attr-defined]


class Scaler:
    scale = 3.0

    def __init__(self, items=()):
        self.items = list(items)

    def method(self, x):
        return x * self.scale

    @staticmethod
    def static(x):
        return x + 1

    @classmethod
    def of_class(cls, x):
        return x * cls.scale + 1

    @property
    def prop(self):
        """Of the property."""
        return X * self.scale

    def __call__(self, x, times=1):
        return x * self.scale * times

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]

    def __iadd__(self, item):
        self.items.append(item)
        return self


@pytest.fixture
def counter():
    graphlift.reset()
    return CompileCounter()


def captured_once(counter, call, expected):
    """The call gives what is expected, twice, from one graph."""
    for _ in range(2):
        assert torch.equal(call(), expected)
    assert counter.frame_count == 1


# --- each kind ------------------------------------------------------------------------------------


def test_as_function_and_as_decorator(counter):
    captured_once(counter, lambda: graphlift.compile(plain, backend=counter)(X), plain(X))
    counter.clear()

    @graphlift.compile(backend=counter)
    def decorated(x):
        return x + 2

    captured_once(counter, lambda: decorated(X), X + 2)


def test_bound_method(counter):
    scaler = Scaler()
    compiled = graphlift.compile(scaler.method, backend=counter)
    assert inspect.ismethod(compiled) and compiled.__self__ is scaler
    captured_once(counter, lambda: compiled(X), scaler.method(X))


@pytest.mark.parametrize("name", ["static", "of_class", "prop", "method"])
def test_in_a_class_body(counter, name):
    raw = vars(Scaler)[name]
    compiled = graphlift.compile(raw, backend=counter)
    if name != "method":
        assert type(compiled) is type(raw)
    made = type("Made", (Scaler,), {name: compiled})()
    read = (lambda: made.prop) if name == "prop" else (lambda: getattr(made, name)(X))
    expected = Scaler().prop if name == "prop" else getattr(Scaler(), name)(X)
    captured_once(counter, read, expected)


def test_a_property_keeps_its_class_setter_and_doc(counter):
    class Kept(property):
        pass

    written = []
    compiled = graphlift.compile(
        Kept(vars(Scaler)["prop"].fget, lambda self, value: written.append(value)), backend=counter
    )
    assert type(compiled) is Kept and compiled.__doc__ == "Of the property."
    made = type("Made", (Scaler,), {"prop": compiled})()
    made.prop = 3
    assert written == [3]


def test_partial(counter):
    class Named(functools.partial):
        pass

    partial = Named(plain, z=5)
    partial.tag = "own"
    compiled = graphlift.compile(partial, backend=counter)
    assert type(compiled) is Named and compiled.tag == "own" and compiled.keywords == {"z": 5}
    assert inspect.signature(compiled) == inspect.signature(partial)
    compiled.tag = "other"
    assert partial.tag == "own" and partial.func is plain
    captured_once(counter, lambda: compiled(X), partial(X))


def test_callable_object(counter):
    scaler = Scaler([1, 2])
    compiled = graphlift.compile(scaler, backend=counter)
    captured_once(counter, lambda: compiled(X), scaler(X))
    assert isinstance(compiled, Scaler) and compiled.__wrapped__ is scaler and len(compiled.report()) == 1
    assert inspect.signature(compiled) == inspect.signature(scaler)
    assert len(compiled) == 2 and compiled[1] == 2 and list(compiled) == [1, 2]
    compiled.scale = 4.0
    assert scaler.scale == 4.0 and torch.equal(compiled(X), X * 4)
    del compiled.scale
    assert scaler.scale == 3.0
    same = compiled
    compiled += 3
    assert compiled is same and scaler.items == [1, 2, 3]


def test_copies_of_a_callable_object(counter):
    scaler = Scaler([[1]])
    compiled = graphlift.compile(scaler, backend="eager")
    scaler.own = compiled
    for copied in (copy.copy(compiled), copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert copied is not compiled and copied.__wrapped__ is not scaler
        assert isinstance(copied, Scaler) and copied.items == [[1]]
        assert torch.equal(copied(X), scaler(X)) and copied.report is not None
    copied = copy.deepcopy(compiled)
    assert copied.own is copied and copied.items[0] is not scaler.items[0]


def test_classes_and_builtins_are_returned_as_they_are():
    cached = functools.lru_cache(plain)
    for as_it_is in (Scaler, torch.nn.Linear, len, torch.sin, str.upper, X.add, torch.Tensor.add, cached):
        assert graphlift.compile(as_it_is) is as_it_is


def test_generator_and_coroutine_functions_keep_their_kind():
    def generator(x):
        yield x + 1

    async def coroutine(x):
        return x + 1

    async def both(x):
        yield x + 1

    compiled = [graphlift.compile(f, backend="eager") for f in (generator, coroutine, both)]
    assert inspect.isgeneratorfunction(compiled[0]) and torch.equal(next(compiled[0](X)), X + 1)
    assert inspect.iscoroutinefunction(compiled[1]) and inspect.isasyncgenfunction(compiled[2])
    with pytest.raises(StopIteration) as stopped:
        compiled[1](X).send(None)
    assert torch.equal(stopped.value.value, X + 1)


def test_already_compiled_objects_are_compiled_anew(counter):
    scaler, module = Scaler(), torch.nn.ReLU()
    for kind in (plain, scaler.method, scaler, module, functools.partial(plain, y=1.0)):
        counter.clear()
        first = graphlift.compile(kind, backend="eager")
        first(X)
        second = graphlift.compile(first, backend=counter)
        captured_once(counter, lambda second=second: second(X), kind(X))
    assert graphlift.compile(graphlift.compile(plain)).__wrapped__ is plain
    assert graphlift.compile(graphlift.compile(module))._orig_mod is module
    assert graphlift.compile(graphlift.compile(scaler)).__wrapped__ is scaler


def test_what_torch_compiled_is_compiled_here(counter):
    module = torch.nn.ReLU()
    compiled = graphlift.compile(torch.compile(plain, backend="eager"), backend=counter)
    assert compiled.__wrapped__ is plain
    captured_once(counter, lambda: compiled(X), plain(X))
    assert graphlift.compile(torch.compile(module, backend="eager"))._orig_mod is module


def test_functions_without_source(counter):
    namespace: dict = {}
    exec(compile("def made(x):\n    return x * 2 + 1", "<nowhere>", "exec"), namespace)
    anonymous = lambda x: x * 3  # noqa: E731

    @functools.wraps(plain)
    def adorned(*args, **kwargs):
        return plain(*args, **kwargs) - 1

    for function in (namespace["made"], anonymous, adorned):
        counter.clear()
        code = function.__code__
        compiled = graphlift.compile(function, backend=counter)
        captured_once(counter, lambda compiled=compiled: compiled(X), function(X))
        assert function.__code__ is code


def test_what_cannot_be_compiled_is_refused():
    for wrong in (3, "text", functools.partialmethod(plain)):
        with pytest.raises(TypeError, match="takes a callable, not"):
            graphlift.compile(wrong)
    for arguments, error in (
        ({"mode": "default", "options": {}}, ValueError),
        ({"backend": "no such"}, ValueError),
        ({"backend": 3}, TypeError),
        ({"dynamic": "yes"}, TypeError),
    ):
        with pytest.raises(error):
            graphlift.compile(plain, **arguments)
    with pytest.raises(TypeError):
        graphlift.compile(plain, True)


# --- standing for the original ----------------------------------------------------------------------


def test_attributes_are_forwarded():
    compiled = graphlift.compile(plain, backend="eager")
    for name in ("name", "qualname", "doc", "module", "code", "defaults", "kwdefaults", "annotations"):
        assert getattr(compiled, f"__{name}__") is getattr(plain, f"__{name}__"), name
    assert compiled.tag == "tag" and compiled.__wrapped__ is plain
    assert inspect.signature(compiled) == inspect.signature(plain)
    assert typing.get_type_hints(compiled) == typing.get_type_hints(plain)
    assert inspect.getsource(compiled) == inspect.getsource(plain)
    assert inspect.getdoc(compiled) == "Of the plain function."
    assert inspect.isroutine(compiled) and inspect.unwrap(compiled) is plain
    assert not hasattr(compiled, "no_such_attribute")
    assert not inspect.isgeneratorfunction(compiled) and not inspect.iscoroutinefunction(compiled)


def test_the_function_is_left_as_it_was(counter):
    before = {name: getattr(plain, name) for name in dir(plain)}
    compiled = graphlift.compile(plain, backend=counter)
    compiled(X)
    compiled.own = 1
    after = {name: getattr(plain, name) for name in dir(plain)}
    assert before.keys() == after.keys() and not hasattr(plain, "own")
    assert all(
        after[name] is before[name] for name in ("__code__", "__defaults__", "__dict__", "__globals__")
    )


def test_an_abstract_class_can_be_met():
    class Base(abc.ABC):
        @abc.abstractmethod
        def __call__(self, x): ...

    class Made(Base):
        def __call__(self, x):
            return x + 1

    compiled = graphlift.compile(Made(), backend="eager")
    assert isinstance(compiled, Base) and torch.equal(compiled(X), X + 1)


# --- met by captured code ---------------------------------------------------------------------------

compiled_plain = graphlift.compile(plain, backend="eager")
compiled_scaler = graphlift.compile(Scaler(), backend="eager")
compiled_method = graphlift.compile(Scaler().method, backend="eager")
compiled_partial = graphlift.compile(functools.partial(plain, y=4.0), backend="eager")
compiled_layer = graphlift.compile(torch.nn.Linear(3, 3), backend="eager")


class WithCompiledMethod(Scaler):
    method = graphlift.compile(Scaler.method, backend="eager")
    static = graphlift.compile(vars(Scaler)["static"], backend="eager")
    of_class = graphlift.compile(vars(Scaler)["of_class"], backend="eager")
    prop = graphlift.compile(vars(Scaler)["prop"], backend="eager")


with_methods = WithCompiledMethod()


@pytest.mark.parametrize(
    "program",
    [
        lambda x: compiled_plain(x, 3.0) + 1,
        lambda x: compiled_scaler(x, times=2) + compiled_scaler.scale,
        lambda x: compiled_method(x) + 1,
        lambda x: compiled_partial(x) + 1,
        lambda x: compiled_layer(x) + compiled_layer.weight.sum() + compiled_layer._orig_mod.bias,
        lambda x: compiled_layer.forward(x) + len(list(compiled_layer.parameters())),
        lambda x: with_methods.method(x) + 1,
        lambda x: with_methods.static(x) + 1,
        lambda x: with_methods.of_class(x) + 1,
        lambda x: with_methods.prop + x,
        lambda x: sum(map(compiled_plain, [x, x])),
        lambda x: x * 2 if compiled_plain.__name__ == "plain" and compiled_plain.tag == "tag" else x,
        lambda x: x * 2 if isinstance(compiled_layer, torch.nn.Linear) else x,
        lambda x: (x * 2, compiled_plain, compiled_layer, compiled_plain.__wrapped__),
        lambda x: x * 2 if {compiled_plain: 1}.get(compiled_plain) == 1 else x,
    ],
    ids=range(15),
)
def test_a_nested_compiled_callable_is_part_of_the_graph(program):
    graphlift.reset()
    check(program, X)


@pytest.mark.parametrize("kind", ["function", "module", "object"])
def test_a_nested_callable_uses_the_outer_settings(counter, kind):
    inner_backend = CompileCounter()
    target = {"function": plain, "module": torch.nn.Linear(3, 3), "object": Scaler()}[kind]
    inner = graphlift.compile(target, backend=inner_backend)

    def outer(x):
        return inner(x) + 1

    def broken(x):
        x = x + 1
        graphlift.graph_break()
        return [inner][0](x)

    captured_once(
        counter, lambda: graphlift.compile(outer, backend=counter, fullgraph=True)(X), target(X) + 1
    )
    assert inner_backend.frame_count == 0
    # Met at run time, by code that is not captured, it uses its own.
    plain_caller = graphlift.disable(outer)
    assert torch.equal(graphlift.compile(lambda x: plain_caller(x) * 2, backend="eager")(X), outer(X) * 2)
    assert torch.equal(broken(X), target(X + 1)) and inner_backend.frame_count >= 1


def test_another_nested_callable_is_seen():
    first, second = (
        graphlift.compile(plain, backend="eager"),
        graphlift.compile(lambda x: x * 9, backend="eager"),
    )
    counter = CompileCounter()
    outer = graphlift.compile(lambda f, x: f(x) + 1, backend=counter)
    for f, expected in ((first, plain(X)), (second, X * 9), (first, plain(X))):
        assert torch.equal(outer(f, X), expected + 1)
    assert counter.frame_count == 2
    assert torch.equal(outer(graphlift.compile(plain, backend="eager"), X), plain(X) + 1)
    assert counter.frame_count == 2


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x * len(compiled_scaler),
        lambda x: x * 2 if compiled_scaler else x,
        lambda x: x * 2 if isinstance(compiled_scaler, Scaler) else x,
        lambda x: x * 2 if compiled_scaler == compiled_scaler else x,
        lambda x: (x * 2, compiled_scaler),
    ],
    ids=range(5),
)
def test_what_else_a_compiled_object_can_do(program):
    graphlift.reset()
    check(program, X, graphs=None, breaks=None)


def test_compiled_objects_in_captured_code():
    class Odd:
        def __call__(self, x):
            return x * 2

        def __len__(self):
            return 2

        def __eq__(self, other):
            return isinstance(other, Odd)

        def __bool__(self):
            return False

        def __iter__(self):
            return iter([1, 2])

        def __getitem__(self, index):
            return index

        def __contains__(self, item):
            return item == 3

        def __add__(self, other):
            return other

    class Bare:
        def __call__(self, x):
            return x + 1

    odd, bare = (graphlift.compile(made, backend="eager") for made in (Odd(), Bare()))

    def program(x):
        equal = odd == 3, odd == Odd(), odd != 3, bare == 3, bare == bare, bare != bare
        kinds = isinstance(odd, Odd), isinstance(odd, Bare), odd.__class__ is Odd, type(odd) is Odd
        try:
            len(bare)
        except TypeError as error:
            text = str(error)
        return odd(x), len(odd), equal, kinds, not odd, list(odd), [*odd], odd[4], 3 in odd, odd + 4, text

    check(program, torch.ones(2))
