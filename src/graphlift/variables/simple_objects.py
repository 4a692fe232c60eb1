"""Objects of C classes that are nothing but attributes: `types.SimpleNamespace`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from graphlift.protocol import Tx
from graphlift.variables.base import VariableTracker
from graphlift.variables.classes import constructs
from graphlift.variables.object_methods import C_METHODS


@constructs(SimpleNamespace)
def _new_namespace(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.make.instance(cls_var)


def _init(tx: Tx, self: VariableTracker, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if args:
        self.refuse(tx, "filling from a mapping")
    own = self.instance_dict(tx)
    assert own is not None
    for name, value in kwargs.items():
        tx.heap.put(own, name, (tx.make.constant(name), value))
    return tx.make.constant(None)


C_METHODS[SimpleNamespace, "__init__"] = _init
