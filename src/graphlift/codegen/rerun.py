"""What runs when a graph fails: the segment again, by plain Python, from its entry.

Nothing of the ledger was done then and no input was written, so plain Python does what it would have done:
the error comes at the user's line, with the effects before it done and the user's own handlers active. Also
decides which graphs may be run again so.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

import torch

from graphlift import _C
from graphlift.bytecode.emit import Emitter
from graphlift.bytecode.instruction import Label
from graphlift.bytecode.verbs import Verbs

#: Settings under which nothing is ever captured.
_NEVER = object()


def plainly(function: FunctionType) -> _C.CompiledFunction:
    """A target for a jump that runs `function` as it is, hook off."""
    return _C.CompiledFunction(function, _NEVER, _decline)


def _decline(compiled: _C.CompiledFunction, params: tuple[Any, ...]) -> Any:
    return NotImplemented


def may_run_again(operations: Iterable[Any], setters: Iterable[Any], counters: Iterable[Any]) -> bool:
    """Whether a failed graph leaves nothing behind but grad mode, which can be put back.

    Arguments:
        operations: the graph's.
        setters, counters: functions that change torch's global state.
    """
    states = {*setters, *counters} - {torch._C._set_grad_enabled}
    return not any(operation.random or operation.target in states for operation in operations)


def emit_handler(failed: Label, load_function: Any, params: tuple[str, ...], grad_mode: bool | None) -> Verbs:
    """Code that stands at `failed`, with the exception on the stack: leave for the plain function.

    Arguments:
        load_function: emits the load of the function whose segment this is.
        params: its parameters, which are locals.
        grad_mode: what to put grad mode back to, or None where the graph does not change it.
    """
    emitter = Emitter()
    other = Label("no error")
    emitter.place(failed)
    emitter.push_exc_info()
    emitter.load_const(Exception)
    emitter.check_exc_match()
    emitter.pop_jump_if(other, False)
    emitter.pop()
    emitter.pop_except()
    if grad_mode is not None:
        emitter.prepare_call()
        emitter.load_const(torch._C._set_grad_enabled)
        emitter.callable_ready()
        emitter.load_const(grad_mode)
        emitter.call(1)
        emitter.pop()
    emitter.prepare_call()
    emitter.load_const(_C.Jump)
    emitter.callable_ready()
    emitter.prepare_call()
    emitter.load_const(plainly)
    emitter.callable_ready()
    load_function(emitter)
    emitter.call(1)
    for name in params:
        emitter.load_fast(name)
    emitter.build_tuple(len(params))
    emitter.call(2)
    emitter.return_value()
    emitter.place(other)
    emitter.swap(2)
    emitter.pop_except()
    emitter.reraise()
    return emitter
