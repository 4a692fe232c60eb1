"""Sorting: at once where all keys are known, else by an inlined algorithm that only asks ``<``.

Mirrors ``list.sort`` of Objects/listobject.c: keys are computed first, one call each, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphlift.polyfills import sorting as polyfills
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import UNKNOWN
from graphlift.variables.folding import known
from graphlift.variables.slots import calls, iteration
from graphlift.variables.slots.truth import is_true


def sort(
    tx: Tx, items: Sequence[Any], key: Var | None, reverse: Var | None, *, in_place: bool = False
) -> list[Any]:
    """The items in order.

    Arguments:
        in_place: the caller sorts a list of the program, whose order after an error can be seen.
    """
    flag = reverse is not None and is_true(tx, reverse)
    keys = list(items)
    if key is not None and known(tx, key) is not None:
        keys = [calls.call(tx, key, [item], {}) for item in items]
    values = [known(tx, each) for each in keys]
    if not any(value is UNKNOWN for value in values):
        return [items[index] for index in _order(tx, values, flag, in_place)]
    arguments = [tx.make.list(keys), tx.make.list(items), tx.make.constant(flag)]
    return list(iteration.unpack(tx, tx.run_host(polyfills.stable_sort, arguments)))


def _order(tx: Tx, values: list[Any], reverse: bool, in_place: bool) -> list[int]:
    try:
        return sorted(range(len(values)), key=values.__getitem__, reverse=reverse)
    except Exception as error:
        if in_place:
            tx.fail(Reason.UNSUPPORTED_OPERATION, "sorting values that cannot be ordered")
        tx.raise_real(error)
