"""``sys.exc_info`` and ``sys.exception``: the exception that the program handles at this point."""

from __future__ import annotations

import sys
from typing import Any

from graphlift.protocol import Tx
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.slots import attributes


@builtin(sys.exc_info)
def _exc_info(tx: Tx) -> Any:
    handled = tx.handled_exception()
    if handled is None:
        return tx.make.tuple([tx.make.constant(None)] * 3)
    cls = attributes.class_of(tx, handled.realize(tx), handled.realize(tx).python_type(tx))
    return tx.make.tuple([cls, handled, handled.realize(tx).traceback(tx)])


@builtin(sys.exception)
def _exception(tx: Tx) -> Any:
    handled = tx.handled_exception()
    return tx.make.constant(None) if handled is None else handled
