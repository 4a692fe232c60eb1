"""The standard library through decode, emit and verify, and CPython's own tests on rewritten modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "bytecode" / "test_stdlib.py"

if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", "-q", "-s", "--slow", "--timeout", "1200", str(TESTS)]
    sys.exit(subprocess.run(command).returncode)
