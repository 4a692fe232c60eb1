"""The traceback of an exception during a capture: it is there, but what it holds is CPython's to say."""

from __future__ import annotations

from types import TracebackType

from graphlift.protocol import Tx
from graphlift.variables.base import VariableTracker


class TracebackVariable(VariableTracker):
    """Can be handed on (to an ``__exit__``, to `with_traceback`) and told from None; all else breaks."""

    __slots__ = ()

    def python_type(self, tx: Tx) -> type:
        return TracebackType

    def truth(self, tx: Tx) -> bool:
        return True
