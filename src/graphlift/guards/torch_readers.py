"""Hands torch to the C readers: sample tensors, and how Python reads what C reads faster.

The Python readers are the tested fallback and the yardstick: C uses torch's own functions and offsets only
where they say the same as these. Knows nothing of guards.
"""

from __future__ import annotations

import contextlib
import struct
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from graphlift import _C
from graphlift.rules.torch_names import AUTOCAST_DEVICES

_C_torch: Final[Any] = torch._C
_NO_FUNCTIONS: Final[Any] = torch._C.DisableTorchFunction
_dispatch_keys: Final[Any] = torch._C._dispatch_keys


# --- tensors -----------------------------------------------------------------------------------------------


def read_plainly(tensor: torch.Tensor) -> tuple[Any, ...]:
    """A tensor's metadata as ``_C.read_metadata`` gives it, through plain attributes.

    Runs no ``__torch_function__``, of a class or of a mode. Asks no view of a tensor that requires grad
    whether it is a leaf, for that would bring its history up to date, and so decide whether it may be
    written to.
    """
    with _NO_FUNCTIONS():
        strided = tensor.layout is torch.strided
        requires_grad = tensor.requires_grad
        base = tensor._base if requires_grad else None
        return (
            tensor.dtype,
            tensor.device,
            tensor.layout,
            _dispatch_keys(tensor).raw_repr(),
            requires_grad,
            not requires_grad or ((base is None or not base.requires_grad) and tensor.is_leaf),
            tuple(tensor.shape),
            tensor.stride() if strided else (),
            tensor.storage_offset() if strided else -1,
        )


def place_plainly(tensor: torch.Tensor) -> tuple[int, int, int, int]:
    """Where a tensor's data lies, as ``_C.tensor_place`` gives it."""
    with _NO_FUNCTIONS():
        storage = tensor.untyped_storage()
        return storage._cdata, storage.data_ptr(), storage.nbytes(), int(tensor.storage_offset())


def _samples() -> Iterator[torch.Tensor]:
    """Tensors that differ in all that is read, of every class whose attributes run no Python code."""
    plain = torch.arange(24.0).reshape(2, 3, 4)
    yield plain
    yield plain[1, :, 1:].t()
    yield torch.zeros(1, 2, 3, 1, 2, 3)  # more dimensions than lie in the tensor itself
    yield torch.zeros(1, 2, 3, 1, 2, 3, 2).transpose(1, 6).requires_grad_()
    yield torch.nn.Parameter(torch.zeros(3, 1))
    yield torch.nn.parameter.Buffer(torch.zeros(2))
    yield torch.zeros(0, requires_grad=True)
    yield torch.zeros(2, requires_grad=True) * 2
    yield torch.frombuffer(bytearray(32), dtype=torch.int16)
    yield torch.zeros(2, dtype=torch.complex64).conj()
    yield torch.empty(2, 2, device="meta")
    yield torch.zeros((), dtype=torch.bool)
    yield torch.eye(2).to_sparse()
    for dtype in vars(torch).values():
        if isinstance(dtype, torch.dtype) and not str(dtype).startswith(("torch.q", "torch.bits")):
            yield from _sample_of(dtype)


def _sample_of(dtype: torch.dtype) -> Iterator[torch.Tensor]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some dtypes call themselves experimental
            sample = torch.empty(0, dtype=dtype)
    except (RuntimeError, TypeError):  # one of those that only exist inside quantized tensors
        return
    yield sample


# --- global state ------------------------------------------------------------------------------------------


def _number(value: Any) -> int:
    """An answer of torch's as a number: flags, dtypes, precisions, pairs of flags."""
    if isinstance(value, tuple):
        return {(True, True): 0, (False, True): 1}.get(value, 2)
    if isinstance(value, torch.dtype):
        return _C.dtype_code(value)
    if isinstance(value, str):
        return {"none": 0, "ieee": 1, "tf32": 2, "bf16": 3, "highest": 4, "high": 5, "medium": 6}[value]
    return int(value)


def _asking(name: str, *args: Any) -> Callable[[], int] | None:
    function = getattr(torch._C, name, None)
    if function is None:
        return None
    return lambda: _number(function(*args))


def _grad_flags() -> int:
    """Bits as in torch's own structure: grad, inference, forward grad, threads, view replay."""
    return int(
        torch.is_grad_enabled()
        | torch.is_inference_mode_enabled() << 1
        | _C_torch._is_fwd_grad_enabled() << 2
        | _C_torch._is_multithreading_enabled() << 3
        | _C_torch._is_view_replay_enabled() << 4
    )


def _function_disabled() -> int:
    if _C_torch._is_torch_function_enabled():
        return 0
    return 2 if _C_torch._is_torch_function_all_disabled() else 1


def _autocast(device: str) -> Callable[[], int]:
    def dtype_while_anything_is_autocast() -> int:
        return _number(torch.get_autocast_dtype(device))

    return dtype_while_anything_is_autocast


_FLAGS: Final[dict[str, str]] = {
    "function_modes": "_len_torch_function_stack",
    "dispatch_modes": "_len_torch_dispatch_stack",
    "autocast_cache": "is_autocast_cache_enabled",
    "deterministic": "_get_deterministic_algorithms",
    "deterministic_warn_only": "_get_deterministic_algorithms_warn_only",
    "deterministic_fill": "_get_deterministic_fill_uninitialized_memory",
    "mkldnn": "_get_mkldnn_enabled",
    "mkldnn_deterministic": "_get_mkldnn_deterministic",
    "cudnn": "_get_cudnn_enabled",
    "cudnn_benchmark": "_get_cudnn_benchmark",
    "cudnn_deterministic": "_get_cudnn_deterministic",
    "nnpack": "_get_nnpack_enabled",
    "flash_sdp": "_get_flash_sdp_enabled",
    "mem_efficient_sdp": "_get_mem_efficient_sdp_enabled",
    "math_sdp": "_get_math_sdp_enabled",
    "cudnn_sdp": "_get_cudnn_sdp_enabled",
    "fp16_accumulation": "_get_cublas_allow_fp16_accumulation",
    "fp16_reduction_cpu": "_get_cpu_allow_fp16_reduced_precision_reduction",
    "fp16_reduction": "_get_cublas_allow_fp16_reduced_precision_reduction",
    "bf16_reduction": "_get_cublas_allow_bf16_reduced_precision_reduction",
    "math_sdp_reduction": "_get_math_sdp_allow_fp16_bf16_reduction",
}

_HAS_CUDA: Final[bool] = torch.backends.cuda.is_built()  # type: ignore[no-untyped-call]

_PRECISIONS: Final = (
    ("precision_cuda_conv", "cuda", "conv"),
    ("precision_cuda_rnn", "cuda", "rnn"),
    ("precision_cuda_matmul", "cuda", "matmul"),
    ("precision_mkldnn_conv", "mkldnn", "conv"),
    ("precision_mkldnn_rnn", "mkldnn", "rnn"),
    ("precision_mkldnn_matmul", "mkldnn", "matmul"),
)


def state_readers() -> list[tuple[str, Callable[[], int]]]:
    """Every field of the state by name, with the Python function that reads it."""
    readers: list[tuple[str, Callable[[], int] | None]] = [
        ("keys_included", lambda: _C_torch._dispatch_tls_local_include_set().raw_repr()),
        ("keys_excluded", lambda: _C_torch._dispatch_tls_local_exclude_set().raw_repr()),
        ("grad_flags", _grad_flags),
        ("function_disabled", _function_disabled),
        ("default_dtype", lambda: _number(torch.get_default_dtype())),
        ("threads", torch.get_num_threads),
    ]
    readers += [(name, _asking(function)) for name, function in _FLAGS.items()]
    if hasattr(torch._C, "_get_fp32_precision_getter"):
        readers += [
            (name, _asking("_get_fp32_precision_getter", backend, operation))
            for name, backend, operation in _PRECISIONS
            if backend != "cuda" or _HAS_CUDA
        ]
    else:
        readers.append(("matmul_precision", _asking("_get_float32_matmul_precision")))
        readers.append(("cudnn_tf32", _asking("_get_cudnn_allow_tf32")))
    readers += [(f"autocast_{device}", _autocast(device)) for device in AUTOCAST_DEVICES]
    return [(name, reader) for name, reader in readers if reader is not None]


class _Serials:
    """Numbers for objects, each given once in the life of the process, so that a new object at an old address
    is a new one."""

    def __init__(self) -> None:
        self._last = 0
        self._known: dict[int, tuple[Any, int]] = {}
        self._devices: dict[torch.device, int] = {}

    def of(self, thing: Any) -> int:
        """The number of an object; a fresh one each time for what cannot be held weakly.

        Regions of one device are the same: each ``with torch.device(…)`` makes a mode of its own.
        """
        if type(thing) is DeviceContext:
            device = torch.device(thing.device)
            if device not in self._devices:
                self._last += 1
                self._devices[device] = self._last
            return self._devices[device]
        known = self._known.get(id(thing))
        if known is not None and known[0]() is thing:
            return known[1]
        self._last += 1
        with contextlib.suppress(TypeError):
            self._known[id(thing)] = (weakref.ref(thing), self._last)
        return self._last


_serials: Final = _Serials()


def _function_modes() -> Iterator[Any]:
    for depth in range(_C_torch._len_torch_function_stack()):
        yield _C_torch._get_function_stack_at(depth)


def _dispatch_modes() -> Iterator[Any]:
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    yield from _get_current_dispatch_mode_stack()


def read_stacks() -> bytes:
    """What lies on the stacks of function modes, dispatch modes and functorch transforms."""
    numbers: list[int] = []
    for modes in (_function_modes(), _dispatch_modes()):
        serials = [_serials.of(mode) for mode in modes]
        numbers += [len(serials), *serials]
    levels = _C_torch._functorch.get_interpreter_stack() or []
    for level in levels:
        numbers += [level.level(), int(level.key().value)]
    return struct.pack(f"{len(numbers)}q", *numbers)


class _Mode(TorchFunctionMode):
    """A mode that does nothing, to see the stack of modes when it is not empty."""


def _unusual_states() -> Iterator[AbstractContextManager[object]]:
    """States of this thread in which the direct readers must say what the Python ones say, too."""
    yield torch._C.DisableTorchFunctionSubclass()
    yield torch._C.DisableTorchFunction()
    yield _Mode()
    yield torch.inference_mode()
    yield torch.autocast("cpu", dtype=torch.bfloat16)


def connect(force_fallback: bool = False) -> tuple[str, str]:
    """Set the C readers up; ``("fast", "fast")``, or what is read through Python and why."""
    reader = _C.init_tensor_reader(
        torch._C.TensorBase, list(_samples()), read_plainly, place_plainly, force_fallback
    )
    functorch = torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode).raw_repr()
    state = _C.init_torch_state(
        state_readers(), read_stacks, functorch, torch._C._set_grad_enabled, force_fallback
    )
    for unusual in _unusual_states():
        with unusual:
            state = _C.check_torch_state()
    return reader, state


connected: Final = connect()
