"""Functions of ``inspect`` with a model: the rest of that module is looked into like any other code."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from graphlift.polyfills import inspecting as polyfills
from graphlift.protocol import Tx
from graphlift.variables.functions import models


@models(vars(inspect)["_shadowed_dict"])
def _shadowed(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """From Python 3.12 on the real one keeps what it gave, by weak references."""
    return None if len(args) != 1 or kwargs else tx.run_host(polyfills.shadowed_dict, args).realize(tx)


@models(inspect.unwrap)
def _unwrap(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if len(args) != 1 or not kwargs.keys() <= {"stop"}:
        return None
    return tx.run_host(polyfills.unwrap, args, kwargs).realize(tx)
