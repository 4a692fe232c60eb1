"""Rules of the operations behind layers: normalisation, dropout, convolution, pooling."""

# ruff: noqa: A002 (parameters are named as torch names them)
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from graphlift.metadata import MetaRecord
from graphlift.shape_rules.result import SAME, Decline, Fresh, rule
from graphlift.shape_rules.strides import common_device, contiguous, require_row_major, sizes_of


def _like(a: MetaRecord, *others: MetaRecord | None) -> Fresh:
    """A row-major result like a row-major argument, all floats of one dtype."""
    given = [a, *(x for x in others if x is not None)]
    if not a.dtype.is_floating_point or any(x.dtype is not a.dtype for x in given):
        raise Decline
    require_row_major(a)
    return Fresh(a.shape, a.stride, a.dtype, common_device(given))


@rule(F.layer_norm)
def layer_norm(
    input: MetaRecord,
    normalized_shape: Any,
    weight: MetaRecord | None = None,
    bias: MetaRecord | None = None,
    eps: Any = 1e-5,
) -> Fresh:
    """Normalised over the last dimensions."""
    last = tuple(sizes_of((normalized_shape,)))
    if not last or input.shape[-len(last) :] != last or type(eps) is not float:
        raise Decline
    if any(x is not None and x.shape != last for x in (weight, bias)):
        raise Decline
    return _like(input, weight, bias)


@rule(F.rms_norm)
def rms_norm(
    input: MetaRecord,
    normalized_shape: Any,
    weight: MetaRecord | None = None,
    eps: Any = None,
) -> Fresh:
    """Scaled by the root mean square of the last dimensions."""
    last = tuple(sizes_of((normalized_shape,)))
    if not last or input.shape[-len(last) :] != last or not (eps is None or type(eps) is float):
        raise Decline
    if weight is not None and weight.shape != last:
        raise Decline
    return _like(input, weight)


@rule(F.group_norm)
def group_norm(
    input: MetaRecord,
    num_groups: Any,
    weight: MetaRecord | None = None,
    bias: MetaRecord | None = None,
    eps: Any = 1e-5,
) -> Fresh:
    """Normalised over groups of channels."""
    if input.ndim < 2 or type(num_groups) is not int or num_groups < 1 or input.shape[1] % num_groups:
        raise Decline
    if any(x is not None and x.shape != input.shape[1:2] for x in (weight, bias)):
        raise Decline
    return _like(input, weight, bias)


@rule(F.batch_norm)
def batch_norm(
    input: MetaRecord,
    running_mean: MetaRecord | None,
    running_var: MetaRecord | None,
    weight: MetaRecord | None = None,
    bias: MetaRecord | None = None,
    training: Any = False,
    momentum: Any = 0.1,
    eps: Any = 1e-5,
) -> Fresh:
    """Normalised by running statistics (which training would write: not here)."""
    if training is not False or running_mean is None or running_var is None or input.ndim < 2:
        raise Decline
    stats = (running_mean, running_var, weight, bias)
    if any(x is not None and x.shape != input.shape[1:2] for x in stats):
        raise Decline
    if running_mean.requires_grad or running_var.requires_grad:
        raise Decline
    return _like(input, *stats)


@rule(F.dropout, torch.dropout)
def dropout(input: MetaRecord, p: Any = 0.5, training: Any = True, inplace: Any = False) -> Any:
    """The argument itself outside training."""
    if type(p) not in (int, float) or not 0 <= p <= 1 or inplace is not False:
        raise Decline
    if training is not False or 0 in input.shape:
        raise Decline
    return SAME


def _pair(value: Any, count: int) -> list[int]:
    if type(value) is int:
        return [value] * count
    sizes = sizes_of((value,))
    if len(sizes) == 1:
        return sizes * count
    if len(sizes) != count:
        raise Decline
    return sizes


def _convolution(
    count: int,
    input: MetaRecord,
    weight: MetaRecord,
    bias: MetaRecord | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
) -> Fresh:
    if input.ndim != count + 2 or weight.ndim != count + 2 or type(groups) is not int or groups < 1:
        raise Decline
    if isinstance(padding, str) or input.device.type != "cpu":
        raise Decline
    if input.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise Decline
    if bias is not None and bias.shape != weight.shape[:1]:
        raise Decline
    require_row_major(weight)
    _like(input, weight, bias)
    if input.dtype is not torch.float32:
        raise Decline
    sizes = []
    steps = zip(_pair(stride, count), _pair(padding, count), _pair(dilation, count), strict=True)
    for i, (step, pad, spread) in enumerate(steps):
        room = input.shape[i + 2] + 2 * pad - spread * (weight.shape[i + 2] - 1) - 1
        if room < 0 or step < 1 or pad < 0 or spread < 1:
            raise Decline
        sizes.append(room // step + 1)
    shape = (input.shape[0], weight.shape[0], *sizes)
    if _ambiguous(input.shape) or _ambiguous(weight.shape):
        raise Decline
    return Fresh(shape, contiguous(shape), input.dtype, input.device)


def _ambiguous(shape: tuple[int, ...]) -> bool:
    """Whether row-major order is channels-last order as well, so that the result may be either."""
    return shape[1] == 1 or all(size == 1 for size in shape[2:])


@rule(F.conv2d, torch.conv2d)
def conv2d(
    input: MetaRecord,
    weight: MetaRecord,
    bias: MetaRecord | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
) -> Fresh:
    """Convolution over two dimensions."""
    return _convolution(2, input, weight, bias, stride, padding, dilation, groups)


@rule(F.conv1d, torch.conv1d)
def conv1d(
    input: MetaRecord,
    weight: MetaRecord,
    bias: MetaRecord | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
) -> Fresh:
    """Convolution over one dimension."""
    return _convolution(1, input, weight, bias, stride, padding, dilation, groups)


@rule(F.max_pool2d)
def max_pool2d(
    input: MetaRecord,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: Any = False,
    return_indices: Any = False,
) -> Fresh:
    """The largest of each window."""
    if return_indices is not False:
        raise Decline
    return _pool(input, kernel_size, stride, padding, dilation, ceil_mode)


@rule(F.avg_pool2d)
def avg_pool2d(
    input: MetaRecord,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: Any = False,
    count_include_pad: Any = True,
) -> Fresh:
    """The mean of each window."""
    if type(count_include_pad) is not bool:
        raise Decline
    return _pool(input, kernel_size, stride, padding, 1, ceil_mode)


def _pool(a: MetaRecord, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any) -> Fresh:
    if a.ndim != 4 or ceil_mode is not False or _ambiguous(a.shape):
        raise Decline
    _like(a)
    kernel = _pair(kernel_size, 2)
    steps = kernel if stride is None else _pair(stride, 2)
    sizes = []
    options = zip(kernel, steps, _pair(padding, 2), _pair(dilation, 2), strict=True)
    for i, (width, step, pad, spread) in enumerate(options):
        room = a.shape[i + 2] + 2 * pad - spread * (width - 1) - 1
        if room < 0 or min(width, step, spread) < 1 or not 0 <= pad <= width // 2:
            raise Decline
        sizes.append(room // step + 1)
    shape = (*a.shape[:2], *sizes)
    return Fresh(shape, contiguous(shape), a.dtype, a.device)


@rule(F.adaptive_avg_pool2d)
def adaptive_avg_pool2d(input: MetaRecord, output_size: Any) -> Fresh:
    """Means over as many windows as the result has elements."""
    if input.ndim != 4 or _ambiguous(input.shape):
        raise Decline
    _like(input)
    wanted = _pair(output_size, 2)
    if min(wanted) < 1 or wanted == [1, 1]:
        raise Decline
    shape = (*input.shape[:2], *wanted)
    return Fresh(shape, contiguous(shape), input.dtype, input.device)
