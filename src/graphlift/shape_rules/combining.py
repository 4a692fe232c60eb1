"""Rules of operations that put tensors together or take them apart by index."""

# ruff: noqa: A002 (parameters are named as torch names them)
from __future__ import annotations

import operator
from typing import Any

import torch

from graphlift.metadata import MetaRecord
from graphlift.shape_rules.pointwise import named
from graphlift.shape_rules.result import Decline, Fresh, Traits, ViewOfFirst, rule
from graphlift.shape_rules.strides import common_device, contiguous, require_row_major, sizes_of, wrap


def _row_major(tensors: Any) -> list[MetaRecord]:
    if not isinstance(tensors, (tuple, list)) or not tensors:
        raise Decline
    given = list(tensors)
    if any(type(x) is not MetaRecord or x.dtype is not given[0].dtype for x in given):
        raise Decline
    require_row_major(*given)
    return given


@rule(*named("cat concat concatenate"))
def cat(tensors: Any, dim: Any = 0) -> Fresh:
    """Tensors one after the other along a dimension."""
    given = _row_major(tensors)
    first = given[0]
    if not first.shape:
        raise Decline
    at = wrap(dim, first.ndim)
    for x in given:
        if x.ndim != first.ndim:
            raise Decline
        if any(a != b for i, (a, b) in enumerate(zip(x.shape, first.shape, strict=True)) if i != at):
            raise Decline
    if first.ndim in (4, 5) and 1 in first.shape:
        raise Decline
    shape = (*first.shape[:at], sum(x.shape[at] for x in given), *first.shape[at + 1 :])
    return Fresh(shape, contiguous(shape), first.dtype, common_device(given))


@rule(torch.stack)
def stack(tensors: Any, dim: Any = 0) -> Fresh:
    """Tensors along a new dimension."""
    given = _row_major(tensors)
    first = given[0]
    at = wrap(dim, first.ndim + 1)
    if any(x.shape != first.shape for x in given):
        raise Decline
    if first.ndim in (3, 4, 5) and 1 in first.shape:
        raise Decline
    shape = (*first.shape[:at], len(given), *first.shape[at:])
    return Fresh(shape, contiguous(shape), first.dtype, common_device(given))


@rule(operator.getitem, "__getitem__")
def getitem(a: MetaRecord, index: Any) -> ViewOfFirst:
    """Indices that are numbers, slices, ``None`` and ``...``."""
    items = list(index) if type(index) is tuple else [index]
    items = _without_ellipsis(items, a.ndim)
    shape, stride = list(a.shape), list(a.stride)
    offset, dim = a.storage_offset, 0
    for item in items:
        kind = type(item)
        if item is None:
            shape.insert(dim, 1)
            stride.insert(dim, shape[dim + 1] * stride[dim] if dim < len(stride) else 1)
            dim += 1
        elif kind is int:
            if dim >= len(shape) or not -shape[dim] <= item < shape[dim]:
                raise Decline
            offset += (item % shape[dim]) * stride[dim]
            del shape[dim], stride[dim]
        elif kind is slice:
            offset += _slice(item, shape, stride, dim)
            dim += 1
        else:
            raise Decline
    return ViewOfFirst(tuple(shape), tuple(stride), offset)


def _without_ellipsis(items: list[Any], ndim: int) -> list[Any]:
    places = [i for i, item in enumerate(items) if item is Ellipsis]
    if not places:
        return items
    if len(places) > 1:
        raise Decline
    used = sum(item is not None for item in items) - 1
    fill = ndim - used
    if fill < 0:
        raise Decline
    return [*items[: places[0]], *([slice(None)] * fill), *items[places[0] + 1 :]]


def _slice(item: slice, shape: list[int], stride: list[int], dim: int) -> int:
    """Narrow a dimension in place; gives how far the beginning moves."""
    bounds = (item.start, item.stop, item.step)
    if dim >= len(shape) or not all(x is None or type(x) is int for x in bounds):
        raise Decline
    if item.step is not None and item.step < 1:
        raise Decline
    start, stop, step = item.indices(shape[dim])
    moved = start * stride[dim]
    shape[dim] = max(0, (stop - start + step - 1) // step)
    if step != 1:
        stride[dim] *= step
    return moved


@rule(*named("index_select"), traits=Traits(raises=True))
def index_select(input: MetaRecord, dim: Any, index: MetaRecord) -> Fresh:
    """Some indices of a dimension, copied."""
    if not input.shape or index.ndim != 1 or index.dtype not in (torch.int64, torch.int32):
        raise Decline
    at = wrap(dim, input.ndim)
    shape = (*input.shape[:at], index.shape[0], *input.shape[at + 1 :])
    if 0 in shape or 0 in input.shape:
        raise Decline
    return Fresh(shape, contiguous(shape), input.dtype, common_device((input, index)))


@rule(*named("gather"), traits=Traits(raises=True, first_only=True))
def gather(input: MetaRecord, dim: Any, index: MetaRecord) -> Fresh:
    """Elements picked along a dimension."""
    at = wrap(dim, input.ndim)
    if index.dtype is not torch.int64 or index.ndim != input.ndim or not input.shape:
        raise Decline
    if 0 in index.shape or 0 in input.shape:
        raise Decline
    if any(i != at and a > b for i, (a, b) in enumerate(zip(index.shape, input.shape, strict=True))):
        raise Decline
    return Fresh(index.shape, contiguous(index.shape), input.dtype, common_device((input, index)))


@rule("repeat")
def repeat(a: MetaRecord, *sizes: Any) -> Fresh:
    """Copies side by side."""
    times = sizes_of(sizes)
    if len(times) < a.ndim or min(times, default=1) < 1:
        raise Decline
    require_row_major(a)
    padded = [1] * (len(times) - a.ndim) + list(a.shape)
    shape = tuple(x * y for x, y in zip(padded, times, strict=True))
    return Fresh(shape, contiguous(shape), a.dtype, a.device)


@rule(torch.flip)
def flip_function(input: MetaRecord, dims: Any) -> Fresh:
    """As a function it takes the dimensions as one sequence."""
    if type(dims) is int:
        raise Decline
    return flip(input, dims)


@rule("flip")
def flip(input: MetaRecord, *dims: Any) -> Fresh:
    """Dimensions in reverse."""
    order = [wrap(d, input.ndim) for d in sizes_of(dims)]
    if len(set(order)) != len(order) or not input.shape:
        raise Decline
    require_row_major(input)
    return Fresh(input.shape, contiguous(input.shape), input.dtype, input.device)
