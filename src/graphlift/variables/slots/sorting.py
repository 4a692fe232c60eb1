"""Sorting, by CPython's own ``list.sort``: where not all keys are known, it is run on stand-ins whose ``<``
asks the program.

So the program's ``__lt__`` is asked as often, in the order and of the keys as in plain Python, and after an
error the list is ordered as far. Keys are computed first, one call each. See Objects/listobject.c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from graphlift.errors import ObservedException
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import UNKNOWN
from graphlift.variables.folding import known
from graphlift.variables.slots import calls, operators
from graphlift.variables.slots.numbers import index_
from graphlift.variables.slots.truth import is_true


class _Asking:
    """Stands for a key; compares by running the program's comparison.

    Attributes:
        tx: who asks.
        key: the key's tracker.
    """

    __slots__ = ("key", "tx")

    def __init__(self, tx: Tx, key: Var) -> None:
        self.tx = tx
        self.key = key

    def __lt__(self, other: _Asking) -> bool:
        return is_true(self.tx, operators.compare(self.tx, "<", self.key, other.key))


def _takes_any_flag() -> bool:
    try:
        sorted((), reverse=None)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


#: What makes a flag of `reverse`: its truth, or, until Python 3.11, a number.
_AS_FLAG: Final[Callable[[Tx, Var], int]] = is_true if _takes_any_flag() else index_


def sort(
    tx: Tx, items: list[Any], key: Var | None, reverse: Var | None, *, in_place: bool = False
) -> list[Any]:
    """The items in order.

    Arguments:
        items: when a comparison raises, they are left in the order reached until then.
        in_place: the caller sorts a list of the program, whose order after an error can be seen.
    """
    flag = reverse is not None and bool(_AS_FLAG(tx, reverse))
    keys: Sequence[Any] = list(items)
    if key is not None and known(tx, key) is not None:
        keys = [calls.call(tx, key, [item], {}) for item in items]
    values = [known(tx, each) for each in keys]
    if not any(value is UNKNOWN for value in values):
        return [items[index] for index in _order(tx, values, flag, in_place)]
    asking = [_Asking(tx, each) for each in keys]
    order = list(range(len(items)))
    try:
        order.sort(key=asking.__getitem__, reverse=flag)
    except ObservedException:
        items[:] = [items[index] for index in order]
        raise
    return [items[index] for index in order]


def _order(tx: Tx, values: list[Any], reverse: bool, in_place: bool) -> list[int]:
    try:
        return sorted(range(len(values)), key=values.__getitem__, reverse=reverse)
    except Exception as error:
        if in_place:
            tx.fail(Reason.UNSUPPORTED_OPERATION, "sorting values that cannot be ordered")
        tx.raise_real(error)
