"""Compiled callable objects: stand-ins whose ``__call__`` is compiled; all else is the object's own."""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Callable
from typing import Any, Final

from graphlift import _C
from graphlift.compiled.settings import Settings
from graphlift.variables import compiled_callables

#: Special methods that are the stand-in's own: how it is made, copied, called and how attributes are reached.
_OWN: Final = frozenset(
    f"__{name}__"
    for name in (
        "call", "class", "class_getitem", "copy", "deepcopy", "del", "delattr", "dict", "doc", "getattr",
        "getattribute", "getnewargs", "getnewargs_ex", "getstate", "init", "init_subclass", "instancecheck",
        "module", "new", "reduce", "reduce_ex", "repr", "set_name", "setattr", "setstate", "sizeof", "slots",
        "subclasscheck", "subclasshook", "weakref", "wrapped",
    )
)  # fmt: skip


class CompiledObject:
    """Stands for a callable object: same attributes, class (for `isinstance`) and special methods."""

    __slots__ = ("__weakref__", "_call", "_rebuild", "_settings", "_target")

    def __init__(self, target: Any, call: Any, settings: Settings, rebuild: Callable[..., Any]) -> None:
        for name, value in zip(self._names, (call, rebuild, settings, target), strict=True):
            object.__setattr__(self, name, value)

    _names = __slots__[1:]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self._target, *args, **kwargs)

    @property
    def __wrapped__(self) -> Any:
        return self._target

    def report(self) -> Any:
        """One record a capture, oldest first."""
        return self._call.report()

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

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._rebuild, (self._target, self._settings.wishes())

    def __copy__(self) -> Any:
        return self._rebuild(copy.copy(self._target), self._settings.wishes())

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = copy.deepcopy(self._target, memo)
        known = memo.get(id(self))
        return self._rebuild(copied, self._settings.wishes()) if known is None else known


def compile_object(
    target: Any,
    settings: Settings,
    compile: Callable[[types.FunctionType, Settings], Any],
    rebuild: Callable[..., Any],
) -> Any:
    """The stand-in of a callable object; the object itself where its class is not called by Python code.

    Arguments:
        compile: compiles a function under the settings.
        rebuild: ``rebuild(target, wishes)`` compiles a copied object anew; importable by name.
    """
    call = inspect.getattr_static(type(target), "__call__")
    if isinstance(call, _C.CompiledFunction):
        call = call.__wrapped__
    if not isinstance(call, types.FunctionType):
        return target
    stand_in = type(type(target).__name__, (CompiledObject,), _special_methods(type(target)))
    return stand_in(target, compile(call, settings), settings, rebuild)


def object_behind(model: Any) -> Any:
    """The object that a stand-in stands for, or `model` itself."""
    return _target_of(model) if issubclass(type(model), CompiledObject) else model


_target_of: Final = CompiledObject.__dict__["_target"].__get__


def _special_methods(cls: type) -> dict[str, Any]:
    """The special methods that objects of a class have beyond those of any object; operators ask the type."""
    body: dict[str, Any] = {"__slots__": (), "__module__": cls.__module__, "__doc__": cls.__doc__}
    for owner in cls.__mro__[:-1]:
        for name, value in vars(owner).items():
            if name.startswith("__") and name.endswith("__") and name not in _OWN and name not in body:
                body[name] = _forwarded(name) if callable(value) else value
    return body


def _forwarded(name: str) -> Callable[..., Any]:
    def forwarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        target = _target_of(self)
        result = getattr(type(target), name)(target, *args, **kwargs)
        return self if result is target else result

    return forwarded


compiled_callables.stands_in(CompiledObject, object_behind)
