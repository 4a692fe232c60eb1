"""The merging of ``**`` arguments at a call.

Stands for the opcode DICT_MERGE: https://docs.python.org/3/library/dis.html#opcode-DICT_MERGE
"""

from __future__ import annotations

from typing import Any


def merge_keywords(into: dict[Any, Any], more: Any, name: str) -> None:
    """Add the items of `more` to `into`; keys that are there already are an error of the call.

    Arguments:
        into: the keyword arguments so far.
        more: what stands behind ``**``.
        name: the callable's name for messages, e.g. ``f()``.
    """
    if not isinstance(more, dict) and not hasattr(more, "keys"):
        raise TypeError(f"{name} argument after ** must be a mapping, not {type(more).__name__}")
    for key in more.keys():  # noqa: SIM118 - a mapping's keys are what `keys` says
        if not isinstance(key, str):
            raise TypeError("keywords must be strings")
        if key in into:
            raise TypeError(f"{name} got multiple values for keyword argument '{key}'")
        into[key] = more[key]
