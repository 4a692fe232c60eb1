"""``with`` statements. Mirrors BEFORE_WITH and WITH_EXCEPT_START of Python/bytecodes.c."""

from __future__ import annotations

from graphlift.interpreter.dispatch import Handler, Translator, family, handler
from graphlift.variables.slots import attributes

_NOT_A_MANAGER = "'{}' object does not support the context manager protocol"


@handler
def BEFORE_WITH(tx: Translator, operand: None) -> None:
    manager = tx.stack.pop().realize(tx)
    enter = attributes.lookup_special(tx, manager, "__enter__")
    if enter is None:
        tx.raise_(TypeError, _NOT_A_MANAGER.format(manager.python_type(tx).__name__))
    leave = attributes.lookup_special(tx, manager, "__exit__")
    if leave is None:
        tx.raise_(
            TypeError,
            _NOT_A_MANAGER.format(manager.python_type(tx).__name__) + " (missed __exit__ method)",
        )
    if tx.takes("__enter__", manager):
        tx.last_call(enter, "enter", leave)
    tx.entering(leave)
    tx.stack.append(leave)
    tx.stack.append(tx.call(enter, []))


@handler
def WITH_EXCEPT_START(tx: Translator, operand: None) -> None:
    value = tx.stack[-1].realize(tx)
    cls = attributes.class_of(tx, value, value.python_type(tx))
    leave = tx.stack[-4].realize(tx)
    if tx.takes("__exit__", leave):
        tx.last_call(leave)
    tx.stack.append(tx.call(leave, [cls, value, value.traceback(tx)]))


@family("BEFORE_ASYNC_WITH")
def _async(name: str) -> Handler:
    def run(tx: Translator, operand: object) -> None:
        tx.missing(name)

    return run
