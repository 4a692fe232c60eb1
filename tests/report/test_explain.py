"""`explain` on real programs: figures, messages, nothing left behind."""

from __future__ import annotations

import pytest
import torch

import graphlift


def whole(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x * y
    return z + 1


def branching(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x * 2
    return x + 1


def test_one_whole_graph() -> None:
    found = graphlift.explain(whole)(torch.rand(8), torch.rand(8))
    assert (found.graph_count, found.graph_break_count, found.op_count) == (1, 0, 2)
    assert [node.name for node in found.graphs[0].graph.nodes] == ["L_x_", "L_y_", "z", "add", "output"]
    assert sum(found.op_totals.values()) == 2
    assert found.guards
    assert found.total_seconds > 0
    assert not found.failures


def test_a_branch_on_data() -> None:
    found = graphlift.explain(branching)(torch.ones(8))
    assert (found.graph_count, found.graph_break_count) == (2, 1)
    (cut,) = found.break_reasons
    assert cut.title == "Data-dependent branching"
    assert cut.file == __file__
    assert cut.line == branching.__code__.co_firstlineno + 1
    for text in (str(found), cut.message, found.to_html()):
        assert "Data-dependent branching" in text
        assert "attempted to jump with TensorVariable()" in text
        assert "torch.cond" in text
        assert f"{__file__}:{cut.line}" in text


def test_every_call_captures_anew() -> None:
    compiled = graphlift.compile(whole, backend="eager")
    x = torch.rand(8)
    compiled(x, x)
    explained = graphlift.explain(compiled)
    assert explained(x, x).graph_count == 1
    assert explained(x, x).graph_count == 1


def test_modules_methods_and_keywords() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    found = graphlift.explain(model)(torch.rand(2, 4))
    assert (found.graph_count, found.op_count) == (1, 2)
    found = graphlift.explain(whole)(x=torch.rand(2), y=torch.rand(2))
    assert found.graph_count == 1


def test_errors_of_the_program_come_out() -> None:
    def fails(x: torch.Tensor) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        graphlift.explain(fails)(torch.ones(1))


def test_nobody_listens_afterwards() -> None:
    from graphlift import events

    before = {kind: len(them) for kind, them in events._listeners.items()}
    graphlift.explain(whole)(torch.ones(1), torch.ones(1))
    assert {kind: len(them) for kind, them in events._listeners.items()} == before


def test_the_name_is_a_function_however_it_is_imported() -> None:
    import graphlift.report.explain

    assert callable(graphlift.explain)
