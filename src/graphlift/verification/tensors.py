"""Copies of tensors that stand in the same relations as the originals.

Tensors that share storage have copies that share storage; a view of a copied base is a view of the copy; a
tensor with a history has a copy with a history, which ends there: nothing that is done to copies reaches
a gradient of the program's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Copy = Callable[[Any], Any]


class _Reborn(torch.autograd.Function):
    """Gives a tensor a history that begins here."""

    @staticmethod
    def forward(ctx: Any, beginning: torch.Tensor, box: list[torch.Tensor]) -> torch.Tensor:
        return box[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None


class TensorCopies:
    """Copies tensors; one object for all tensors of one verified call.

    Arguments:
        copy: copies what hangs on a tensor (its base, gradient, attributes).
        remember: notes (original, copy) before what hangs on it is copied.
    """

    def __init__(self, copy: Copy, remember: Callable[[Any, Any], None]) -> None:
        self._copy = copy
        self._remember = remember
        self._storages: dict[int, torch.UntypedStorage] = {}

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether this tensor is copied here; others know best themselves how they are copied."""
        cls: Any = type(tensor)
        return (
            cls.__torch_dispatch__ is torch.Tensor.__torch_dispatch__
            and cls.__deepcopy__ in (torch.Tensor.__deepcopy__, torch.nn.Parameter.__deepcopy__)
            and tensor.layout is torch.strided
            and not tensor.is_quantized
            and not tensor.is_nested
            and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
            and tensor.device.type != "meta"
        )

    def copied(self, tensor: torch.Tensor) -> torch.Tensor:
        """The copy of a tensor that is met for the first time."""
        with torch.inference_mode(tensor.is_inference()), torch.no_grad():
            made = self._view(tensor)
            if made is None:
                made = self._with_history(tensor, self._data(tensor))
        self._remember(tensor, made)
        if tensor.is_leaf and tensor.grad is not None:
            made.grad = self._copy(tensor.grad)
        for name, value in tensor.__dict__.items():
            made.__dict__[name] = self._copy(value)
        if tensor._backward_hooks:
            made._backward_hooks = self._copy(tensor._backward_hooks)
        return made

    def _data(self, tensor: torch.Tensor) -> torch.Tensor:
        """Equal data of the same layout, in the copy of the storage."""
        storage = tensor.untyped_storage()
        copied = self._storages.get(storage._cdata)
        if copied is None:
            copied = self._storages[storage._cdata] = storage.clone()  # type: ignore[no-untyped-call]
        made = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        made.set_(copied, tensor.storage_offset(), tensor.size(), tensor.stride())
        if tensor.is_conj():
            made = made.conj()
        if tensor.is_neg():
            made = torch._neg_view(made)
        return made

    def _with_history(self, tensor: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
        if type(tensor) is torch.nn.Parameter:
            return torch.nn.Parameter(made, tensor.requires_grad)
        if not tensor.is_leaf:
            with torch.enable_grad():
                begin: Any = _Reborn.apply
                made = begin(torch.empty(0, requires_grad=True), [made])
                return made if type(tensor) is torch.Tensor else made.as_subclass(type(tensor))
        if type(tensor) is not torch.Tensor:
            made = torch.Tensor._make_subclass(type(tensor), made)
        return made.requires_grad_(tensor.requires_grad)

    def _view(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The same view of the base's copy, where writing to a view has to reach its base's history."""
        base = tensor._base
        if base is None or type(tensor) is not torch.Tensor or not self.knows(base):
            return None
        alike = ("dtype", "requires_grad")
        if any(getattr(base, name) != getattr(tensor, name) for name in alike) or tensor.is_inference():
            return None
        if base.is_conj() or base.is_neg() or tensor.is_conj() or tensor.is_neg():
            return None
        copied = self._copy(base)
        with torch.enable_grad():
            return torch.as_strided(copied, tensor.size(), tensor.stride(), tensor.storage_offset())
