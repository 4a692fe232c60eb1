"""Attributes that programs put on tensors: the instance dictionaries of graph inputs.

Reading goes through the dictionary's handle like any namespace; results of the graph start without any.
Writing is refused for what the tensor's own class keeps (``data``, ``grad``, ``requires_grad``): such a
change of the tensor itself belongs between operations of the graph.
"""

from __future__ import annotations

from typing import Final

import torch

from graphlift.graph_value import GraphValue
from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import AttrSource, InstanceDictSource
from graphlift.variables import namespace

#: What `type(x)` itself keeps under a name, so that the instance dictionary is not asked.
_DATA_DESCRIPTORS: Final = frozenset(
    name
    for owner in (torch.Tensor, torch._C.TensorBase)
    for name, value in vars(owner).items()
    if hasattr(type(value), "__set__")
)


def fields_of(tx: Tx, value: GraphValue) -> Handle | None:
    """The handle of an input's instance dictionary; None for what the graph made."""
    if value.real is None or value.source is None:
        return None
    owner = tx.heap.handle_of(value.real, value.source)
    if owner.namespace is None:
        real = object.__getattribute__(value.real, "__dict__")
        source = value.source.child(InstanceDictSource, "__dict__")
        owner.namespace = namespace.handle_at(tx, real, source)
    return owner.namespace


def lookup_field(tx: Tx, value: GraphValue, name: str) -> Var | None:
    """What the instance dictionary holds under `name`, or None."""
    fields = fields_of(tx, value)
    return None if fields is None else namespace.lookup(tx, fields, name, AttrSource)


def grad_slot(tx: Tx, value: GraphValue) -> Handle | None:
    """The handle of what the program wrote to an input's ``grad``; None for what the graph made.

    That it was asked for is what tells inputs whose ``grad`` is taken to be another one's.
    """
    if value.real is None or value.source is None:
        return None
    owner = tx.heap.handle_of(value.real, value.source)
    if owner.slots is None:
        owner.slots = Handle(value.real, value.source)
        owner.slots.table = {}
        owner.slots.tracker = value.var
    return owner.slots


def _store_grad(tx: Tx, value: GraphValue, stored: Var) -> None:
    """``tensor.grad = stored``: done for real after the graph, which never reads it by itself."""
    tracker = stored.realize(tx)
    if value.real is None or value.source is None or not value.meta.is_leaf:
        tx.fail(Reason.UNSUPPORTED_OPERATION, "setting attribute 'grad' of a tensor that the graph made")
    if not (tracker.is_constant() and tracker.as_constant() is None):
        tx.fail(Reason.UNSUPPORTED_OPERATION, "setting attribute 'grad' to another value than None")
    slot = grad_slot(tx, value)
    assert slot is not None
    tx.heap.put(slot, "grad", (tx.make.constant("grad"), tracker))


def write_back_fields(codegen: Codegen, tensor: Var, handle: Handle) -> None:
    """Emit the writes to what an input keeps in C (`handle` is `grad_slot`)."""
    for name, (_, stored) in (handle.table or {}).items():
        codegen.set_attr(tensor, str(name), stored)


def store_field(tx: Tx, value: GraphValue, name: str, stored: Var) -> None:
    """``tensor.name = stored``."""
    if name == "grad":
        _store_grad(tx, value, stored)
        return
    fields = fields_of(tx, value)
    if fields is None or name in _DATA_DESCRIPTORS:
        tx.fail(Reason.UNSUPPORTED_OPERATION, f"setting attribute {name!r} of a tensor")
    namespace.store(tx, fields, name, tx.make.constant(name), stored)
