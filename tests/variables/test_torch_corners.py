"""Corners of torch programs: numbers, aliases, shapes, modules, modes, errors."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import graphlift
from graphlift.testing import check, check_fresh

X = torch.arange(12.0).reshape(3, 4)


@pytest.fixture(autouse=True)
def nothing_captured_before():
    graphlift.reset()


N = dict(graphs=None, breaks=None, recompiles=None)


def test_bool_size1():
    check(lambda x: x * 2 if torch.ones(1) > 0 else x, X, **N)


def test_bool_ambiguous():
    def f(x):
        try:
            if x > 0:
                return x
        except RuntimeError as e:
            return x + 1, str(e)

    check(f, X, **N)


def test_inplace_view_alias():
    def f(x):
        y = x.view(-1)
        y.add_(1)
        z = x * 2
        y[0] = 5
        return z, x + 0

    check(f, X.clone(), **N)


def test_inplace_returned_input():
    def f(x):
        x.mul_(2)
        return x

    check(f, X.clone(), **N)


def test_output_alias_of_input():
    def f(x):
        return x.view(4, 3), x[0], x.t(), x

    check(f, X, **N)


def test_outputs_same():
    def f(x):
        y = x + 1
        return y, y, [y], {"a": y}

    check(f, X, **N)


def test_shape_compare():
    check(
        lambda x: (
            x.shape == (3, 4),
            x.shape == torch.Size([3, 4]),
            x.shape != [3, 4],
            x.shape[0] == 3,
            (3, 4) == x.shape,
            x.size()[1:] == (4,),
            tuple(x.shape),
            len(x.shape),
            4 in x.shape,
            x.shape.numel(),
            hash(x.shape) == hash((3, 4)),
            x + 1,
        ),
        X,
        **N,
    )


def test_dtype_maps():
    m = {torch.float32: 1, torch.int64: 2}
    check(
        lambda x: (
            m[x.dtype],
            x.dtype in m,
            str(x.device),
            x.device == torch.device("cpu"),
            x.dtype == torch.float,
            x.dtype != torch.int,
            repr(x.dtype),
            torch.device("cpu", 0).index,
            x + 1,
        ),
        X,
        **N,
    )


def test_kwargs_methods():
    check(
        lambda x: (
            x.sum(dim=0, keepdim=True),
            x.view(size=(4, 3)) if 0 else x.view(dtype=torch.int32),
            x.to(device="cpu", dtype=torch.float64),
            x.transpose(dim0=0, dim1=1),
            x.max(dim=-1, keepdim=True).values,
            x.permute(dims=(1, 0)),
            x.clamp(min=1, max=3),
            x.expand(size=(2, 3, 4)) if 0 else x.expand(2, -1, -1),
        ),
        X,
        **N,
    )


def test_star():
    check(
        lambda x: (x.permute(*[1, 0]), torch.cat([*x]), x.view(*x.shape[::-1]), torch.zeros(*x.shape, 2)),
        X,
        **N,
    )


def test_mixed_number():
    check(
        lambda x: (
            x + True,
            x * 2**0.5,
            x**-1,
            x + 1e-300,
            x * float("inf"),
            x // 2.5,
            x % -3,
            -x % 3,
            1j * x,
            x + 10**20 if 0 else x,
        ),
        X,
        **N,
    )


def test_nan_const():
    check(lambda x, a: x * a, X, float("nan"), **N)


def test_negzero():
    check(lambda x, a: (x * a).sign(), X, -0.0, then=[(X, 0.0)], **N)


def test_int_vs_bool():
    def f(x, a):
        return x * a, a is True

    check(f, X, 1, then=[(X, True), (X, 1.0)], **N)


def test_out_of_range():
    def f(x):
        try:
            return x[10]
        except IndexError as e:
            return str(e)

    check(f, X, **N)


def test_bad_shape_caught():
    def f(x):
        try:
            return x @ x
        except RuntimeError as e:
            return str(e), x + 1

    check(f, X, **N)


def test_global_tensor():
    check(lambda x: x + G, X, **N)


G = torch.ones(4)


def test_closure_tensor_changes():
    box = [torch.ones(4)]

    def f(x):
        return x + box[0]

    c = graphlift.compile(f, backend="eager")
    assert torch.equal(c(X), X + 1)
    box[0] = torch.ones(4) * 3
    assert torch.equal(c(X), X + 3)
    box[0] = 2.0
    assert torch.equal(c(X), X + 2)


def test_nested_modules_shared():
    l = nn.Linear(4, 4)
    m = nn.Sequential(l, l, nn.ReLU())
    check(m, X, **N)


def test_module_in_list_dict():
    ms = [nn.Linear(4, 4), nn.ReLU()]
    d = {"a": nn.Tanh()}
    check(lambda x: d["a"](ms[1](ms[0](x))), X, **N)


def test_module_bool_len():
    e = nn.ModuleList()
    s = nn.Sequential(nn.ReLU())
    check(lambda x: (x + 1, bool(e), len(s), bool(s), bool(nn.Linear)), X, **N)


def test_module_eq_in():
    a = nn.ReLU()
    b = nn.ReLU()
    l = [a, b]
    check(lambda x: (x + 1, a == b, a is a, l.index(b), a in l, {a: 1}[a]), X, **N)


def test_forward_kwargs():
    class M(nn.Module):
        def forward(s, x, *args, scale=1, **kw):
            return x * scale + sum(args) + len(kw)

    m = M()
    check(lambda x: m(x, 1, 2, scale=3, foo=4), X, **N)


def test_method_call_other():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.l = nn.Linear(4, 4)

        def enc(s, x):
            return s.l(x)

        def forward(s, x):
            return s.enc(x)

    m = M()
    c = graphlift.compile(m.enc, backend="eager")
    assert torch.equal(c(X), m.enc(X))


def test_buffers_update_eager():
    b = nn.BatchNorm1d(4)
    b2 = nn.BatchNorm1d(4)
    c = graphlift.compile(b, backend="eager")
    for _ in range(3):
        assert torch.equal(c(X), b2(X))
    assert torch.equal(b.running_mean, b2.running_mean) and b.num_batches_tracked == b2.num_batches_tracked


def test_dropout_seed():
    d = nn.Dropout(0.5)
    c = graphlift.compile(d, backend="eager")
    torch.manual_seed(0)
    a = c(X)
    torch.manual_seed(0)
    assert torch.equal(a, d(X))


def test_hook_remove_inside():
    l = nn.Linear(4, 4)

    def f(x):
        h = l.register_forward_hook(lambda m, a, o: o + 1)
        y = l(x)
        h.remove()
        return y, l(x)

    check(f, X, **N)


def test_setattr_module_inside():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.l = nn.Linear(4, 4)

        def forward(s, x):
            s.act = nn.ReLU()
            return s.act(s.l(x))

    m = M()
    m2 = M()
    m2.load_state_dict(m.state_dict())
    c = graphlift.compile(m, backend="eager")
    assert torch.equal(c(X), m2(X))
    assert torch.equal(c(X), m2(X))
    assert list(m._modules) == list(m2._modules)


def test_del_attr():
    class M(nn.Module):
        def forward(s, x):
            s.tmp = x * 2
            y = s.tmp + 1
            del s.tmp
            return y

    m = M()
    c = graphlift.compile(m, backend="eager")
    assert torch.equal(c(X), X * 2 + 1)
    assert "tmp" not in m.__dict__


def test_param_assignment_inside():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.w = nn.Parameter(torch.ones(4))

        def forward(s, x):
            with torch.no_grad():
                s.w.mul_(2)
            return x * s.w

    a, b = M(), M()
    c = graphlift.compile(a, backend="eager")
    for _ in range(2):
        assert torch.equal(c(X), b(X))
    assert torch.equal(a.w, b.w)


def test_no_grad_deco_method():
    class M(nn.Module):
        def __init__(s):
            super().__init__()
            s.w = nn.Parameter(torch.ones(4))

        @torch.no_grad()
        def forward(s, x):
            return x * s.w

    check(M(), X, **N)


def test_enable_grad_fn():
    w = torch.ones(4, requires_grad=True)

    @torch.enable_grad()
    def g(x):
        return x * w

    with torch.no_grad():
        check(lambda x: (g(x), x * w), X, **N)


def test_set_grad_state_restored_on_exc():
    w = torch.ones(4, requires_grad=True)

    def f(x):
        with torch.no_grad():
            if x.shape[0] == 3:
                raise ValueError("x")
        return x * w

    check(f, X, **N)
    assert torch.is_grad_enabled()


def test_autocast_deco():
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def f(x):
        return x @ x.T

    check(f, X, **N)


def test_generator_of_tensors():
    check(lambda x: sum(r * i for i, r in enumerate(x)), X, **N)


def test_sorted_by_key():
    check(lambda x: [t + 0 for t in sorted([x, x[0], x[:2]], key=lambda t: t.numel())], X, **N)


def test_any_all_tensor():
    check(lambda x: any(t is None for t in [x, x]) or x * 2, X, **N)


def test_zip_star():
    check(lambda x: [a * b for a, b in zip(*[x, x + 1])], X, **N)


def test_functools_reduce():
    import functools
    import operator

    check(lambda x: functools.reduce(operator.add, [x, x, x]), X, **N)


def test_namedtuple_out():
    from collections import namedtuple

    P = namedtuple("P", "a b")
    check(lambda x: P(x + 1, x.max(0)), X, **N)


def test_return_types():
    check(
        lambda x: (
            torch.max(x, 0),
            torch.sort(x),
            x.topk(1),
            torch.linalg.slogdet(x[:, :3] + torch.eye(3) * 5),
        ),
        X,
        **N,
    )


def test_tensor_str_format():
    check(lambda x: f"{x.shape[0]:03d} {x.dtype} {tuple(x.shape)}" + str(x.ndim), X, **N)


def test_tensor_print():
    def f(x):
        print("sum", x.sum())
        return x * 2

    check(f, X, **N)


def test_item_loop():
    def f(x):
        t = 0
        for i in range(3):
            t += x[i, 0].item()
        return t, x * t

    check(f, X, **N)


def test_isinstance_dispatch():
    def f(x):
        if isinstance(x, torch.Tensor) and torch.is_tensor(x):
            x = x + 1
        if isinstance(x.shape, (list, tuple)):
            x = x * 2
        if isinstance(x.dtype, torch.dtype):
            x = x - 1
        if type(x) in (torch.Tensor, nn.Parameter):
            x = x / 2
        return x

    check(f, X, **N)


def test_where_scalar():
    check(
        lambda x: (
            torch.where(x > 2, x, -1.0),
            torch.where(x > 2)[0] if 0 else x,
            torch.clamp(x, max=x.mean()),
            torch.maximum(x, x.mean()),
        ),
        X,
        **N,
    )


def test_chain_setitem():
    def f(x):
        o = torch.zeros(3, 4)
        for i in range(3):
            o[i] = x[i] * i
            o[i, i] += 1
        o[:, ::2] = 0
        o[o > 5] = 5
        o[[0, 1], [1, 2]] = 9
        return o

    check(f, X, **N)


def test_meshgrid_mask():
    def f(x):
        m = torch.triu(torch.ones(3, 3), 1).bool()
        m2 = torch.full((3, 3), float("-inf")).masked_fill(~m, 0)
        return m, m2, torch.arange(3)[:, None] >= torch.arange(3)[None]

    check(f, X, **N)


def test_complex_stuff():
    check(lambda x: torch.view_as_real(torch.polar(x, x) * torch.polar(x, -x).conj()), X, **N)


def test_sdpa_mask():
    q = torch.randn(1, 2, 3, 4)
    check(
        lambda q: F.scaled_dot_product_attention(
            q, q, q, attn_mask=torch.ones(3, 3).tril().bool(), dropout_p=0.0, is_causal=False
        ),
        q,
        **N,
    )


def test_foreach():
    check(lambda x: torch._foreach_add([x, x], 1), X, **N)


def test_tensor_as_default():
    def g(x, b=torch.ones(4)):
        return x + b

    check(lambda x: g(x), X, **N)


def test_class_attr_tensor():
    class C:
        w = torch.ones(4)

    check(lambda x: x * C.w, X, **N)


def test_data_attr():
    w = nn.Parameter(torch.ones(4))
    check(lambda x: (x * w.data, w.data.requires_grad), X, **N)


def test_requires_grad_setter():
    def f(x):
        y = x.clone()
        y.requires_grad = True
        return y * 2

    check(f, X, **N)


def test_detach_inplace():
    def f(w):
        y = w * 2
        y.detach_()
        return y

    check(f, torch.ones(3, requires_grad=True), **N)


def test_version():
    check(lambda x: (x + 1, x._version), X, **N)


def test_is_same_storage():
    check(lambda x: (x + 1, x.data_ptr() == x.view(-1).data_ptr()), X, **N)
