"""Where an exception goes: the frame's exception table, and the chain of handled exceptions.

Mirrors the unwinding at ``exception_unwind`` of Python/ceval.c, and the setting of ``__context__`` in
Python/errors.c.
"""

from __future__ import annotations

from typing import Any, NoReturn

from graphlift.errors import ObservedException
from graphlift.interpreter.frame_state import LastiVariable
from graphlift.protocol import Tx, Var
from graphlift.variables import exceptions
from graphlift.variables.constant import ConstantVariable


def handled_inside(tx: Any) -> Var | None:
    """The exception being handled by the frames that are captured, or None."""
    while tx is not None:
        if tx.frame.handled is not None:
            handled: Var = tx.frame.handled
            return handled
        tx = tx.parent
    return None


def handled_exception(tx: Any) -> Var | None:
    """The exception being handled at this point of the program (``sys.exception()``), or None."""
    handled = handled_inside(tx)
    if handled is not None:
        return handled
    while tx.parent is not None:
        tx = tx.parent
    outside: Var = tx.handled_outside.realize(tx)
    return None if isinstance(outside, ConstantVariable) else outside


def raise_var(tx: Tx, value: Var) -> NoReturn:
    """Raise an exception instance; what is being handled becomes its ``__context__``."""
    handled = handled_exception(tx)
    if handled is not None:
        exceptions.set_context(tx, value.realize(tx), handled.realize(tx))
    raise ObservedException(value)


#: What lets an exception go on as it is, with the traceback that it has.
_RERAISES = frozenset({"RERAISE", "CLEANUP_THROW"})


def _note_place(frame: Any, index: int, tx: Any, value: Any) -> None:
    """Note in an exception that it is at this step, as PyTraceBack_Here does; polyfills leave no trace."""
    op = frame.decoded.op(index)
    if op in _RERAISES or (op == "RAISE_VARARGS" and _is_handled(tx, frame.decoded.operands[index], value)):
        return
    if not isinstance(value, exceptions.ExceptionVariable) or _is_polyfill(frame):
        return
    value.pass_place(tx, frame.code, index, frame.module_globals)


def _is_handled(tx: Any, count: int, value: Any) -> bool:
    """Whether a bare ``raise`` lets the handled exception go on; with none it raises an error of its own."""
    handled = None if count else handled_exception(tx)
    return handled is not None and handled.realize(tx) is value


def _is_polyfill(frame: Any) -> bool:
    module_globals = frame.module_globals.real or {}
    return str(module_globals.get("__name__")).startswith("graphlift.polyfills.")


def _stands_at(frame: Any, index: int) -> int:
    """The step at which the frame shows itself: cleanup code that reraises puts it back to what failed."""
    depth = frame.decoded.operands[index] if frame.decoded.op(index) == "RERAISE" else 0
    entry = frame.stack[-depth] if depth else None
    return entry.index if isinstance(entry, LastiVariable) else index


def enter_handler(tx: Any, error: ObservedException) -> int:
    """Unwind the stack to the handler that protects the present step; gives the handler's step.

    Raises `error` again when the frame does not handle it.
    """
    frame = tx.frame
    index = frame.ip - 1
    _note_place(frame, index, tx, error.value)
    region = frame.decoded.region(index)
    last = _stands_at(frame, index)
    if region is None:
        if isinstance(error.value, exceptions.ExceptionVariable):
            error.value.leave_at(tx, frame.code, last)
        try:
            raise error
        finally:
            del error  # or the traceback, which keeps this frame, would keep the whole capture in a circle
    stack = tx.stack
    del stack[region.depth :]
    if region.lasti:
        stack.append(LastiVariable(last))
    stack.append(error.value)
    target: int = region.target
    return target
