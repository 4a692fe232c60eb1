"""How many items an iterable says it will give: mirrors `PyObject_LengthHint` of Objects/abstract.c.

``list()``, ``tuple()``, displays and starred targets ask before they take the first item, which runs
``__len__`` and ``__length_hint__`` of the user's.
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
    sequence = getattr(operand, "counted", None)
    if sequence is not None:  # an iterator that asks what it goes over
        return ask(tx, sequence) if attributes.user_special(tx, sequence, "__len__") is not None else None
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


def fast(tx: Tx, a: Var, error: str) -> list[VariableTracker]:
    """All items as `PySequence_Fast` takes them: a list of an iterator, which is asked for one again."""
    operand: VariableTracker = a.realize(tx)
    known_now = operand.unpack(tx)
    if known_now is not None:
        return known_now
    first = iteration.iter_(tx, operand, error)
    second = iteration.iter_(tx, first)
    ask(tx, first)
    return iteration.drain(tx, second)


def unpack(tx: Tx, a: Var) -> list[VariableTracker]:
    """All items of an iterable that is asked for their number first, as ``tuple(a)`` does."""
    operand: VariableTracker = a.realize(tx)
    known_now = operand.unpack(tx)
    if known_now is not None:
        return known_now
    iterator = iteration.iter_(tx, operand)
    ask(tx, operand)
    return iteration.drain(tx, iterator)


def unpack_ex(tx: Tx, a: Var, before: int, after: int) -> list[VariableTracker]:
    """Items for targets one of which is starred: `before` items, a list of the middle ones, `after` items.

    As in `_PyEval_UnpackIterable` the rest is ``list(iterator)``, which asks for an iterator anew: one of the
    user's may begin again there.
    """
    operand: VariableTracker = a.realize(tx)
    items = operand.unpack(tx)
    if items is None:
        iterator = iteration.iter_for_unpacking(tx, operand)
        items = iteration.drain(tx, iterator, before)
        if len(items) == before:
            items += unpack(tx, iterator)
    if len(items) < before + after:
        wanted = before + after
        tx.raise_(ValueError, f"not enough values to unpack (expected at least {wanted}, got {len(items)})")
    end = len(items) - after
    middle = tx.make.list(items[before:end])
    assert isinstance(middle, VariableTracker)
    return [*items[:before], middle, *items[end:]]
