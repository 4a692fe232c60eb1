"""Writes to tensors: which other values of the graph they reach, and whether we may take them.

Values that share storage form a family: a base and its views. Owns the rules by which a write through
one member changes what is known of the others, and refuses what it cannot foretell; plain execution
then does it for real.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from graphlift.graph_value import CannotPropagate, GraphValue
from graphlift.heap import Heap
from graphlift.meta_propagation import Template, Write
from graphlift.meta_propagation.rehearsal import extent
from graphlift.metadata import MetaRecord, SymbolicMeta, intern


def root_of(value: GraphValue) -> GraphValue:
    """The value whose storage `value` lives on."""
    return value if value.base is None else value.base


def family(value: GraphValue) -> list[GraphValue]:
    """All values on the same storage, the base first."""
    root = root_of(value)
    return [root, *(root.views or ())]


def same_storage(a: GraphValue, b: GraphValue) -> bool:
    """Whether two values share storage, in the graph or (as inputs) in the program."""
    first, second = root_of(a), root_of(b)
    if first is second:
        return True
    if first.real is None or second.real is None:
        return False
    return bool(first.real.untyped_storage()._cdata == second.real.untyped_storage()._cdata)


def check_write(
    template: Template,
    tensors: Sequence[GraphValue],
    inputs: Iterable[GraphValue],
    grad: bool,
    region: Any = None,
) -> None:
    """See whether a call that writes can become part of the graph.

    Args:
        tensors: its distinct tensor arguments.
        inputs: the graph's inputs.
        grad: whether grad mode is on.
        region: metadata of the part of the written tensor that is written to, if not the whole.

    Raises:
        CannotPropagate: when its effect on other values, or whether it fails, cannot be foretold.
    """
    for write in template.writes:
        target = tensors[write.arg]
        _check_overlap(target, tensors, region or target.meta)
        if write.data and grad:
            _check_autograd(write, target, tensors, inputs)


def _check_overlap(target: GraphValue, tensors: Sequence[GraphValue], region: Any) -> None:
    for other in tensors:
        if other is target or not same_storage(other, target):
            continue
        if not _same_place(other.meta, region) and not _apart(other.meta, region):
            raise CannotPropagate("an operation writes to memory that another of its arguments reads")


def _same_place(a: Any, b: Any) -> bool:
    """Whether two tensors on one storage are element by element the same memory."""
    if a is b:
        return True
    if type(a) is SymbolicMeta or type(b) is SymbolicMeta:
        return False
    places = ((x.shape, x.stride, x.storage_offset, x.dtype) for x in (a, b))
    return next(places) == next(places)


def _apart(a: Any, b: Any) -> bool:
    """Whether the memory of two tensors on one storage is surely distinct."""
    if type(a) is SymbolicMeta or type(b) is SymbolicMeta:
        return False
    low, high = (a, b) if a.storage_offset <= b.storage_offset else (b, a)
    return bool(extent(low) <= high.storage_offset)


def _check_autograd(
    write: Write, target: GraphValue, tensors: Sequence[GraphValue], inputs: Iterable[GraphValue]
) -> None:
    root = root_of(target)
    if target is not root and any(value.meta.requires_grad for value in tensors):
        if root.meta.requires_grad and root.meta.is_leaf:
            raise CannotPropagate("a write to a view of a leaf that requires grad")
        if target.piece:
            raise CannotPropagate("a write to a view that autograd protects")
    if write.record.requires_grad == target.meta.requires_grad:
        return
    if root.real is not None:
        if root.real._base is not None:
            raise CannotPropagate("a write makes a tensor require grad that is a view of another")
        if any(other is not root and same_storage(other, root) for other in inputs):
            raise CannotPropagate("a write makes a tensor require grad that shares memory with another")
    if any(member.piece for member in family(target)):
        raise CannotPropagate("a write makes views require grad that autograd protects")


def apply_write(heap: Heap, write: Write, target: GraphValue, on_fakes: bool) -> None:
    """Bring what is known of the written value and its family up to date.

    Args:
        on_fakes: whether the call was made on the values' fakes, which are up to date then.
    """
    before = target.meta
    if write.record is not before:
        _set_meta(heap, target, write.record, on_fakes)
    if write.data and write.record.requires_grad and not before.requires_grad:
        for member in family(target):
            meta = member.meta
            if not meta.requires_grad and _can_require_grad(meta):
                _set_meta(heap, member, _requiring(meta), on_fakes=False)


def _set_meta(heap: Heap, value: GraphValue, meta: Any, on_fakes: bool) -> None:
    heap.set_slot(value, "meta", meta)
    if on_fakes:
        # Taking the write back makes the fake that was written to useless.
        heap.on_undo(setattr, value, "fake", None)
    elif value.fake is not None:
        heap.set_slot(value, "fake", None)


def _can_require_grad(meta: MetaRecord) -> bool:
    return meta.dtype.is_floating_point or meta.dtype.is_complex


def _requiring(meta: Any) -> Any:
    if type(meta) is SymbolicMeta:
        changed = {name: getattr(meta, name) for name in MetaRecord.__slots__}
        return SymbolicMeta({**changed, "requires_grad": True, "is_leaf": False})
    fields: list[Any] = list(meta.fields())
    fields[8], fields[9] = True, False
    return intern(tuple(fields))


def protected(target: Any, grad: bool) -> bool:
    """Whether autograd would refuse later writes to a view made by this call."""
    return not grad or target in _DETACHING


_DETACHING = frozenset({"detach", torch.detach, torch.Tensor.detach})
