"""What is known of a tensor without its values: one interned record per combination.

Owns `MetaRecord` and its table. Two tensors with equal metadata share one record, so records compare
and hash by identity. Knows nothing of graphs, operations or fake tensors.
"""

from __future__ import annotations

import math
from typing import Any, Final

import torch

from graphlift import _C

#: Classes whose attributes may be read without running user code.
PLAIN_CLASSES: Final[frozenset[type]] = frozenset(
    {torch.Tensor, torch.nn.Parameter, torch.nn.parameter.Buffer}
)

#: Short names of dtypes, as graphs are annotated with them.
DTYPE_NAMES: Final[dict[torch.dtype, str]] = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint64: "u64",
    torch.uint32: "u32",
    torch.uint16: "u16",
    torch.uint8: "u8",
    torch.bool: "b8",
    torch.complex128: "c128",
    torch.complex64: "c64",
    torch.complex32: "c32",
}

# A process that sees ever new shapes must not grow without end; records in use stay alive by themselves.
_TABLE_LIMIT: Final = 200_000


class MetaRecord:
    """Metadata of a tensor; made by `intern` and `record_of` only.

    Attributes:
        type: the tensor's class (`torch.Tensor`, `torch.nn.Parameter`, ...).
        key_set: its dispatch keys as one number.
        shape, stride: tuples of int.
        wrapped_number: whether it stands for a Python number (weak in type promotion).
    """

    __slots__ = (
        "device",
        "dtype",
        "is_leaf",
        "key_set",
        "layout",
        "requires_grad",
        "shape",
        "storage_offset",
        "stride",
        "type",
        "wrapped_number",
    )

    type: type
    key_set: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    storage_offset: int
    requires_grad: bool
    is_leaf: bool
    wrapped_number: bool

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def fields(self) -> tuple[Any, ...]:
        """All fields, in the order of `intern`'s key."""
        return (
            self.type,
            self.key_set,
            self.shape,
            self.stride,
            self.dtype,
            self.device,
            self.layout,
            self.storage_offset,
            self.requires_grad,
            self.is_leaf,
            self.wrapped_number,
        )

    def __repr__(self) -> str:
        return f"MetaRecord({annotation(self)})"


class SymbolicMeta:
    """Metadata with symbolic sizes: the attributes of a `MetaRecord`, whose sizes, strides and offset may
    be `torch.SymInt`. Not interned."""

    __slots__ = MetaRecord.__slots__

    type: type
    key_set: int
    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    storage_offset: Any
    requires_grad: bool
    is_leaf: bool
    wrapped_number: bool

    def __init__(self, record: dict[str, Any]) -> None:
        for name, value in record.items():
            setattr(self, name, value)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def numel(self) -> Any:
        """Number of elements."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"SymbolicMeta({annotation(self)})"


_records: dict[tuple[Any, ...], MetaRecord] = {}


def intern(key: tuple[Any, ...]) -> MetaRecord:
    """The record with these fields (see `MetaRecord.fields`), the same object each time."""
    record = _records.get(key)
    if record is None:
        record = MetaRecord()
        (
            record.type,
            record.key_set,
            record.shape,
            record.stride,
            record.dtype,
            record.device,
            record.layout,
            record.storage_offset,
            record.requires_grad,
            record.is_leaf,
            record.wrapped_number,
        ) = key
        _records[key] = record
    return record


def trim() -> bool:
    """Forget all records when there are very many; to be called between captures only.

    Returns:
        whether the table was emptied; whatever is keyed by records is useless then.
    """
    if len(_records) < _TABLE_LIMIT:
        return False
    _records.clear()
    return True


def record_of(tensor: torch.Tensor) -> MetaRecord:
    """Read a tensor of a plain class and strided layout.

    Raises:
        RuntimeError: for layouts that have no strides.
    """
    dtype, device, layout, keys, requires_grad, is_leaf, sizes, strides, offset = _C.read_metadata(tensor)
    if layout is not torch.strided:
        raise RuntimeError(f"a tensor of layout {layout} has no strides")
    return intern(
        (type(tensor), keys, sizes, strides, dtype, device, layout, offset, requires_grad, is_leaf, False)
    )


def annotation(meta: Any) -> str:
    """How graphs show a value, e.g. ``f32[8, 4][4, 1]cpu``; `meta` may be symbolic."""
    dtype = DTYPE_NAMES.get(meta.dtype) or str(meta.dtype).removeprefix("torch.")
    shape = ", ".join(map(str, meta.shape))
    stride = ", ".join(map(str, meta.stride))
    return f"{dtype}[{shape}][{stride}]{meta.device}"
