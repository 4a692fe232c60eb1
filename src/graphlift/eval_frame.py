"""Frame evaluators written in Python.

A small library of its own on CPython's PEP 523: it lets a Python callable look at every function frame
that starts on a thread and choose the code that runs in it. It needs the C core only, and knows nothing
of capture, graphs or torch.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from graphlift import _C

__all__ = ["FrameCallback", "frame_callback", "set_eval_frame"]

#: Called with the code object, the function and the arguments by name; returns code to run instead, or None.
FrameCallback = Callable[[CodeType, FunctionType, dict[str, Any]], CodeType | None]


def set_eval_frame(callback: FrameCallback | None) -> FrameCallback | None:
    """Make `callback` the calling thread's frame evaluator; None removes it.

    The callback is asked at the start of every frame of a Python function on this thread, before its first
    instruction. Generators, coroutines, class and module bodies are passed through. While it runs, frames
    are evaluated as usual. Code that it returns runs in the original frame, so function, globals, closure
    and arguments are the original's; the code must therefore have the same argument layout and the same
    free variables. A different call is never made: a code object made by `code.replace(...)` or by
    compiling a similar function is enough.

    Arguments:
        callback: the evaluator, or None.

    Returns:
        What was set on this thread before, or None.

    Raises:
        TypeError: the callback is not callable. A callback that returns neither code nor None raises
            TypeError, and one that returns unsuitable code ValueError, in the caller of the frame.
    """
    return _C.set_frame_callback(callback)


class frame_callback:
    """Have `callback` as this thread's frame evaluator for the length of a `with` block."""

    def __init__(self, callback: FrameCallback | None) -> None:
        self._callback = callback
        self._former: FrameCallback | None = None

    def __enter__(self) -> None:
        self._former = set_eval_frame(self._callback)

    def __exit__(self, *exception: object) -> None:
        set_eval_frame(self._former)


# An evaluator is not interested in how it is taken off again.
for _function in (set_eval_frame, frame_callback.__init__, frame_callback.__enter__, frame_callback.__exit__):
    _C.mark_skip(_function.__code__)
