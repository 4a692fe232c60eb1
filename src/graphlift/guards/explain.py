"""Which guard fails, and why, in the user's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphlift.guards.compile import Check, CompiledGuards
from graphlift.guards.places import MISSING


def failed_guard(
    compiled: CompiledGuards, function: Any, params: Sequence[Any]
) -> tuple[Check | None, str] | None:
    """The first guard that does not hold for a call, with one sentence of explanation; None when all hold."""
    params = tuple(params)
    row = compiled.program.check(function, params)
    if row < 0:
        return None
    check = compiled.check_of_row(row)
    if check is None:
        return None, f"`{compiled.place_name(row)}` is no longer there"
    return check, sentence(compiled, check, function, params)


def sentence(compiled: CompiledGuards, check: Check, function: Any, params: Sequence[Any]) -> str:
    """What was assumed and what is there now, with the user's line that made it matter."""
    values = compiled.values(check, function, params)
    names = compiled.named(check)
    gone = [name for name, value in zip(names, values, strict=True) if value is MISSING]
    text = f"{gone[0]} is no longer there" if gone else check.kind.explain(check.payload, names, values)
    where = check.user_line()
    return text if where is None else f"{text} (read at {where[0]}:{where[1]})"
