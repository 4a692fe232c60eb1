"""Truth of a value: mirrors `PyObject_IsTrue` of Objects/object.c."""

from __future__ import annotations

from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker


def truth(tx: Tx, a: Var) -> bool | VariableTracker:
    """``bool(a)``, or the tensor or symbolic value that alone could tell."""
    operand: VariableTracker = a.realize(tx)
    return operand.truth(tx)


def is_true(tx: Tx, a: Var) -> bool:
    """``bool(a)`` decided now; a break when only the running graph could tell."""
    known = truth(tx, a)
    if isinstance(known, bool):
        return known
    tx.fail(Reason.DATA_DEPENDENT_BRANCH, f"attempted to branch on {known!r}")
