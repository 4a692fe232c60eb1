"""Changes of torch's global state inside captured code: grad mode and autocast.

`torch.no_grad`, `torch.set_grad_enabled`, `torch.autocast` and their decorators are plain Python around
the few C functions modelled here, so they are interpreted like any user's context manager. Each call of these
functions is a node of the graph, and changes the capture's own state with it (see `OutputGraph.set_state`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from graphlift.graph_value import CannotPropagate
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.folding import as_host
from graphlift.variables.torch_functions import Model, torch_model


def _set(tx: Tx, function: Any, args: tuple[Any, ...]) -> None:
    try:
        tx.graph.set_state(function, args, tx.where())
    except CannotPropagate as error:
        tx.fail(Reason.UNSUPPORTED_CONTEXT_MANAGER, error.reason)


def _setter(function: Any) -> Model:
    def model(tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]) -> Var:
        values = tuple(as_host(tx, arg, function.__name__) for arg in (*args, *kwargs.values()))
        _set(tx, function, values)
        return tx.make.constant(None)

    return model


_SETTERS: Final[tuple[Any, ...]] = (
    torch._C._set_grad_enabled,
    torch.set_autocast_enabled,
    torch.set_autocast_dtype,
    torch.set_autocast_cache_enabled,
    torch.clear_autocast_cache,
)

for _function in _SETTERS:
    torch_model(_function)(_setter(_function))


def _nesting() -> int:
    """How many autocast regions are open now."""
    torch.autocast_increment_nesting()
    return int(torch.autocast_decrement_nesting())


_COUNTERS: Final[tuple[Any, ...]] = (torch.autocast_increment_nesting, torch.autocast_decrement_nesting)


def _counter(function: Any) -> Model:
    def model(tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]) -> Var:
        _set(tx, function, ())
        # Only ever compared with zero, which the autocast state in the guards decides.
        return tx.make.constant(_nesting())

    return model


for _function in _COUNTERS:
    torch_model(_function)(_counter(_function))
