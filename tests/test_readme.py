"""The README's first example prints what the README says it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def test_first_example(tmp_path: Path) -> None:
    blocks = re.findall(r"```(python)?\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    (program,) = (text for kind, text in blocks if kind)
    said = blocks[[kind for kind, _ in blocks].index("python") + 1][1]
    (tmp_path / "example.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.replace(f"{tmp_path}{os.sep}", "")
    assert said.endswith("...\n")
    assert printed.startswith(said.removesuffix("...\n"))
