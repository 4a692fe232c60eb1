"""The C core's handlers are the process's: what a test sets in their place goes again."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from graphlift import _C


@pytest.fixture(autouse=True)
def frame_handler_of_captures() -> Iterator[None]:
    yield
    context = sys.modules.get("graphlift.compiled.context")
    if context is not None:
        _C.set_frame_handler(context.handle_frame)
