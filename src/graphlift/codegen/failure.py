"""What is to be done when a graph raises: run the segment again by plain Python, or let the error go.

Plain Python may run it again when the graph left nothing behind, or only what can be put back. Else the error
leaves the graph as it is, at the user's line. Owns that decision, which is made when a graph has failed and
costs nothing before. It must not know how the graph was captured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import torch

from graphlift.backends import Writes
from graphlift.codegen.traceback_entries import Place, show_at

Call = tuple[Any, tuple[Any, ...]]


class Traces(NamedTuple):
    """What operations of a graph leave behind beside their results.

    Attributes:
        write: index of the first that writes to an input, or None.
        draw: index of the first that draws random numbers, or None.
        settings: calls that put torch's global state back to what it was before all operations.
        counters: by index, the call that takes back a counter's move.
    """

    write: int | None
    draw: int | None
    settings: Sequence[Call]
    counters: Mapping[int, Call]


class Failure:
    """Called by an entry's code with the error of its graph.

    Arguments:
        traces: what its operations leave behind.
        places: by index, where operations that can fail stand in the program.
        writes: when the product writes.
        forward: the code of the graph's own forward and the line of its first operation; None when the
            product does not run it.
        generators: those whose states the entry keeps before it calls the graph.
    """

    def __init__(
        self,
        traces: Traces,
        places: Mapping[int, tuple[Place, ...]],
        writes: Writes,
        forward: tuple[Any, int] | None,
        generators: Sequence[torch.Generator],
    ) -> None:
        self._traces = traces
        self._places = places
        self._writes = writes
        self._forward = forward
        self._generators = tuple(generators)

    @property
    def saves(self) -> bool:
        """Whether the entry must keep what `random_state` gives."""
        return bool(self._generators)

    def random_state(self) -> tuple[torch.Tensor, ...]:
        """States of the generators that the graph draws from."""
        return tuple([generator.get_state() for generator in self._generators])

    def __call__(self, error: BaseException, saved: tuple[torch.Tensor, ...] | None) -> bool:
        """Put back what can be; whether plain Python is to run the segment again.

        Arguments:
            error: what the graph raised; if it is to leave, its traceback is made that of the program.
            saved: what `random_state` gave before the graph ran, or None.
        """
        found = self._operation(error)
        again = self._restorable(None if found is None else found[0], saved)
        if again and saved is not None:
            for generator, state in zip(self._generators, saved, strict=True):
                generator.set_state(state)
        self._put_back(None if found is None else found[0])
        if not again:
            self._show(error, found)
        return again

    def _operation(self, error: BaseException) -> tuple[int, TracebackType | None] | None:
        """The operation that failed, and the traceback below it; None where the product hides it."""
        entry = error.__traceback__
        while self._forward is not None and entry is not None:
            if entry.tb_frame.f_code is self._forward[0]:
                return entry.tb_lineno - self._forward[1], entry.tb_next
            entry = entry.tb_next
        return None

    def _restorable(self, failed: int | None, saved: Any) -> bool:
        traces = self._traces
        if failed is None:
            wrote = traces.write is not None and self._writes != "last"
            # A product of another kind may have moved the counters or not.
            counted = bool(traces.counters) and self._writes != "last"
            return not wrote and not counted and (traces.draw is None or saved is not None)
        wrote = traces.write is not None and traces.write <= failed
        drew = traces.draw is not None and traces.draw <= failed
        return not wrote and (not drew or saved is not None)

    def _put_back(self, failed: int | None) -> None:
        for function, args in self._traces.settings:
            function(*args)
        for index, (function, args) in self._traces.counters.items():
            if failed is not None and index < failed:
                function(*args)

    def _show(self, error: BaseException, found: tuple[int, TracebackType | None] | None) -> None:
        if found is not None:
            places = self._places.get(found[0])
            rest = found[1]
        else:
            only = list(self._places.values())
            places, rest = (only[0] if len(only) == 1 else None), None
        if places:
            show_at(error, places, rest)
