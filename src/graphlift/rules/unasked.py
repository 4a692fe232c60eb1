"""Functions that CPython calls of its own accord, at moments the program does not choose.

What the garbage collector calls and signal handlers run in between the program's own steps. A graph of them
would belong to no place of the program, and whether there is one would depend on chance. (Finalizers, too:
the C core leaves them alone.)
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import gc
import inspect
import signal
from types import CodeType, FunctionType, MethodType
from typing import Any


def is_unasked(function: FunctionType) -> bool:
    """Whether `function` is installed now as a callback of the collector or as a signal's handler."""
    code = function.__code__
    return any(_code_of(callback) is code for callback in (*gc.callbacks, *_signal_handlers()))


#: The signals of this machine, as numbers.
_SIGNALS = tuple(map(int, signal.valid_signals()))


def _signal_handlers() -> list[Any]:
    """Handlers that are written in Python; this is asked before each capture, so no enumerations are made."""
    handlers = map(_signal.getsignal, _SIGNALS)
    return [handler for handler in handlers if handler is not None and type(handler) is not int]


def _code_of(callback: Any) -> CodeType | None:
    """The code that a call of a function, a bound method or a callable object starts with."""
    if not isinstance(callback, (FunctionType, MethodType)):
        callback = inspect.getattr_static(type(callback), "__call__", None)
    if isinstance(callback, MethodType):
        callback = callback.__func__
    return callback.__code__ if isinstance(callback, FunctionType) else None
