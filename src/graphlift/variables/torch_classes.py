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
from graphlift.variables.classes import constructs
from graphlift.variables.folding import as_host, fold


@constructs(torch.device, torch.finfo, torch.iinfo, whole=True)
def _constant(
    tx: Tx, _: Any, cls: type, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> VariableTracker:
    values = [as_host(tx, arg, cls.__name__) for arg in args]
    return fold(tx, cls, *values, **{name: as_host(tx, arg, cls.__name__) for name, arg in kwargs.items()})


@constructs(torch.Tensor, torch._C.TensorBase, torch.Generator, whole=True)
def _refused(
    tx: Tx, _: Any, cls: type, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> VariableTracker:
    tx.fail(Reason.UNSUPPORTED_OPERATION, f"making an object of {cls.__name__} by its class")
