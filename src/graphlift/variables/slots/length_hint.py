"""How many items an iterable says it will give: mirrors `PyObject_LengthHint` of Objects/abstract.c.

``list()``, ``tuple()`` and displays ask before they take the first item, which runs ``__len__`` and
``__length_hint__`` of the user's.
"""

from __future__ import annotations

from graphlift.errors import ObservedException
from graphlift.protocol import Tx, Var
from graphlift.variables.base import VariableTracker
from graphlift.variables.folding import known
from graphlift.variables.slots import attributes, items, iteration


def ask(tx: Tx, a: Var) -> int | None:
    """What methods of the user's say, None where they say nothing; a TypeError of theirs is forgotten."""
    operand: VariableTracker = a.realize(tx)
    if attributes.user_special(tx, operand, "__len__") is not None:
        try:
            count = known(tx, items.length(tx, operand))
            return count if isinstance(count, int) else None
        except ObservedException as error:
            _forget_type_error(tx, error)
    hint = attributes.user_special(tx, operand, "__length_hint__")
    if hint is None:
        return None
    try:
        result = attributes.call_attr(tx, hint, operand, operand.python_type(tx), []).realize(tx)
    except ObservedException as error:
        _forget_type_error(tx, error)
        return None
    return _checked(tx, result)


def _forget_type_error(tx: Tx, error: ObservedException) -> None:
    if not issubclass(error.value.python_type(tx), TypeError):
        raise error


def _checked(tx: Tx, result: VariableTracker) -> int | None:
    value = known(tx, result)
    if value is NotImplemented:
        return None
    if not isinstance(value, int):
        name = result.python_type(tx).__name__
        tx.raise_(TypeError, f"__length_hint__ must be an integer, not {name}")
    if value < 0:
        tx.raise_(ValueError, "__length_hint__() should return >= 0")
    return value


def unpack(tx: Tx, a: Var) -> list[VariableTracker]:
    """All items of an iterable that is asked for their number first, as ``tuple(a)`` does."""
    operand: VariableTracker = a.realize(tx)
    known_now = operand.unpack(tx)
    if known_now is not None:
        return known_now
    iterator = iteration.iter_(tx, operand)
    ask(tx, operand)
    return iteration.drain(tx, iterator)
