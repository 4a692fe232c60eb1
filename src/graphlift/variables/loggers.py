"""Loggers: a message that no level lets through is dropped.

One that would be shown is put off where nobody but Python's own handlers on plain streams sees it; else it
breaks. The record is made for the place in the program that logs, as `Logger.findCaller` would find it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.bytecode.decode import decode
from graphlift.polyfills import loggers as polyfills
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtins import output
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.exceptions import ExceptionVariable
from graphlift.variables.functions import Model, models
from graphlift.variables.lazy import LazyVariableTracker
from graphlift.variables.put_off import Call, put_off
from graphlift.variables.sequences import TupleVariable
from graphlift.variables.slots import attributes

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "exception": logging.ERROR,
    "critical": logging.CRITICAL,
}

#: Those that are not put off: they warn themselves.
_AT_ONCE: Final = frozenset({"warn"})

#: Frames of this file are not the ones that log.
_LOGGING: Final = os.path.normcase(logging.addLevelName.__code__.co_filename)


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
        if (
            not kwargs.keys() <= {"exc_info"}
            or name in _AT_ONCE
            or not shown
            or _is_written(tx, logger.value)
        ):
            output.refuse(tx, call, "in a form that is not put off")
        if tx.is_watched():
            output.refuse(tx, call, "where its failure would be handled")
        encodings = _encodings(tx, logger, call)
        given = [_given(tx, value, encodings, call) for value in shown]
        _check_format(tx, given, encodings, call)
        error = _handled(tx, kwargs.get("exc_info"), encodings, call) if kwargs or name == "exception" else []
        place = ConstantVariable(_place(tx, call))
        put_off(
            tx,
            Call(_emit, (logger, level, place, ConstantVariable(len(error)), *error, *given), {}, tx.where()),
        )
    return tx.make.constant(None)


def _emit(logger: Any, level: int, place: tuple[str, int, str], count: int, *rest: Any) -> None:
    """Make and handle a record (runs in the compiled program).

    Arguments:
        count: how many of the rest are what `sys.exc_info` gave.
        rest: that; the message; what is put into it.
    """
    file, line, function = place
    message, args, error = rest[count], rest[count + 1 :], rest[:count] or None
    logger.handle(
        logger.makeRecord(logger.name, level, file, line, message, args, error, function, None, None)
    )


def _place(tx: Tx, call: str) -> tuple[str, int, str]:
    """File, line and function of the frame that logs."""
    where: Any = tx.where()
    while where is not None:
        code, offset, where = where
        if os.path.normcase(code.co_filename) != _LOGGING:
            decoded = decode(code)
            return code.co_filename, decoded.line(decoded.index_at(offset)) or 0, code.co_name
    output.refuse(tx, call, "in a frame of its own")


def _handled(tx: Tx, asked: Any, encodings: Sequence[str], call: str) -> list[Any]:
    """The exception that a record shows, as `sys.exc_info` gives it; nothing where none is to be shown."""
    wanted: Any = tx.make.constant(True) if asked is None else asked.realize(tx)
    if wanted.is_constant() and not wanted.as_constant():
        return []
    handled: Any = tx.handled_exception()
    error = None if handled is None else handled.realize(tx)
    if (
        not wanted.is_constant()
        or wanted.as_constant() is not True
        or not isinstance(error, ExceptionVariable)
        or not error.is_plain(tx)
    ):
        output.refuse(tx, call, "with an exception whose text is not known")
    if not set(encodings) <= {"any", "utf-8"}:
        output.refuse(tx, call, "of source lines that the stream may not take")
    return [tx.make.from_value(error.cls, None), error, error.traceback(tx)]


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


def _of_module(name: str, level: int) -> Model:
    """A function of the module, which logs by the root logger."""

    def log(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        root = attributes.getattr_(tx, tx.make.from_value(logging, None), "root")
        if not tx.run_host(polyfills.has_handlers, [root]).realize(tx).as_constant():
            output.refuse(tx, f"logging.{name}", "that configures logging first")
        return _log(tx, tx.make.constant(level), name, [root, *args], args, kwargs)

    return log


for _name, _level in _LEVELS.items():
    _function = vars(logging).get(_name)
    if _function is not None and _name not in _AT_ONCE:
        models(_function)(_of_module(_name, _level))


@models(logging.Logger.log)
def _log_at(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return _log(tx, args[1], "log", args, args[2:], kwargs)


@models(logging.Logger.isEnabledFor)
def _is_enabled_for(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.run_host(polyfills.is_enabled_for, args, kwargs)


@models(logging.Logger.getEffectiveLevel)
def _effective_level(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.run_host(polyfills.effective_level, args, kwargs)
