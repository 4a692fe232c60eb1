"""What tensors answer about themselves from their metadata, and which attributes are graph nodes.

One function per attribute, in one table (`ATTRIBUTES`); the methods that only ask (`size()`, `dim()`, …) are
in `tensor_methods.py`. Sizes that are fixed are constants; symbolic ones become nodes of the graph. Knows
nothing of operators or of how tensors get into the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from graphlift.graph_value import GraphValue
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import SlotSource
from graphlift.variables.graph_calls import graph_result, record
from graphlift.variables.tensor_fields import grad_slot

Attribute = Callable[[Tx, GraphValue], Var]

ATTRIBUTES: Final[dict[str, Attribute]] = {}

#: Guard kind for what a tensor's ordinary guard does not look at; payload: field and value.
TENSOR_FIELD: Final = "tensor_field"


def _attribute(*names: str) -> Callable[[Attribute], Attribute]:
    def register(function: Attribute) -> Attribute:
        for name in names:
            ATTRIBUTES[name] = function
        return function

    return register


# --- sizes -----------------------------------------------------------------------------------------


def size_of(tx: Tx, value: GraphValue, dim: int) -> Var:
    """``x.size(dim)`` for a dimension that exists, counted from the front."""
    size = value.meta.shape[dim]
    return tx.make.constant(size) if type(size) is int else record(tx, "size", (value, dim), method=True)


def stride_of(tx: Tx, value: GraphValue, dim: int) -> Var:
    """``x.stride(dim)`` for a dimension that exists, counted from the front."""
    stride = value.meta.stride[dim]
    return (
        tx.make.constant(stride) if type(stride) is int else record(tx, "stride", (value, dim), method=True)
    )


@_attribute("shape")
def shape_of(tx: Tx, value: GraphValue) -> Var:
    """``x.shape``."""
    return tx.make.tuple([size_of(tx, value, dim) for dim in range(len(value.meta.shape))], torch.Size)


def is_static(value: GraphValue) -> bool:
    """Whether all sizes and strides are plain numbers."""
    meta = value.meta
    return all(type(size) is int for size in (*meta.shape, *meta.stride))


def numel_of(tx: Tx, value: GraphValue) -> Var:
    """``x.numel()``."""
    if all(type(size) is int for size in value.meta.shape):
        return tx.make.constant(value.meta.numel())
    return record(tx, "numel", (value,), method=True)


@_attribute("ndim")
def _ndim(tx: Tx, value: GraphValue) -> Var:
    return tx.make.constant(len(value.meta.shape))


@_attribute("itemsize")
def _itemsize(tx: Tx, value: GraphValue) -> Var:
    return tx.make.constant(value.meta.dtype.itemsize)


@_attribute("nbytes")
def _nbytes(tx: Tx, value: GraphValue) -> Var:
    if not is_static(value):
        tx.fail(Reason.UNSUPPORTED_OPERATION, "nbytes of a tensor of symbolic size")
    return tx.make.constant(value.meta.numel() * value.meta.dtype.itemsize)


# --- kinds -----------------------------------------------------------------------------------------


def _field(name: str) -> Attribute:
    def read(tx: Tx, value: GraphValue) -> Var:
        return graph_result(tx, getattr(value.meta, name))

    return read


for _name in ("dtype", "device", "layout", "requires_grad"):
    ATTRIBUTES[_name] = _field(_name)


def _on_device(kind: str) -> Attribute:
    def read(tx: Tx, value: GraphValue) -> Var:
        return tx.make.constant(value.meta.device.type == kind)

    return read


for _kind_name in ("cpu", "cuda", "xla", "xpu", "ipu", "mps", "maia", "vulkan", "meta", "mtia"):
    ATTRIBUTES[f"is_{_kind_name}"] = _on_device(_kind_name)


@_attribute("is_sparse", "is_sparse_csr", "is_mkldnn", "is_quantized", "is_nested")
def _never(tx: Tx, value: GraphValue) -> Var:
    # Only strided tensors become values of the graph.
    return tx.make.constant(False)


# --- autograd --------------------------------------------------------------------------------------


def _lags_behind(value: GraphValue) -> bool:
    """Whether a view requires grad by what was written to its base, and autograd has not seen to it yet: who
    asks after its history brings that up to date, which decides whether it may be written to."""
    real, meta = value.real, value.meta
    base = real._base if real is not None and meta.requires_grad and meta.is_leaf else None
    return base is not None and base.requires_grad


@_attribute("is_leaf")
def _is_leaf(tx: Tx, value: GraphValue) -> Var:
    if _lags_behind(value):
        tx.fail(Reason.UNSUPPORTED_OPERATION, "attribute 'is_leaf' of a view whose base was written to")
    if value.source is not None:
        tx.guard(TENSOR_FIELD, value.source, "is_leaf", value.meta.is_leaf)
    return tx.make.constant(value.meta.is_leaf)


def _is_none_for_input(name: str) -> Attribute:
    """An attribute kept in C that is None for most tensors; an input's may be anything."""
    descriptor: Any = getattr(torch._C.TensorBase, name)

    def read(tx: Tx, value: GraphValue) -> Var:
        if value.real is not None and value.source is not None:
            real = descriptor.__get__(value.real)
            if real is None or isinstance(real, torch.Tensor):
                return tx.make.from_value(real, value.source.child(SlotSource, descriptor))
        elif not value.meta.requires_grad and value.base is None:
            return tx.make.constant(None)
        return tx.fail(Reason.UNSUPPORTED_OPERATION, f"attribute {name!r} of a tensor that autograd follows")

    return read


for _slot in ("grad_fn", "_base", "_backward_hooks", "_post_accumulate_grad_hooks", "_grad"):
    ATTRIBUTES[_slot] = _is_none_for_input(_slot)

_read_grad: Final = _is_none_for_input("grad")


@_attribute("grad")
def _grad(tx: Tx, value: GraphValue) -> Var:
    written = grad_slot(tx, value)
    if written is not None and written.table:
        stored: Var = written.table["grad"][1]
        return stored
    if not value.meta.is_leaf or _lags_behind(value):
        tx.fail(Reason.UNSUPPORTED_OPERATION, "attribute 'grad' of a tensor that is not a leaf (it warns)")
    return _read_grad(tx, value)


# --- views -----------------------------------------------------------------------------------------


def _node(name: str) -> Attribute:
    def read(tx: Tx, value: GraphValue) -> Var:
        return record(tx, getattr, (value, name))

    return read


for _view in ("T", "mT", "H", "mH", "data", "imag"):
    ATTRIBUTES[_view] = _node(_view)


@_attribute("real")
def _real(tx: Tx, value: GraphValue) -> Var:
    if value.meta.dtype.is_complex:
        return record(tx, getattr, (value, "real"))
    return graph_result(tx, value)
