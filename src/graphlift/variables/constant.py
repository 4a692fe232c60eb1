"""Python constants: values that are their own trackers' knowledge, guarded by type and value."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from graphlift.protocol import Codegen, Tx
from graphlift.sources import Source
from graphlift.variables.base import VariableTracker


class ConstantVariable(VariableTracker):
    """An immutable value known whole: numbers, strings, bytes, None, Ellipsis, torch dtypes, ….

    Operators on constants are computed at once by the slots (`variables/slots/operators.py`), methods
    by `variables/builtins/`.

    Attributes:
        value: the constant.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.source = source
        self.value: Final = value

    def python_type(self, tx: Tx) -> type:
        return type(self.value)

    def is_constant(self) -> bool:
        return True

    def as_constant(self) -> Any:
        return self.value

    def hash_key(self, tx: Tx) -> Hashable:
        value: Hashable = self.value
        return value

    def truth(self, tx: Tx) -> bool:
        return bool(self.value)

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_const(self.value)

    def __repr__(self) -> str:
        return f"ConstantVariable({type(self.value).__name__}: {self.value!r})"
