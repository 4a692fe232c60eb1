"""Graphs to hand to backends."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_shared = Path(__file__).parent.parent / "graph" / "conftest.py"
_spec = importlib.util.spec_from_file_location("graph_recorder", _shared)
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)


class Settings:
    """Capture settings as backends see them."""

    def __init__(self, backend, mode=None, options=None, dynamic=None):
        self.backend = backend
        self.mode = mode
        self.options = options
        self.dynamic = dynamic


@pytest.fixture
def recorder():
    return _module.Recorder


@pytest.fixture
def settings():
    return Settings
