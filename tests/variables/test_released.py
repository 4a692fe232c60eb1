"""What a call was given is let go with the call, without help from the garbage collector."""

from __future__ import annotations

import contextlib
import gc
import weakref

import torch

import graphlift


class Holder:
    pass


def test_a_capture_that_ends_with_an_exception_keeps_nothing() -> None:
    def program(x: torch.Tensor, holder: Holder) -> None:
        raise KeyError("always")

    compiled = graphlift.compile(program, backend="eager")
    x, holder = torch.ones(3), Holder()
    kept = weakref.ref(x), weakref.ref(holder)
    gc.disable()
    try:
        with contextlib.suppress(KeyError):
            compiled(x, holder)
        del x, holder
        assert [reference() for reference in kept] == [None, None]
    finally:
        gc.enable()
