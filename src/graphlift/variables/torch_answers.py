"""Functions of torch that answer a question: no node, a constant now.

What they say of the process (grad mode, default dtype, autocast, …) is part of the torch state that every
entry compares; what they say of a tensor is read off its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import torch.compiler
import torch.fx._symbolic_trace
import torch.overrides

from graphlift import rules
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.folding import as_host
from graphlift.variables.graph_calls import as_graph_argument, graph_call
from graphlift.variables.slots import operators
from graphlift.variables.symbolic import SymNodeVariable
from graphlift.variables.tensor import TensorVariable
from graphlift.variables.torch_functions import fold_call, torch_model

Args = Sequence[VariableTracker]
Kwargs = Mapping[str, VariableTracker]
_C: Final[Any] = torch._C
_jit: Final[Any] = torch.jit

# --- the process -----------------------------------------------------------------------------------

#: Compared as a whole by every entry, or fixed for the life of a process.
_STATE: Final = (
    torch.are_deterministic_algorithms_enabled,
    torch.compiled_with_cxx11_abi,
    torch.get_autocast_cpu_dtype,
    torch.get_autocast_dtype,
    torch.get_autocast_gpu_dtype,
    torch.get_default_device,
    torch.get_default_dtype,
    torch.get_float32_matmul_precision,
    torch.is_autocast_cache_enabled,
    torch.is_autocast_cpu_enabled,
    torch.is_autocast_enabled,
    torch.is_deterministic_algorithms_warn_only_enabled,
    torch.is_grad_enabled,
    torch.is_inference_mode_enabled,
    torch.is_vulkan_available,
    torch.backends.mps.is_available,
    torch.cuda.is_available,
    torch.cuda.device_count,
    torch.distributed.is_available,
    torch.xpu.is_available,
    _C._get_privateuse1_backend_name,
    _C._is_any_autocast_enabled,
    _C._is_autocast_available,
    _C._is_torch_function_enabled,
    _C._is_torch_function_mode_enabled,
    _C._len_torch_function_stack,
)

#: Pure functions of constants.
_PURE: Final = (
    torch.broadcast_shapes,
    torch.can_cast,
    torch.promote_types,
    torch.finfo,
    torch.iinfo,
)


def _of_state(function: Any) -> None:
    fold = fold_call(function)

    @torch_model(function)
    def answer(tx: Tx, args: Args, kwargs: Kwargs) -> Var:
        # Needed by itself where no operation of the graph reads the state anyway.
        tx.capture.assumptions.add("torch_state", None, (tx.capture.torch_state,), tx)
        found: Var = fold(tx, args, kwargs)
        return found


for _function in _STATE:
    _of_state(_function)

for _function in _PURE:
    torch_model(_function)(fold_call(_function))


def _named(part: str, name: str) -> list[Any]:
    """A function of a part of torch, where this version has it."""
    function = getattr(getattr(torch, part, None), name, None)
    return [] if function is None else [function]


def _always(value: object, *functions: Any) -> None:
    """These functions answer `value` inside captured code, whatever they are asked."""

    @torch_model(*functions)
    def answer(tx: Tx, args: Args, kwargs: Kwargs) -> Var:
        return tx.make.constant(value)


_always(
    True,
    rules.is_compiling,
    torch.compiler.is_compiling,
    torch.compiler.is_dynamo_compiling,
    torch._utils.is_compiling,
)
_always(
    False,
    torch.compiler.is_exporting,
    _jit.is_scripting,
    _jit.is_tracing,
    torch.fx._symbolic_trace.is_fx_symbolic_tracing,
    torch.fx._symbolic_trace.is_fx_tracing,
    *_named("cuda", "is_current_stream_capturing"),
    *_named("xpu", "is_current_stream_capturing"),
    torch.is_distributed,
    torch.is_storage,
    _C._is_tracing,
)
_always(None, _C._get_tracing_state, _C._log_api_usage_once, _C._log_api_usage_metadata)


@torch_model(rules.graph_break)
def _graph_break(tx: Tx, args: Args, kwargs: Kwargs) -> Var:
    given = [*args, *kwargs.values()]
    tx.fail(Reason.USER_BREAK, str(as_host(tx, given[0], "the message of a break")) if given else "")


@torch_model(_jit.annotate)
def _annotate(tx: Tx, args: Args, kwargs: Kwargs) -> Var:
    given = dict(zip(("the_type", "the_value"), args, strict=False)) | dict(kwargs)
    return given["the_value"]


# --- symbolic numbers ---------------------------------------------------------------------------------

_SYM_FUNCTIONS: Final[tuple[Any, ...]] = (
    torch.sym_float,
    torch.sym_int,
    torch.sym_max,
    torch.sym_min,
    torch.sym_not,
    torch.sym_sqrt,
    torch.sym_sum,
)


def _of_numbers(function: Any) -> None:
    fold = fold_call(function)

    @torch_model(function)
    def answer(tx: Tx, args: Args, kwargs: Kwargs) -> Var:
        if any(type(arg.realize(tx)) is SymNodeVariable for arg in args):
            return graph_call(tx, function, args, kwargs)
        folded: Var = fold(tx, args, kwargs)
        return folded


for _function in _SYM_FUNCTIONS:
    _of_numbers(_function)


@torch_model(torch._check, torch._check_not_implemented, torch._check_type, torch._check_value)
def _check(tx: Tx, args: Args, kwargs: Kwargs) -> Var:
    """Nothing where the condition holds; CPython runs a check that fails, and finds the words."""
    condition = args[0] if args else kwargs["cond"]
    if not operators.is_true(tx, condition):
        tx.fail(Reason.EXCEPTION, "a check of torch's that does not hold")
    return tx.make.constant(None)


# --- overloading ------------------------------------------------------------------------------------


@torch_model(_C._has_torch_function, _C._has_torch_function_unary, _C._has_torch_function_variadic)
def _has_torch_function(tx: Tx, args: Args, kwargs: Kwargs) -> Var:
    """Tensors of the user's classes never become values of the graph, so only other objects could have it."""
    for arg in args:
        _check_plain(tx, arg.realize(tx))
    return tx.make.constant(False)


def _check_plain(tx: Tx, var: VariableTracker) -> None:
    if type(var) is TensorVariable or var.is_constant():
        return
    items = var.unpack(tx)
    if items is not None:
        for item in items:
            _check_plain(tx, item.realize(tx))
    elif hasattr(var.python_type(tx), "__torch_function__"):
        tx.fail(Reason.UNSUPPORTED_VALUE, f"an object of class {var.python_type(tx).__qualname__}")


# --- tensors ----------------------------------------------------------------------------------------


@torch_model(torch.is_tensor)
def _is_tensor(tx: Tx, args: Args, kwargs: Kwargs) -> Var:
    obj = args[0] if args else kwargs["obj"]
    return tx.make.constant(issubclass(obj.realize(tx).python_type(tx), torch.Tensor))


def _of_tensor(function: Any) -> None:
    name = function.__name__

    @torch_model(function)
    def answer(tx: Tx, args: Args, kwargs: Kwargs) -> Var:
        tensor = args[0] if args else kwargs["input"]
        rest = {key: value for key, value in kwargs.items() if key != "input"}
        var = tensor.realize(tx)
        if type(var) is not TensorVariable:
            tx.fail(Reason.UNSUPPORTED_OPERATION, f"torch.{name} of {var!r}")
        return var.call_method(tx, name, args[1:], rest)


for _question in (
    torch.get_device,
    torch.is_complex,
    torch.is_conj,
    torch.is_floating_point,
    torch.is_inference,
    torch.is_neg,
    torch.is_same_size,
    torch.is_signed,
    torch.numel,
):
    _of_tensor(_question)


@torch_model(torch.result_type)
def _result_type(tx: Tx, args: Args, kwargs: Kwargs) -> Var:
    """Depends on dtype, rank and whether an operand is a Python number."""
    samples = [_sample(tx, arg) for arg in [*args, *kwargs.values()]]
    return tx.make.constant(torch.result_type(*samples))


def _sample(tx: Tx, arg: VariableTracker) -> Any:
    var = arg.realize(tx)
    if type(var) is not TensorVariable:
        return as_graph_argument(tx, var)
    meta = var.value.meta
    return torch.empty((1,) * len(meta.shape), dtype=meta.dtype)
