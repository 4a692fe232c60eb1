"""``trace_bytecode``: one line a step, the stack before it."""

from __future__ import annotations

import dis
import os
import subprocess
import sys

import pytest
import torch

import graphlift


def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x * y
    return z + 1


def traced(capsys: pytest.CaptureFixture[str]) -> list[str]:
    graphlift.set_logs(trace_bytecode=True)
    try:
        graphlift.reset()
        graphlift.compile(f, backend="eager")(torch.rand(8), torch.rand(8))
    finally:
        graphlift.set_logs()
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("TRACE ")]


def test_each_real_instruction_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    names = [line.split()[1] for line in traced(capsys)]
    folded = {"RESUME", "NOP", "CACHE", "PRECALL", "EXTENDED_ARG"}
    expected = [item.opname for item in dis.get_instructions(f) if item.opname not in folded]
    assert [name for name in names if name not in folded] == expected


@pytest.mark.skipif("LOAD_FAST_LOAD_FAST" in dis.opmap, reason="the text is 3.11's and 3.12's")
def test_the_lines_to_the_letter(capsys: pytest.CaptureFixture[str]) -> None:
    assert [line for line in traced(capsys) if " RESUME " not in line] == [
        "TRACE LOAD_FAST x []",
        "TRACE LOAD_FAST y [LazyVariableTracker()]",
        "TRACE BINARY_OP 5 [LazyVariableTracker(), LazyVariableTracker()]",
        "TRACE STORE_FAST z [TensorVariable()]",
        "TRACE LOAD_FAST z []",
        "TRACE LOAD_CONST 1 [TensorVariable()]",
        "TRACE BINARY_OP 0 [TensorVariable(), ConstantVariable(int: 1)]",
        "TRACE RETURN_VALUE None [TensorVariable()]",
    ]


PROGRAM = """
import torch, graphlift

@graphlift.compile(backend="eager")
def f(x, n):
    if x.sum() > 0:
        return x * n
    return x + 1

f(torch.ones(3), 2)
f(torch.ones(3), 3.5)
"""


def test_every_log_by_the_environment(tmp_path: object) -> None:
    path = os.path.join(str(tmp_path), "user.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    environment = {
        **os.environ,
        "GRAPHLIFT_LOGS": "graph_breaks,guards,recompiles,bytecode,trace_bytecode,graph_code,time",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, path], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for part in (
        "GRAPH BREAK: Data-dependent branching",
        f"{path}:6",
        "attempted to jump with TensorVariable()",
        "GUARDS of f (",
        "RECOMPILING f (",
        "ORIGINAL BYTECODE of f",
        "MODIFIED BYTECODE of f",
        "TRACE ",
        "GRAPH of f (",
        "TIME f (",
    ):
        assert part in done.stderr, part
