"""Names of a finished graph's nodes: the user's where there is one, else after what is called.

Owns the spelling of names and their uniqueness; knows nothing of FX beyond the names it keeps free.
"""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Any, Final

from graphlift.sources import Source

_RESERVED: Final = frozenset({*keyword.kwlist, *dir(builtins), "inf", "nan", "NoneType", "torch", "device"})
_ILLEGAL: Final = re.compile(r"\W+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")
_NUMBERED: Final = re.compile(r"(.*)_(\d+)$")


class Names:
    """Hands out names, each once.

    Attributes:
        used: all names given out.
        counts: how often each base name was asked for.
    """

    def __init__(self) -> None:
        self.used: Final[set[str]] = set()
        self.counts: Final[dict[str, int]] = {}

    def take(self, wanted: str) -> str:
        """`wanted` if it is free and legal, else with a number behind it."""
        if wanted not in self.used and wanted not in _RESERVED:
            self.used.add(wanted)
            self.counts.setdefault(wanted, 0)
            return wanted
        split = _NUMBERED.match(wanted)
        base = split.group(1) if split else wanted
        number = self.counts.get(base, 0) + 1
        while (name := f"{base}_{number}") in self.used:
            number += 1
        self.counts[base] = number
        self.used.add(name)
        return name


def input_name(source: Source | None, position: int) -> str:
    """The name of a placeholder, e.g. ``L_x_`` for the argument `x`."""
    if source is None:
        return f"input_{position}"
    place = _ILLEGAL.sub("_", source.name()).strip("_")
    return "L_" + re.sub("_+", "_", place) + "_"


_target_names: Final[dict[Any, str]] = {}


def target_name(target: Any) -> str:
    """The base name of a node that calls `target`."""
    try:
        return _target_names[target]
    except (KeyError, TypeError):
        pass
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    plain = _ILLEGAL.sub("_", name)
    plain = _CAMEL.sub(r"_\1", plain).lower().lstrip("_")
    if name.startswith("__") and name.endswith("__"):
        plain = plain.rstrip("_")
    if not plain or plain[0].isdigit():
        plain = f"call_{plain}"
    module = getattr(target, "__module__", None) or ""
    if isinstance(target, str) or module.startswith(("torch", "_operator")):
        _target_names[target] = plain
    return plain
