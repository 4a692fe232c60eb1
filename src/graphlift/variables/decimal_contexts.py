"""The context that decimal arithmetic reads and writes, as plain data: what computing in a capture, guards
and compiled programs need of it."""

from __future__ import annotations

import decimal
from typing import Any, Final

_SIGNALS: Final[tuple[Any, ...]] = tuple(decimal.Context().flags)
_BY_NAME: Final = {signal.__name__: signal for signal in _SIGNALS}

#: Settings of a context, in the order of `decimal.Context`'s parameters.
_SETTINGS: Final = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


def read_context(_: object) -> tuple[Any, ...]:
    """The settings of the present context and the names of the signals that it traps; no flags."""
    context = decimal.getcontext()
    traps = tuple(signal.__name__ for signal in _SIGNALS if context.traps[signal])
    return (*(getattr(context, name) for name in _SETTINGS), traps)


def make_context(settings: tuple[Any, ...]) -> decimal.Context:
    """A context of such settings, without flags."""
    *values, traps = settings
    named: dict[str, Any] = dict(zip(_SETTINGS, values, strict=True))
    return decimal.Context(**named, flags=[], traps=[_BY_NAME[name] for name in traps])


def raised_flags(context: decimal.Context) -> tuple[str, ...]:
    """The names of the flags that are set."""
    return tuple(signal.__name__ for signal in _SIGNALS if context.flags[signal])


def set_flags(names: tuple[str, ...]) -> None:
    """Set flags of the present context."""
    flags = decimal.getcontext().flags
    for name in names:
        flags[_BY_NAME[name]] = True


def read_decimal(value: Any) -> tuple[Any, ...]:
    """What makes a decimal number: sign, digits, exponent."""
    return tuple(value.as_tuple())
