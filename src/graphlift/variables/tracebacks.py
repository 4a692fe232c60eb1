"""The traceback of an exception during a capture: it is there, but what it holds is CPython's to say."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final

from graphlift.codegen.tracebacks import without
from graphlift.errors import Unsupported
from graphlift.protocol import Codegen, Tx
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.functions import models


class TracebackVariable(VariableTracker):
    """Can be handed on (to an ``__exit__``, to `with_traceback`) and told from None; all else breaks.

    Attributes:
        error: the exception whose traceback it is.
        places: those that the exception had passed by then; see `ExceptionVariable`.
    """

    __slots__ = ("error", "places")

    def __init__(self, error: Any) -> None:
        self.source = None
        self.error: Final = error
        self.places: Final[list[Any]] = error.handle.items or []

    @property
    def is_made(self) -> bool:
        """Whether all its frames were interpreted, so that they keep nothing of the program's."""
        return self.error.handle.real is None

    def python_type(self, tx: Tx) -> type:
        return TracebackType

    def truth(self, tx: Tx) -> bool:
        return True

    def reconstruct(self, codegen: Codegen) -> None:
        passed = self.error.handle.items or []
        later = len(passed) - len(self.places)
        if not self.is_made or later < 0 or passed[later:] != self.places:
            raise Unsupported(Reason.EXCEPTION, f"the traceback of {self.error!r} must become real")
        codegen.call(without, [self.error, ConstantVariable(later)])


@models(traceback.clear_frames)
def _clear_frames(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Frames that were interpreted keep nothing, so there is nothing to clear."""
    trace = args[0].realize(tx) if len(args) == 1 and not kwargs else None
    if not isinstance(trace, TracebackVariable) or not trace.is_made:
        tx.fail(Reason.SKIPPED_CALLABLE, f"traceback.clear_frames({trace!r})")
    return tx.make.constant(None)
