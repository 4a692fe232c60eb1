"""`compile`: from any kind of callable to a compiled one of the same kind."""

from __future__ import annotations

import copy
import functools
import inspect
import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

import torch

from graphlift import _C, interop, verification
from graphlift.backends import check_name
from graphlift.compiled.context import Context, new_context, records_of
from graphlift.compiled.module import compile_module, original_of
from graphlift.compiled.objects import compile_object, object_behind
from graphlift.compiled.settings import Settings, settings_for
from graphlift.rules import mark_of

F = TypeVar("F")

_WRAPPED = _C.CompiledFunction.__dict__["__wrapped__"]
_NOT_FRAMES = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@overload
def compile(
    model: F,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
    verify: bool = False,
) -> F: ...
@overload
def compile(
    model: None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
    verify: bool = False,
) -> Callable[[F], F]: ...
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
    verify: bool = False,
) -> Any:
    """Make a callable whose tensor work is captured as graphs and run by a backend.

    Works as a function and, called without `model`, as a decorator. The kind of callable is kept:
    functions, methods (also static and class methods and properties), partials, callable objects and
    modules; classes, builtins, generator and coroutine functions are given back as they are.

    Arguments:
        model: what to compile; it is not changed.
        fullgraph: raise `exc.Unsupported` where the graph would have to be cut.
        dynamic: True makes all tensor sizes symbolic, False none, None those seen to change.
        backend: a name (see `list_backends`) or ``backend(graph_module, example_inputs) -> callable``.
        mode: a mode of the backend, e.g. ``"max-autotune"`` of ``"inductor"``.
        options: options of the backend; not together with `mode`.
        disable: give `model` back as it is.
        verify: at each call run plain Python, too, on copies of all that the call can reach, and compare:
            results, changes, identity and aliasing, errors. Slow, for finding out who is wrong.

    Raises:
        TypeError: `model` is not callable, or an argument has the wrong type.
        ValueError: both `mode` and `options` are given, or the backend's name is unknown.
        exc.VerificationError: (at calls, under `verify`) the compiled run differs from the plain one.
    """
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
            verify=verify,
        )
    if disable:
        return model
    check_name(backend)
    return _wrap(model, settings_for(backend, mode, options, fullgraph, dynamic, verify))


def _wrap(model: Any, settings: Settings) -> Any:
    model = _beneath(model)
    if mark_of(model) == "skip" or interop.is_disabled(model):
        return model
    if isinstance(model, torch.nn.Module):
        return compile_module(original_of(model), settings, compile_function, rebuild)
    if isinstance(model, types.FunctionType):
        return compile_function(model, settings)
    if isinstance(model, types.MethodType):
        return types.MethodType(_wrap(model.__func__, settings), model.__self__)
    if isinstance(model, (staticmethod, classmethod)):
        return type(model)(_wrap(model.__func__, settings))
    if isinstance(model, property):
        fget, fset, fdel = (part and _wrap(part, settings) for part in (model.fget, model.fset, model.fdel))
        of_getter = model.__doc__ == getattr(model.fget, "__doc__", None)  # then it is taken from there again
        return type(model)(fget, fset, fdel, None if of_getter else model.__doc__)
    if isinstance(model, functools.partial):
        return _wrap_partial(model, settings)
    if not callable(model):
        raise TypeError(f"graphlift.compile takes a callable, not {type(model).__name__}")
    if isinstance(model, type):
        return model
    return compile_object(model, settings, compile_function, rebuild)


def _beneath(model: Any) -> Any:
    """What an already compiled object stands for, whoever compiled it; any other object is itself."""
    if isinstance(model, _C.CompiledFunction):
        return _WRAPPED.__get__(model)
    found = interop.uncompiled(object_behind(model))
    return _WRAPPED.__get__(found) if isinstance(found, _C.CompiledFunction) else found


def _wrap_partial(model: functools.partial[Any], settings: Settings) -> functools.partial[Any]:
    """The same partial, also its class and attributes, of the compiled function."""
    made: Any = copy.copy(model)
    made.__setstate__((_wrap(model.func, settings), model.args, model.keywords, dict(vars(model))))
    return made  # type: ignore[no-any-return]


def compile_function(function: types.FunctionType, settings: Settings) -> Any:
    """The compiled counterpart of a Python function."""
    if function.__code__.co_flags & _NOT_FRAMES:
        return function
    context = new_context(settings)
    kind: Any = verification.VerifiedFunction if settings.verify else _C.CompiledFunction
    compiled = kind(function, settings, context.capture_call, context)
    compiled.report = functools.partial(records_of, context)
    weakref.finalize(compiled, Context.retire, context).atexit = False
    return compiled


def rebuild(original: Any, wishes: dict[str, Any]) -> Any:
    """Compile what was copied, unpickled or loaded as it was compiled before."""
    return compile(original, **wishes)
