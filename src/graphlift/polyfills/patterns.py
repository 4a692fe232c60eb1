"""Substitution by a function: what a compiled pattern does with each match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def sub_by(pattern: Any, function: Callable[[Any], Any], text: Any, count: int = 0) -> Any:
    """``Pattern.sub`` with a function, on a text.

    https://docs.python.org/3/library/re.html#re.sub
    """
    return subn_by(pattern, function, text, count)[0]


def subn_by(pattern: Any, function: Callable[[Any], Any], text: Any, count: int = 0) -> tuple[Any, int]:
    """``Pattern.subn`` with a function, on a text.

    https://docs.python.org/3/library/re.html#re.subn
    """
    parts = []
    end = done = 0
    for match in pattern.finditer(text):
        if count and done >= count:  # with a negative one there is no substitution at all
            break
        if end < match.start():
            parts.append(text[end : match.start()])
        made = function(match)
        if made is not None:
            parts.append(made)
        end = match.end()
        done += 1
    if end < len(text):
        parts.append(text[end:])
    return text[:0].join(parts), done
