"""Kinds about tensors: what the metadata says, and what a capture read beyond that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from graphlift.guards.guard import Guard, Kind, kind
from graphlift.guards.holding import held, hold
from graphlift.guards.kinds.constants import same_constant
from graphlift.guards.kinds.showing import show
from graphlift.guards.places import Rows
from graphlift.guards.torch_readers import read_plainly


class TensorSpec:
    """What is assumed of a tensor; None among the numbers: may differ.

    Attributes:
        cls: its class (lasting form).
    """

    __slots__ = ("cls", "device", "dtype", "keys", "requires_grad", "sizes", "strides")

    def __init__(
        self,
        cls: type,
        keys: int,
        dtype: torch.dtype,
        device: torch.device,
        requires_grad: bool | None,
        sizes: tuple[int | None, ...],
        strides: tuple[int | None, ...] | None,
    ) -> None:
        self.cls: Final = hold(cls)
        self.keys: Final = keys
        self.dtype: Final = dtype
        self.device: Final = device
        self.requires_grad: Final = requires_grad
        self.sizes: Final = sizes
        self.strides: Final = strides

    def operands(self) -> tuple[Any, ...]:
        """As the node takes it."""
        return (
            self.cls, self.keys, self.dtype, self.device, self.requires_grad, self.sizes, self.strides,
        )  # fmt: skip


def _fixed(numbers: Sequence[Any]) -> tuple[int | None, ...]:
    """Numbers with None where one is symbolic."""
    return tuple([number if type(number) is int else None for number in numbers])


def _spec_of(meta: Any) -> TensorSpec:
    """From a metadata record, or what looks like one and may have symbolic sizes."""
    return TensorSpec(
        meta.type,
        meta.key_set,
        meta.dtype,
        meta.device,
        meta.requires_grad,
        _fixed(meta.shape),
        _fixed(meta.stride),
    )


def _fits(expected: Sequence[int | None] | None, now: Sequence[int]) -> bool:
    if expected is None:
        return True
    return len(expected) == len(now) and all(e is None or e == n for e, n in zip(expected, now, strict=True))


#: What is compared, in the user's words, and how it is read off what `read_plainly` gives.
_PARTS: Final = (
    ("dtype", 0, lambda spec, now: spec.dtype is now),
    ("device", 1, lambda spec, now: spec.device == now),
    ("requires_grad", 4, lambda spec, now: spec.requires_grad in (None, now)),
    ("sizes", 6, lambda spec, now: _fits(spec.sizes, now)),
    ("strides", 7, lambda spec, now: _fits(spec.strides, now)),
    ("keys", 3, lambda spec, now: spec.keys == now),
)


@kind
class TensorKind(Kind):
    """Class, dispatch keys, dtype, device, requires_grad, sizes, strides. Payload: (metadata or spec,)."""

    name = "tensor"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        payload = guard.payload[0]
        found = rows.specs.get(id(payload))  # metadata records are interned, and the guard holds this one
        if found is None:
            spec = payload if type(payload) is TensorSpec else _spec_of(payload)
            found = rows.specs[id(payload)] = (spec, spec.operands())
        rows.rows.append(("tensor", at, *found[1]))
        return (at,), found[0]

    def holds(self, payload: Any, *values: Any) -> bool:
        value = values[0]
        if type(value) is not held(payload.cls):
            return False
        now = read_plainly(value)
        return all(same(payload, now[at]) for _, at, same in _PARTS)

    def describe(self, payload: Any, *names: str) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in payload.sizes)
        grad = ", requires grad" if payload.requires_grad else ""
        return f"is a {held(payload.cls).__name__} {payload.dtype}[{sizes}] on {payload.device}{grad}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        value = values[0]
        if not issubclass(type(value), torch.Tensor) or type(value) is not held(payload.cls):
            return f"{names[0]} was of {show(held(payload.cls))}, now it is of {show(type(value))}"
        now = read_plainly(value)
        for part, at, same in _PARTS:
            if not same(payload, now[at]):
                return f"{names[0]}: {_difference(part, payload, now[at])}"
        return f"{names[0]} is a tensor of another kind than before"


def _difference(part: str, spec: TensorSpec, now: Any) -> str:
    if part == "keys":
        return "its dispatch keys were others (such as conj, sparse, or an inference tensor)"
    was = getattr(spec, part)
    if part in ("sizes", "strides"):
        word = part[:-1]
        if len(was) != len(now):
            return f"it had {len(was)} dimensions, now it has {len(now)}"
        dim = next(d for d, (w, n) in enumerate(zip(was, now, strict=True)) if w is not None and w != n)
        return f"its {word} in dimension {dim} was {was[dim]}, now it is {now[dim]}"
    return f"its {part} was {was}, now it is {now}"


@kind
class TensorFieldKind(Kind):
    """Something else that was read off a tensor. Payload: (field, value).

    Fields: ``storage_offset``; ``is_leaf``, as autograd has it on record; or an attribute that torch keeps in
    C (``grad_fn``, ``_base``) whose value is a constant.
    """

    name = "tensor_field"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        field, value = guard.payload
        if field == "storage_offset":
            rows.add("tensor_offset", at, value)
        elif field == "is_leaf":
            rows.add("tensor_leaf", at, value)
        else:
            read = rows.add("slot", at, getattr(torch._C.TensorBase, field))
            rows.add("constant", read, value)
        return (at,), (field, value)

    def holds(self, payload: Any, *values: Any) -> bool:
        return issubclass(type(values[0]), torch.Tensor) and same_constant(
            payload[1], _field(values[0], payload[0])
        )

    def describe(self, payload: Any, *names: str) -> str:
        return f"has {payload[0]} == {show(payload[1])}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        field, was = payload
        now = show(_field(values[0], field)) if issubclass(type(values[0]), torch.Tensor) else "not to be had"
        return f"{names[0]}: its {field} was {show(was)}, now it is {now}"


def _field(tensor: torch.Tensor, field: str) -> Any:
    if field in ("is_leaf", "storage_offset"):
        return read_plainly(tensor)[5 if field == "is_leaf" else 8]
    with torch._C.DisableTorchFunction():
        return getattr(torch._C.TensorBase, field).__get__(tensor)


_creation: Final[Any] = torch._C._autograd._get_creation_meta
_ORDINARY: Final[Any] = torch._C._autograd.CreationMeta.DEFAULT


@kind
class OrdinaryViewKind(Kind):
    """The tensor is a view that autograd does not protect: made one by one, under grad mode."""

    name = "ordinary_view"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        rows.add("view_made", at, _creation, int(_ORDINARY))
        return (at,), None

    def holds(self, payload: Any, *values: Any) -> bool:
        tensor = values[0]
        is_view = issubclass(type(tensor), torch.Tensor) and _field(tensor, "_base") is not None
        return is_view and bool(_creation(tensor) == _ORDINARY)

    def describe(self, payload: Any, *names: str) -> str:
        return "is a view that autograd does not protect"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} was a view that autograd does not protect, now it is none"


@kind
class WritableViewKind(OrdinaryViewKind):
    """The tensor is a view that autograd lets be written to: an ordinary one, of no leaf."""

    name = "writable_view"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        base = rows.add("slot", rows.at(guard.source), torch._C.TensorBase._base)
        rows.add("constant", rows.add("slot", base, torch._C.TensorBase.is_leaf), False)
        return super().compile(guard, rows)

    def holds(self, payload: Any, *values: Any) -> bool:
        return super().holds(payload, *values) and not _field(_field(values[0], "_base"), "is_leaf")

    def describe(self, payload: Any, *names: str) -> str:
        return "is a view that may be written to"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} was a view that autograd lets be written to, now it is none"
