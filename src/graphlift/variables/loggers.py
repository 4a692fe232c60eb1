"""Loggers: a message that no level lets through is dropped; one that would be shown is output and breaks."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.polyfills import loggers as polyfills
from graphlift.protocol import Tx
from graphlift.reasons import Reason
from graphlift.variables.functions import Model, models

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "exception": logging.ERROR,
    "critical": logging.CRITICAL,
}


def _at_level(name: str, level: int) -> Model:
    def log(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return _log(tx, args[0], tx.make.constant(level), name)

    return log


def _log(tx: Tx, logger: Any, level: Any, name: str) -> Any:
    shown = tx.run_host(polyfills.is_enabled_for, [logger, level]).realize(tx)
    if not shown.is_constant() or shown.as_constant():
        tx.fail(Reason.INPUT_OUTPUT, f"Logger.{name}()")
    return tx.make.constant(None)


for _name, _level in _LEVELS.items():
    _method = logging.Logger.__dict__.get(_name)
    if _method is not None:
        models(_method)(_at_level(_name, _level))


@models(logging.Logger.log)
def _log_at(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return _log(tx, args[0], args[1], "log")


@models(logging.Logger.isEnabledFor)
def _is_enabled_for(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.run_host(polyfills.is_enabled_for, args, kwargs)


@models(logging.Logger.getEffectiveLevel)
def _effective_level(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.run_host(polyfills.effective_level, args, kwargs)


@models(warnings.warn, warnings.warn_explicit)
def _warn(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    tx.fail(Reason.INPUT_OUTPUT, "warnings.warn()")
