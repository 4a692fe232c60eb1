"""Rules of operations that give another view of their argument (or itself, or a copy when they must)."""

# ruff: noqa: A002 (parameters are named as torch names them)
from __future__ import annotations

from typing import Any

import torch

from graphlift.metadata import MetaRecord
from graphlift.shape_rules.pointwise import named
from graphlift.shape_rules.result import SAME, Decline, Fresh, Traits, ViewOfFirst, rule
from graphlift.shape_rules.strides import channels_last, contiguous, is_contiguous, is_dense, sizes_of, wrap

Sizes = tuple[int, ...]


def _view(a: MetaRecord, shape: list[int], stride: list[int], offset: int | None = None) -> ViewOfFirst:
    return ViewOfFirst(tuple(shape), tuple(stride), a.storage_offset if offset is None else offset)


def infer_sizes(sizes: list[int], count: int) -> list[int]:
    """Sizes with a -1 replaced by what makes `count` elements of them."""
    known = 1
    missing = None
    for i, size in enumerate(sizes):
        if size == -1:
            if missing is not None:
                raise Decline
            missing = i
        elif size < 0:
            raise Decline
        else:
            known *= size
    if missing is not None:
        if known == 0 or count % known:
            raise Decline
        sizes = [*sizes[:missing], count // known, *sizes[missing + 1 :]]
    elif known != count:
        raise Decline
    return sizes


def strides_of_view(a: MetaRecord, sizes: list[int]) -> list[int] | None:
    """Strides under which `a` can be looked at in other sizes, or None if its memory forbids it."""
    if 0 in a.shape:
        raise Decline
    strides = [0] * len(sizes)
    place = len(sizes) - 1
    step = a.stride[-1] if a.shape else 1
    in_chunk = seen = 1
    for dim in range(len(a.shape) - 1, -1, -1):
        in_chunk *= a.shape[dim]
        ends = dim == 0 or (a.shape[dim - 1] != 1 and a.stride[dim - 1] != in_chunk * step)
        if not ends:
            continue
        while place >= 0 and (seen < in_chunk or sizes[place] == 1):
            strides[place] = seen * step
            seen *= sizes[place]
            place -= 1
        if seen != in_chunk:
            return None
        if dim > 0:
            step = a.stride[dim - 1]
            in_chunk = seen = 1
    if not a.shape:
        return [1] * len(sizes)
    return strides if place == -1 else None


@rule("view")
def view(a: MetaRecord, *shape: Any) -> ViewOfFirst:
    """Other sizes on the same memory."""
    sizes = infer_sizes(sizes_of(shape), a.numel())
    strides = strides_of_view(a, sizes)
    if strides is None:
        raise Decline
    return _view(a, sizes, strides)


@rule("reshape")
def reshape(a: MetaRecord, *shape: Any) -> Any:
    """Other sizes, copied where the memory forbids a view."""
    sizes = infer_sizes(sizes_of(shape), a.numel())
    strides = strides_of_view(a, sizes)
    if strides is None:
        return Fresh(tuple(sizes), contiguous(sizes), a.dtype, a.device)
    return _view(a, sizes, strides)


@rule(torch.reshape)
def reshape_function(input: MetaRecord, shape: Any) -> Any:
    """As a function it takes the sizes as one sequence."""
    return reshape(input, shape)


@rule(*named("flatten"))
def flatten(input: MetaRecord, start_dim: Any = 0, end_dim: Any = -1) -> Any:
    """Several dimensions made one."""
    start, end = wrap(start_dim, input.ndim), wrap(end_dim, input.ndim)
    if start > end or not input.shape:
        raise Decline
    if start == end:
        return SAME
    size = 1
    for x in input.shape[start : end + 1]:
        size *= x
    return reshape(input, (*input.shape[:start], size, *input.shape[end + 1 :]))


@rule(*named("unflatten"))
def unflatten(input: MetaRecord, dim: Any, sizes: Any) -> ViewOfFirst:
    """One dimension made several."""
    at = wrap(dim, input.ndim)
    inner = infer_sizes(sizes_of((sizes,)), input.shape[at])
    return view(input, (*input.shape[:at], *inner, *input.shape[at + 1 :]))


@rule(*named("transpose swapaxes swapdims"))
def transpose(input: MetaRecord, dim0: Any, dim1: Any) -> ViewOfFirst:
    """Two dimensions exchanged."""
    first, second = wrap(dim0, input.ndim), wrap(dim1, input.ndim)
    order = list(range(input.ndim))
    if order:
        order[first], order[second] = second, first
    return _permute(input, order)


@rule(*named("t"))
def t(input: MetaRecord) -> ViewOfFirst:
    """A matrix transposed."""
    if input.ndim > 2:
        raise Decline
    return _permute(input, list(range(input.ndim))[::-1])


def _permute(a: MetaRecord, order: list[int]) -> ViewOfFirst:
    return _view(a, [a.shape[i] for i in order], [a.stride[i] for i in order])


@rule("permute")
def permute(a: MetaRecord, *dims: Any) -> ViewOfFirst:
    """Dimensions in another order."""
    order = [wrap(d, a.ndim) for d in sizes_of(dims)]
    if not dims or sorted(order) != list(range(a.ndim)):
        raise Decline
    return _permute(a, order)


@rule(torch.permute)
def permute_function(input: MetaRecord, dims: Any) -> ViewOfFirst:
    """As a function it takes the dimensions as one sequence."""
    return permute(input, dims)


@rule(*named("movedim moveaxis"))
def movedim(input: MetaRecord, source: Any, destination: Any) -> ViewOfFirst:
    """One dimension moved."""
    start, end = wrap(source, input.ndim), wrap(destination, input.ndim)
    order = [i for i in range(input.ndim) if i != start]
    if not input.shape:
        raise Decline
    order.insert(end, start)
    return _permute(input, order)


@rule("expand")
def expand(a: MetaRecord, *sizes: Any) -> ViewOfFirst:
    """Dimensions of size one repeated without copying."""
    wanted = sizes_of(sizes)
    lead = len(wanted) - a.ndim
    if lead < 0:
        raise Decline
    shape, stride = list(wanted), [0] * len(wanted)
    if not a.shape:
        if min(wanted, default=0) < 0:
            raise Decline
        return _view(a, shape, stride)
    for i in range(len(wanted) - 1, -1, -1):
        size = wanted[i]
        if i >= lead:
            own, step = a.shape[i - lead], a.stride[i - lead]
        else:
            # A new dimension is of size one, and its stride reaches over what is behind it.
            own, step = 1, shape[i + 1] * stride[i + 1]
        if size == -1 and i >= lead:
            size = shape[i] = own
        if size == own:
            stride[i] = step
        elif own != 1 or size < 0:
            raise Decline
    return _view(a, shape, stride)


@rule("expand_as", traits=Traits(first_only=True))
def expand_as(a: MetaRecord, other: MetaRecord) -> ViewOfFirst:
    """Expanded to another tensor's sizes."""
    return expand(a, other.shape)


@rule("view_as", traits=Traits(first_only=True))
def view_as(a: MetaRecord, other: MetaRecord) -> ViewOfFirst:
    """Viewed in another tensor's sizes."""
    return view(a, other.shape)


@rule(*named("squeeze"))
def squeeze(input: MetaRecord, dim: Any = None) -> ViewOfFirst:
    """Dimensions of size one dropped."""
    if dim is None:
        dropped = {i for i, size in enumerate(input.shape) if size == 1}
    else:
        dims = dim if isinstance(dim, (tuple, list)) else (dim,)
        wrapped = [wrap(d, input.ndim) for d in dims]
        if len(set(wrapped)) != len(wrapped):
            raise Decline
        dropped = {i for i in wrapped if input.shape and input.shape[i] == 1}
    kept = [i for i in range(input.ndim) if i not in dropped]
    return _permute(input, kept)


@rule(*named("unsqueeze"))
def unsqueeze(input: MetaRecord, dim: Any) -> ViewOfFirst:
    """A dimension of size one put in."""
    at = wrap(dim, input.ndim + 1)
    step = input.shape[at] * input.stride[at] if at < input.ndim else 1
    shape, stride = list(input.shape), list(input.stride)
    shape.insert(at, 1)
    stride.insert(at, step)
    return _view(input, shape, stride)


@rule(*named("select"))
def select(input: MetaRecord, dim: Any, index: Any) -> ViewOfFirst:
    """One index of a dimension."""
    if not input.shape:
        raise Decline
    at = wrap(dim, input.ndim)
    position = wrap(index, input.shape[at]) if input.shape[at] else _decline()
    offset = input.storage_offset + position * input.stride[at]
    return _view(
        input,
        [*input.shape[:at], *input.shape[at + 1 :]],
        [*input.stride[:at], *input.stride[at + 1 :]],
        offset,
    )


def _decline() -> int:
    raise Decline


@rule(*named("narrow"))
def narrow(input: MetaRecord, dim: Any, start: Any, length: Any) -> ViewOfFirst:
    """A stretch of a dimension."""
    if not input.shape or type(start) is not int or type(length) is not int:
        raise Decline
    at = wrap(dim, input.ndim)
    size = input.shape[at]
    if start < 0:
        start += size
    if not (0 <= start <= size and length >= 0 and start + length <= size):
        raise Decline
    return stretch(input, at, start, start + length, 1)


def stretch(a: MetaRecord, dim: int, start: int, stop: int, step: int) -> ViewOfFirst:
    """Indices ``start:stop:step`` (already within bounds) of a dimension."""
    shape, stride = list(a.shape), list(a.stride)
    shape[dim] = max(0, (stop - start + step - 1) // step)
    stride[dim] *= step
    return _view(a, shape, stride, a.storage_offset + start * a.stride[dim])


@rule(*named("chunk"))
def chunk(input: MetaRecord, chunks: Any, dim: Any = 0) -> tuple[ViewOfFirst, ...]:
    """A dimension cut into pieces of equal size, the last one perhaps shorter."""
    if type(chunks) is not int or chunks < 1 or not input.shape:
        raise Decline
    size = input.shape[wrap(dim, input.ndim)]
    if size == 0:
        raise Decline
    return split(input, -(-size // chunks), dim)


@rule(*named("split_with_sizes"))
def split_with_sizes(input: MetaRecord, split_sizes: Any, dim: Any = 0) -> tuple[ViewOfFirst, ...]:
    """A dimension cut into pieces of given sizes."""
    if type(split_sizes) is int:
        raise Decline
    return split(input, split_sizes, dim)


@rule(*named("split"))
def split(tensor: MetaRecord, split_size_or_sections: Any, dim: Any = 0) -> tuple[ViewOfFirst, ...]:
    """A dimension cut into pieces of a given size, or of given sizes."""
    if not tensor.shape:
        raise Decline
    at = wrap(dim, tensor.ndim)
    size = tensor.shape[at]
    if type(split_size_or_sections) is int:
        width = split_size_or_sections
        if width <= 0 or size == 0:
            raise Decline
        bounds = [(i, min(i + width, size)) for i in range(0, size, width)]
    else:
        widths = sizes_of((split_size_or_sections,))
        if sum(widths) != size or min(widths, default=0) < 0:
            raise Decline
        ends = [sum(widths[: i + 1]) for i in range(len(widths))]
        bounds = [(end - width, end) for end, width in zip(ends, widths, strict=True)]
    return tuple(stretch(tensor, at, start, stop, 1) for start, stop in bounds)


@rule(*named("unbind"))
def unbind(input: MetaRecord, dim: Any = 0) -> tuple[ViewOfFirst, ...]:
    """All indices of a dimension, apart."""
    if not input.shape:
        raise Decline
    at = wrap(dim, input.ndim)
    return tuple(select(input, at, i) for i in range(input.shape[at]))


@rule(*named("diagonal"))
def diagonal(input: MetaRecord, offset: Any = 0, dim1: Any = 0, dim2: Any = 1) -> ViewOfFirst:
    """The diagonal of two dimensions."""
    first, second = wrap(dim1, input.ndim), wrap(dim2, input.ndim)
    if first == second or offset != 0:
        raise Decline
    kept = [i for i in range(input.ndim) if i not in (first, second)]
    shape = [input.shape[i] for i in kept] + [min(input.shape[first], input.shape[second])]
    stride = [input.stride[i] for i in kept] + [input.stride[first] + input.stride[second]]
    return _view(input, shape, stride)


# --- themselves, or copies ----------------------------------------------------------------------


@rule("contiguous")
def contiguous_method(a: MetaRecord, *, memory_format: Any = torch.contiguous_format) -> Any:
    """The tensor itself when it is in row-major order."""
    if memory_format is not torch.contiguous_format:
        raise Decline
    if is_contiguous(a):
        return SAME
    return Fresh(a.shape, contiguous(a.shape), a.dtype, a.device)


@rule(*named("clone"))
def clone(input: MetaRecord, *, memory_format: Any = torch.preserve_format) -> Fresh:
    """A copy."""
    return Fresh(input.shape, _format_strides(input, memory_format), input.dtype, input.device)


def _format_strides(a: MetaRecord, memory_format: Any) -> Sizes:
    """Strides of a copy in a memory format."""
    if memory_format is torch.contiguous_format:
        return contiguous(a.shape)
    if memory_format is torch.channels_last:
        if a.ndim != 4:
            raise Decline
        return channels_last(a.shape)
    if memory_format is not torch.preserve_format:
        raise Decline
    if is_dense(a):
        return a.stride
    if 0 in a.stride:
        raise Decline
    order = sorted(range(a.ndim), key=lambda i: (a.stride[i], -i))
    if any(a.stride[i] == a.stride[j] for i in range(a.ndim) for j in range(i)) or 1 in a.shape:
        raise Decline
    strides, step = [0] * a.ndim, 1
    for i in order:
        strides[i] = step
        step *= a.shape[i]
    return tuple(strides)


@rule(*named("detach"), traits=Traits(differentiable=False))
def detach(input: MetaRecord) -> ViewOfFirst:
    """The same memory without its history."""
    return _view(input, list(input.shape), list(input.stride))


def _converted(a: MetaRecord, dtype: torch.dtype, device: torch.device, copy: bool = False) -> Any:
    if dtype is a.dtype and device == a.device and not copy:
        return SAME
    if device != a.device or (a.dtype.is_complex and not dtype.is_complex):
        raise Decline
    return Fresh(a.shape, _format_strides(a, torch.preserve_format), dtype, device)


@rule("to")
def to(a: MetaRecord, *args: Any, dtype: Any = None, device: Any = None, copy: Any = False) -> Any:
    """The tensor itself when nothing is to be converted."""
    if len(args) > 1 or type(copy) is not bool:
        raise Decline
    if args:
        if type(args[0]) is torch.dtype and dtype is None:
            dtype = args[0]
        elif isinstance(args[0], (torch.device, str)) and device is None:
            device = args[0]
        else:
            raise Decline
    place = a.device if device is None else torch.device(device)
    if place.index is None and place.type == a.device.type:
        place = a.device
    return _converted(a, dtype or a.dtype, place, copy)


@rule("type_as", traits=Traits(first_only=True))
def type_as(a: MetaRecord, other: MetaRecord) -> Any:
    """Converted to another tensor's dtype."""
    return _converted(a, other.dtype, other.device)


def _to_dtype(name: str, dtype: torch.dtype) -> None:
    @rule(name)
    def convert(a: MetaRecord) -> Any:
        return _converted(a, dtype, a.device)


for _name in ("float", "double", "half", "bfloat16", "int", "long", "short", "bool"):
    _to_dtype(_name, getattr(torch, _name))
