"""Writes to tensors: which other values of the graph they reach, and whether we may take them.

Values that share storage form a family: a base and its views. Owns the rules by which a write through
one member changes what is known of the others, and refuses what it cannot foretell; plain execution
then does it for real.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from graphlift.graph_value import CannotPropagate, GraphValue
from graphlift.heap import Heap
from graphlift.meta_propagation import Template, Write
from graphlift.meta_propagation.rehearsal import extent
from graphlift.metadata import MetaRecord, SymbolicMeta, intern


def is_view(value: GraphValue) -> bool:
    """Whether a value is a view, in the graph or in the program."""
    return value.base is not None or (value.real is not None and value.real._is_view())


def family(value: GraphValue) -> list[GraphValue]:
    """All values on the same storage, the base first."""
    root = value.root
    return [root, *(root.views or ())]


def same_storage(a: GraphValue, b: GraphValue) -> bool:
    """Whether two values share storage, in the graph or (as inputs) in the program."""
    first, second = a.root, b.root
    if first is second:
        return True
    if first.real is None or second.real is None:
        return False
    return bool(first.real.untyped_storage()._cdata == second.real.untyped_storage()._cdata)


def share_memory(values: Sequence[GraphValue]) -> bool:
    """Whether two different ones of these values live on the same storage."""
    distinct = list(dict.fromkeys(values))
    return any(same_storage(a, b) for i, a in enumerate(distinct) for b in distinct[:i])


def check_write(
    template: Template,
    tensors: Sequence[GraphValue],
    inputs: Iterable[GraphValue],
    protected: Iterable[GraphValue],
    grad: bool,
    region: Any = None,
) -> None:
    """See whether a call that writes can become part of the graph.

    Args:
        tensors: its distinct tensor arguments.
        inputs: the graph's inputs.
        protected: those of them that `is_protected`.
        grad: whether grad mode is on.
        region: metadata of the part of the written tensor that is written to, if not the whole.

    Raises:
        CannotPropagate: when its effect on other values, or whether it fails, cannot be foretold.
    """
    for write in template.writes:
        target = tensors[write.arg]
        if write.data and _resizes(write.record, target.meta):
            raise CannotPropagate("a write that resizes its target")
        _check_overlap(target, tensors, region or target.meta)
        if write.data:
            _check_views(target, tensors, protected)
            if grad:
                _check_autograd(write, target, tensors, inputs)


def required_inputs(template: Template, tensors: Sequence[GraphValue]) -> Iterator[tuple[GraphValue, bool]]:
    """Inputs that writes reach and that require grad, so that autograd protects some views of them in
    whatever mode they are written; and whether the written value does, so that autograd may follow it."""
    for write in template.writes:
        root = tensors[write.arg].history or tensors[write.arg]
        if not write.data or root.real is None or root.source is None:
            continue
        if write.record.requires_grad or root.meta.requires_grad:
            yield root, write.record.requires_grad


def _resizes(after: Any, before: Any) -> bool:
    """Whether a write made room for another number of elements, as ``out=`` of another size does.

    Changing the shape alone (``t_``, ``unsqueeze_``) leaves the memory as it is.
    """
    if type(after) is SymbolicMeta or type(before) is SymbolicMeta:
        return len(after.shape) != len(before.shape)
    return bool(math.prod(after.shape) != math.prod(before.shape))


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


def _check_views(target: GraphValue, tensors: Sequence[GraphValue], protected: Iterable[GraphValue]) -> None:
    """Refuse where autograd protects a view.

    A write through such a view fails; after a write through a relative, the next use of the view fails.
    """
    if not any(value.meta.requires_grad for value in tensors):
        return
    if any(map(is_protected, _relatives(target))) or any(same_storage(each, target) for each in protected):
        raise CannotPropagate("a write to memory with views that autograd protects")


def check_read(value: GraphValue, written: Iterable[GraphValue]) -> None:
    """See whether an input that `is_protected` may be read behind writes.

    Args:
        written: see `required_inputs`.

    Raises:
        CannotPropagate: where it is a view of one of them.
    """
    if any(same_storage(value, other) for other in written):
        raise CannotPropagate("a view that autograd protects, of memory that was written to")


def _check_autograd(
    write: Write, target: GraphValue, tensors: Sequence[GraphValue], inputs: Iterable[GraphValue]
) -> None:
    if not any(value.meta.requires_grad for value in tensors):
        return
    root = target.history or target
    if target is not root and root.meta.requires_grad and root.meta.is_leaf:
        raise CannotPropagate("a write to a view of a leaf that requires grad")
    if not write.record.requires_grad or root.real is None:
        return
    base = root.real._base
    if base is not None and base.is_leaf:
        raise CannotPropagate("a write that autograd follows, to a view of a leaf")
    if target.meta.requires_grad:
        return
    if base is not None:
        raise CannotPropagate("a write makes a tensor require grad that is a view of another")
    if any(other is not root and same_storage(other, root) for other in inputs):
        raise CannotPropagate("a write makes a tensor require grad that shares memory with another")


def _relatives(value: GraphValue) -> list[GraphValue]:
    """The values that are one tensor and its views for autograd (detached ones are not among them)."""
    root = value.history or value
    return [member for member in family(value) if (member.history or member) is root]


def is_protected(value: GraphValue) -> bool:
    """Whether a value is a view that autograd lets neither be written to, nor be used behind a write to what
    it is a view of."""
    if value.piece:
        return True
    real = value.real
    return real is not None and real._is_view() and _creation(real) != _ORDINARY


def may_be_refused(value: GraphValue, protected: Iterable[GraphValue]) -> bool:
    """Whether an operation on a value may fail for what autograd knows: it shares memory with an input that
    `is_protected`, and in another call that memory may have been written to before."""
    return value.meta.requires_grad and any(same_storage(value, each) for each in protected)


def check_readable(value: GraphValue) -> None:
    """See whether an input that `is_protected` may be read at all.

    Raises:
        CannotPropagate: where its memory was written to.
    """
    try:
        _ = value.real is not None and value.real.is_leaf
    except RuntimeError as error:
        raise CannotPropagate(f"a tensor that cannot be asked: {error}") from None


_creation: Any = torch._C._autograd._get_creation_meta
_ORDINARY: Any = torch._C._autograd.CreationMeta.DEFAULT


def apply_write(heap: Heap, write: Write, target: GraphValue, on_fakes: bool) -> None:
    """Bring what is known of the written value and its family up to date.

    Args:
        on_fakes: whether the call was made on the values' fakes, which are up to date then.
    """
    before = target.meta
    if write.record is not before:
        _set_meta(heap, target, write.record, on_fakes)
    if write.data and write.record.requires_grad and not before.requires_grad:
        for member in _relatives(target):
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


def join(value: GraphValue, base: GraphValue, target: Any, piece: bool) -> None:
    """Enter a new view into its family.

    Args:
        base: the value it is a view of.
        target: what made it.
        piece: whether autograd refuses writes to it.
    """
    root = base.root
    value.base = root
    if root.views is None:
        root.views = []
    root.views.append(value)
    if target not in _DETACHING:
        value.history = base.history or base
        value.piece = piece or base.piece


_DETACHING = frozenset({"detach", torch.detach, torch.Tensor.detach})
