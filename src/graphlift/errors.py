"""The four exceptions by which a capture ends or turns, and those that users catch.

Three are graphlift's own words for failure and never mix: `Unsupported` (cut here), `SkipFrame`
(leave this frame to CPython) and `InternalError` (graphlift's mistake). `ObservedException` is not a
failure: it carries an exception of the *user's* program through the host interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any, Final

from graphlift.reasons import Reason
from graphlift.user_frames import Place, UserFrame, callers, is_own


class GraphliftError(RuntimeError):
    """Base of every error that graphlift raises on its own account."""


class Unsupported(GraphliftError):
    """The interpreter cannot go on with symbols at the present instruction.

    Under ``fullgraph=True`` it reaches the user, with the reason, hints and the user's own stack.

    Attributes:
        reason: the row of `reasons.Reason` that applies.
        context: what exactly was met, in one line.
        stack: the user's frames from outermost to innermost; filled in while the error leaves them.
        place: where it was raised, in the innermost frame that is neither Python's nor torch's if any is.
        frames: translators of the frames that go on behind the cut, innermost first; filled in likewise
            in a careful capture.
        whole: whether the frame must not be cut here, so that it runs plainly from its start.
    """

    def __init__(self, reason: Reason, context: str = "", *, whole: bool = False) -> None:
        super().__init__(reason, context)
        self.reason: Final = reason
        self.context: Final = context
        self.stack: list[UserFrame] = []
        self.place: Place | None = None
        self._is_settled = False
        self.whole: Final = whole
        self.frames: list[Any] = []

    def message(self) -> str:
        """The whole explanation: reason, place, explanation, hints, debug context, user's stack."""
        return self.reason.describe(self.context, self.stack, self.place)

    def leaves(self, place: Place, machinery: bool = False) -> None:
        """Note that it leaves a frame of the captured program, unless that is graphlift's own (a polyfill).

        Arguments:
            place: the frame, and where it stands.
            machinery: whether its code is part of Python or torch, which the user did not write.
        """
        if is_own(place.frame.file):
            return
        if self.place is None or not (self._is_settled or machinery):
            self.place = place
            self._is_settled = not machinery
        self.stack.insert(0, place.frame)

    def leaves_capture(self) -> None:
        """Note the frames outside the capture: those that run now on this thread."""
        self.stack[:0] = callers()

    def __str__(self) -> str:
        return self.message()


class SkipFrame(GraphliftError):
    """This frame is not worth or not fit for capture; CPython runs it."""


class InternalError(GraphliftError):
    """graphlift itself is at fault; the user's frame runs plainly and the error is logged once."""


class VerificationError(GraphliftError, AssertionError):
    """A compiled function did not do what plain Python does (``compile(..., verify=True)``).

    Attributes:
        differences: a sentence for each, beginning with the place, e.g. ``self.layers[2].weight[0][1]: ...``.
        function, file, line: the function that was compiled, and where it begins.
    """

    def __init__(self, code: CodeType, differences: Sequence[str]) -> None:
        self.differences: Final = tuple(differences)
        self.function: Final = code.co_qualname
        self.file: Final = code.co_filename
        self.line: Final = code.co_firstlineno
        place = f'{self.function} (File "{self.file}", line {self.line})'
        shown = [f"  {text}" for text in self.differences[:12]]
        if len(self.differences) > len(shown):
            shown.append(f"  ... and {len(self.differences) - len(shown)} more")
        super().__init__("\n".join((f"compiled {place} differs from plain Python:", *shown)))


class ObservedException(Exception):
    """An exception of the user's program, met while interpreting it.

    Attributes:
        value: the tracker of the exception instance.
    """

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value
