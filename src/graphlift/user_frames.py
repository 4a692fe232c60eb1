"""The user's own frames as data, and how they are shown: as a traceback shows them, with a caret.

Owns what a message needs to know of a frame. It holds no frame and no code object, so keeping its tuples
keeps nothing of the user's alive. Mirrors the layout of Lib/traceback.py.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Final, NamedTuple

#: (line, end line, column, end column), as `code.co_positions` gives them; columns count UTF-8 bytes.
Position = tuple[int | None, int | None, int | None, int | None]

_OWN: Final = os.path.dirname(__file__) + os.sep


class UserFrame(NamedTuple):
    """A place in the user's program: file, line, and the name of the function."""

    file: str
    line: int
    function: str


class Place(NamedTuple):
    """An expression in a frame; what a message points at."""

    frame: UserFrame
    position: Position | None = None


def is_own(filename: str) -> bool:
    """Whether code of this file is graphlift's, so that its frames are none of the user's."""
    return filename.startswith(_OWN)


def callers() -> list[UserFrame]:
    """The frames that run now on this thread, outermost first, without graphlift's."""
    frame: FrameType | None = sys._getframe(1)
    found: list[UserFrame] = []
    while frame is not None:
        code = frame.f_code
        if not is_own(code.co_filename):
            line = frame.f_lineno or code.co_firstlineno
            found.append(UserFrame(code.co_filename, line, code.co_name))
        frame = frame.f_back
    return found[::-1]


def pointed_at(place: Place) -> list[str]:
    """The source line with carets below the expression; nothing where there is no source."""
    frame, position = place
    full = _line(frame)
    text = full.strip()
    if not text:
        return []
    if position is None or position[0] != frame.line:
        return [text]
    _, end_line, column, end_column = position
    if column is None or end_column is None:
        return [text]
    indent = len(full) - len(full.lstrip())
    first = max(_characters(full, column) - indent, 0)
    last = _characters(full, end_column) - indent if end_line == frame.line else len(text)
    last = min(last, len(text))
    return [text, " " * first + "^" * (last - first)] if first < last else [text]


def listing(stack: Sequence[UserFrame]) -> list[str]:
    """The frames as a traceback lists them, outermost first."""
    lines = []
    for frame in stack:
        lines.append(f'File "{frame.file}", line {frame.line}, in {frame.function}')
        text = _line(frame).strip()
        if text:
            lines.append(f"  {text}")
    return lines


def _line(frame: UserFrame) -> str:
    linecache.checkcache(frame.file)
    return linecache.getline(frame.file, frame.line)


def _characters(line: str, column: int) -> int:
    """How many characters of `line` its first `column` bytes are."""
    return len(line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))
