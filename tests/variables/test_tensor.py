"""Tensors in captured code: operators, items, iteration, attributes, methods."""

import pytest
import torch

import graphlift
from graphlift.testing import check

X = torch.arange(12.0).reshape(3, 4)
INTS = torch.tensor([1, 2, 3])


def arithmetic(x):
    return x + 1, x - x, x * 2.5, x / 3, x // 2, x % 3, x**2, x @ x.T, -x, abs(x), x + True


def reflected(x):
    return 1 + x, 2 - x, 3 * x, 2 / (x + 1), 7 // (x + 1), 7 % (x + 1), 2**x


def bits(x):
    return x << 1, x >> 1, x & 1, x | 2, x ^ 1, 1 & x, 2 | x, 3 ^ x, 1 << x, ~x


def comparisons(x):
    return x > 1, 2 < x, x == 2, x != x, x >= 1, x <= x, (x > 1) & (x < 5), ~(x > 1)


def in_place(x):
    y = x + 1
    kept = y
    y += 1
    y *= 2
    y -= x
    y /= 3
    y **= 2
    assert y is kept
    y.add_(1).mul_(2)
    return y


def no_in_place_matmul(x):
    y = x
    y @= x.T
    return y


def indexing(x):
    n = x.shape[0] - 1
    return x[0], x[:, 1], x[..., None], x[1:, ::2], x[-1, n], x[None], x[[0, 2]], x[(1, 2)], x[slice(0, 1)]


def index_by_tensor(x):
    rows = torch.tensor([0, 1])
    return x[rows], x[:, rows], x[rows, rows]


def storing(x):
    y = x.clone()
    y[0] = 1
    y[:, 1] += 2
    y[y.shape[0] - 1, 0] = x[0, 0]
    y[0] *= 2
    y[x > 3] = 0
    y[1:] = y[1:]
    return y


def iterating(x):
    total = 0
    for row in x:
        total = total + row
    first, second, third = x
    head, *rest = x
    return total, first + second + third, head + rest[1], [row * 2 for row in x]


def sizes(x):
    rows, columns = x.shape
    assert len(x) == 3
    assert x.size(0) == 3 and x.size(-1) == x.size(dim=1) == 4
    assert x.size() == torch.Size([3, 4]) == (3, 4)
    assert isinstance(x.shape, torch.Size) and isinstance(x.stride(), tuple)
    assert x.dim() == x.ndim == 2 and x.numel() == x.nelement() == 12
    assert x.stride() == (4, 1) and x.stride(0) == 4
    assert x.is_contiguous() and not x.t().is_contiguous()
    assert x.element_size() == x.itemsize == 4 and x.nbytes == 48
    return x.view(columns, rows) * rows, x.reshape(x.shape[:-1] + (2, 2)), x.view(rows * columns)


def kinds(x):
    assert x.dtype is torch.float32 and x.device.type == "cpu" and x.device == torch.device("cpu")
    assert x.layout is torch.strided and x.is_floating_point() and not x.is_complex() and x.is_cpu
    assert x.type() == "torch.FloatTensor" and x.get_device() == -1 and not x.is_cuda and not x.is_sparse
    return x.to(torch.float64), x.double(), x.type_as(x), torch.zeros(2, dtype=x.dtype, device=x.device)


def autograd_facts(x):
    assert not x.requires_grad and x.is_leaf and x.grad_fn is None and x.grad is None
    y = x.clone().requires_grad_(False)
    assert y.grad_fn is None and y.is_leaf
    return y


def views(x):
    return (
        x.T,
        x.mT,
        x.transpose(0, 1),
        x.permute(1, 0),
        x.flatten(),
        x.unsqueeze(0),
        x.expand(2, 3, 4),
        x.data,
    )


def several_results(x):
    values, places = torch.max(x, 1)
    named = x.topk(2)
    first, second = x.split(2, dim=1)
    assert isinstance(named, tuple)
    return values + named.values[:, 0], places, named.indices, first + second, x.chunk(2)[1], x.unbind(1)[0]


def bound_methods(x):
    add = x.add
    assert callable(add) and hasattr(x, "mul") and not hasattr(x, "no_such_thing")
    return add(1), getattr(x, "mul")(2), torch.Tensor.add(x, 1), torch.Tensor.norm(x), x.__add__(1)


def what_it_is(x):
    assert isinstance(x, torch.Tensor) and not isinstance(x, (int, torch.nn.Parameter))
    assert type(x) is torch.Tensor and x is not None and not x == None  # noqa: E711
    assert x.float() is x and x.contiguous() is x
    return x + 0


PROGRAMS = [
    arithmetic,
    reflected,
    comparisons,
    in_place,
    no_in_place_matmul,
    indexing,
    index_by_tensor,
    storing,
    iterating,
    sizes,
    kinds,
    autograd_facts,
    views,
    several_results,
    bound_methods,
    what_it_is,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program):
    check(program, X)


def test_bits():
    check(bits, INTS)


def test_complex():
    check(lambda z: (z.real, z.imag, z.abs(), torch.view_as_real(z)), torch.ones(2, 2, dtype=torch.complex64))


def test_an_input_written_in_place():
    def f(x):
        x.add_(1)
        y = x * 2
        x[0] = 7
        return y

    check(f, X.clone())


def test_one_tensor_under_two_names():
    def f(x, y):
        x.add_(1)
        return y * 2, x is y

    x = X.clone()
    check(f, x, x)


def test_attributes_put_on_a_tensor():
    def f(x):
        if getattr(x, "scale", None) is None:
            return x
        return x * x.scale

    x = X.clone()
    x.scale = 3.0
    check(f, x, then=[(X.clone(),)], recompiles=1)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x + "text",
        lambda x: x @ torch.ones(7),
        lambda x: x.view(5),
        lambda x: x.size(7),
        lambda x: x.no_such_thing,
        lambda x: len(x.sum()),
        lambda x: [row for row in x.sum()],
        lambda x: x[5],
        lambda x: torch.cat([x, torch.ones(3)]),
    ],
)
def test_errors_are_the_same(program):
    check(program, X, graphs=None, breaks=None)


def test_truth_asked_of_a_stored_comparison():
    def f(x):
        positive = x.sum() > 0
        if not positive:
            return x + 1
        return x - 1 if positive and x is not None else x

    check(f, X, graphs=None, breaks=None)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.sum().item() + 1,
        lambda x: int(x.sum()) + 1,
        lambda x: float(x.sum()),
        lambda x: x.tolist(),
        lambda x: 2 in x,
        lambda x: x[x > 3],
        lambda x: x.nonzero(),
        lambda x: "yes" if x.sum() > 3 else "no",
        lambda x: f"{x.sum()}",
    ],
)
def test_values_taken_out_of_tensors_break(program):
    checked = check(program, X, graphs=None, breaks=None)
    assert checked.captured.breaks


class Overrides:
    """Torch asks this class before a tensor's own operators do anything."""

    def __init__(self, t):
        self.t = t

    def __radd__(self, other):
        return self.t

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return args[0] if kwargs is None else 5


class Answers:
    """An object that has an answer to every name, so that torch finds what it looks for."""

    def __init__(self, t):
        self.t = t

    def __radd__(self, other):
        return self.t

    def __getattr__(self, name):
        if name.startswith("__deep") or name.startswith("__set") or name.startswith("__red"):
            raise AttributeError(name)
        return lambda *args, **kwargs: 7


@pytest.mark.parametrize("cls", [Overrides, Answers])
def test_what_torch_asks_before_an_operator_is_not_passed_over(cls):
    programs = [
        lambda x, other: x + other,
        lambda x, other: other + x,
        lambda x, other: x - other,
        lambda x, other: x == other,
        lambda x, other: x < other,
    ]
    for program in programs:
        check(program, torch.ones(2), cls(torch.zeros(2)), graphs=None, breaks=None, recompiles=None)


def test_an_index_that_picks_all_gives_a_view_not_the_tensor():
    def program(x):
        y = x[()]
        y.add_(1)
        return y, y is x, x[...] is x, x[:] is x, x + 1

    check(program, torch.ones(2))


class Divides:
    def __floordiv__(self, other):
        return 1

    def __mod__(self, other):
        return 2


def test_divmod_is_not_floor_division_and_remainder():
    def program(x, left, right):
        try:
            return divmod(left, right), x + 1
        except TypeError as error:
            return str(error), x + 1

    x = torch.ones(2)
    for left, right in ((x, 2), (2, x), (x, x), (x, "a"), (Divides(), 2), (7, 2), (7.5, 2), (True, 2)):
        check(program, x, left, right, graphs=None, breaks=None, recompiles=None)


def view_of_leaf():
    return torch.ones(3, requires_grad=True)[None]


def one_of_several_views():
    return (torch.ones(2, 3, requires_grad=True) * 1).unbind()[0]


def view_without_grad_mode():
    base = torch.ones(2, 3)
    with torch.no_grad():
        return base[0]


@pytest.mark.parametrize("protected", [view_of_leaf, one_of_several_views, view_without_grad_mode])
def test_a_view_handed_in_that_autograd_protects_from_writes(protected):
    """Also where a tensor that may be written to was met before."""
    weight = torch.ones(3, requires_grad=True)

    def program(v):
        try:
            v.mul_(weight)
        except RuntimeError as error:
            return str(error)
        return v * 2

    ordinary = torch.ones(protected().shape, requires_grad=protected().requires_grad) * 1
    compiled = graphlift.compile(program, backend="eager")
    assert torch.equal(compiled(ordinary), torch.full(ordinary.shape, 2.0))
    for _ in range(2):
        said = compiled(protected())
        assert type(said) is str and said == program(protected())


def test_whether_a_tensor_is_a_view():
    def program(x):
        part = x[0]
        return x._is_view(), part._is_view(), (part + 1)._is_view(), x * 2

    for made in (torch.ones(3, 3), torch.ones(4, 3)[1:]):
        check(program, made, graphs=None, breaks=None, recompiles=None)
