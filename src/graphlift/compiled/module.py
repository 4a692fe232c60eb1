"""Compiled modules: a twin that shares the original's state and is of a subclass made for it.

The twin's ``__dict__`` is the original's, so parameters, hooks, mode and state_dict are one and the same;
``__class__`` is the original's class, both ways, so class changes (parametrizations) reach both: the twin
follows as soon as it is looked at. What the twin adds (the original, how it was compiled) is kept in its
class, which is its own. ``self`` inside `forward` is the original.
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
from graphlift.variables import compiled_callables

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
        own_class: the class made for the compiled module.
    """

    own_class: type[torch.nn.Module]

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
        self._watch: Any = None

    def watch(self, module: torch.nn.Module) -> None:
        """Free the original with the compiled module: classes are freed by the garbage collector only, so the
        module's own class lets go of all that it holds when the module dies."""
        self._watch = weakref.ref(module, self._module_died)
        self.own_class = type(module)

    def _module_died(self, _: object) -> None:
        self._watch = None
        _let_go(self.own_class)

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

    def again(self, original: torch.nn.Module) -> Any:
        """Another module compiled in the same way."""
        return compile_module(original, self.settings, self.compile, self.rebuild)

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

    def call_module(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self(*args, **kwargs)

    code = call_module.__code__.replace(co_name="call_module")
    return types.FunctionType(code, globals(), "call_module")


class Twinned:
    """What all twins have beyond their original's class; first among the bases of each twin's own class.

    It adds no slots, so a twin's class may change exactly where its original's may.
    """

    __slots__ = ()

    _graphlift_twin: Twin

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A twin's class is none that the program defined: hooks of the program's classes do not run."""

    def __getattribute__(self, name: str) -> Any:
        _follow(self)
        return super().__getattribute__(name)

    @property
    def __class__(self) -> Any:
        return type(self._graphlift_twin.original)

    @__class__.setter
    def __class__(self, cls: type) -> None:
        self._graphlift_twin.original.__class__ = cls
        _follow(self)

    @property
    def _orig_mod(self) -> torch.nn.Module:
        return self._graphlift_twin.original

    def report(self) -> list[Any]:
        """One record a capture, oldest first."""
        return self._graphlift_twin.report()

    def __reduce_ex__(self, protocol: Any) -> Any:
        twin = self._graphlift_twin
        return twin.rebuild, (twin.original, twin.settings.wishes())

    def __copy__(self) -> Any:
        return self._graphlift_twin.again(copy.copy(self._graphlift_twin.original))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        twin = self._graphlift_twin
        copied = copy.deepcopy(twin.original, memo)
        # The original may have led back here, and this copy been made on the way.
        known = memo.get(id(self))
        return twin.again(copied) if known is None else known


def _follow(twin: Any) -> None:
    """Give the twin a class made for its original's, if the original's has changed."""
    present = type(twin)
    known: Twin = present._graphlift_twin
    cls = type(known.original)
    if present.__mro__[2] is not cls:
        known.own_class = _twin_class(cls, known)
        _set_class(twin, known.own_class)
        _let_go(present)


def _twin_class(cls: type[torch.nn.Module], twin: Twin) -> type[torch.nn.Module]:
    """The class of one twin. Members that `cls` keeps in C are read from the original."""
    body: dict[str, Any] = {
        "__slots__": (),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__call__": lambda _, *args, **kwargs: twin.call(args, kwargs),
        "_graphlift_twin": twin,
    }
    for owner in cls.__mro__:
        for name, value in vars(owner).items():
            if type(value) is types.MemberDescriptorType:
                body.setdefault(name, _member_of_original(value, twin.original))
    # Not through the metaclass, which might register what the program defines.
    made: type[torch.nn.Module] = type.__new__(type(cls), cls.__name__, (Twinned, cls), body)
    return made


def _let_go(cls: type) -> None:
    """Take out of a twin's class what leads to the original."""
    for name, value in list(vars(cls).items()):
        if type(value) in (types.FunctionType, property, Twin):
            type.__delattr__(cls, name)


def _member_of_original(member: Any, original: torch.nn.Module) -> property:
    return property(
        lambda _: member.__get__(original),
        lambda _, value: member.__set__(original, value),
        lambda _: member.__delete__(original),
    )


def compile_module(
    original: torch.nn.Module, settings: Settings, compile: Compile, rebuild: Callable[..., Any]
) -> Any:
    """The twin of a module; the module itself is left as it was.

    Arguments:
        compile: compiles a function under the settings.
        rebuild: ``rebuild(original, wishes)`` compiles an unpickled module anew; importable by name.
    """
    twin = Twin(original, settings, compile, rebuild)
    twin_class = _twin_class(type(original), twin)
    made: Any = twin_class.__new__(twin_class)
    object.__setattr__(made, "__dict__", original.__dict__)
    twin.watch(made)
    return made


def original_of(model: torch.nn.Module) -> torch.nn.Module:
    """The module behind a twin, or the module itself."""
    found = twin_of(model)
    return model if found is None else found.original


def twin_of(model: Any) -> Twin | None:
    """What a compiled module knows of itself; None for other objects."""
    found: Twin | None = type(model).__dict__.get("_graphlift_twin")
    return found


compiled_callables.stands_in(Twinned, original_of)
