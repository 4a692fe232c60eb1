"""Giving up by counts: frames that are cut so often that hardly a graph is left run plainly from then on.

The C core asks about an entry that ends in a cut when it has been hit `config.give_up_after` times, then
twice as often, and so on. What counts is all that would be lost: the entry's frame and every segment that
can be reached from it. Entries know how often they were hit, so nothing is counted here. `reset` forgets
what was given up, with everything else.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType

from graphlift import _C, config, events
from graphlift.compiled.context import Context
from graphlift.convert_frame import Published
from graphlift.interpreter.capture import forced_breaks

#: After so many times `config.give_up_after` runs a frame need not have been seen to end: the loop is long.
_LONG_LOOP = 64

_lock = threading.Lock()
_pauses = 0


@contextmanager
def nothing_given_up() -> Iterator[None]:
    """Give nothing up inside, whichever thread runs: somebody wants to see everything that is captured."""
    global _pauses
    with _lock:
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1


def review(context: object, function: FunctionType, entry: _C.Entry) -> None:
    """Give a frame up if, on the average, too few operations are left between cuts.

    Arguments:
        context: the compiled object's.
        function: whose frame it is, or the segment's function.
        entry: what is about to run.
    """
    if not isinstance(context, Context) or not isinstance(entry.data, Published):
        return
    entry.review_at = 2 * entry.hits
    if _pauses or forced_breaks() is not None:
        return
    cache = _C.cache_of(function.__code__, context.settings)
    lost, ended = _reachable(cache)
    runs = sum(hits for hits, _ in lost)
    worth = sum(hits * published.worth for hits, published in lost)
    if worth >= runs * config.give_up_below:
        return
    if not ended and entry.hits < _LONG_LOOP * config.give_up_after:
        return  # what comes behind the loop is not known yet
    average = f"{worth / runs:.1f} operations between cuts in {runs} runs, fewer than {config.give_up_below}"
    cache.give_up()
    captures = [published.capture_id for _, published in lost]
    events.emit(events.LeftToPython(0, function.__code__, average, captures, context.log))


def _reachable(cache: _C.Cache) -> tuple[list[tuple[int, Published]], bool]:
    """The entries of a cache and of all segments that may be reached from it, each with how often it ran;
    whether a frame ends there."""
    caches, ended = [cache], False
    found: list[tuple[int, Published]] = []
    for each in caches:
        ended = ended or (each.skip and not each.entries)
        for entry in each.entries:
            published = entry.data
            if not isinstance(published, Published):
                continue
            found.append((entry.hits + 1, published))
            ended = ended or not published.segments
            for segment in published.segments:
                for leave in segment.exits:
                    code = leave.compiled.__wrapped__.__code__
                    further = _C.cache_of(code, each.settings)
                    if further not in caches:
                        caches.append(further)
    return found, ended


_C.set_review_handler(review)
