"""Arithmetic on shapes and strides that many rules share: broadcasting, memory order, promotion.

Mirrors what `TensorIterator` does when it lays out the result of an element-wise operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from graphlift.metadata import MetaRecord
from graphlift.shape_rules.result import Decline, Fresh

Sizes = tuple[int, ...]


def contiguous(shape: Sequence[int]) -> Sizes:
    """Strides of a new tensor in row-major order."""
    strides = [1] * len(shape)
    step = 1
    for i in range(len(shape) - 1, -1, -1):
        strides[i] = step
        step *= max(shape[i], 1)
    return tuple(strides)


def is_contiguous(meta: MetaRecord) -> bool:
    """Whether elements lie in row-major order without gaps."""
    step = 1
    if 0 in meta.shape:
        return True
    for size, stride in zip(reversed(meta.shape), reversed(meta.stride), strict=True):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


def is_row_major(meta: MetaRecord) -> bool:
    """Whether strides are those of a new tensor, also along dimensions of size one.

    Where they are not, torch's kernels differ in what they make of such dimensions.
    """
    return meta.stride == contiguous(meta.shape) and 0 not in meta.shape


def require_row_major(*metas: MetaRecord) -> None:
    """Decline unless all of these are in row-major order and not empty."""
    if not all(is_row_major(x) for x in metas):
        raise Decline


def channels_last(shape: Sequence[int]) -> Sizes:
    """Strides of a new 4-d or 5-d tensor whose channels are innermost."""
    order = [1, *range(len(shape) - 1, 1, -1), 0]
    strides = [1] * len(shape)
    step = 1
    for i in order:
        strides[i] = step
        step *= max(shape[i], 1)
    return tuple(strides)


def is_dense(meta: MetaRecord) -> bool:
    """Whether elements fill their memory without gaps or overlaps, in some order of dimensions."""
    if is_contiguous(meta):
        return True
    step = 1
    for stride, size in sorted((st, sz) for st, sz in zip(meta.stride, meta.shape, strict=True) if sz != 1):
        if stride != step:
            return False
        step *= size
    return True


def wrap(dim: Any, ndim: int) -> int:
    """A dimension number counted from the front."""
    if type(dim) is not int:
        raise Decline
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise Decline
    return dim % count


def sizes_of(values: tuple[Any, ...]) -> list[int]:
    """Sizes given as separate arguments or as one sequence."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = tuple(values[0])
    if not all(type(x) is int for x in values):
        raise Decline
    return list(values)


def broadcast(shapes: Sequence[Sizes]) -> Sizes:
    """The shape that all of these expand to."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    ndim = max(map(len, shapes))
    result = [1] * ndim
    for shape in shapes:
        for i, size in enumerate(shape, ndim - len(shape)):
            if size != 1 and result[i] != size:
                if result[i] != 1:
                    raise Decline
                result[i] = size
    return tuple(result)


_SCALARS: Final[dict[type, int]] = {bool: 0, int: 1, float: 2, complex: 3}


def _category(dtype: torch.dtype) -> int:
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 0 if dtype is torch.bool else 1


def promote(operands: Sequence[Any]) -> torch.dtype:
    """The dtype that operands (records and Python numbers) are computed in.

    A 0-d tensor counts only where it is of a higher kind than tensors with dimensions, and a Python
    number where it is of a higher kind than every tensor.
    """
    first = operands[0]
    if len(operands) == 2 and type(first) is MetaRecord:
        second = operands[1]
        if type(second) is MetaRecord and first.dtype is second.dtype:
            return first.dtype
        scalar = _SCALARS.get(type(second))
        if scalar is not None and scalar <= _category(first.dtype):
            return first.dtype
    return _promote(operands)


def _promote(operands: Sequence[Any]) -> torch.dtype:
    groups: list[torch.dtype | None] = [None, None, None]
    for operand in operands:
        if type(operand) is MetaRecord:
            place, dtype = (0 if operand.shape else 1), operand.dtype
        else:
            place, dtype = 2, _number_dtype(operand)
        former = groups[place]
        groups[place] = dtype if former is None else torch.promote_types(former, dtype)
    dims, zero, number = groups
    return _merge(_merge(dims, zero), number)  # type: ignore[return-value]


def _number_dtype(value: object) -> torch.dtype:
    kind = type(value)
    if kind is bool:
        return torch.bool
    if kind is int:
        return torch.int64
    if kind is float:
        return torch.get_default_dtype()
    if kind is complex:
        return torch.complex64 if torch.get_default_dtype() is torch.float32 else torch.complex128
    raise Decline


def _merge(higher: torch.dtype | None, lower: torch.dtype | None) -> torch.dtype | None:
    if higher is None or lower is None:
        return lower if higher is None else higher
    if _category(lower) > _category(higher):
        if lower.is_complex and higher.is_floating_point:
            raise Decline
        return lower
    return higher


def floating(dtype: torch.dtype) -> torch.dtype:
    """The dtype of operations that turn integers into floats."""
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.get_default_dtype()


def common_device(operands: Sequence[Any]) -> torch.device:
    """The device of the result; 0-d CPU tensors may mix with others."""
    device = None
    for operand in operands:
        if type(operand) is MetaRecord:
            if device is None:
                device = operand.device
            elif operand.device != device:
                raise Decline
    if device is None:
        raise Decline
    return device


def elementwise(operands: Sequence[Any], dtype: torch.dtype) -> Fresh:
    """The result of an element-wise operation on records and Python numbers.

    Args:
        dtype: the dtype of the result.
    """
    tensors = [x for x in operands if type(x) is MetaRecord]
    first = tensors[0]
    device = common_device(tensors)
    alike = all(x.shape == first.shape and x.stride == first.stride for x in tensors)
    if alike and first.stride == contiguous(first.shape):
        return Fresh(first.shape, first.stride, dtype, device)
    if any(is_contiguous(x) and x.stride != contiguous(x.shape) for x in tensors):
        raise Decline
    shape = broadcast([x.shape for x in tensors])
    return Fresh(shape, _layout(operands, tensors, shape), dtype, device)


def _layout(operands: Sequence[Any], tensors: Sequence[MetaRecord], shape: Sizes) -> Sizes:
    if 0 in shape:
        if any(not is_contiguous(x) or x.stride != contiguous(x.shape) for x in tensors):
            raise Decline
        return contiguous(shape)
    uniform = all(x.shape == shape for x in tensors) and (len(tensors) == len(operands) or not shape)
    if uniform:
        fast = _uniform_layout(tensors, shape)
        if fast is not None:
            return fast
    return _permuted(_order([_expanded(x, shape) for x in tensors], shape), shape)


def _uniform_layout(tensors: Sequence[MetaRecord], shape: Sizes) -> Sizes | None:
    if all(is_contiguous(x) for x in tensors):
        return contiguous(shape)
    if len(shape) == 4 and all(_is_channels_last(x) for x in tensors):
        return channels_last(shape)
    first = tensors[0].stride
    if all(x.stride == first and is_dense(x) for x in tensors):
        return first
    return None


def _is_channels_last(meta: MetaRecord) -> bool:
    if len(meta.shape) not in (4, 5):
        return False
    step = 1
    for i in [1, *range(len(meta.shape) - 1, 1, -1), 0]:
        if meta.shape[i] != 1:
            if meta.stride[i] != step:
                return False
            step *= meta.shape[i]
    return True


def _expanded(meta: MetaRecord, shape: Sizes) -> Sizes:
    lead = len(shape) - len(meta.shape)
    strides = [0] * lead
    for size, stride, wanted in zip(meta.shape, meta.stride, shape[lead:], strict=True):
        strides.append(0 if size == 1 and wanted != 1 else stride)
    return tuple(strides)


def _order(operands: Sequence[Sizes], shape: Sizes) -> list[int]:
    """Dimensions from fastest to slowest, as the operands' strides suggest (an insertion sort)."""
    order = list(range(len(shape) - 1, -1, -1))
    for i in range(1, len(order)):
        moving = i
        for other in range(i - 1, -1, -1):
            verdict = _compare(operands, shape, order[other], order[moving])
            if verdict > 0:
                order[other], order[moving] = order[moving], order[other]
                moving = other
            elif verdict < 0:
                break
    return order


def _compare(operands: Sequence[Sizes], shape: Sizes, inner: int, outer: int) -> int:
    for strides in operands:
        a, b = strides[inner], strides[outer]
        if a == 0 or b == 0:
            continue
        if a != b:
            return 1 if a > b else -1
        if shape[inner] > shape[outer]:
            return 1
    return 0


def _permuted(order: Sequence[int], shape: Sizes) -> Sizes:
    if list(order) == list(range(len(shape) - 1, -1, -1)):
        return contiguous(shape)
    strides = [0] * len(shape)
    step = 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)
