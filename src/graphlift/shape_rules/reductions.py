"""Rules of reductions, scans and what goes along one dimension."""

# ruff: noqa: A002 (parameters are named as torch names them)
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from graphlift.metadata import MetaRecord
from graphlift.shape_rules.pointwise import named
from graphlift.shape_rules.result import Decline, Fresh, Traits, rule
from graphlift.shape_rules.strides import contiguous, elementwise, require_row_major, wrap


def _dims(dim: Any, ndim: int) -> set[int]:
    if dim is None:
        return set(range(ndim))
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    dims = [wrap(d, ndim) for d in given]
    if len(set(dims)) != len(dims):
        raise Decline
    return set(dims) if dims else set(range(ndim))


def _shape(a: MetaRecord, dims: set[int], keepdim: Any) -> tuple[int, ...]:
    if type(keepdim) is not bool:
        raise Decline
    if keepdim:
        return tuple(1 if i in dims else size for i, size in enumerate(a.shape))
    return tuple(size for i, size in enumerate(a.shape) if i not in dims)


def _reduced(a: MetaRecord, dims: set[int], keepdim: Any, dtype: torch.dtype) -> Fresh:
    """A reduction's result; only for row-major arguments, whose results are row-major too."""
    require_row_major(a)
    if 1 in a.shape and len(dims) != a.ndim:
        raise Decline
    shape = _shape(a, dims, keepdim)
    return Fresh(shape, contiguous(shape), dtype, a.device)


def _dtype(dtype: Any, default: torch.dtype) -> torch.dtype:
    if dtype is None:
        return default
    if type(dtype) is not torch.dtype or dtype.is_complex:
        raise Decline
    return dtype


@rule(*named("sum"))
def sum_(input: MetaRecord, dim: Any = None, keepdim: Any = False, *, dtype: Any = None) -> Fresh:
    """Sums; integers add up in int64."""
    if input.dtype.is_complex:
        raise Decline
    default = input.dtype if input.dtype.is_floating_point else torch.int64
    return _reduced(input, _dims(dim, input.ndim), keepdim, _dtype(dtype, default))


@rule(*named("mean"))
def mean(input: MetaRecord, dim: Any = None, keepdim: Any = False, *, dtype: Any = None) -> Fresh:
    """Means of floats."""
    wanted = _dtype(dtype, input.dtype)
    if not wanted.is_floating_point:
        raise Decline
    return _reduced(input, _dims(dim, input.ndim), keepdim, wanted)


@rule(*named("amax amin"))
def amax(input: MetaRecord, dim: Any = None, keepdim: Any = False) -> Fresh:
    """Extremes over any dimensions."""
    if not input.dtype.is_floating_point or dim == ():
        raise Decline
    return _reduced(input, _dims(dim, input.ndim), keepdim, input.dtype)


@rule(*named("var std"))
def var(input: MetaRecord, dim: Any = None, *, unbiased: Any = True, keepdim: Any = False) -> Fresh:
    """Variances and deviations of floats."""
    if not input.dtype.is_floating_point or type(unbiased) is not bool or type(dim) is bool:
        raise Decline
    if isinstance(dim, (tuple, list)) and not dim:
        raise Decline
    return _reduced(input, _dims(dim, input.ndim), keepdim, input.dtype)


@rule(*named("argmax argmin"), traits=Traits(differentiable=False))
def argmax(input: MetaRecord, dim: Any = None, keepdim: Any = False) -> Fresh:
    """Places of extremes."""
    if input.dtype.is_complex or input.dtype is torch.bool or (dim is None and keepdim):
        raise Decline
    dims = _dims(None, input.ndim) if dim is None else {wrap(dim, input.ndim)}
    return _reduced(input, dims, keepdim, torch.int64)


@rule(*named("all any"))
def all_(input: MetaRecord, dim: Any = None, keepdim: Any = False) -> Fresh:
    """Whether all or some elements hold."""
    if input.dtype is not torch.bool or isinstance(dim, (tuple, list)):
        raise Decline
    return _reduced(input, _dims(dim, input.ndim), keepdim, torch.bool)


@rule(*named("softmax log_softmax", F))
def softmax(input: MetaRecord, dim: Any, *, dtype: Any = None) -> Fresh:
    """Softmax along a dimension."""
    wrap(dim, input.ndim)
    wanted = _dtype(dtype, input.dtype)
    if not wanted.is_floating_point:
        raise Decline
    require_row_major(input)
    return Fresh(input.shape, contiguous(input.shape), wanted, input.device)


@rule(F.softmax, F.log_softmax)
def softmax_function(
    input: MetaRecord,
    dim: Any = None,
    _stacklevel: Any = 3,
    dtype: Any = None,
) -> Fresh:
    """As a function of `torch.nn.functional` it has one more argument."""
    return softmax(input, dim, dtype=dtype)


@rule(*named("cumsum cumprod"))
def cumsum(input: MetaRecord, dim: Any, *, dtype: Any = None) -> Fresh:
    """Running sums and products."""
    wrap(dim, input.ndim)
    if input.dtype.is_complex:
        raise Decline
    require_row_major(input)
    default = input.dtype if input.dtype.is_floating_point else torch.int64
    return elementwise((input,), _dtype(dtype, default))


@rule(*named("tril triu"))
def tril(input: MetaRecord, diagonal: Any = 0) -> Fresh:
    """A triangle of each matrix."""
    if input.ndim < 2 or type(diagonal) is not int:
        raise Decline
    require_row_major(input)
    return Fresh(input.shape, contiguous(input.shape), input.dtype, input.device)
