"""Context variables: what one holds is read in the context of the capture, and guarded in that of each call.

Setting one is seen at once by whatever runs in the same context, so that breaks.
"""

from __future__ import annotations

import contextvars
from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.protocol import Tx
from graphlift.reasons import Reason
from graphlift.sources import ContextValueSource, Source
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import wraps


class ContextVarVariable(VariableTracker):
    """A `contextvars.ContextVar` that existed before the capture."""

    __slots__ = ("value",)

    def __init__(self, value: contextvars.ContextVar[Any], source: Source) -> None:
        self.source = source
        self.value: Final = value

    def python_type(self, tx: Tx) -> type:
        return contextvars.ContextVar

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name in ("get", "set", "reset"):
            return tx.make.builtin_method(name, self)  # type: ignore[return-value]
        return super().getattr_(tx, name)

    def invoke(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        return self.call_method(tx, name, args, kwargs)

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name == "get" and self.source is not None:
            try:
                held = self.value.get()
            except LookupError:
                tx.fail(Reason.IMPURE_READ, f"{self!r}, which is not set")
            if args or kwargs:
                tx.fail(Reason.IMPURE_READ, f"{self!r} with a default that counts where it is not set")
            source = self.source.child(ContextValueSource, None)
            tx.guard("there", source)
            return tx.make.lazy(held, source)  # type: ignore[return-value]
        tx.fail(Reason.SIDE_EFFECT, f"ContextVar.{name}() of {self!r}")

    def __repr__(self) -> str:
        return f"ContextVarVariable({self.value.name!r})"


@wraps(contextvars.ContextVar)
def wrap_context_variable(
    tx: Tx, value: contextvars.ContextVar[Any], source: Source | None
) -> ContextVarVariable:
    """A context variable, whose class is guarded."""
    if source is None:
        tx.fail(Reason.UNSUPPORTED_VALUE, "a context variable that has no place")
    tx.guard("type", source, contextvars.ContextVar)
    return ContextVarVariable(value, source)
