"""Every kind of difference between the compiled and the plain run is found, and named by its place."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

import graphlift
from graphlift import verification
from graphlift.errors import VerificationError


def backend(change: Any) -> Any:
    """A backend whose product gives ``change(inputs, outputs)`` in place of the outputs."""

    def compile_graph(graph_module: Any, example_inputs: Any) -> Any:
        def product(*inputs: Any) -> Any:
            return change(inputs, graph_module.forward(*inputs))

        return product

    return compile_graph


def found(fn: Any, *args: Any, change: Any = None, **options: Any) -> tuple[str, ...]:
    """What the first verified call says under a backend that is wrong."""
    options.setdefault("backend", backend(change))
    with pytest.raises(VerificationError) as caught:
        graphlift.compile(fn, verify=True, **options)(*args)
    return caught.value.differences


def told(fn: Any, compiled: Any, *args: Any, **kwargs: Any) -> tuple[str, ...]:
    """What is said when `compiled` stands for `fn`; empty when they agree."""
    try:
        verification.run(compiled, fn, "eager", args, kwargs)
    except VerificationError as error:
        return error.differences
    return ()


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def flat(x: torch.Tensor) -> torch.Tensor:
    return x.view(-1)


def grow(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


@pytest.mark.parametrize(
    ("fn", "change", "said"),
    [
        (double, lambda i, o: (o[0] + 1,), "result[0][0]: tensor's values differ: expected 2.0, got 3.0"),
        (double, lambda i, o: (o[0].double(),), "result: tensor's dtype is torch.float64"),
        (double, lambda i, o: (o[0][:1],), "result: tensor's shape is torch.Size([1, 3])"),
        (double, lambda i, o: (o[0].t().contiguous().t(),), "result: tensor's stride is (1, 2)"),
        (double, lambda i, o: (o[0].requires_grad_(),), "result: tensor's requires_grad is True"),
        (
            double,
            lambda i, o: (torch.nn.Parameter(o[0], False),),
            "result: expected a Tensor, got a Parameter",
        ),
        (double, lambda i, o: (o[0].to("meta"),), "result: tensor's device is meta"),
        (
            double,
            lambda i, o: (i[0].mul_(2),),
            "args[0][0][0]: tensor's values differ: expected 1.0, got 2.0",
        ),
        (flat, lambda i, o: (o[0].clone(),), "result: does not share storage"),
    ],
)
def test_results_of_a_wrong_backend(fn, change, said):
    assert any(text.startswith(said) for text in found(fn, torch.ones(2, 3), change=change))


def test_a_clone_that_is_no_clone():
    differences = found(lambda x: x.clone(), torch.ones(2), change=lambda i, o: (i[0],))
    said = "result: this Tensor is another object than expected (identity): "
    assert differences == (f"{said}expected an object of its own, got the object that is args[0]",)


def on_copies(graph_module: Any, example_inputs: Any) -> Any:
    """A backend that drops every write to an input."""
    return lambda *inputs: graph_module.forward(*(value.clone() for value in inputs))


def test_a_dropped_mutation():
    args = {"w": [torch.ones(2), torch.ones(3)]}

    def program(d):
        d["w"][1][2] += 5
        return d["w"][0] + 1

    assert found(program, args, backend=on_copies) == (
        "args[0]['w'][1][2]: tensor's values differ: expected 6.0, got 1.0 (1 of 3 elements)",
    )


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(3))
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(1)
        with torch.no_grad():
            self.layers[2].weight.mul_(2)
        for layer in self.layers:
            x = layer(x)
        return x


def test_state_of_modules_is_named_as_a_program_names_it():
    differences = found(Counting(), torch.ones(1, 2), backend=on_copies)
    assert [text.partition(":")[0] for text in differences] == ["self.seen[0]", "self.layers[2].weight[0][0]"]


def test_an_error_that_only_one_run_raises():
    def fails(inputs, outputs):
        raise ValueError("wrong")

    assert found(double, torch.ones(2), change=fails) == (
        "error: expected no error, got ValueError('wrong') to be raised",
    )

    assert told(lambda d: d["a"], lambda d: None, {}) == (
        "error: expected KeyError('a') to be raised, got no error",
    )


def test_the_error_says_where():
    with pytest.raises(AssertionError) as caught:
        graphlift.compile(double, verify=True, backend=backend(lambda i, o: (o[0] + 1,)))(torch.ones(2))
    error = caught.value
    assert isinstance(error, VerificationError)
    code = double.__code__
    assert (error.function, error.file, error.line) == ("double", __file__, code.co_firstlineno)
    assert str(error).startswith(f'compiled double (File "{__file__}", line {code.co_firstlineno}) differs')
    assert "result[0]: tensor's values differ: expected 2.0, got 3.0 (2 of 2 elements)" in str(error)


def test_random_numbers_and_settings():
    def draws(inputs, outputs):
        torch.rand(3)
        random.random()
        return outputs

    assert {text.partition(":")[0] for text in found(double, torch.ones(2), change=draws)} == {
        "state of torch's random generator",
        "state of Python's random generator",
    }

    def turns_off(inputs, outputs):
        torch.set_grad_enabled(False)
        return outputs

    with torch.enable_grad():
        assert found(double, torch.ones(2), change=turns_off) == ("grad mode: expected True, got False",)


def test_tolerance_is_exact_for_eager_only():
    x = torch.ones(2)
    nearly = lambda x: x * 2 + 1e-7 * torch.tensor([0.0, 3.0])  # noqa: E731
    assert told(double, nearly, x)
    graphlift.compile(double, verify=True, backend=backend(lambda i, o: (nearly(i[0]),)))(x)
    assert told(lambda x: x * 0, lambda x: -x * 0, x)[0].startswith(
        "result[0]: tensor's values differ: expected 0.0, got -0.0"
    )
    assert not told(lambda x: x / 0 - x / 0, lambda x: x / 0 - x / 0, x)


# --- what only capture and code generation can get wrong: a stand-in is wrong in their place ---------------

counts: dict[str, int] = {"n": 0}
total = 0


class Settled:
    number = 0
    items: list[int] = []


def changes(x: torch.Tensor, d: Any) -> Any:
    global total
    total += 1
    counts["n"] += 1
    Settled.number += 1
    Settled.items.append(1)
    return x


def test_globals_and_classes():
    assert set(told(changes, lambda x, d: x, torch.ones(1), {})) == {
        "global total: expected 1, got 0",
        "global counts['n']: expected 1, got 0",
        "class Settled.number: expected 1, got 0",
        "class Settled.items: length is 0, expected 1: [], expected [1]",
    }
    assert (total, counts, Settled.number, Settled.items) == (0, {"n": 0}, 0, [])


def makes_global() -> None:
    global appeared
    appeared = 1  # type: ignore[name-defined]


def removes_global() -> None:
    global total
    del total


def test_names_that_come_and_go():
    assert told(makes_global, lambda: None) == ("global appeared: exists after plain Python only",)
    assert "appeared" not in globals()
    assert told(lambda: None and appeared, makes_global) == (  # type: ignore[name-defined]
        "global appeared: exists after the compiled run only",
    )
    assert globals().pop("appeared") == 1
    assert told(removes_global, lambda: None) == ("global total: exists after the compiled run only",)
    assert total == 0


def test_cells_defaults_and_attributes_of_functions():
    count, items = 0, []

    def program(x, seen=[]):  # noqa: B006
        nonlocal count
        count += 1
        items.append(x)
        seen.append(x)
        program.calls = 1
        return x

    program.calls = 0
    name = program.__qualname__
    assert told(program, lambda x: x, 5) == (
        "cell count: expected 1, got 0",
        "cell items: length is 0, expected 1: [], expected [5]",
        f"{name}.__defaults__[0]: length is 0, expected 1: [], expected [5]",
        f"{name}.calls: expected 1, got 0",
    )
    assert (count, items, program.calls, program.__defaults__) == (0, [], 0, ([],))


def test_identity():
    said = "result: this list is another object than expected (identity): "
    assert told(lambda a, b: a, lambda a, b: b, [1], [1]) == (
        f"{said}expected the object that is args[0], got the object that is args[1]",
    )
    assert told(lambda a: [a, a], lambda a: [a, list(a)], [1])
    assert told(lambda a: a.reverse(), lambda a: None, [[1], [1]])  # equal, yet in the other order
    assert not told(lambda a: [a, a], lambda a: [a, a], [1])


def test_keywords_types_and_errors():
    assert told(lambda *, k: k.append(1), lambda *, k: None, k=[]) == (
        "kwargs['k']: length is 0, expected 1: [], expected [1]",
    )
    assert told(lambda: 1, lambda: 1.0) == ("result: expected 1, got 1.0",)
    assert told(lambda: (1,), lambda: [1]) == ("result: expected a tuple, got a list",)

    def raises(kind, text):
        def fn():
            raise kind(text)

        return fn

    assert told(raises(ValueError, "a"), raises(ValueError, "b")) == ("error.args[0]: expected 'a', got 'b'",)
    assert told(raises(ValueError, "a"), raises(TypeError, "a")) == (
        "error: expected a ValueError, got a TypeError",
    )
    with pytest.raises(ValueError, match="a"):
        verification.run(raises(ValueError, "a"), raises(ValueError, "a"), "eager", (), {})
