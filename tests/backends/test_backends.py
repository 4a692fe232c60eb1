"""Every backend gives what plain execution gives: results, gradients, writes, aliases, other sizes."""

from __future__ import annotations

import operator
import subprocess
import sys
import types

import pytest
import torch
import torch.nn.functional as F

from graphlift import interop
from graphlift.backends import BackendError, compile_graph, list_backends, lookup

NAMES = ["eager", "aot_eager", "inductor", "aot_eager_decomp_partition"]


def own(module, example_inputs):
    return module.forward


@pytest.fixture(params=[*NAMES, own], ids=[*NAMES, "callable"])
def backend(request):
    return request.param


def mlp(r):
    h = r(F.linear, r["x"], r["w"], r["b"])
    h = r(F.layer_norm, r(F.gelu, h), (8,))
    return r(operator.mul, h, r["x"])


def plain_mlp(x, w, b):
    return F.layer_norm(F.gelu(F.linear(x, w, b)), (8,)) * x


def test_results_and_gradients(recorder, settings, backend):
    def inputs():
        torch.manual_seed(0)
        x = torch.randn(4, 8, requires_grad=True)
        return x, torch.nn.Parameter(torch.randn(8, 8)), torch.nn.Parameter(torch.randn(8))

    x, w, b = inputs()
    r = recorder(x=x, w=w, b=b)
    graph = r.finish(mlp(r))
    run = compile_graph(graph, settings(backend))
    got, expected = run(x, w, b)[0], plain_mlp(x, w, b)
    torch.testing.assert_close(got, expected)
    assert got.requires_grad
    pairs = zip(
        torch.autograd.grad(got.square().sum(), (x, w, b)),
        torch.autograd.grad(expected.square().sum(), (x, w, b)),
        strict=True,
    )
    for a, e in pairs:
        torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-4)


def test_without_gradients(recorder, settings, backend):
    with torch.no_grad():
        x, w, b = torch.randn(4, 8), torch.randn(8, 8), torch.randn(8)
        r = recorder(x=x, w=w, b=b)
        run = compile_graph(r.finish(mlp(r)), settings(backend))
        torch.testing.assert_close(run(x, w, b)[0], plain_mlp(x, w, b))


def test_writes_reach_the_inputs(recorder, settings, backend):
    r = recorder(x=torch.ones(3), count=torch.zeros(()))
    out = r(operator.mul, r["x"], r("add_", r["count"], 1))
    graph = r.finish(out)
    x, count = torch.full((3,), 2.0), torch.zeros(())
    run = compile_graph(graph, settings(backend))
    by_name = {"x": x, "count": count}
    places = [value.source.name() for value in graph.inputs]
    for turn in (1.0, 2.0):
        assert torch.equal(run(*[by_name[p] for p in places])[0], x * turn)
        assert count.item() == turn


def test_aliases_of_inputs_and_results(recorder, settings, backend):
    x = torch.arange(6.0)
    r = recorder(x=x)
    view = r("view", r["x"], 2, 3)
    fresh = r("sin", r["x"])
    part = r(operator.getitem, fresh, slice(0, 2))
    run = compile_graph(r.finish(view, fresh, part, r["x"]), settings(backend))
    a, b, c, d = run(x)
    assert a.data_ptr() == x.data_ptr() and a.shape == (2, 3)
    assert c.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    assert d.data_ptr() == x.data_ptr()


def test_random_numbers_come_in_order(recorder, settings):
    r = recorder(x=torch.ones(100))
    graph = r.finish(r(F.dropout, r["x"], 0.5, True), r(torch.rand_like, r["x"]))
    run = compile_graph(graph, settings("aot_eager"))
    torch.manual_seed(1)
    got = run(r.real["x"])
    torch.manual_seed(1)
    assert torch.equal(got[0], F.dropout(r.real["x"], 0.5, True))
    assert torch.equal(got[1], torch.rand(100))


def test_symbolic_sizes(recorder, settings, backend):
    r = recorder(x=torch.randn(6, 8), w=torch.randn(8, 8, requires_grad=True), n=3)
    x = r.dynamic("x", 0)
    h = r(F.linear, x, r["w"])
    out = r(operator.mul, h, r(operator.mul, r("size", x, 0), r["n"]))
    graph = r.finish(out)
    run = compile_graph(graph, settings(backend))
    for rows, n in ((6, 3), (9, 4), (2, 7)):
        other = torch.randn(rows, 8)
        inputs = r.values(graph_inputs(graph), x=other, n=n)
        expected = F.linear(other, r.real["w"]) * rows * n
        got = run(*inputs)[0]
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
        (a,) = torch.autograd.grad(got.sum(), r.real["w"])
        (e,) = torch.autograd.grad(expected.sum(), r.real["w"])
        torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-3)


def graph_inputs(graph):
    return graph


def test_symbolic_floats(recorder, settings, backend):
    r = recorder(x=torch.randn(3), f=2.5)
    double = r(operator.mul, r["f"], 2)
    graph = r.finish(r(operator.mul, r["x"], double), double)
    run = compile_graph(graph, settings(backend))
    inputs = r.values(graph)
    got = run(*inputs)
    torch.testing.assert_close(got[0], r.real["x"] * 5)
    assert got[1] == 5.0
    fixed = any(items[1:] == (2.5, "==") for items in graph.shape_guards())
    assert fixed == (backend not in ("eager", own))


def test_a_callable_gets_the_module_and_the_real_inputs(recorder, settings):
    x = torch.ones(3)
    r = recorder(x=x)
    seen = {}

    def note(module, example_inputs, **kwargs):
        seen.update(module=module, inputs=example_inputs, kwargs=kwargs)
        return module

    run = compile_graph(r.finish(r("sin", r["x"])), settings(note, options={"a": 1}))
    assert isinstance(seen["module"], torch.fx.GraphModule)
    assert seen["inputs"][0] is x and seen["kwargs"] == {"options": {"a": 1}}
    assert torch.equal(run(x)[0], x.sin())


def test_a_callable_may_use_torchs_compilers(recorder, settings):
    from functorch.compile import make_boxed_func
    from torch._functorch.aot_autograd import aot_module_simplified

    compiled = []

    def backend(module, example_inputs):
        def lower(graph, _):
            compiled.append(graph)
            return make_boxed_func(graph.forward)

        return aot_module_simplified(module, example_inputs, lower)

    r = recorder(x=torch.randn(6, 8), w=torch.randn(8, 8))
    x = r.dynamic("x", 0)
    graph = r.finish(r(torch.matmul, x, r["w"]))
    run = compile_graph(graph, settings(backend))
    other = torch.randn(4, 8)
    torch.testing.assert_close(run(other, r.real["w"])[0], other @ r.real["w"])
    assert len(compiled) == 1


def test_a_failing_backend_is_named_with_the_graph(recorder, settings):
    def broken(module, example_inputs):
        raise LookupError("no kernels today")

    r = recorder(x=torch.ones(3))
    with pytest.raises(BackendError, match="no kernels today") as caught:
        compile_graph(r.finish(r("sin", r["x"])), settings(broken))
    assert "L_x_.sin()" in str(caught.value)
    assert isinstance(caught.value.__cause__, LookupError)
    with pytest.raises(BackendError, match="cannot be called"):
        compile_graph(r.finish(r("sin", r["x"])), settings(lambda module, inputs: 3))


def test_names(monkeypatch):
    names = list_backends()
    assert {"eager", "aot_eager", "inductor"} <= set(names) and names == sorted(names)
    assert set(names) < set(list_backends(debug=True))
    with pytest.raises(ValueError, match="no backend named 'nothing'"):
        lookup("nothing")


def test_entry_points_of_packages(monkeypatch, recorder, settings):
    made = types.SimpleNamespace(name="from_a_package", load=lambda: own)
    monkeypatch.setattr(interop, "entry_points", lambda group: [made])
    r = recorder(x=torch.ones(3))
    run = compile_graph(r.finish(r("sin", r["x"])), settings("from_a_package"))
    assert torch.equal(run(torch.ones(3))[0], torch.ones(3).sin())


@pytest.mark.parametrize(
    ("name", "mode", "options"),
    [
        ("eager", "max-autotune", None),
        ("aot_eager", None, {"a": 1}),
        ("inductor", "default", {"nonsense": 1}),
    ],
)
def test_settings_that_a_backend_refuses(name, mode, options):
    with pytest.raises(ValueError):
        lookup(name, mode, options)


def test_inductor_honours_modes_and_options(recorder, settings, monkeypatch):
    import torch._inductor.compile_fx as compile_fx

    seen = []

    def spy(module, inputs, config_patches=None):
        seen.append(config_patches)
        return module.forward

    monkeypatch.setattr(compile_fx, "compile_fx", spy)
    for mode, options in (
        (None, None),
        ("max-autotune-no-cudagraphs", None),
        (None, {"epilogue-fusion": True}),
    ):
        r = recorder(x=torch.ones(3))
        compile_graph(r.finish(r("sin", r["x"])), settings("inductor", mode, options))
    assert seen[0] == {} and seen[1]["max_autotune"] is True and seen[2] == {"epilogue_fusion": True}


def test_marks_on_callables_and_tensors():
    import torch._dynamo as dynamo

    def f(x):
        return x

    assert not interop.is_disabled(f)
    wrapped = torch.compiler.disable(f)
    assert interop.is_disabled(wrapped) and interop.original_of(wrapped) is f
    assert interop.is_graph_node(torch.compiler.allow_in_graph(f))
    assert interop.is_graph_break(dynamo.graph_break) and not interop.is_graph_break(f)
    assert interop.is_constant_result(torch.compiler.assume_constant_result(lambda: 3))
    assert interop.original_of(torch.compile(f, backend="eager")) is f
    x = torch.ones(4, 5, 6)
    assert not interop.dim_marks(x).dynamic
    dynamo.mark_dynamic(x, 0, min=2, max=10)
    dynamo.mark_static(x, 1)
    dynamo.maybe_mark_dynamic(x, 2)
    marks = interop.dim_marks(x)
    assert (marks.dynamic, marks.static, marks.weak) == ({0}, {1}, {2})
    assert marks.ranges == ((0, 2, 10),)


def test_interop_imports_nothing_by_itself():
    program = "import sys, graphlift.interop, graphlift.backends; assert 'torch._dynamo' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_callable_backend_that_asks_for_no_fakes_costs_no_import_of_them():
    program = """
import sys, torch, graphlift
def mine(graph_module, example_inputs):
    assert len(example_inputs) == 1
    return graph_module.forward
compiled = graphlift.compile(lambda x: torch.stack([x * 2, x]).sum(0), backend=mine, fullgraph=True)
assert compiled(torch.ones(3)).tolist() == [3, 3, 3]
assert "torch._dynamo" not in sys.modules and "sympy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
