"""What a capture does to the collector and to the stack of the thread that it runs on."""

from __future__ import annotations

import gc
import sys

import pytest
import torch

import graphlift
from graphlift import _C
from graphlift.quiet import collector_back, collector_paused, on_roomy_stack


@pytest.fixture(autouse=True)
def collecting():
    enabled = gc.isenabled()
    gc.enable()
    gc.collect()
    yield
    if not enabled:
        gc.disable()


def collections_during(run):
    seen = []

    def note(phase, info):
        if phase == "start":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    try:
        run()
    finally:
        gc.callbacks.remove(note)
    return seen


def test_objects_made_in_a_pause_do_not_call_the_collector():
    before = gc.get_count()[0]
    kept = []

    def run():
        with collector_paused():
            kept.extend([] for _ in range(5000))

    assert collections_during(run) == []
    assert gc.isenabled() and gc.get_count()[0] < before + 300 and len(kept) == 5000


def test_inside_collector_back_the_collector_works():
    def run():
        with collector_paused(), collector_back():
            assert gc.isenabled()
            kept = [[] for _ in range(5000)]
            del kept

    assert collections_during(run)


def test_the_count_never_grows_by_a_pause():
    kept = [[] for _ in range(100)]
    with collector_paused():
        kept.clear()
        freed = gc.get_count()[0]
    assert gc.get_count()[0] <= freed + 20


def test_what_captures_leave_is_collected_in_the_end():
    def run():
        for _ in range(300):
            with collector_paused():
                for _ in range(1000):
                    circle = []
                    circle.append(circle)

    assert collections_during(run)


def test_a_disabled_collector_stays_disabled_and_counts():
    gc.disable()
    try:
        with collector_paused():
            kept = [[] for _ in range(2000)]
        assert not gc.isenabled() and gc.get_count()[0] >= 2000
        assert len(kept) == 2000
    finally:
        gc.enable()


def test_a_capture_ends_without_a_collection():
    model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(60))).eval()

    def backend(graph_module, example_inputs):
        return graph_module.forward

    compiled = graphlift.compile(model, backend=backend)
    x = torch.ones(1, 2)
    with torch.no_grad():
        graphlift.compile(torch.nn.Linear(2, 2), backend=backend)(x)
        gc.collect()
        assert collections_during(lambda: compiled(x)) == []


def test_counts_of_young_objects_are_numbers():
    with pytest.raises(ValueError, match="no number of objects: -1"):
        _C.set_young_objects(-1)
    with pytest.raises(TypeError):
        _C.set_young_objects("many")
    assert abs(_C.young_objects() - gc.get_count()[0]) < 20


def test_captures_run_on_one_large_piece_of_stack():
    frames = []

    def backend(graph_module, example_inputs):
        frame = sys._getframe()
        while frame is not None:
            frames.append(frame.f_code)
            frame = frame.f_back
        return graph_module.forward

    graphlift.compile(lambda x: x + 1, backend=backend)(torch.ones(1))
    assert max(code.co_stacksize for code in frames) * 8 > 500_000


def test_what_runs_on_the_roomy_stack_gives_and_raises_as_ever():
    def fail(value):
        raise KeyError(value)

    assert on_roomy_stack(divmod, 7, 2) == (3, 1)
    with pytest.raises(KeyError, match="here"):
        on_roomy_stack(fail, "here")
