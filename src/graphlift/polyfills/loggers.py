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
