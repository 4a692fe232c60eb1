"""docs/facts.md names tests that exist, for every claim."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "facts.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "`tests/" in line]
NAMED = sorted(set(re.findall(r"`(tests/[^`]+)`", PAGE)))
FACTS = set(range(1, 30))


@functools.cache
def functions_of(path: str) -> frozenset[str]:
    """Names of the test functions that a file defines at its top."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
    )


@pytest.mark.parametrize("name", NAMED)
def test_each_named_test_exists(name):
    path, _, function = name.partition("::")
    assert functions_of(path) and (not function or function in functions_of(path))


def test_each_fact_has_a_row():
    numbers = {int(n) for row in ROWS for n in re.findall(r"\d+", row.split("|")[1])}
    assert numbers == FACTS


def test_each_row_names_a_test():
    claims = [
        line
        for line in PAGE.splitlines()
        if line.startswith("| ") and not line.startswith(("| nr", "| what |"))
    ]
    assert claims == ROWS and len(NAMED) > 90
