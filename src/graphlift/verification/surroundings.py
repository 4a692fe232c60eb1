"""What both runs share and must find as it was: random generators, torch's settings, the output.

`Surroundings` is a state that can be taken down and put back; `silence` lets a run speak to nobody.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes


def _numpy_state() -> Any:
    numpy = sys.modules.get("numpy")
    return None if numpy is None else numpy.random.get_state()


def _set_numpy_state(state: Any) -> None:
    if state is not None:
        sys.modules["numpy"].random.set_state(state)


def _cuda_state() -> Any:
    started = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.cuda.get_rng_state_all() if started else None


def _set_cuda_state(state: Any) -> None:
    if state is not None:
        torch.cuda.set_rng_state_all(state)


Access = tuple[Callable[[], Any], Callable[[Any], Any]]

_RANDOM: dict[str, Access] = {
    "state of Python's random generator": (random.getstate, random.setstate),
    "state of numpy's random generator": (_numpy_state, _set_numpy_state),
    "state of torch's random generator": (torch.get_rng_state, torch.set_rng_state),
    "state of torch's random generators on CUDA": (_cuda_state, _set_cuda_state),
}

_SETTINGS: dict[str, Access] = {
    "grad mode": (torch.is_grad_enabled, torch._C._set_grad_enabled),
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "deterministic mode": (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    "float32 matmul precision": (
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    "autocast on the CPU": (
        lambda: (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        lambda state: _set_autocast("cpu", *state),
    ),
    "autocast on CUDA": (
        lambda: (torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")),
        lambda state: _set_autocast("cuda", *state),
    ),
    "working directory": (os.getcwd, os.chdir),
}


def _set_autocast(device: str, enabled: bool, dtype: torch.dtype) -> None:
    torch.set_autocast_enabled(device, enabled)
    torch.set_autocast_dtype(device, dtype)


class Surroundings:
    """The state of random generators and settings at one moment.

    Attributes:
        random, settings: the states by name.
    """

    def __init__(self) -> None:
        self.random = {name: read() for name, (read, _) in _RANDOM.items()}
        self.settings = {name: read() for name, (read, _) in _SETTINGS.items()}

    def restore(self) -> None:
        """Make everything as it was."""
        for states, table in ((self.random, _RANDOM), (self.settings, _SETTINGS)):
            for name, state in states.items():
                read, write = table[name]
                if not same_state(read(), state):
                    write(state)


def same_state(left: Any, right: Any) -> bool:
    """Whether two states are equal, whatever they consist of."""
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and torch.equal(left, right)
    if type(left) is dict and type(right) is dict:
        return left.keys() == right.keys() and all(same_state(left[key], right[key]) for key in left)
    if type(left) in (list, tuple) and type(left) is type(right):
        if set(map(type, left)) == {int}:
            return bool(left == right)  # a generator's state: hundreds of numbers
        return len(left) == len(right) and all(map(same_state, left, right))
    if hasattr(left, "tobytes") and hasattr(right, "tobytes"):
        return bool(left.tobytes() == right.tobytes())
    return bool(left == right)


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """No mode of the program's sees what is done inside, and no history is recorded."""
    with torch._C.DisableTorchFunction(), _disable_current_modes(), torch.no_grad():
        yield


class _Quiet:
    """Stands for an output stream; what one thread writes goes nowhere."""

    def __init__(self, stream: Any, thread: int) -> None:
        self._stream = stream
        self._thread = thread

    def write(self, text: str) -> Any:
        """Swallow or hand on a text."""
        return len(text) if threading.get_ident() == self._thread else self._stream.write(text)

    def writelines(self, lines: Any) -> None:
        """`write` for each line."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """What this thread prints, warns of and logs inside is not seen; a replaced stream is put back."""
    here = threading.get_ident()
    streams, show = (sys.stdout, sys.stderr), warnings.showwarning

    def show_elsewhere(*args: Any, **kwargs: Any) -> None:
        if threading.get_ident() != here:
            show(*args, **kwargs)

    def let_pass(record: logging.LogRecord) -> bool:
        return record.thread != here

    handlers = _handlers()
    for handler in handlers:
        handler.addFilter(let_pass)
    sys.stdout, sys.stderr = (_Quiet(stream, here) for stream in streams)
    warnings.showwarning = show_elsewhere
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        warnings.showwarning = show
        for handler in handlers:
            handler.removeFilter(let_pass)


def _handlers() -> list[logging.Handler]:
    """Every handler of every logger."""
    loggers = [logging.getLogger(), *logging.Logger.manager.loggerDict.values()]
    found = [handler for logger in loggers for handler in getattr(logger, "handlers", ())]
    if logging.lastResort is not None:
        found.append(logging.lastResort)
    return list({id(handler): handler for handler in found}.values())
