"""What becomes of a warning.

https://docs.python.org/3/library/warnings.html#the-warnings-filter
"""

from __future__ import annotations

import warnings
from typing import Any


def action_for(text: str, category: type[Warning], module: str, line: int) -> str:
    """The action of the first filter that fits."""
    for action, message, kind, place, at in warnings.filters:
        if (
            (message is None or _fits(message, text))
            and issubclass(category, kind)
            and (place is None or _fits(place, module))
            and (at == 0 or at == line)
        ):
            return action
    return warnings.defaultaction  # type: ignore[attr-defined,no-any-return]


def _fits(wanted: Any, text: str) -> bool:
    """Filters made in C hold plain text, others patterns."""
    if type(wanted) is str:
        return wanted == text
    return wanted.match(text) is not None
