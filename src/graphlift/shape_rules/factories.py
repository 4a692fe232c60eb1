"""Rules of functions that make tensors: of given sizes, of ranges, or like another tensor."""

# ruff: noqa: A002 (parameters are named as torch names them)
from __future__ import annotations

import math
from typing import Any

import torch

from graphlift.metadata import MetaRecord
from graphlift.shape_rules.pointwise import fits, named
from graphlift.shape_rules.result import Decline, Fresh, Traits, rule
from graphlift.shape_rules.strides import contiguous, is_dense, sizes_of

_FACTORY = Traits(factory=True, differentiable=False)
_LIKE = Traits(differentiable=False)
_CPU = torch.device("cpu")


def _device(device: Any, default: torch.device = _CPU) -> torch.device:
    if device is None:
        return default
    if not isinstance(device, (str, torch.device)):
        raise Decline
    wanted = torch.device(device)
    if wanted.type != default.type or (wanted.index is not None and wanted != default):
        raise Decline
    return default


def _made(shape: tuple[int, ...], dtype: Any, default: torch.dtype, device: torch.device, grad: Any) -> Fresh:
    if grad is not False or min(shape, default=0) < 0:
        raise Decline
    if dtype is not None and type(dtype) is not torch.dtype:
        raise Decline
    return Fresh(shape, contiguous(shape), dtype or default, device)


@rule(torch.zeros, torch.ones, torch.empty, traits=_FACTORY)
def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: Any = False) -> Fresh:
    """Tensors of given sizes."""
    shape = tuple(sizes_of(size))
    return _made(shape, dtype, torch.get_default_dtype(), _device(device), requires_grad)


@rule(torch.randn, torch.rand, traits=Traits(factory=True, differentiable=False, random=True))
def randn(*size: Any, dtype: Any = None, device: Any = None, requires_grad: Any = False) -> Fresh:
    """Random floats of given sizes."""
    if dtype is not None and not (type(dtype) is torch.dtype and dtype.is_floating_point):
        raise Decline
    return zeros(*size, dtype=dtype, device=device, requires_grad=requires_grad)


def _filled(value: Any, dtype: torch.dtype) -> None:
    """Decline unless a dtype surely holds a number."""
    if type(value) is float:
        fine = dtype.is_floating_point and fits(value, dtype)
    elif type(value) is int:
        fine = (dtype is torch.int64 or dtype.is_floating_point) and abs(value) < 2**15
    else:
        fine = type(value) is bool
    if not fine:
        raise Decline


@rule(torch.full, traits=_FACTORY)
def full(
    size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: Any = False
) -> Fresh:
    """Tensors filled with one number, whose dtype is the number's."""
    kinds = {bool: torch.bool, int: torch.int64, float: torch.get_default_dtype()}
    if type(fill_value) not in kinds:
        raise Decline
    _filled(fill_value, dtype or kinds[type(fill_value)])
    shape = tuple(sizes_of((size,)))
    return _made(shape, dtype, kinds[type(fill_value)], _device(device), requires_grad)


@rule(torch.arange, traits=_FACTORY)
def arange(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: Any = False,
) -> Fresh:
    """Evenly spaced numbers."""
    if end is None:
        start, end = 0, start
    if not all(type(x) is int for x in (start, end, step)) or step == 0:
        raise Decline
    if (end - start) * step < 0:
        raise Decline
    count = math.ceil((end - start) / step) if max(abs(start), abs(end)) < 2**50 else _decline()
    return _made((count,), dtype, torch.int64, _device(device), requires_grad)


def _decline() -> int:
    raise Decline


@rule(*named("zeros_like ones_like empty_like"), traits=_LIKE)
def zeros_like(
    input: MetaRecord,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: Any = False,
) -> Fresh:
    """Tensors of another one's sizes and memory order."""
    if not is_dense(input):
        raise Decline
    made = _made(input.shape, dtype, input.dtype, _device(device, input.device), requires_grad)
    return Fresh(made.shape, input.stride, made.dtype, made.device)


@rule(torch.rand_like, torch.randn_like, traits=Traits(differentiable=False, random=True))
def rand_like(
    input: MetaRecord,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: Any = False,
) -> Fresh:
    """Random floats of another tensor's sizes."""
    made = zeros_like(input, dtype=dtype, device=device, requires_grad=requires_grad)
    if not made.dtype.is_floating_point:
        raise Decline
    return made


@rule(torch.full_like, traits=_LIKE)
def full_like(input: MetaRecord, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Fresh:
    """Tensors of another one's sizes filled with a number."""
    _filled(fill_value, dtype or input.dtype)
    return zeros_like(input, dtype=dtype, device=device)


@rule("new_zeros", "new_ones", "new_empty", traits=_LIKE)
def new_zeros(
    a: MetaRecord, *size: Any, dtype: Any = None, device: Any = None, requires_grad: Any = False
) -> Fresh:
    """Tensors of given sizes with another one's dtype."""
    return _made(tuple(sizes_of(size)), dtype, a.dtype, _device(device, a.device), requires_grad)


@rule("new_full", traits=_LIKE)
def new_full(a: MetaRecord, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Fresh:
    """Tensors of given sizes with another one's dtype, filled with a number."""
    _filled(fill_value, dtype or a.dtype)
    return new_zeros(a, size, dtype=dtype, device=device)
