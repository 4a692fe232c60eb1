"""`compile`: from any kind of callable to a compiled one of the same kind."""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

import torch

from graphlift import _C
from graphlift.compiled.context import Context, new_context, records_of
from graphlift.compiled.module import compile_module, original_of
from graphlift.compiled.settings import Settings, settings_for

F = TypeVar("F")

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

    Raises:
        TypeError: `model` is not callable, or an argument has the wrong type.
        ValueError: both `mode` and `options` are given, or the backend's name is unknown.
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
        )
    if disable:
        return model
    return _wrap(model, settings_for(backend, mode, options, fullgraph, dynamic))


def _wrap(model: Any, settings: Settings) -> Any:
    if isinstance(model, _C.CompiledFunction):
        model = model.__wrapped__
    if isinstance(model, torch.nn.Module):
        return compile_module(original_of(model), settings, compile_function, rebuild_module)
    if isinstance(model, types.FunctionType):
        return compile_function(model, settings)
    if isinstance(model, types.MethodType):
        return types.MethodType(_wrap(model.__func__, settings), model.__self__)
    if isinstance(model, (staticmethod, classmethod)):
        return type(model)(_wrap(model.__func__, settings))
    if isinstance(model, property):
        fget, fset, fdel = (part and _wrap(part, settings) for part in (model.fget, model.fset, model.fdel))
        return property(fget, fset, fdel, model.__doc__)
    if isinstance(model, functools.partial):
        return functools.partial(_wrap(model.func, settings), *model.args, **model.keywords)
    if not callable(model):
        raise TypeError(f"graphlift.compile takes a callable, not {type(model).__name__}")
    if isinstance(model, type):
        return model
    return _wrap_object(model, settings)


def compile_function(function: types.FunctionType, settings: Settings) -> Any:
    """The compiled counterpart of a Python function."""
    if function.__code__.co_flags & _NOT_FRAMES:
        return function
    context = new_context(settings)
    compiled = _C.CompiledFunction(function, settings, context.capture_call, context)
    compiled.report = functools.partial(records_of, context)  # type: ignore[attr-defined]
    weakref.finalize(compiled, Context.retire, context).atexit = False
    return compiled


def rebuild_module(original: torch.nn.Module, wishes: dict[str, Any]) -> Any:
    """Compile a module that was unpickled or loaded, as it was compiled before."""
    return compile(original, **wishes)


class CompiledObject:
    """Stands for a callable object: its ``__call__`` is compiled, everything else is the object's own."""

    __slots__ = ("__weakref__", "_call", "_target")

    def __init__(self, target: Any, call: Any) -> None:
        object.__setattr__(self, "_target", target)
        object.__setattr__(self, "_call", call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self._target, *args, **kwargs)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._target, name)

    def __repr__(self) -> str:
        return f"<compiled {self._target!r}>"


def _wrap_object(model: Any, settings: Settings) -> Any:
    call = inspect.getattr_static(type(model), "__call__")
    if not isinstance(call, types.FunctionType):
        return model
    return CompiledObject(model, compile_function(call, settings))
