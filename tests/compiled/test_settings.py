"""Settings do what their descriptions say."""

from __future__ import annotations

import ast
import gc
from pathlib import Path

import pytest
import torch

import graphlift
from graphlift import config, convert_frame, events
from graphlift.guards.compile import GuardFacesDisagreeError
from graphlift.guards.guard import kind_named
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


@pytest.mark.parametrize("pause", [True, False])
def test_the_collector_is_paused_while_a_capture_runs(pause):
    graphlift.reset()
    seen = []
    with (
        config.patch(pause_gc=pause),
        events.subscribed(lambda event: seen.append(gc.isenabled()), events.GraphFinished),
    ):
        graphlift.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert seen == [not pause] and gc.isenabled()


def test_faces_of_guards_are_compared_on_request(monkeypatch):
    def called_twice(checks):
        graphlift.reset()
        with config.patch(check_guards=checks):
            compiled = graphlift.compile(lambda x, n: x + n, backend="eager", dynamic=False)
            compiled(torch.ones(2), 1)
        return compiled(torch.ones(2), 1)

    expected = called_twice(True)
    monkeypatch.setattr(type(kind_named("constant")), "holds", lambda self, payload, *values: False)
    assert torch.equal(called_twice(False), expected)
    with pytest.raises(GuardFacesDisagreeError):
        called_twice(True)


def test_emitted_code_is_verified_on_request(monkeypatch):
    verified = []
    monkeypatch.setattr(convert_frame, "verify_code", verified.append)
    for asked in (False, True):
        with config.patch(verify_bytecode=asked):
            graphlift.compile(turning, backend="eager")(torch.ones(2), 2)
            graphlift.reset()
        assert len(verified) == asked
    assert verified[0].co_name == "turning"


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
