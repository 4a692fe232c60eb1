"""Each reason of the table: its example meets it, its message says all, the page shows it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import graphlift
from graphlift import config
from graphlift.reasons import Reason
from graphlift.report.reasons_page import page
from graphlift.user_frames import Place, UserFrame, is_own, pointed_at

PAGE = Path(__file__).resolve().parents[2] / "docs" / "graph_breaks.md"
REACHED = [reason for reason in Reason if reason.value.example]
#: Those for which a graph is cut under ``fullgraph=True``, too: it raises there.
RAISED = [reason for reason in REACHED if reason is not Reason.LATE_FAILURE]


def program_of(text: str, folder: Path) -> Callable[[torch.Tensor], Any]:
    """The function `program` of a module with this text, whose source can be shown."""
    path = folder / "example.py"
    path.write_text(f"import torch\nimport graphlift\n{text}\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("example", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def first_break(text: str, folder: Path) -> graphlift.exc.Unsupported:
    compiled = graphlift.compile(program_of(text, folder), backend="eager", fullgraph=True)
    with config.patch(turn_limit=1000), pytest.raises(graphlift.exc.Unsupported) as caught:
        compiled(torch.ones(3))
    return caught.value


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


@pytest.mark.parametrize("reason", RAISED, ids=lambda reason: reason.name)
def test_the_example_meets_its_reason(reason: Reason, tmp_path: Path) -> None:
    error = first_break(reason.value.example, tmp_path)
    assert error.reason is reason
    text = str(error)
    assert error.place is not None
    file, line, _ = error.place.frame
    assert Path(file) == tmp_path / "example.py"
    assert text.startswith(f"{reason.value.title} at {file}:{line}\n")
    assert reason.value.explanation in text
    assert all(f"Hint: {hint}" in text for hint in reason.value.hints)
    assert not any(is_own(frame.file) for frame in error.stack)


def test_a_failure_that_comes_late_cuts_where_one_graph_is_not_asked_for(tmp_path: Path) -> None:
    program = program_of(Reason.LATE_FAILURE.value.example, tmp_path)
    (cut,) = graphlift.explain(program)(torch.ones(3)).break_reasons
    assert cut.reason is Reason.LATE_FAILURE
    assert torch.equal(
        graphlift.compile(program, backend="eager", fullgraph=True)(torch.ones(3)), torch.full((2,), 2.0)
    )


def test_a_reason_without_an_example_says_why() -> None:
    assert all(reason.value.unreached for reason in Reason if reason not in REACHED)


@pytest.mark.parametrize(
    ("expression", "context"),
    [
        ("x.sum().item()", "Tensor.item()"),
        ("x.tolist()[0]", "Tensor.tolist()"),
        ("int(x.sum())", "Tensor.__int__()"),
        ("float(x.sum())", "Tensor.__float__()"),
        ("bool(x.sum())", "Tensor.__bool__()"),
    ],
)
def test_values_taken_out_of_tensors(expression: str, context: str, tmp_path: Path) -> None:
    error = first_break(f"def program(x):\n    return x * {expression}", tmp_path)
    assert (error.reason, error.context) == (Reason.DATA_DEPENDENT_VALUE, context)


@pytest.mark.parametrize("call", ["print(x)", "input()", "open('nowhere')"])
def test_input_and_output(call: str, tmp_path: Path) -> None:
    error = first_break(f"def program(x):\n    {call}\n    return x + 1", tmp_path)
    assert error.reason is Reason.INPUT_OUTPUT


@pytest.mark.parametrize("call", ["breakpoint()", "pdb.set_trace()"])
def test_debuggers(call: str, tmp_path: Path) -> None:
    error = first_break(f"import pdb\n\ndef program(x):\n    {call}\n    return x + 1", tmp_path)
    assert error.reason is Reason.DEBUGGER


def test_a_function_without_a_model_is_named(tmp_path: Path) -> None:
    assert "_socket.gethostname()" in first_break(Reason.UNKNOWN_CALLABLE.value.example, tmp_path).context


# --- the message ----------------------------------------------------------------------------------


def branch(x):
    if (x + 1).sum() > 0:
        return x * 2
    return x + 1


def middle(x):
    return sorted([1], key=lambda _: branch(x)) and x


def outer(x):
    return branch(x * 2)


def caller(function, x):
    return function(x)


def test_the_whole_message_and_the_same_under_fullgraph():
    explained = caller(graphlift.explain(outer), torch.ones(3))
    (cut,) = explained.break_reasons
    at = branch.__code__.co_firstlineno + 1
    here, call = caller.__code__.co_firstlineno + 1, outer.__code__.co_firstlineno + 1
    assert cut.stack[-3:] == (
        (__file__, here, "caller"),
        (__file__, call, "outer"),
        (__file__, at, "branch"),
    )
    assert cut.stack[-4][2] == "test_the_whole_message_and_the_same_under_fullgraph"
    text = cut.message
    assert text.startswith(
        f"Data-dependent branching at {__file__}:{at}\n"
        "    if (x + 1).sum() > 0:\n"
        "       ^^^^^^^^^^^^^^^^^\n"
        "  Explanation: The program takes a different path according to a tensor's value"
    )
    assert "\n  Hint: Use `torch.cond`" in text
    assert "\n  Debug context: attempted to jump with TensorVariable()\n" in text
    assert text.endswith(
        f'    File "{__file__}", line {here}, in caller\n'
        "      return function(x)\n"
        f'    File "{__file__}", line {call}, in outer\n'
        "      return branch(x * 2)\n"
        f'    File "{__file__}", line {at}, in branch\n'
        "      if (x + 1).sum() > 0:"
    )
    with pytest.raises(graphlift.exc.Unsupported) as caught:
        caller(graphlift.compile(outer, backend="eager", fullgraph=True), torch.ones(3))
    mine = [line for line in text.splitlines() if "test_the_whole" not in line and "graphlift." not in line]
    theirs = [line for line in str(caught.value).splitlines() if "test_the_whole" not in line]
    assert [line for line in theirs if "graphlift." not in line] == mine


def test_frames_of_polyfills_are_not_the_users():
    with pytest.raises(graphlift.exc.Unsupported) as caught:
        graphlift.compile(middle, backend="eager", fullgraph=True)(torch.ones(3))
    names = [frame.function for frame in caught.value.stack]
    assert names[-3:] == ["middle", "<lambda>", "branch"]
    assert not any(is_own(frame.file) for frame in caught.value.stack)


def test_code_without_source_shows_none():
    namespace: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x.item()\n", "<nowhere>", "exec"), namespace)
    with pytest.raises(graphlift.exc.Unsupported) as caught:
        graphlift.compile(namespace["f"], backend="eager", fullgraph=True)(torch.ones(1))
    lines = str(caught.value).splitlines()
    assert lines[0] == "Data-dependent value at <nowhere>:2"
    assert lines[1].startswith("  Explanation: ")
    assert lines[-1] == '    File "<nowhere>", line 2, in f'


@pytest.mark.parametrize(
    ("line", "position", "shown"),
    [
        ("    é = x.item() + 1", (1, 1, 9, 17), ["é = x.item() + 1", "    ^^^^^^^^"]),
        ("  f(x,", (1, 2, 2, 5), ["f(x,", "^^^^"]),
        ("  f(x)", (1, 1, None, None), ["f(x)"]),
        ("  f(x)", (7, 7, 2, 6), ["f(x)"]),
        ("  f(x)", None, ["f(x)"]),
        ("", (1, 1, 0, 4), []),
    ],
)
def test_carets(line: str, position: Any, shown: list[str], tmp_path: Path) -> None:
    path = tmp_path / "source.py"
    path.write_text(f"{line}\n", encoding="utf-8")
    assert pointed_at(Place(UserFrame(str(path), 1, "f"), position)) == shown


# --- counting -------------------------------------------------------------------------------------


def test_reports_count_each_place_once_and_reset_forgets():
    compiled = graphlift.compile(branch, backend="eager")
    kinds = (torch.float32, torch.float64, torch.int64)
    for dtype in kinds:
        compiled(torch.ones(3, dtype=dtype))
    cuts = [cut for record in compiled.report() for cut in record.breaks]
    assert len(cuts) == 3
    assert len({id(cut) for cut in cuts}) == 1
    assert cuts[0].count == 3
    graphlift.reset()
    compiled(torch.ones(3))
    assert compiled.report()[-2].breaks[0].count == 1


def test_an_explanation_counts_them():
    def program(x):
        for _ in range(3):
            x = caller(branch, x)
        return x

    explained = graphlift.explain(program)(torch.ones(3))
    assert explained.graph_break_count == sum(cut.count for cut in explained.break_reasons)
    assert len({cut.line for cut in explained.break_reasons}) == len(explained.break_reasons)
