"""The merging of what stands behind ``**``, at a call and in a dictionary display.

Stands for the opcodes DICT_MERGE and DICT_UPDATE: https://docs.python.org/3/library/dis.html#opcode-DICT_MERGE
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
    if isinstance(more, dict) and type(more).__iter__ is dict.__iter__:
        more = dict.copy(more)  # what its class says of keys and items is not asked
    error = None
    try:
        for key in more.keys():  # noqa: SIM118 - a mapping's keys are what `keys` says
            if key in into:
                error = f"{name} got multiple values for keyword argument '{key}'"
                break
            into[key] = more[key]
    except AttributeError:
        error = f"{name} argument after ** must be a mapping, not {type(more).__name__}"
    if error is not None:  # a failed look-up is no context of this error
        raise TypeError(error)


def update_display(into: dict[Any, Any], more: Any) -> None:
    """Add the items of `more` to a dictionary under construction."""
    if isinstance(more, dict):
        into.update(more)
        return
    is_mapping = True
    try:
        for key in more.keys():  # noqa: SIM118 - as above
            into[key] = more[key]
    except AttributeError:
        is_mapping = False
    if not is_mapping:  # the other error is no context of this one
        raise TypeError(f"'{type(more).__name__}' object is not a mapping")
