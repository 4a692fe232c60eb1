"""What an entry's code does when its graph fails: the segment again, by plain Python, from its entry.

Nothing of the ledger was done then, so plain Python does what it would have done: the error comes at the
user's line, with the effects before it done and the user's own handlers active. Whether that may be is asked
of a `Failure`.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from graphlift import _C
from graphlift.bytecode.emit import Emitter
from graphlift.bytecode.instruction import Label
from graphlift.bytecode.verbs import Verbs

#: Settings under which nothing is ever captured.
_NEVER = object()
#: Locals of an entry: the error of its graph, and the state of generators before it.
_ERROR = ".error"
_SAVED = ".random_state"


def plainly(function: FunctionType) -> _C.CompiledFunction:
    """A target for a jump that runs `function` as it is, hook off."""
    return _C.CompiledFunction(function, _NEVER, _decline)


def _decline(compiled: _C.CompiledFunction, params: tuple[Any, ...]) -> Any:
    return NotImplemented


def emit_save(failure: str) -> Verbs:
    """Code that keeps the state of the generators that the graph draws from."""
    emitter = Emitter()
    emitter.load_global(failure)
    emitter.load_method("random_state")
    emitter.call(0)
    emitter.store_fast(_SAVED)
    return emitter


def emit_handler(
    failed: Label, failure: str, saves: bool, load_function: Any, params: tuple[str, ...]
) -> Verbs:
    """Code that stands at `failed`, with the exception on the stack.

    It leaves for the plain function if the `Failure` says so; else the exception goes on.

    Arguments:
        failure: the global name of the `Failure`.
        saves: whether `emit_save` stands before the graph.
        load_function: emits the load of the function whose segment this is.
        params: its parameters, which are locals.
    """
    emitter = Emitter()
    other = Label("goes on")
    emitter.place(failed)
    emitter.push_exc_info()
    emitter.load_const(Exception)
    emitter.check_exc_match()
    emitter.pop_jump_if(other, False)
    _ask(emitter, failure, saves)
    emitter.pop_jump_if(other, False)
    emitter.pop()
    emitter.pop_except()
    _leave(emitter, load_function, params)
    emitter.place(other)
    emitter.swap(2)
    emitter.pop_except()
    emitter.reraise()
    return emitter


def _ask(emitter: Verbs, failure: str, saves: bool) -> None:
    """exception -> exception, whether to run again"""
    emitter.copy(1)
    emitter.store_fast(_ERROR)
    emitter.prepare_call()
    emitter.load_global(failure)
    emitter.callable_ready()
    emitter.load_fast(_ERROR)
    if saves:
        emitter.load_fast(_SAVED)
    else:
        emitter.load_const(None)
    emitter.call(2)
    # An error that leaves would hold itself through this frame.
    emitter.delete_fast(_ERROR)


def _leave(emitter: Verbs, load_function: Any, params: tuple[str, ...]) -> None:
    """Jump to the plain function."""
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
