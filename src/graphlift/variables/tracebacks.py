"""The traceback of an exception during a capture: it is there, but what it holds is CPython's to say."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final

from graphlift.codegen.tracebacks import without
from graphlift.errors import Unsupported
from graphlift.protocol import Codegen, Tx
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.constant import ConstantVariable


class TracebackVariable(VariableTracker):
    """Can be handed on (to an ``__exit__``, to `with_traceback`) and told from None; all else breaks.

    Attributes:
        error: the exception whose traceback it is.
        passed: how many places the exception had passed by then.
    """

    __slots__ = ("error", "passed")

    def __init__(self, error: Any) -> None:
        self.source = None
        self.error: Final = error
        self.passed: Final = len(error.handle.items or ())

    def python_type(self, tx: Tx) -> type:
        return TracebackType

    def truth(self, tx: Tx) -> bool:
        return True

    def reconstruct(self, codegen: Codegen) -> None:
        handle = self.error.handle
        if handle.real is not None:
            raise Unsupported(Reason.EXCEPTION, f"the traceback of {self.error!r} must become real")
        codegen.call(without, [self.error, ConstantVariable(len(handle.items or ()) - self.passed)])
