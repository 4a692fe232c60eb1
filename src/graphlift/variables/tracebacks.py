"""The traceback of an exception during a capture: the steps that it passed; frames are CPython's to show."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final

from graphlift.bytecode.decode import decode
from graphlift.codegen.tracebacks import entries, place, without
from graphlift.errors import Unsupported
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.variables import rebuild
from graphlift.variables.base import VariableTracker
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.functions import models


class TracebackVariable(VariableTracker):
    """Made by `traceback_of` only, so that one traceback has one tracker.

    Attributes:
        error: the exception whose traceback it is.
        places: what the exception had passed by then, outermost first.
        before: what the program had set the exception's traceback to before those; None: nothing.
    """

    __slots__ = ("before", "error", "places")

    def __init__(self, error: Any, places: Sequence[Any], before: Var | None) -> None:
        self.source = None
        self.error: Final = error
        self.places: Final = places
        self.before: Final = before

    def python_type(self, tx: Tx) -> type:
        return TracebackType

    def truth(self, tx: Tx) -> bool:
        return True

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name == "tb_lineno" and self.places:
            code, index, _, _ = self.places[0]
            return tx.make.constant(decode(code).line(index))  # type: ignore[return-value]
        if name == "tb_next" and self.places:
            if len(self.places) > 1:
                return traceback_of(tx, self.error, self.places[1:], self.before)
            if self.error.handle.real is None:
                return tx.make.constant(None) if self.before is None else self.before  # type: ignore[return-value]
        return super().getattr_(tx, name)

    def is_whole_of(self, error: Any) -> bool:
        """Whether it is what is now the traceback of `error`."""
        handle = error.handle
        return (
            self.error is error
            and handle.value is self.before
            and len(self.places) == len(handle.items or ())
        )

    def reconstruct(self, codegen: Codegen) -> None:
        if self.error.handle.real is not None:
            raise Unsupported(Reason.EXCEPTION, f"the traceback of {self.error!r} must become real")
        passed = self.error.handle.items or []
        later = len(passed) - len(self.places)
        if self.error.handle.value is self.before and passed[max(later, 0) :] == self.places:
            codegen.call(without, [self.error, ConstantVariable(later)])
        else:
            inner = ConstantVariable(None) if self.before is None else self.before
            codegen.call(entries, [inner, *arguments_of(self.places)])

    @property
    def is_made(self) -> bool:
        """Whether all its frames were interpreted, so that they keep nothing of the program's."""
        before = self.before
        if self.error.handle.real is not None:
            return False
        return before is None or (isinstance(before, TracebackVariable) and before.is_made)


@models(traceback.clear_frames)
def _clear_frames(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Frames that were interpreted keep nothing, so there is nothing to clear."""
    trace = args[0].realize(tx) if len(args) == 1 and not kwargs else None
    if not isinstance(trace, TracebackVariable) or not trace.is_made:
        tx.fail(Reason.SKIPPED_CALLABLE, f"traceback.clear_frames({trace!r})")
    return tx.make.constant(None)


def traceback_of(
    tx: Tx, error: Any, places: Sequence[Any] | None = None, before: Var | None = None
) -> TracebackVariable:
    """The traceback that an exception has now, or one that it had."""
    if places is None:
        places, before = error.handle.items or [], error.handle.value
    key = (len(places), (error.handle, "traceback", before))
    made = tx.reads.get(key)
    if made is None or made.places != places:
        made = tx.reads[key] = TracebackVariable(error, places, before)
    assert isinstance(made, TracebackVariable)
    return made


def same_trace(one: VariableTracker, other: VariableTracker) -> bool:
    """Whether two tracebacks (or None) are one."""
    return one is other or (one.is_constant() and other.is_constant())


def arguments_of(places: Sequence[Any]) -> list[Var]:
    """Places as the last arguments of `codegen.tracebacks.extend` and `entries`.

    Raises:
        Unsupported: the globals of a frame are not known.
    """
    sources = [module_globals.source for _, _, _, module_globals in places]
    if None in sources:
        raise Unsupported(Reason.EXCEPTION, "an exception that was raised in code that lives in no module")
    shown = ConstantVariable(tuple(place(code, index, last) for code, index, last, _ in places))
    return [shown, *(rebuild.PlaceVariable(source) for source in sources)]
