"""Classes of torch that captured code calls to make plain values.

Devices and the limits of number types are constants; everything else that a class of torch makes (tensors of
a class, generators, events) is refused by the general rule for classes without a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from graphlift.protocol import Tx
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtin_object import make_tuple
from graphlift.variables.classes import constructs
from graphlift.variables.folding import as_host, fold
from graphlift.variables.slots import iteration


@constructs(torch.device, torch.finfo, torch.iinfo, whole=True)
def _constant(
    tx: Tx, _: Any, cls: type, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> VariableTracker:
    values = [as_host(tx, arg, cls.__name__) for arg in args]
    return fold(tx, cls, *values, **{name: as_host(tx, arg, cls.__name__) for name, arg in kwargs.items()})


@constructs(torch.Size, whole=True)
def _size(
    tx: Tx, _: Any, cls: type, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> VariableTracker:
    if kwargs or len(args) > 1:
        tx.fail(Reason.UNSUPPORTED_OPERATION, "making a torch.Size of other than one argument")
    sizes = iteration.unpack(tx, args[0]) if args else []
    for size in sizes:
        if size.realize(tx).python_type(tx) is not int:
            tx.fail(Reason.UNSUPPORTED_OPERATION, "making a torch.Size of other things than ints")
    return make_tuple(tx, sizes, torch.Size)


@constructs(torch.Tensor, torch._C.TensorBase, torch.Generator, whole=True)
def _refused(
    tx: Tx, _: Any, cls: type, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> VariableTracker:
    tx.fail(Reason.UNSUPPORTED_OPERATION, f"making an object of {cls.__name__} by its class")
