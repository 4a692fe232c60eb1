"""Every public name is there and does its work: stances, reset, the switch that turns all off."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import pytest
import torch

import graphlift
from graphlift.testing import CompileCounter

X = torch.ones(3)

PUBLIC = {
    "allow_in_graph",
    "compile",
    "config",
    "disable",
    "disallow_in_graph",
    "exc",
    "explain",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "reset",
    "set_logs",
    "set_stance",
}


def by_number(x, n):
    return x * n


@pytest.fixture
def counter():
    graphlift.reset()
    yield CompileCounter()
    graphlift.set_stance("default")
    graphlift.reset()


def test_names():
    assert set(graphlift.__all__) == PUBLIC == set(dir(graphlift))
    for name in PUBLIC:
        assert getattr(graphlift, name).__doc__, name
    assert issubclass(graphlift.exc.Unsupported, Exception)
    with pytest.raises(AttributeError, match="no_such_name"):
        graphlift.no_such_name  # noqa: B018


def test_names_in_a_fresh_process():
    program = "from graphlift import mark_static, set_logs, compile; assert callable(compile)"
    assert subprocess.run([sys.executable, "-c", program], env=environment()).returncode == 0


def environment(**more):
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}


def test_the_arguments_of_compile():
    parameters = inspect.signature(graphlift.compile).parameters.values()
    assert [(p.name, p.default, p.kind.name) for p in parameters] == [
        ("model", None, "POSITIONAL_OR_KEYWORD"),
        ("fullgraph", False, "KEYWORD_ONLY"),
        ("dynamic", None, "KEYWORD_ONLY"),
        ("backend", "inductor", "KEYWORD_ONLY"),
        ("mode", None, "KEYWORD_ONLY"),
        ("options", None, "KEYWORD_ONLY"),
        ("disable", False, "KEYWORD_ONLY"),
        ("verify", False, "KEYWORD_ONLY"),
    ]


def test_reset_forgets_captures_and_what_was_given_up(counter):
    compiled = graphlift.compile(by_number, backend=counter)
    compiled(X, 2)
    graphlift.reset()
    compiled(X, 2)
    assert counter.frame_count == 2


def test_disable_gives_the_model_back():
    assert graphlift.compile(by_number, disable=True) is by_number
    assert graphlift.compile(disable=True)(by_number) is by_number


PROGRAM = """
import torch, graphlift
from graphlift import events
seen = []
events.subscribe(seen.append, events.CaptureStarted)
@graphlift.compile(backend="eager")
def f(x): return x + 1
module = graphlift.compile(torch.nn.ReLU(), backend="eager")
assert torch.equal(module(f(torch.ones(2))), torch.full((2,), 2.0))
outer = graphlift.compile(lambda x: f(x) * 2, backend="eager")
assert torch.equal(outer(torch.ones(2)), torch.full((2,), 4.0))
print(len(seen))
"""


@pytest.mark.parametrize(("value", "captures"), [("1", "0"), ("0", "3")])
def test_the_environment_turns_everything_off(value, captures):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment(GRAPHLIFT_DISABLE=value),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stdout.strip() == captures, done.stderr


# --- stances --------------------------------------------------------------------------------------


def test_force_eager(counter):
    compiled = graphlift.compile(by_number, backend=counter)
    with graphlift.set_stance("force_eager"):
        assert torch.equal(compiled(X, 2), X * 2)
        assert counter.frame_count == 0
    compiled(X, 2)
    assert counter.frame_count == 1


def test_eager_on_recompile(counter):
    compiled = graphlift.compile(by_number, backend=counter)
    with graphlift.set_stance("eager_on_recompile"):
        compiled(X, 2)
        assert counter.frame_count == 1  # the first capture is no recompile
        assert torch.equal(compiled(X, 3), X * 3)
        assert counter.frame_count == 1
    compiled(X, 3)
    assert counter.frame_count == 2


def test_fail_on_recompile(counter):
    compiled = graphlift.compile(by_number, backend=counter)
    with graphlift.set_stance("fail_on_recompile"):
        compiled(X, 2)
        with pytest.raises(RuntimeError, match="captured again") as caught:
            compiled(X, 3)
        assert "`n` was 2, now it is 3" in str(caught.value)
        assert torch.equal(compiled(X, 2), X * 2)
    compiled(X, 3)
    assert counter.frame_count == 2


def test_stances_stay_until_another_is_taken(counter):
    compiled = graphlift.compile(by_number, backend=counter)
    graphlift.set_stance("force_eager")
    compiled(X, 2)
    assert counter.frame_count == 0
    graphlift.set_stance("default")
    compiled(X, 2)
    assert counter.frame_count == 1
    with pytest.raises(ValueError, match="no stance"):
        graphlift.set_stance("eager")


def test_a_stance_ends_with_its_block_also_after_an_error(counter):
    with pytest.raises(KeyError), graphlift.set_stance("force_eager"):
        raise KeyError
    graphlift.compile(by_number, backend=counter)(X, 2)
    assert counter.frame_count == 1
