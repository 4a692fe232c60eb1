"""Each part of torch's global state, changed between two calls, is seen by the very next call."""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import graphlift
from graphlift.rules.torch_names import AUTOCAST_DEVICES
from graphlift.testing import CompileCounter


@contextlib.contextmanager
def setting(read, write, value):
    former = read()
    assert former != value
    write(value)
    try:
        yield
    finally:
        write(former)


def flag(name, value, write=None):
    read = getattr(torch._C, f"_get_{name}")
    return lambda: setting(read, getattr(torch._C, write or f"_set_{name}"), value)


def precision(backend, operation, value):
    return lambda: setting(
        lambda: torch._C._get_fp32_precision_getter(backend, operation),
        lambda to: torch._C._set_fp32_precision_setter(backend, operation, to),
        value,
    )


@contextlib.contextmanager
def matmul_precision():
    """By torch's public setter, which does not put back all that it changed."""
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision("highest")
        for backend in ("mkldnn", "cuda") if torch.backends.cuda.is_built() else ("mkldnn",):
            torch._C._set_fp32_precision_setter(backend, "matmul", "none")


@contextlib.contextmanager
def cast_on(device):
    """Autocast for a device that need not be there."""
    torch.set_autocast_enabled(device, True)
    try:
        yield
    finally:
        torch.set_autocast_enabled(device, False)


class Doubling(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 2 if function is torch.mm else result


class Tripling(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 3 if function is torch.ops.aten.mm.default else result


def program(x):
    return torch.mm(x, x) + torch.full((2, 2), 0.5, device=x.device)


#: Which change, and whether a capture of its own is to be seen (frames under modes may be left to Python).
STATES = {
    "grad": torch.no_grad,
    "inference": torch.inference_mode,
    "default dtype": lambda: setting(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "deterministic": lambda: setting(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
    ),
    "deterministic fill": flag("deterministic_fill_uninitialized_memory", False),
    "autocast cpu": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast cuda": lambda: cast_on("cuda"),
    "autocast xpu": lambda: cast_on("xpu"),
    "autocast mps": lambda: cast_on("mps"),
    "autocast mtia": lambda: cast_on("mtia"),
    "mkldnn": flag("mkldnn_enabled", False),
    "mkldnn deterministic": flag("mkldnn_deterministic", True),
    "mkldnn conv precision": precision("mkldnn", "conv", "bf16"),
    "mkldnn rnn precision": precision("mkldnn", "rnn", "bf16"),
    "mkldnn matmul precision": precision("mkldnn", "matmul", "bf16"),
    "matmul precision": matmul_precision,
    "cudnn": flag("cudnn_enabled", False),
    "cudnn benchmark": flag("cudnn_benchmark", True),
    "cudnn deterministic": flag("cudnn_deterministic", True),
    "nnpack": flag("nnpack_enabled", False),
    "flash attention": flag("flash_sdp_enabled", False, "_set_sdp_use_flash"),
    "math attention": flag("math_sdp_enabled", False, "_set_sdp_use_math"),
    "saving attention": flag("mem_efficient_sdp_enabled", False, "_set_sdp_use_mem_efficient"),
    "cudnn attention": flag("cudnn_sdp_enabled", False, "_set_sdp_use_cudnn"),
    "half accumulation": flag("cublas_allow_fp16_accumulation", True),
    "threads": lambda: setting(torch.get_num_threads, torch.set_num_threads, torch.get_num_threads() + 1),
}

#: Under these a frame may be left to Python; only what comes out of it tells.
MODES = {
    "default device": lambda: torch.device("meta"),
    "function mode": Doubling,
    "dispatch mode": Tripling,
    "functions of subclasses off": torch._C.DisableTorchFunctionSubclass,
}


@pytest.fixture
def counter():
    graphlift.reset()
    return CompileCounter()


def same(got, wanted):
    assert (got.dtype, got.device, got.requires_grad, got.is_inference()) == (
        wanted.dtype, wanted.device, wanted.requires_grad, wanted.is_inference(),
    )  # fmt: skip
    assert got.is_meta or torch.equal(got, wanted)


@pytest.mark.parametrize("name", [*STATES, *MODES])
def test_each_part_of_the_state_is_seen_by_the_next_call(counter, name):
    x = torch.ones(2, 2, requires_grad=True)
    compiled = graphlift.compile(program, backend=counter)
    same(compiled(x), program(x))
    same(compiled(x), program(x))
    assert counter.frame_count == 1
    with (STATES.get(name) or MODES[name])():
        same(compiled(x), program(x))
        inside = counter.frame_count
        same(compiled(x), program(x))
    assert inside == 2 or name in MODES
    same(compiled(x), program(x))
    assert counter.frame_count == inside  # both sides are kept


@pytest.mark.parametrize("device", AUTOCAST_DEVICES, ids="to {}".format)
def test_the_dtype_of_each_devices_autocast_is_seen(counter, device):
    x = torch.ones(2, 2)
    compiled = graphlift.compile(program, backend=counter)
    with cast_on(device):
        same(compiled(x), program(x))
        former = torch.get_autocast_dtype(device)
        other = torch.float16 if former is torch.bfloat16 else torch.bfloat16
        with setting(lambda: former, lambda dtype: torch.set_autocast_dtype(device, dtype), other):
            same(compiled(x), program(x))
            assert counter.frame_count == 2
        same(compiled(x), program(x))
    assert counter.frame_count == 2


def test_the_default_device_of_factories_is_seen(counter):
    compiled = graphlift.compile(lambda: torch.ones(2) + 1, backend=counter)
    assert compiled().device.type == "cpu"
    with torch.device("meta"):
        assert compiled().device.type == "meta"
    assert compiled().device.type == "cpu"


def test_functorch_levels_are_seen(counter):
    """A function captured outside gives, inside a transform, what the transform makes of it; and back."""
    compiled = graphlift.compile(lambda x: (x.sum() * x).sum(), backend=counter)
    x = torch.arange(6.0).view(2, 3)
    wanted = torch.tensor(225.0)
    assert torch.equal(compiled(x), wanted)
    assert torch.equal(torch.vmap(compiled)(x), torch.tensor([9.0, 144.0]))
    assert torch.equal(torch.func.grad(compiled)(x), torch.full((2, 3), 30.0))
    assert torch.equal(torch.vmap(torch.func.grad(compiled))(x), torch.tensor([[6.0] * 3, [24.0] * 3]))
    assert torch.equal(compiled(x), wanted)
