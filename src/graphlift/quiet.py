"""Keeping the machine quiet while a capture runs: no garbage collection, no nested captures, deep stacks.

One full collection costs more than a capture, and what a capture makes is freed by hand at its end. The
collector is the process's, so pauses of several threads are counted; the user's own wish (`gc.disable`)
is left alone.
"""

from __future__ import annotations

import builtins
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final, TypeVar

import torch
from torch.utils._device import DeviceContext

from graphlift import _C, config

#: Host frames per frame of the user's that is followed, and room for the deepest algorithm on top.
_HOST_DEPTH = 20_000

_T = TypeVar("_T")

#: One in so many objects that outlive a capture counts for the next collection.
_RUBBISH: Final = 64

_lock = threading.Lock()
_pauses = 0
_was_enabled = False
_young = 0


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection inside, whichever thread allocates."""
    if not config.pause_gc:
        yield
        return
    _pause()
    try:
        yield
    finally:
        _resume(left=True)


@contextmanager
def collector_back() -> Iterator[None]:
    """Inside a pause: collection as usual while code of somebody else's runs."""
    if not config.pause_gc:
        yield
        return
    _resume(left=False)
    try:
        yield
    finally:
        _pause()


def _pause() -> None:
    global _pauses, _was_enabled, _young
    with _lock:
        if not _pauses:
            _was_enabled = gc.isenabled()
            gc.disable()
            _young = _C.young_objects()
        _pauses += 1


def _resume(left: bool) -> None:
    """Let the collector go on, by which what was made in the pause counts little.

    It is freed by hand, and a collection that comes at once would walk all of it.

    Arguments:
        left: the pause is over; of what is left then, some is for the collector to find.
    """
    global _pauses
    with _lock:
        _pauses -= 1
        if not _pauses and _was_enabled:
            made = _C.young_objects() - _young
            _C.set_young_objects(_young + min(made, max(made, 0) // _RUBBISH if left else 0))
            gc.enable()


#: Slots of a frame that takes half a megabyte of the interpreter's stack, and leaves the frames above it the
#: other half.
_ROOMY: Final = (1 << 16) - 512


def _roomy(run: Callable[..., _T], *args: Any) -> _T:
    return run(*args)


_roomy.__code__ = _roomy.__code__.replace(co_stacksize=_ROOMY)


def on_roomy_stack(run: Callable[..., _T], *args: Any) -> _T:
    """Call a function with room for hundreds of Python frames in one piece.

    CPython takes the stack of Python frames from the system in pieces of 16 kB, a few dozen frames, and gives
    each back when the first frame in it returns: a loop whose calls cross the end of a piece maps and unmaps
    memory at each turn (`push_chunk` in Python/pystate.c). A frame that does not fit gets a piece of its own
    size, rounded up to a power of two.
    """
    return _roomy(run, *args)


def _has_modes() -> bool:
    """Whether function modes of the program's are active, and none that says where tensors are made."""
    modes = [torch._C._get_function_stack_at(at) for at in range(torch._C._len_torch_function_stack())]
    return bool(modes) and not any(isinstance(mode, DeviceContext) for mode in modes)


@contextmanager
def capturing() -> Iterator[None]:
    """Compiled calls made on this thread run plainly, function modes of the program's see nothing of what a
    capture reads, and the host's stack is deep enough for the user's."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _HOST_DEPTH))
    _C.enter_capture()
    try:
        with torch._C.DisableTorchFunction() if _has_modes() else nullcontext():
            yield
    finally:
        _C.leave_capture()
        sys.setrecursionlimit(limit)


#: Functions and classes that a capture itself is made with, by name.
_NEEDED = {
    needed.__name__: needed
    for needed in (
        all, any, callable, dict, enumerate, filter, frozenset, getattr, hasattr, hash, id, int, isinstance,
        issubclass, iter, len, list, map, max, min, next, range, repr, reversed, set, setattr, sorted, str,
        sum, super, tuple, type, vars, zip,
    )
}  # fmt: skip


def may_capture() -> bool:
    """Whether the builtins that captures are made with are Python's own: the program can replace them for all
    code of the process, this package's, too."""
    present = builtins.__dict__
    for name in _NEEDED:  # noqa: SIM110 - `all` may be the one that was replaced
        if present.get(name) is not _NEEDED[name]:
            return False
    return True
