"""Attribute opcodes; the algorithms are in `variables/slots/attributes.py`."""

from __future__ import annotations

from graphlift.interpreter.dispatch import Translator, handler
from graphlift.interpreter.frame_state import NULL
from graphlift.variables.classes import ClassVariable
from graphlift.variables.slots import attributes


def push_method(tx: Translator, value: object) -> None:
    """Push a callable with the NULL that a method look-up leaves beside a plain value."""
    if tx.null_before_callable:
        tx.stack += (NULL, value)
    else:
        tx.stack += (value, NULL)


@handler
def LOAD_ATTR(tx: Translator, operand: tuple[str, bool]) -> None:
    name, is_method = operand
    if is_method:
        push_method(tx, attributes.load_method(tx, tx.stack.pop(), name))
    else:
        tx.stack.append(attributes.getattr_(tx, tx.stack.pop(), name))


@handler
def STORE_ATTR(tx: Translator, name: str) -> None:
    owner = tx.stack.pop()
    attributes.setattr_(tx, owner, name, tx.stack.pop())


@handler
def DELETE_ATTR(tx: Translator, name: str) -> None:
    attributes.delattr_(tx, tx.stack.pop(), name)


@handler
def LOAD_SUPER_ATTR(tx: Translator, operand: tuple[str, bool, bool]) -> None:
    name, is_method, two_arguments = operand
    instance = tx.stack.pop()
    cls = tx.stack.pop()
    function = tx.stack.pop().realize(tx)
    own = isinstance(function, ClassVariable) and function.value is super
    super_object = tx.call(function, [cls, instance] if own or two_arguments else [])
    value = attributes.getattr_(tx, super_object, name)
    if is_method:
        push_method(tx, value)
    else:
        tx.stack.append(value)
