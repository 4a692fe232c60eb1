"""`explain`: run a program once and tell what was captured of it.

Owns the way in only; what is gathered and how it looks is in `report`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphlift import compiled, events
from graphlift.report.explanation import ExplainOutput
from graphlift.report.gathered import KINDS


def explain(model: Callable[..., Any], *, dynamic: bool | None = None) -> Callable[..., ExplainOutput]:
    """Make a function that calls `model` with its arguments and returns what was captured.

    Every call captures anew, whatever was compiled before; the graphs run as they are. Errors of `model`
    come out as they would otherwise.

    Arguments:
        model: a function, module or other callable.
        dynamic: as for `graphlift.compile`.
    """

    def explained(*args: Any, **kwargs: Any) -> ExplainOutput:
        def as_it_is(graph_module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
            forward: Callable[..., Any] = graph_module.forward
            return forward

        # A backend made for this call stands for settings of its own, hence for an empty cache.
        fresh = compiled.compile(model, backend=as_it_is, dynamic=dynamic)
        gathered = ExplainOutput(name_of(model))
        with events.subscribed(gathered.note, *KINDS, this_thread=True), compiled.nothing_given_up():
            fresh(*args, **kwargs)
        return gathered

    return explained


def name_of(model: Callable[..., Any]) -> str:
    """What a program would be called in a sentence, with its place where it has one."""
    code = getattr(model, "__code__", None)
    if code is not None:
        return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
    return getattr(model, "__qualname__", None) or type(model).__qualname__
