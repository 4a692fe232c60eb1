"""What both runs share because it cannot be copied: said once, and watched, for it cannot be moved twice."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import types
from typing import Any

_LOG = logging.getLogger("graphlift")

_told: set[str] = set()


def tell_once(kind: str, text: str, error: BaseException | None = None) -> None:
    """Log a warning, once for each kind, with the error behind it."""
    if kind not in _told:
        _told.add(kind)
        _LOG.warning("verify: %s", text, exc_info=error)


class Shared:
    """The objects that one verified call shares between its runs.

    Attributes:
        where: the argument or name that is being copied, for messages.
    """

    def __init__(self) -> None:
        self.where = ""
        self._states: list[tuple[Any, str, Any]] = []

    def add(self, value: Any) -> None:
        """Note an object, and say that its kind is shared (a cache of results is meant to be)."""
        self._states.append((value, self.where, _state(value)))
        if not isinstance(value, functools._lru_cache_wrapper):
            name = f"{type(value).__module__}.{type(value).__qualname__}"
            tell_once(name, f"a {name} (in {self.where}) cannot be copied; both runs share such objects")

    def moved(self) -> str | None:
        """What has moved since it was noted, or None."""
        for value, where, state in self._states:
            if _state(value) != state:
                return f"a {type(value).__qualname__} in {where}"
        return None


def _state(value: Any) -> Any:
    """How far something that cannot be copied has come; None where that cannot be told."""
    for kind, prefix in _SUSPENDED:
        if isinstance(value, kind):
            frame = getattr(value, f"{prefix}_frame")
            return "ended" if frame is None else frame.f_lasti
    if isinstance(value, functools._lru_cache_wrapper):
        return value.cache_info().misses
    if isinstance(value, io.IOBase):
        with contextlib.suppress(OSError, ValueError):
            return value.tell()
    return None


_SUSPENDED = ((types.GeneratorType, "gi"), (types.CoroutineType, "cr"), (types.AsyncGeneratorType, "ag"))
