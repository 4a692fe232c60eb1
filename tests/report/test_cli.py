"""The command line on real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphlift import cli

SCRIPT = """
import sys
import torch
import graphlift

@graphlift.compile(backend="eager")
def f(x):
    return torch.sin(x) + 1

if __name__ == "__main__":
    print("arguments", sys.argv[1:])
    f(torch.ones(3))
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "user_script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["graphlift"])
    monkeypatch.setattr("sys.path", [str(tmp_path), *__import__("sys").path])
    return path


def test_env(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    assert cli.main(["env"]) == 0
    out = capsys.readouterr().out
    assert torch.__version__ in out
    assert "changed settings" in out


def test_explain_a_script(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", str(script), "--", "--quick"]) == 0
    out = capsys.readouterr().out
    assert "arguments ['--quick']" in out
    assert "Graph count: 1" in out


def test_explain_a_function_as_a_page(script: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert cli.main(["explain", "user_script:f", "--call", "torch.ones(3)", "--html", str(page)]) == 0
    assert "Graph 1: 2 operations" in page.read_text(encoding="utf-8")


def test_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["explode"])
    assert "invalid choice" in capsys.readouterr().err
