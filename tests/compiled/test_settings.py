"""Settings do what their descriptions say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

import graphlift
from graphlift import config, convert_frame
from graphlift.guards.holding import NotGuardableError
from graphlift.testing import CompileCounter

SOURCE = Path(config.__file__).parent


def test_every_setting_is_read_somewhere():
    read = {
        node.attr
        for path in SOURCE.rglob("*.py")
        if path.name != "config.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
    }
    assert set(config._FIELDS) <= read, set(config._FIELDS) - read


def test_disable_takes_effect_at_once():
    counter = CompileCounter()
    compiled = graphlift.compile(lambda x: x + 1, backend=counter)
    with config.patch(disable=True):
        compiled(torch.ones(2))
        assert counter.frame_count == 0
    compiled(torch.ones(2))
    assert counter.frame_count == 1


def nested(x, n):
    return x if n == 0 else nested(x + 1, n - 1)


def test_inline_depth():
    with config.patch(inline_depth=5), pytest.raises(graphlift.exc.Unsupported, match="Inlining too deep"):
        graphlift.compile(nested, backend="eager", fullgraph=True)(torch.ones(2), 20)


def turning(x, n):
    for _ in range(n):
        x = x + 1
    return x


def test_turn_limit():
    with config.patch(turn_limit=10):
        with pytest.raises(graphlift.exc.Unsupported, match="Loop too long"):
            graphlift.compile(turning, backend="eager", fullgraph=True)(torch.ones(2), 50)
        assert torch.equal(
            graphlift.compile(turning, backend="eager")(torch.ones(2), 50), torch.full((2,), 51.0)
        )


def graphs_for(function, *calls):
    counter = CompileCounter()
    compiled = graphlift.compile(function, backend=counter)
    for call in calls:
        assert torch.equal(compiled(*call), function(*call))
    return counter.frame_count


def test_floats_and_sizes():
    def by_number(x, n):
        return x * n

    def by_size(x):
        return x * x.shape[0]

    numbers = [(torch.ones(2), n) for n in (1.5, 2.5, 3.5, 4.5)]
    sizes = [(torch.ones(n),) for n in (3, 4, 5, 6)]
    assert graphs_for(by_number, *numbers) == 2
    graphlift.reset()
    with config.patch(specialize_float=True):
        assert graphs_for(by_number, *numbers) == 4
    assert graphs_for(by_size, *sizes) == 2
    graphlift.reset()
    with config.patch(assume_static_by_default=False):
        assert graphs_for(by_size, *sizes) == 1
    graphlift.reset()
    with config.patch(automatic_dynamic=False):
        assert graphs_for(by_size, *sizes) == 4


def test_what_cannot_be_guarded_is_no_silent_eager_run_under_fullgraph(monkeypatch):
    def refuse(*args, **kwargs):
        raise NotGuardableError("nothing here can be guarded")

    monkeypatch.setattr(convert_frame, "compile_guards", refuse)
    x = torch.ones(2)
    with pytest.raises(graphlift.exc.Unsupported, match="nothing here can be guarded"):
        graphlift.compile(turning, backend="eager", fullgraph=True)(x, 2)
    assert torch.equal(graphlift.compile(turning, backend="eager")(x, 2), x + 2)
