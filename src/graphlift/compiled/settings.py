"""Capture settings: what a compiled object was asked for, one object per distinct combination.

Caches tell settings apart by identity, so `settings_for` gives the same object for the same wishes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final


class Settings:
    """How frames are captured and their graphs compiled; see `graphlift.compile` for the meanings."""

    __slots__ = ("__weakref__", "backend", "dynamic", "fullgraph", "mode", "options", "verify")

    def __init__(
        self,
        backend: str | Callable[..., Any],
        mode: str | None,
        options: Mapping[str, Any] | None,
        fullgraph: bool,
        dynamic: bool | None,
        verify: bool = False,
    ) -> None:
        self.backend: Final = backend
        self.mode: Final = mode
        self.options: Final = dict(options) if options else None
        self.fullgraph: Final = fullgraph
        self.dynamic: Final = dynamic
        self.verify: Final = verify

    def wishes(self) -> dict[str, Any]:
        """The keyword arguments of `compile` that ask for these settings."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "__weakref__"}

    def __repr__(self) -> str:
        parts = (f"{name}={value!r}" for name, value in self.wishes().items())
        return f"Settings({', '.join(parts)})"


_interned: weakref.WeakValueDictionary[tuple[Any, ...], Settings] = weakref.WeakValueDictionary()


def settings_for(
    backend: str | Callable[..., Any],
    mode: str | None,
    options: Mapping[str, Any] | None,
    fullgraph: bool,
    dynamic: bool | None,
    verify: bool = False,
) -> Settings:
    """The one settings object for these wishes.

    Raises:
        TypeError: a wish is of the wrong type.
        ValueError: both `mode` and `options` are given.
    """
    if not isinstance(backend, str) and not callable(backend):
        raise TypeError(f"backend must be a name or a callable, not {type(backend).__name__}")
    if mode is not None and options is not None:
        raise ValueError("either mode or options can be given, not both")
    if dynamic not in (None, True, False):
        raise TypeError(f"dynamic must be True, False or None, not {dynamic!r}")
    settings = Settings(backend, mode, options, bool(fullgraph), dynamic, bool(verify))
    chosen = tuple(sorted((name, repr(value)) for name, value in (options or {}).items()))
    named = backend if isinstance(backend, str) else id(backend)
    key = (named, mode, chosen, settings.fullgraph, dynamic, settings.verify)
    return _interned.setdefault(key, settings)
