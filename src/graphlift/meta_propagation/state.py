"""The part of torch's global state that decides what an operation gives.

Owns `TorchState`: one reading of that state as a comparable key, and the setters through which a
capture changes it for real (so that rules, rehearsals and polyfills all see the same), each of which the
capture's heap can take back. Knows no operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from graphlift import _C
from graphlift.guards import torch_readers
from graphlift.rules.torch_names import AUTOCAST_DEVICES

# The reader of the state is set up where guards are.
assert torch_readers.connected


def _autocast() -> tuple[Any, ...]:
    kinds = [kind for kind in AUTOCAST_DEVICES if torch.is_autocast_enabled(kind)]
    on = [(kind, torch.get_autocast_dtype(kind)) for kind in kinds]
    return (*on, torch.is_autocast_cache_enabled())


class TorchState:
    """Reading of the global state at one moment.

    Attributes:
        key: everything below as one hashable value.
        grad: whether operations are recorded for gradients.
        inference: whether inference mode is on.
        autocast: whether autocast is on for any device.
        default_dtype: what factories and Python floats become.
        default_device: the device of factories, or None for the CPU that nobody chose.
        foreign: a sentence when some mode is active under which no operation can be foretold.
    """

    __slots__ = (
        "autocast",
        "default_device",
        "default_dtype",
        "foreign",
        "grad",
        "inference",
        "key",
    )

    def __init__(self) -> None:
        self.inference: Final = torch.is_inference_mode_enabled()
        self.grad: Final = torch.is_grad_enabled() and not self.inference
        cast = _autocast()
        self.autocast: Final = len(cast) > 1
        self.default_dtype: Final = torch.get_default_dtype()
        self.default_device, self.foreign = _modes()
        self.key: Final = (
            self.inference,
            self.grad,
            cast,
            self.default_dtype,
            self.default_device,
            _C.torch_state(),
        )


def _modes() -> tuple[torch.device | None, str | None]:
    device = None
    if torch._C._len_torch_function_stack():
        for mode in _get_current_function_mode_stack():  # type: ignore[no-untyped-call]
            if type(mode) is not DeviceContext:
                return None, "a torch function mode is active"
            device = torch.device(mode.device)
    if torch._C._len_torch_dispatch_stack():
        return device, "a torch dispatch mode is active"
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return device, "a functorch transform is active"
    if torch._C._get_tracing_state() is not None:
        return device, "torch.jit is tracing"
    return device, None


#: Functions that set one global, as (function, reader of the former value).
SETTERS: Final[dict[Any, Callable[..., Any]]] = {
    torch._C._set_grad_enabled: torch.is_grad_enabled,
    torch.set_autocast_enabled: torch.is_autocast_enabled,
    torch.set_autocast_dtype: torch.get_autocast_dtype,
    torch.set_autocast_cache_enabled: torch.is_autocast_cache_enabled,
}

#: Functions that move a counter, with the one that moves it back.
COUNTERS: Final[dict[Any, Callable[..., Any]]] = {
    torch.autocast_increment_nesting: torch.autocast_decrement_nesting,
    torch.autocast_decrement_nesting: torch.autocast_increment_nesting,
}


def moved_counters(operations: Iterable[Any]) -> list[Any]:
    """Calls, one a step, that move the counters as some operations of a graph move them in sum."""
    moves = [operation.target for operation in operations if operation.target in COUNTERS]
    left: list[Any] = []
    for function in moves:
        if left and left[-1] is COUNTERS[function]:
            left.pop()
        else:
            left.append(function)
    return left


#: Functions whose effect no operation can see.
WITHOUT_TRACE: Final[frozenset[Any]] = frozenset({torch.clear_autocast_cache})


def changes_state(operation: Any) -> bool:
    """Whether an operation of a graph does nothing but change global state."""
    target = operation.target
    return target in SETTERS or target in COUNTERS or target in WITHOUT_TRACE


def change(function: Any, args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Call a state function for real.

    Args:
        function: a key of `SETTERS` or `COUNTERS`.
        args: its arguments; the last one of a setter is the new value.

    Returns:
        the call that takes it back, as (function, arguments).
    """
    if function in COUNTERS:
        function(*args)
        return COUNTERS[function], args
    place = args[:-1]
    former = SETTERS[function](*place)
    function(*args)
    return function, (*place, former)
