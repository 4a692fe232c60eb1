"""Rules of matrix products and what is made of them."""

# ruff: noqa: A002 (parameters are named as torch names them)
from __future__ import annotations

import operator
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F

from graphlift.metadata import MetaRecord
from graphlift.shape_rules.pointwise import named
from graphlift.shape_rules.result import Decline, Fresh, Traits, rule
from graphlift.shape_rules.strides import broadcast, common_device, contiguous, is_contiguous, is_dense


def _floats(*operands: MetaRecord) -> torch.dtype:
    dtype = operands[0].dtype
    if not dtype.is_floating_point or any(x.dtype is not dtype for x in operands):
        raise Decline
    return dtype


def _plain(*operands: MetaRecord) -> None:
    """Empty operands take other ways through torch."""
    if any(0 in x.shape for x in operands):
        raise Decline


def _fresh(shape: tuple[int, ...], *operands: MetaRecord) -> Fresh:
    return Fresh(shape, contiguous(shape), operands[0].dtype, common_device(operands))


@rule(F.linear)
def linear(input: MetaRecord, weight: MetaRecord, bias: MetaRecord | None = None) -> Fresh:
    """``input @ weight.T + bias``."""
    given = (input, weight) if bias is None else (input, weight, bias)
    _floats(*given)
    _plain(*given)
    if weight.ndim != 2 or not input.shape or input.shape[-1] != weight.shape[1]:
        raise Decline
    if bias is not None and bias.shape != weight.shape[:1]:
        raise Decline
    if not is_contiguous(input) or input.ndim == 1:
        raise Decline
    return _fresh((*input.shape[:-1], weight.shape[0]), *given)


@rule(*named("mm"))
def mm(input: MetaRecord, mat2: MetaRecord) -> Fresh:
    """A product of two matrices."""
    _floats(input, mat2)
    _plain(input, mat2)
    if input.ndim != 2 or mat2.ndim != 2 or input.shape[1] != mat2.shape[0]:
        raise Decline
    return _fresh((input.shape[0], mat2.shape[1]), input, mat2)


@rule(*named("bmm"))
def bmm(input: MetaRecord, mat2: MetaRecord) -> Fresh:
    """Products of matrices in two batches."""
    _floats(input, mat2)
    _plain(input, mat2)
    if input.ndim != 3 or mat2.ndim != 3 or input.shape[0] != mat2.shape[0]:
        raise Decline
    if input.shape[2] != mat2.shape[1]:
        raise Decline
    return _fresh((*input.shape[:2], mat2.shape[2]), input, mat2)


@rule(*named("addmm"))
def addmm(input: MetaRecord, mat1: MetaRecord, mat2: MetaRecord, *, beta: Any = 1, alpha: Any = 1) -> Fresh:
    """A product of two matrices added to a tensor."""
    _floats(input, mat1, mat2)
    product = mm(mat1, mat2)
    if type(beta) not in (int, float) or type(alpha) not in (int, float) or beta == 0:
        raise Decline
    if not input.shape or broadcast((input.shape, product.shape)) != product.shape:
        raise Decline
    return _fresh(product.shape, mat1, mat2, input)


@rule(*named("baddbmm"))
def baddbmm(
    input: MetaRecord,
    batch1: MetaRecord,
    batch2: MetaRecord,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> Fresh:
    """Products of two batches added to a tensor."""
    _floats(input, batch1, batch2)
    product = bmm(batch1, batch2)
    if type(beta) not in (int, float) or type(alpha) not in (int, float) or beta == 0:
        raise Decline
    if not input.shape or broadcast((input.shape, product.shape)) != product.shape:
        raise Decline
    return _fresh(product.shape, batch1, batch2, input)


@rule(operator.matmul, *named("matmul __matmul__"))
def matmul(input: MetaRecord, other: MetaRecord) -> Fresh:
    """Products over the last dimensions, the others broadcast."""
    _floats(input, other)
    _plain(input, other)
    if input.ndim == 2 and other.ndim == 2:
        return mm(input, other)
    if input.ndim < 2 or other.ndim < 2 or input.shape[-1] != other.shape[-2]:
        raise Decline
    if input.ndim > 2 and other.ndim == 2:
        if not is_contiguous(input):
            raise Decline
    elif input.ndim == 2 or not _batched(input, other):
        raise Decline
    batch = broadcast((input.shape[:-2], other.shape[:-2]))
    return _fresh((*batch, input.shape[-2], other.shape[-1]), input, other)


def _batched(a: MetaRecord, b: MetaRecord) -> bool:
    """Whether the product is made by one batched product whose result is in row-major order."""
    return a.ndim == b.ndim or (a.ndim > 2 and b.ndim > 2)


@rule(F.embedding, traits=Traits(raises=True))
def embedding(
    input: MetaRecord,
    weight: MetaRecord,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: Any = 2.0,
    scale_grad_by_freq: Any = False,
    sparse: Any = False,
) -> Fresh:
    """Rows of a table."""
    if input.dtype not in (torch.int64, torch.int32) or weight.ndim != 2 or max_norm is not None:
        raise Decline
    if not weight.dtype.is_floating_point or sparse is not False or scale_grad_by_freq is not False:
        raise Decline
    if padding_idx is not None and not (
        type(padding_idx) is int and -weight.shape[0] <= padding_idx < weight.shape[0]
    ):
        raise Decline
    return _fresh((*input.shape, weight.shape[1]), weight, input)


@rule(F.one_hot, traits=Traits(raises=True))
def one_hot(tensor: MetaRecord, num_classes: Any = -1) -> Fresh:
    """Rows with a single one; how many columns only the values tell unless it is given."""
    if tensor.dtype is not torch.int64 or type(num_classes) is not int or num_classes < 1:
        raise Decline
    if 0 in tensor.shape or tensor.type is not torch.Tensor:
        raise Decline
    return _fresh((*tensor.shape, num_classes), tensor)


@rule(F.scaled_dot_product_attention)
def attention(
    query: MetaRecord,
    key: MetaRecord,
    value: MetaRecord,
    attn_mask: MetaRecord | None = None,
    dropout_p: Any = 0.0,
    is_causal: Any = False,
    scale: Any = None,
    enable_gqa: Any = False,
) -> Fresh:
    """Scaled dot-product attention of 4-d tensors on the CPU, without dropout."""
    _floats(query, key, value)
    _plain(query, key, value)
    if query.device.type != "cpu" or dropout_p != 0.0 or type(is_causal) is not bool:
        raise Decline
    if any(x.ndim != 4 for x in (query, key, value)) or query.dtype is not torch.float32:
        raise Decline
    if not _attention_sizes(query, key, value, enable_gqa):
        raise Decline
    if attn_mask is not None:
        _attention_mask(query, key, attn_mask)
        if is_causal:
            raise Decline
    if scale is not None and type(scale) is not float:
        raise Decline
    return _attention_result(query, key, value)


def _attention_sizes(query: MetaRecord, key: MetaRecord, value: MetaRecord, grouped: Any) -> bool:
    if key.shape[:3] != value.shape[:3] or query.shape[0] != key.shape[0]:
        return False
    if query.shape[3] != key.shape[3] or value.shape[3] != query.shape[3]:
        return False
    return grouped is False and query.shape[1] == key.shape[1]


def _attention_mask(query: MetaRecord, key: MetaRecord, mask: MetaRecord) -> None:
    scores = (*query.shape[:3], key.shape[2])
    if mask.dtype not in (torch.bool, query.dtype) or mask.ndim not in (2, 4) or mask.requires_grad:
        raise Decline
    if broadcast((mask.shape, scores)) != scores:
        raise Decline


def _attention_result(query: MetaRecord, key: MetaRecord, value: MetaRecord) -> Fresh:
    """The flash kernel lays out its result like the query."""
    if any(x.stride[-1] != 1 for x in (query, key, value)) or 1 in query.shape:
        raise Decline
    if not is_dense(query) or not _attention_keeps_layout():
        raise Decline
    return Fresh(query.shape, query.stride, query.dtype, query.device)


@cache
def _attention_keeps_layout() -> bool:
    """Whether this torch lays out the result like the query; earlier ones had one layout for all."""
    with torch.no_grad():
        query = torch.zeros(1, 2, 3, 8)
        return F.scaled_dot_product_attention(query, query, query).stride() == query.stride()
