"""torch's global state that a captured function leaves changed, whatever the backend makes of its graph."""

from __future__ import annotations

import pytest
import torch

import graphlift

BACKENDS = ["eager", "aot_eager"]


def leaves_grad_mode(x):
    y = x * 2
    torch.set_grad_enabled(False)
    return y


def leaves_grad_mode_at_a_break(x):
    torch.set_grad_enabled(False)
    graphlift.graph_break()
    return x * 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [leaves_grad_mode, leaves_grad_mode_at_a_break], ids=lambda p: p.__name__)
def test_grad_mode(program, backend):
    compiled = graphlift.compile(program, backend=backend)
    x = torch.ones(3, requires_grad=True)
    try:
        for _ in range(3):
            torch.set_grad_enabled(True)
            compiled(x)
            assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def leaves_autocast(x):
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_enabled("cuda", False)
    return x * 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_setting_of_each_device(backend):
    compiled = graphlift.compile(leaves_autocast, backend=backend)
    try:
        for _ in range(2):
            torch.set_autocast_enabled("cpu", False)
            torch.set_autocast_enabled("cuda", True)
            compiled(torch.ones(3))
            assert torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda")
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.set_autocast_enabled("cuda", False)


def turns_grad_mode_on(x, w):
    y = x @ w
    torch.set_grad_enabled(True)
    return y, x @ w


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiler_starts_in_the_state_that_the_graph_starts_in(backend):
    compiled = graphlift.compile(turns_grad_mode_on, backend=backend, fullgraph=True)
    w = torch.ones(3, 3, requires_grad=True)
    try:
        for start in (False, True, False):
            torch.set_grad_enabled(start)
            before, after = compiled(torch.ones(2, 3), w)
            assert (before.requires_grad, after.requires_grad) == (start, True)
    finally:
        torch.set_grad_enabled(True)


def breaks_under_no_grad(x, w):
    with torch.no_grad():
        y = x @ w
        graphlift.graph_break()
        z = y @ w
    return y, z, z @ w


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_computed_under_no_grad_behind_a_break_needs_no_gradient(backend):
    compiled = graphlift.compile(breaks_under_no_grad, backend=backend)
    w = torch.ones(3, 3, requires_grad=True)
    for _ in range(2):
        assert [r.requires_grad for r in compiled(torch.ones(2, 3), w)] == [False, False, True]


def nesting():
    """How many autocast regions are open."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def breaks_in_autocast(x, w):
    with torch.autocast("cpu", torch.bfloat16):
        y = x @ w
        graphlift.graph_break()
        z = y @ w
        with torch.autocast("cpu", enabled=False):
            z = z.float() @ w
            graphlift.graph_break()
            u = z @ w
        v = u @ w
        graphlift.graph_break()
    return y, z, u, v, x @ w


@torch.autocast("cpu", torch.bfloat16)
def under_autocast(x, w):
    y = x @ w
    graphlift.graph_break()
    return y, x @ w


def breaks_in_a_decorated_callee(x, w):
    y, z = under_autocast(x, w)
    return y, z, x @ w


def leaves_autocast_by_an_exception(x, w):
    try:
        with torch.autocast("cpu", torch.bfloat16):
            y = x @ w
            graphlift.graph_break()
            y = y @ w
            raise ValueError
    except ValueError:
        return y, x @ w


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("program", "graphs"),
    [(breaks_in_autocast, 4), (breaks_in_a_decorated_callee, 3), (leaves_autocast_by_an_exception, 2)],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_autocast_regions_stay_open_across_breaks(program, graphs, backend):
    x, w = torch.randn(3, 3), torch.randn(3, 3)
    assert graphlift.explain(program)(x, w).graph_count == graphs
    compiled = graphlift.compile(program, backend=backend)
    plain = program(x, w)
    for _ in range(3):
        got = compiled(x, w)
        assert [r.dtype for r in got] == [r.dtype for r in plain]
        assert all(map(torch.equal, got, plain))
        assert not torch.is_autocast_enabled("cpu")
        assert nesting() == 0


def notes_a_dtype_before_a_break(x):
    found = str((x @ x).dtype)
    graphlift.graph_break()
    return found


def test_state_is_guarded_where_only_metadata_of_a_result_was_read():
    compiled = graphlift.compile(notes_a_dtype_before_a_break, backend="eager")
    x = torch.ones(2, 2)
    assert compiled(x) == "torch.float32"
    with torch.autocast("cpu", torch.bfloat16):
        assert compiled(x) == "torch.bfloat16"
    assert compiled(x) == "torch.float32"


def sets_state_only(x):
    torch.set_grad_enabled(False)
    return x


def test_changes_of_state_alone_make_no_graph():
    explanation = graphlift.explain(breaks_in_autocast)(torch.ones(2, 2), torch.ones(2, 2))
    assert explanation.graph_count == 4
    try:
        assert graphlift.explain(sets_state_only)(torch.ones(2)).graph_count == 0
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
