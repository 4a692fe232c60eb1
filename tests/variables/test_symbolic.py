"""Numbers and sizes that change from call to call."""

import math

import pytest
import torch

import graphlift
from graphlift import events
from graphlift.testing import check

X = torch.arange(12.0).reshape(3, 4)


def t(*shape):
    return torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)


@pytest.fixture(autouse=True)
def _nothing_captured_before():
    graphlift.reset()


def sizes_in_arithmetic(x):
    n, m = x.shape
    return x.view(n * m) * n, x.reshape(-1, 2) + m // 2, x * (n / m), x.new_zeros(n + 1, m - 1)


def sizes_in_control_flow(x):
    if x.shape[0] > 2:
        return x * 2
    return x + 1


def sizes_in_loops(x):
    total = x.sum()
    for i in range(x.size(0)):
        total = total + i
    return total


def sizes_in_containers(x):
    shape = [x.size(0), *x.shape[1:]]
    table = {"rows": x.size(0)}
    return torch.zeros(shape) + table["rows"], torch.zeros(tuple(shape)), x.expand(2, *x.shape)


def sizes_in_slices(x):
    n = x.size(0)
    return x[: n // 2], x[n - 1], x[:, : x.size(1)]


def sizes_as_indices(x):
    n = x.size(0)
    return x[n - 1, ..., 1], x[n - 1, 1:], x[..., n - n], x[:, n - 2 - (n - 3)], x[n - 1][n - n]


def rows_of_ones(x):
    return torch.cat([x, torch.ones(1, x.size(1))]), x.split(1, dim=1)[0], torch.arange(x.size(0))


@pytest.mark.parametrize(
    "program",
    [
        sizes_in_arithmetic,
        sizes_in_control_flow,
        sizes_in_containers,
        sizes_in_slices,
        sizes_as_indices,
        rows_of_ones,
    ],
    ids=lambda p: p.__name__,
)
def test_sizes(program):
    check(program, t(3, 4), then=[(t(5, 4),), (t(7, 4),), (t(9, 4),)], recompiles=1)


def test_sizes_that_bound_a_loop_are_fixed_at_each_value():
    check(sizes_in_loops, t(3, 4), then=[(t(5, 4),), (t(5, 4),), (t(4, 4),)], recompiles=None)


def test_sizes_in_control_flow_take_the_other_branch():
    check(sizes_in_control_flow, t(3, 4), then=[(t(5, 4),), (t(6, 4),), (t(2, 4),)], recompiles=2)


@pytest.mark.parametrize("first", [0, 1])
def test_sizes_of_none_and_one_stand_apart(first):
    check(lambda x: x * 2 + x.size(0), t(first, 4), then=[(t(3, 4),), (t(5, 4),), (t(7, 4),)], recompiles=2)


def test_integers():
    def f(x, n):
        return x * n + n**2 + n // 2, torch.full((n,), 1.0), n + 1, -n, abs(n), max(n, 3), float(n), n / 2

    check(f, X, 3, then=[(X, 4), (X, 5), (X, 6)], recompiles=1)


def test_integers_in_control_flow():
    def f(x, n):
        if n % 2 == 0:
            return x + n
        return x - n

    check(f, X, 4, then=[(X, 6), (X, 8), (X, 7), (X, 9)], recompiles=2)


def test_integers_as_indices():
    def f(x, n):
        parts = [x, x + 1, x + 2, x + 3]
        return parts[n] + x[n]

    x = t(4, 4)
    check(f, x, 1, then=[(x, 2), (x, 3), (x, 2)], recompiles=None)


def test_floats():
    def f(x, a):
        return x * a + a / 2, a > 0

    check(f, X, 1.5, then=[(X, 2.5), (X, 3.5), (X, 0.5)], recompiles=1)


def test_a_number_as_text_and_key():
    def f(x, n):
        table = {2: 10, 3: 20, 4: 30}
        return x + table[n], f"n={n}", str(n), [0] * n

    check(f, X, 2, then=[(X, 3), (X, 4), (X, 3)], recompiles=None)


def test_type_of_a_symbolic_number():
    def f(x, n):
        return x + n, isinstance(n, int), type(n) is int, isinstance(n, bool), n == 5, n is None

    check(f, X, 3, then=[(X, 4), (X, 6)], recompiles=1)


def test_all_sizes_symbolic_on_demand():
    check(lambda x: x.sum(0) * x.size(0), t(3, 4), then=[(t(5, 4),), (t(6, 7),)], dynamic=True)


def test_an_operator_that_numbers_lack():
    def f(x):
        try:
            return x + (x.size(0) @ 2)
        except TypeError as error:
            return x + 1, str(error)

    check(f, t(3, 4), dynamic=True)


def test_no_size_symbolic_on_demand():
    check(lambda x: x * 2, t(3, 4), then=[(t(5, 4),), (t(6, 4),)], recompiles=2, dynamic=False)


def test_a_module_over_growing_batches():
    layer = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    check(layer, t(3, 4), then=[(t(5, 4),), (t(7, 4),)], recompiles=1, tolerance=1e-5)


@pytest.mark.parametrize(
    "calls", [((1, 2), (3, 4), (5, 5)), ((1.0, 2), (3.5, 4), (5.0, 5))], ids=["integers", "floats"]
)
def test_comparisons_of_numbers_are_numbers_too(calls):
    def program(x, a, b):
        less = a < b
        return (
            x + 1,
            less == (b > a),
            less < (b < a),
            (less == bool(1)) != (b == a),
            (less + 1, -less, abs(less), float(less), less * 2.5, less & True, a + less, a == bool(1)),
            (less - (a > b), less in (True,), {True: 1}.get(less)),
        )

    first, *others = [(torch.ones(2), *numbers) for numbers in calls]
    check(program, *first, then=others, recompiles=None)


def test_floats_keep_the_sign_of_zero_and_know_inf():
    """A symbolic product with zero is a zero without a sign; Python's has one."""

    def by_number(x, i, z):
        return x * (i * z), x.mul(i * z), i * -0.0, x.shape[0] * -0.0

    def by_float(x, i, z):
        y = i + 0.5
        return x + 1, y * z, z * y, (y - y) * i, y % z if z else 1, z - y, (i * 1.0) * z

    for program in (by_number, by_float):
        for dynamic in (None, True):
            calls = [(torch.ones(n), i, z) for n, i, z in ((3, 0, -0.0), (4, -3, -0.0), (5, -4, 0.0))]
            calls += [(torch.ones(6), -4, float("inf")), (torch.ones(7), -4, 2.5)]
            check(
                program,
                torch.ones(3),
                2,
                -0.0,
                then=calls,
                graphs=None,
                breaks=None,
                recompiles=None,
                dynamic=dynamic,
            )


def as_other_numbers(n):
    return (torch.ones(2 * n).view(torch.int64),)


def as_complex(n):
    return (torch.view_as_complex(torch.ones(n, 2)),)


def part_of_complex(n):
    return (torch.ones(n, dtype=torch.complex64).real,)


def middle(n):
    base = torch.arange(float(n))
    return base[1:-1], base


def expanded(n):
    base = torch.arange(float(n))
    return base.view(-1, 1).expand(-1, 3)[:, 1], base


@pytest.mark.parametrize("made", [as_other_numbers, as_complex, part_of_complex, middle, expanded])
def test_views_of_what_is_no_argument_or_another(made):
    def program(view, base=None):
        if base is not None:
            base.mul_(view.sum())
        return view * view.shape[0], view + 1

    failed = []
    with events.subscribed(failed.append, events.InternalFailure):
        check(program, *made(4), then=[made(n) for n in (5, 6, 7, 9)], recompiles=1)
    assert not failed


def test_views_with_a_history():
    """Here `check`, which copies arguments, does not serve."""

    def program(view, base):
        base.mul_(view.sum())
        view.add_(1)
        return view * view.shape[0]

    def run(function, n):
        leaf = torch.arange(float(n), requires_grad=True)
        base = leaf.clone()
        result = function(base[1:-1], base)
        result.sum().backward()
        return result.detach(), base.detach(), leaf.grad

    failed, compiled = [], graphlift.compile(program, backend="eager")
    with events.subscribed(failed.append, events.InternalFailure):
        for n in (4, 5, 6, 7):
            for got, expected in zip(run(compiled, n), run(program, n), strict=True):
                assert torch.equal(got, expected)
    assert not failed
