"""Immutable objects of torch known whole: dtypes, devices, layouts, memory formats, `finfo` and `iinfo`.

They are constants like Python's own: compared by value, guarded by value, asked anything by asking the real
one (`folding`). This file only says which classes these are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import torch

from graphlift.protocol import Tx
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import CONSTANT_TYPES, pinned, wrap_constant, wraps
from graphlift.variables.constant import ConstantVariable, special_method
from graphlift.variables.folding import FOLDABLE

#: Classes whose instances the process keeps one of per value.
CLASSES: Final = (torch.dtype, torch.device, torch.layout, torch.memory_format)

wraps(*CLASSES)(wrap_constant)
CONSTANT_TYPES.update(CLASSES)
FOLDABLE.update(CLASSES)
FOLDABLE.update((torch.finfo, torch.iinfo))


@special_method(torch.device, "__enter__")
@special_method(torch.device, "__exit__")
def _set_device(
    tx: Tx, value: Any, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> NoReturn:
    """A device is a constant, but its region changes what factories make."""
    tx.fail(Reason.UNSUPPORTED_CONTEXT_MANAGER, "a torch.device as a context manager")


wraps(torch.finfo, torch.iinfo)(pinned(ConstantVariable))
