"""Compiled modules: a twin that shares the original's state and is of a subclass made for it.

The twin's ``__dict__`` is the original's, so parameters, hooks, mode and state_dict are one and the same;
``__class__`` is the original's class, both ways, so class changes (parametrizations) reach both. What the
twin adds (the original, how it was compiled) is kept outside the dictionary. ``self`` inside `forward` is
the original.
"""

from __future__ import annotations

import copy
import types
import weakref
from collections.abc import Callable
from typing import Any, Final

import torch
from torch.nn.modules import module as nn_module

from graphlift.compiled.settings import Settings

Compile = Callable[[types.FunctionType, Settings], Any]

_set_class = object.__dict__["__class__"].__set__
_HOOKS: Final = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS: Final = (
    nn_module._global_forward_hooks,
    nn_module._global_forward_pre_hooks,
    nn_module._global_backward_hooks,
    nn_module._global_backward_pre_hooks,
)


class Twin:
    """What a twin knows beyond its original's state.

    Attributes:
        original: the module that was compiled.
        settings, compile, rebuild: how; see `compile_module`.
    """

    def __init__(
        self, original: torch.nn.Module, settings: Settings, compile: Compile, rebuild: Callable[..., Any]
    ) -> None:
        self.original = original
        self.settings = settings
        self.compile = compile
        self.rebuild = rebuild
        self._forward: Any = None
        self._plain: types.FunctionType | None = None
        self._through_hooks: Any = None

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the module: `forward` itself where nothing stands around it, else the whole call."""
        original = self.original
        forward = type(original).forward
        if type(forward) is not types.FunctionType or _is_wrapped(original):
            return self._call_whole()(original, *args, **kwargs)
        if forward is not self._plain:
            self._plain, self._forward = forward, self.compile(forward, self.settings)
        return self._forward(original, *args, **kwargs)

    def _call_whole(self) -> Any:
        if self._through_hooks is None:
            self._through_hooks = self.compile(_driver(), self.settings)
        return self._through_hooks

    def report(self) -> list[Any]:
        """One record a capture, oldest first."""
        compiled = [made for made in (self._forward, self._through_hooks) if made is not None]
        return sorted((record for made in compiled for record in made.report()), key=lambda r: r.capture_id)


def _is_wrapped(module: torch.nn.Module) -> bool:
    """Whether calling the module does more than calling its class's `forward`."""
    own = module.__dict__
    if type(module).__call__ is not torch.nn.Module.__call__ or "forward" in own:
        return True
    if own.get("_compiled_call_impl") is not None:
        return True
    return any(own[name] for name in _HOOKS) or any(_GLOBAL_HOOKS)


def _driver() -> types.FunctionType:
    """A function that calls a module; its code object is new, so that its cache is the module's own."""

    def call_module(module: Any, *args: Any, **kwargs: Any) -> Any:
        return module(*args, **kwargs)

    code = call_module.__code__.replace(co_name="call_module")
    return types.FunctionType(code, globals(), "call_module")


#: Twin classes hold their originals' classes, so they may be held but weakly from here.
_twin_classes: weakref.WeakKeyDictionary[type, weakref.ref[type]] = weakref.WeakKeyDictionary()


def _twin_class(cls: type[torch.nn.Module]) -> type[torch.nn.Module]:
    """The subclass for twins of `cls`, the same one as long as it lives."""
    known = _twin_classes.get(cls)
    made = known() if known is not None else None
    if made is None:
        made = _make_twin_class(cls)
        _twin_classes[cls] = weakref.ref(made)
    return made


def _make_twin_class(cls: type[torch.nn.Module]) -> type[torch.nn.Module]:
    body: dict[str, Any] = {
        "__slots__": ("_graphlift_twin",),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__call__": _call,
        "__class__": property(_get_class, _change_class),
        "__reduce_ex__": _reduce_ex,
        "__deepcopy__": _deepcopy,
        "report": lambda self: self._graphlift_twin.report(),
        "_orig_mod": property(lambda self: self._graphlift_twin.original),
    }
    metaclass: Any = type(cls)
    made: type[torch.nn.Module] = metaclass(cls.__name__, (cls,), body)
    return made


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self._graphlift_twin.call(args, kwargs)


def _get_class(self: Any) -> type:
    cls = type(self._graphlift_twin.original)
    if type(self).__mro__[1] is not cls:
        _set_class(self, _twin_class(cls))
    return cls


def _change_class(self: Any, cls: type) -> None:
    self._graphlift_twin.original.__class__ = cls
    _set_class(self, _twin_class(cls))


def _wishes(twin: Twin) -> dict[str, Any]:
    settings = twin.settings
    return {
        "backend": settings.backend,
        "mode": settings.mode,
        "options": settings.options,
        "fullgraph": settings.fullgraph,
        "dynamic": settings.dynamic,
    }


def _reduce_ex(self: Any, protocol: int) -> Any:
    twin = self._graphlift_twin
    return twin.rebuild, (twin.original, _wishes(twin))


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    twin = self._graphlift_twin
    return compile_module(copy.deepcopy(twin.original, memo), twin.settings, twin.compile, twin.rebuild)


def compile_module(
    original: torch.nn.Module, settings: Settings, compile: Compile, rebuild: Callable[..., Any]
) -> Any:
    """The twin of a module; the module itself is left as it was.

    Arguments:
        compile: compiles a function under the settings.
        rebuild: ``rebuild(original, wishes)`` compiles an unpickled module anew; importable by name.
    """
    twin_class = _twin_class(type(original))
    twin: Any = twin_class.__new__(twin_class)
    object.__setattr__(twin, "__dict__", original.__dict__)
    twin_class.__dict__["_graphlift_twin"].__set__(twin, Twin(original, settings, compile, rebuild))
    return twin


def original_of(model: torch.nn.Module) -> torch.nn.Module:
    """The module behind a twin, or the module itself."""
    found = twin_of(model)
    return model if found is None else found.original


def twin_of(model: Any) -> Twin | None:
    """What a compiled module knows of itself; None for other objects."""
    descriptor = type(model).__dict__.get("_graphlift_twin")
    return None if descriptor is None else descriptor.__get__(model)
