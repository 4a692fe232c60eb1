"""Immutable objects of torch known whole: dtypes, devices, layouts, memory formats, `finfo` and `iinfo`.

They are constants like Python's own: compared by value, guarded by value, asked anything by asking the real
one (`folding`). This file only says which classes these are.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from graphlift.protocol import Tx, Var
from graphlift.sources import Source
from graphlift.variables.builder import CONSTANT_TYPES, wrap_constant, wraps
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.folding import FOLDABLE

#: Classes whose instances the process keeps one of per value.
CLASSES: Final = (torch.dtype, torch.device, torch.layout, torch.memory_format)

wraps(*CLASSES)(wrap_constant)
CONSTANT_TYPES.update(CLASSES)
FOLDABLE.update(CLASSES)
FOLDABLE.update((torch.finfo, torch.iinfo))


@wraps(torch.finfo, torch.iinfo)
def _wrap_info(tx: Tx, value: Any, source: Source | None) -> Var:
    if source is not None:
        tx.guard("is", source, value)
    return ConstantVariable(value, source)
