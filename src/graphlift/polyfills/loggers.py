"""``logging.Logger`` as far as it can be followed: whether a message would be shown at all.

https://docs.python.org/3/library/logging.html#logger-objects
"""

from __future__ import annotations

import logging
from typing import Any

_STEPS = 100


def effective_level(logger: Any) -> int:
    """``Logger.getEffectiveLevel``."""
    steps = 0
    while logger and steps < _STEPS:
        if logger.level:
            return int(logger.level)
        logger = logger.parent
        steps += 1
    return logging.NOTSET


def is_enabled_for(logger: Any, level: int) -> bool:
    """``Logger.isEnabledFor``, without the logger's own cache."""
    if logger.disabled or logger.manager._disable >= level:
        return False
    return level >= effective_level(logger)


def has_handlers(logger: Any) -> bool:
    """Whether the functions of the module may log without configuring anything first."""
    return len(logger.handlers) > 0


#: Handlers that do nothing but write to a stream.
_PLAIN = (logging.StreamHandler, logging.FileHandler)

_OWN_METHODS = ("_log", "callHandlers", "emit", "filter", "findCaller", "format", "handle", "makeRecord")


def _is_changed(thing: Any) -> bool:
    """Whether an object replaces a method by which messages go."""
    own = vars(thing)
    return any(name in own for name in _OWN_METHODS)


def streams_of(logger: Any) -> tuple[Any, ...] | None:
    """The streams that a message reaches; None when others than the library's own code see it, too."""
    streams: list[Any] = []
    if logging._logRecordFactory is not logging.LogRecord:  # type: ignore[attr-defined]
        return None
    while logger:
        if type(logger) not in (logging.Logger, logging.RootLogger) or logger.filters or _is_changed(logger):
            return None
        for handler in logger.handlers:
            if type(handler) not in _PLAIN or handler.filters or _is_changed(handler):
                return None
            formatter = handler.formatter
            if formatter is not None and (type(formatter) is not logging.Formatter or _is_changed(formatter)):
                return None
            streams.append(handler.stream)
        if not logger.propagate:
            break
        logger = logger.parent
    return tuple(streams) if streams else None
