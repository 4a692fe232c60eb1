"""torch's functions by what a capture does with them.

Three tables, made once: functions that become *graph* nodes, functions that *answer* from what is known
while capturing (they stand for no tensor work), and functions that are *refused* though they live among the
first. Whatever is in none of them is judged by its file. Knows nothing of how a function is modelled.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from typing import Any, Final

import torch
import torch.functional
import torch.nn.functional

_C: Final[Any] = torch._C

#: Kinds of devices that may have an autocast of their own, the devices there or not.
AUTOCAST_DEVICES: Final = (
    "cpu", "cuda", "xpu", "mps", "hpu", "xla", "ipu", "mtia", "maia", "privateuseone",
)  # fmt: skip


def _named(owner: object, names: Iterable[str]) -> Iterator[Any]:
    for name in names:
        value = getattr(owner, name, None)
        if value is not None:
            yield value


def _callables(owner: object) -> Iterator[Any]:
    """The functions in a namespace of C functions, without its private odds and ends."""
    for name in dir(owner):
        value = getattr(owner, name)
        if not name.startswith("__") and isinstance(value, types.BuiltinFunctionType):
            yield value


def _functional() -> Iterator[Any]:
    """`torch.nn.functional`: all that is public, C or Python (its helpers are reached from inside only)."""
    for name, value in vars(torch.nn.functional).items():
        if name.startswith("_") or not isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            continue
        if isinstance(value, types.BuiltinFunctionType) or value.__module__ == "torch.nn.functional":
            yield value


#: Change the state of the process or of autograd, hand out raw memory, or give Python values of tensors
#: where no model says which.
_REFUSED_NAMES: Final = (
    "_cufft_clear_plan_cache",
    "_cufft_set_plan_cache_max_size",
    "_functional_assert_async",
    "_make_dep_token",
    "_sync",
    "_print",
    "clear_autocast_cache",
    "compile",
    "dsmm",
    "frombuffer",
    "from_file",
    "from_numpy",
    "hsmm",
    "init_num_threads",
    "set_default_device",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "set_printoptions",
    "set_warn_always",
    "spmm",
    "to_dlpack",
    "use_deterministic_algorithms",
)

#: Answers about tensors, types and the state of the process, given without a node.
_ANSWERED_NAMES: Final = (
    "are_deterministic_algorithms_enabled",
    "broadcast_shapes",
    "can_cast",
    "compiled_with_cxx11_abi",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "get_default_device",
    "get_default_dtype",
    "get_device",
    "get_float32_matmul_precision",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "is_complex",
    "is_conj",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_distributed",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_neg",
    "is_same_size",
    "is_signed",
    "is_storage",
    "is_tensor",
    "is_vulkan_available",
    "numel",
    "promote_types",
    "result_type",
)


def _graph_functions() -> Iterator[Any]:
    yield from _callables(_C._VariableFunctions)
    for part in ("_nn", "_linalg", "_fft", "_special", "_sparse", "_nested"):
        yield from _callables(getattr(_C, part))
    yield from _functional()
    yield from _named(torch.functional, torch.functional.__all__)
    yield from _named(torch, ("_assert", "segment_reduce"))
    yield _C._set_grad_enabled


REFUSED: Final[frozenset[Any]] = frozenset(_named(torch, _REFUSED_NAMES))
ANSWERED: Final[frozenset[Any]] = frozenset(_named(torch, _ANSWERED_NAMES))
GRAPH: Final[frozenset[Any]] = frozenset(_graph_functions()) - REFUSED - ANSWERED

#: Methods of tensors that hand out memory, run or change autograd's own state, change what a tensor *is*
#: for everybody at once, or talk to the outside.
REFUSED_METHODS: Final[frozenset[str]] = frozenset(
    {
        "__array__",
        "__array_wrap__",
        "__deepcopy__",
        "__dlpack__",
        "__dlpack_device__",
        "__reduce__",
        "__reduce_ex__",
        "__setstate__",
        "_clear_non_serializable_cached_data",
        "_make_subclass",
        "_make_wrapper_subclass",
        "_reduce_ex_internal",
        "_typed_storage",
        "_view_func",
        "_view_func_unsafe",
        "align_as",
        "align_to",
        "apply_",
        "as_subclass",
        "backward",
        "coalesce",
        "data_ptr",
        "detach_",
        "has_names",
        "index",
        "ipu",
        "is_shared",
        "map2_",
        "map_",
        "module_load",
        "new",
        "numpy",
        "pin_memory",
        "record_stream",
        "refine_names",
        "register_hook",
        "register_post_accumulate_grad_hook",
        "reinforce",
        "rename",
        "rename_",
        "requires_grad_",
        "resize",
        "resize_",
        "resize_as",
        "resize_as_",
        "resize_as_sparse_",
        "retain_grad",
        "set_",
        "share_memory_",
        "sparse_resize_",
        "sparse_resize_and_clear_",
        "storage",
        "storage_type",
        "to_dense",
        "to_mkldnn",
        "to_sparse",
        "to_sparse_bsc",
        "to_sparse_bsr",
        "to_sparse_coo",
        "to_sparse_csc",
        "to_sparse_csr",
        "unflatten_names",
        "untyped_storage",
        "xpu",
    }
)

#: Methods that take a Python value out of a tensor.
VALUE_METHODS: Final[frozenset[str]] = frozenset(
    {
        "__bool__",
        "__complex__",
        "__float__",
        "__format__",
        "__index__",
        "__int__",
        "__long__",
        "__nonzero__",
        "__repr__",
        "__str__",
        "allclose",
        "equal",
        "is_nonzero",
        "item",
        "tolist",
    }
)


def _methods() -> Iterator[str]:
    for owner in (torch.Tensor, _C.TensorBase):
        for name, value in vars(owner).items():
            plain = isinstance(value, (types.FunctionType, types.MethodDescriptorType))
            if plain and not name.startswith("__"):
                yield name


#: Methods of tensors that become graph nodes (``_VariableFunctions`` has its twin of most of them).
GRAPH_METHODS: Final[frozenset[str]] = frozenset(_methods()) - REFUSED_METHODS - VALUE_METHODS
