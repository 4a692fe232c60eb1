"""Numbers out of values: mirrors `PyNumber_Index` and `PyIndex_Check` of Objects/abstract.c."""

from __future__ import annotations

import sys

from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.constant import ConstantVariable, beneath
from graphlift.variables.folding import known
from graphlift.variables.slots import attributes, calls
from graphlift.variables.slots.type_lookup import mro_of, type_lookup


def has_index(tx: Tx, a: Var) -> bool:
    """Whether the value's type has ``__index__``."""
    operand: VariableTracker = a.realize(tx)
    if isinstance(operand, ConstantVariable):
        return isinstance(operand.value, int)
    return type_lookup(tx, operand.python_type(tx), "__index__") is not None


def index_(tx: Tx, a: Var) -> int:
    """``operator.index(a)``, known now; TypeError in the program when the type has no ``__index__``."""
    operand: VariableTracker = a.realize(tx)
    value = known(tx, operand)  # a symbolic number is settled by that
    if isinstance(value, int):
        return int(value)
    part = beneath(tx, operand, int)
    if part is not operand and isinstance(part, ConstantVariable) and isinstance(part.value, int):
        return int(part.value)  # an integer of a derived class is its own index
    method = attributes.lookup_special(tx, operand, "__index__") if has_index(tx, operand) else None
    if method is None:
        operand.type_error(tx, "'{}' object cannot be interpreted as an integer")
    result: VariableTracker = calls.call(tx, method, [], {}).realize(tx)
    value = known(tx, result)
    if result.python_type(tx) is not int and int in mro_of(result.python_type(tx)):
        tx.fail(
            Reason.UNSUPPORTED_OPERATION, "an `__index__` that gives a derived class, of which Python warns"
        )
    if isinstance(value, int):
        return int(value)
    name = result.python_type(tx).__name__
    tx.raise_(TypeError, f"__index__ returned non-int (type {name})")


def position(tx: Tx, a: Var) -> int:
    """As `index_`, for where a sequence is indexed (`PyNumber_AsSsize_t`): IndexError beyond 63 bits."""
    return _fitting(tx, a, index_(tx, a), IndexError, "cannot fit '{}' into an index-sized integer")


def size_argument(tx: Tx, a: Var) -> int:
    """As `index_`, for an argument of a C function that is a ``Py_ssize_t``."""
    return _fitting(tx, a, index_(tx, a), OverflowError, "Python int too large to convert to C ssize_t")


def _fitting(tx: Tx, a: Var, number: int, error: type[Exception], text: str) -> int:
    if -sys.maxsize - 1 <= number <= sys.maxsize:
        return number
    tx.raise_(error, text.format(a.realize(tx).python_type(tx).__name__))


def repeat_count(tx: Tx, a: Var) -> int:
    """How often ``sequence * a`` repeats; TypeError in the program when `a` is no integer."""
    if not has_index(tx, a):
        name = a.realize(tx).python_type(tx).__name__
        tx.raise_(TypeError, f"can't multiply sequence by non-int of type '{name}'")
    return _fitting(tx, a, index_(tx, a), OverflowError, "cannot fit '{}' into an index-sized integer")
