"""Loggers: a message that no level lets through is dropped.

One that would be shown is put off where nobody but Python's own handlers on plain streams sees it; else it
breaks. A record names the line and function of the frame that logs, so that must be the captured one.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.polyfills import loggers as polyfills
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtins import output
from graphlift.variables.functions import Model, models
from graphlift.variables.lazy import LazyVariableTracker
from graphlift.variables.sequences import TupleVariable

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "exception": logging.ERROR,
    "critical": logging.CRITICAL,
}

#: Those that are not put off: they add the exception being handled, or warn themselves.
_AT_ONCE: Final = frozenset({"exception", "warn"})


def _at_level(name: str, level: int) -> Model:
    def log(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return _log(tx, tx.make.constant(level), name, args, args[1:], kwargs)

    return log


def _log(
    tx: Tx, level: Any, name: str, args: Sequence[Any], shown: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """A call of the method `name` with `args`, of which `shown` are the message and what is put into it."""
    enabled = tx.run_host(polyfills.is_enabled_for, [args[0], level]).realize(tx)
    if not enabled.is_constant():
        tx.fail(Reason.INPUT_OUTPUT, f"Logger.{name}() at a level that is not known")
    if enabled.as_constant():
        call = f"Logger.{name}"
        logger = args[0].realize(tx)
        if kwargs or name in _AT_ONCE or not shown or _is_written(tx, logger.value):
            output.refuse(tx, call, "in a form that is not put off")
        if tx.where()[2] is not None:  # the record would name the frame that everything is put off in
            output.refuse(tx, call, "in a function that was called")
        if tx.is_watched():
            output.refuse(tx, call, "where its failure would be handled")
        encodings = _encodings(tx, logger, call)
        given = [_given(tx, value, encodings, call) for value in shown]
        _check_format(tx, given, encodings, call)
        function = getattr(logging.Logger, name)
        output.put_off(
            tx, output.Call(function, (logger, *args[1 : len(args) - len(shown)], *given), {}, tx.where())
        )
    return tx.make.constant(None)


def _is_written(tx: Tx, logger: Any) -> bool:
    """Whether the program wrote to what decides where messages go; the ledger does that at another time."""
    things: list[Any] = []
    while logger is not None:
        things += [logger, *logger.handlers, logger.handlers, logger.filters, logger.manager]
        logger = logger.parent
    known = {id(thing) for thing in things} | {
        id(vars(thing)) for thing in things if hasattr(thing, "__dict__")
    }
    return any(id(handle.real) in known for handle in tx.heap.written)


def _encodings(tx: Tx, logger: VariableTracker, call: str) -> list[str]:
    """The encodings of the streams that a message reaches."""
    streams = tx.run_host(polyfills.streams_of, [logger]).realize(tx)
    found = []
    for stream in streams.items if isinstance(streams, TupleVariable) else ():
        encoding = output.encoding_of(tx, stream.realize(tx))
        if encoding is None:
            output.refuse(tx, call, "to a stream that is not Python's own")
        found.append(encoding)
    if not found:
        output.refuse(tx, call, "to handlers that are not Python's own, or to none")
    return found


def _given(tx: Tx, value: Var, encodings: Sequence[str], call: str) -> Var:
    """A message or a value to put into it, as the record will hold it: immutable."""
    if all(output.handed_in(tx, value, encoding) for encoding in encodings):
        return value
    item: VariableTracker = value.realize(tx)
    if output.is_symbolic(tx, item) or (item.is_constant() and output.is_immutable(item.as_constant())):
        return item
    output.refuse(tx, call, f"with {item!r}")


def _check_format(tx: Tx, given: Sequence[Var], encodings: Sequence[str], call: str) -> None:
    """Break where the message cannot be made: logging then shows the stack of the call."""
    template, *values = (_sample(tx, value) for value in given)
    try:
        message = str(template) % tuple(values) if values else str(template)
    except Exception:
        output.refuse(tx, call, "with values that do not fit the message")
    for encoding in encodings:
        output.check_encodable(tx, tx.make.constant(message), encoding)


def _sample(tx: Tx, value: Var) -> Any:
    """What the value is now, or something of its kind."""
    if type(value) is LazyVariableTracker:
        return value.value
    item: Any = value.realize(tx)
    if item.is_constant():
        return item.as_constant()
    return (
        tuple(_sample(tx, part) for part in item.items)
        if type(item) is TupleVariable
        else item.python_type(tx)()
    )


for _name, _level in _LEVELS.items():
    _method = logging.Logger.__dict__.get(_name)
    if _method is not None:
        models(_method)(_at_level(_name, _level))


@models(logging.Logger.log)
def _log_at(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return _log(tx, args[1], "log", args, args[2:], kwargs)


@models(logging.Logger.isEnabledFor)
def _is_enabled_for(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.run_host(polyfills.is_enabled_for, args, kwargs)


@models(logging.Logger.getEffectiveLevel)
def _effective_level(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.run_host(polyfills.effective_level, args, kwargs)


@models(warnings.warn, warnings.warn_explicit)
def _warn(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    tx.fail(Reason.INPUT_OUTPUT, "warnings.warn()")
