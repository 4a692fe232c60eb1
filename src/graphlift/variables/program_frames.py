"""Frames of the program as values, and the modules of their functions: what ``sys._getframe`` tells of frames
that are interpreted.

Of these only what cannot change is told: code, global names, line, the caller. Callers of the captured code
are not known here. Mirrors sys__getframe_impl and sys__getframemodulename_impl of Python/sysmodule.c.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from types import FrameType
from typing import Any, Final, cast

from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.rules.files import is_users
from graphlift.sources import GlobalSource
from graphlift.user_frames import is_own
from graphlift.variables import namespace
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtins.execution import variables_of
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.functions import globals_value
from graphlift.variables.slots import attributes


class ProgramFrameVariable(VariableTracker):
    """A frame that is being interpreted.

    Attributes:
        frame: its translator.
    """

    __slots__ = ("frame",)

    def __init__(self, frame: Any) -> None:
        self.source = None
        self.frame: Final = frame

    def python_type(self, tx: Tx) -> type:
        return FrameType

    def truth(self, tx: Tx) -> bool:
        return True

    def hash_key(self, tx: Tx) -> Hashable:
        return (FrameType, id(self.frame))

    def getattr_(self, tx: Any, name: str) -> VariableTracker:
        frame = self.frame
        found: Any = None
        if name == "f_code":
            found = tx.make.from_value(frame.code, None)
        elif name == "f_globals":
            found = globals_value(tx, frame.frame.module_globals)
        elif name == "f_lineno":
            found = tx.make.constant(frame.line())
        elif name == "f_back":
            found = ProgramFrameVariable(_above(tx, frame, 1))
        elif name == "f_locals" and not is_users(tx.code.co_filename):  # which only looks at them
            found = tx.make.dict(variables_of(tx, frame))
        if found is None:
            return self.refuse(tx, f"attribute {name!r}")
        return cast(VariableTracker, found.realize(tx))


def _above(tx: Tx, frame: Any, depth: int) -> Any:
    """The frame so many calls above one; polyfills stand for C code, which has no frames."""
    while True:
        while frame is not None and is_own(frame.code.co_filename):
            frame = frame.parent
        if frame is None:
            tx.fail(Reason.UNSUPPORTED_VALUE, "the frame of a caller of the captured code")
        if depth <= 0:
            return frame
        depth -= 1
        frame = frame.parent


def _asked(tx: Tx, depth: Var | None) -> Any:
    known = tx.make.constant(0) if depth is None else depth
    number = known.realize(tx)
    if not number.is_constant() or type(number.as_constant()) is not int:
        tx.fail(Reason.UNSUPPORTED_VALUE, "a frame at a depth that is not known")
    return _above(tx, tx, number.as_constant())


@builtin(sys._getframe)
def _getframe(tx: Tx, depth: Var | None = None, /) -> Any:
    frame = _asked(tx, depth)
    made = tx.reads.get((id(frame), "frame"))
    if made is None:
        made = tx.reads[id(frame), "frame"] = ProgramFrameVariable(frame)
    return made


def _getframemodulename(tx: Tx, depth: Var | None = None) -> Any:
    frame = _asked(tx, depth)
    if frame.function is not None:
        return attributes.getattr_(tx, frame.function, "__module__")
    found = namespace.lookup(tx, frame.frame.module_globals, "__name__", GlobalSource)
    return tx.make.constant(None) if found is None else found


if hasattr(sys, "_getframemodulename"):  # Python 3.12 and later
    builtin(sys._getframemodulename)(_getframemodulename)
