"""Which state a program's code can reach beside its arguments: globals, closure cells, defaults, classes.

Read off the code objects: names that the code mentions (also as text: ``globals()["n"]``), in its own globals
and in those of every function, class and module that is found there in turn. State of Python, torch and
packages that are a door to C code is not followed.
"""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from graphlift import _C
from graphlift.rules.files import holds_state

MISSING: Final = object()


@dataclass(slots=True, eq=False)
class Place:
    """One name that holds a value.

    Attributes:
        path: how messages call it, e.g. ``global counts``.
        read: gives the value, or `MISSING`.
        write: puts a value there, or takes the name away (`MISSING`).
    """

    path: str
    read: Callable[[], Any]
    write: Callable[[Any], None]


@dataclass(slots=True, eq=False)
class Namespace:
    """Names of one module, function or class, of which those that the code mentions are places.

    Attributes:
        owner: the dictionary or the class.
        path: how messages begin.
        every: all names count, mentioned or not.
    """

    owner: Any
    path: str
    every: bool = False

    def names(self) -> list[str]:
        """Names that are there now."""
        found = self.owner.__dict__ if isinstance(self.owner, type) else self.owner
        return [name for name in list(found) if type(name) is str and not _is_pythons(name)]

    def place(self, name: str) -> Place:
        """The place of one name."""
        path = self.path + name
        if isinstance(self.owner, type):
            return _class_place(self.owner, name, path)
        return _dict_place(self.owner, name, path)


class Reach:
    """Places that code reaches; `follow` takes what is found in one, and finds more.

    Arguments:
        root: the globals whose names need no module in messages.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._names: set[str] = set()
        self._known: dict[int, Any] = {}
        self._namespaces: list[Namespace] = []
        self._placed: set[tuple[int, str]] = set()
        self._waiting: deque[Any] = deque()
        self._found: list[Place] = []

    def follow(self, code: Any) -> None:
        """Note a function, class, module or descriptor; `places` looks at it."""
        if id(code) not in self._known:
            self._known[id(code)] = code
            self._waiting.append(code)

    def places(self) -> Iterator[Place]:
        """Places not given before; ends when nothing more is found in those given."""
        while True:
            while self._waiting:
                self._look(self._waiting.popleft())
            found, self._found = self._found, []
            found += self.appeared()
            if not found:
                return
            yield from found

    def appeared(self) -> list[Place]:
        """Places of names that were not there before."""
        found = []
        for space in self._namespaces:
            for name in space.names():
                if (space.every or name in self._names) and (id(space.owner), name) not in self._placed:
                    self._placed.add((id(space.owner), name))
                    found.append(space.place(name))
        return found

    def _look(self, code: Any) -> None:
        if isinstance(code, types.FunctionType):
            self._function(code)
        elif isinstance(code, type):
            self._class(code)
        elif isinstance(code, types.ModuleType):
            if holds_state(getattr(code, "__file__", None) or "<module>"):
                self._globals(code.__dict__)
        else:
            self._follow_all(_functions_of(code))

    def _function(self, function: types.FunctionType) -> None:
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if id(cell) not in self._known:
                self._known[id(cell)] = cell
                self._found.append(_cell_place(cell, f"cell {name}"))
        if function.__dict__:
            self._space(function.__dict__, f"{function.__qualname__}.", every=True)
        if holds_state(code.co_filename):
            self._names |= names_of(code)
            self._globals(function.__globals__)
            for name in ("__defaults__", "__kwdefaults__"):
                if getattr(function, name):
                    self._found.append(_attribute_place(function, name, f"{function.__qualname__}.{name}"))

    def _class(self, cls: type) -> None:
        self._follow_all(cls.__bases__)
        module = sys.modules.get(cls.__module__)
        if not holds_state(getattr(module, "__file__", None) or "<module>") or cls.__module__ == "builtins":
            return
        if not cls.__flags__ & _HEAP_TYPE or cls.__flags__ & _IMMUTABLE_TYPE:
            return
        self._space(cls, f"class {cls.__qualname__}.")
        for value in list(cls.__dict__.values()):
            self._follow_all(_functions_of(value))

    def _globals(self, names: dict[str, Any]) -> None:
        path = "global " if names is self._root else f"global {names.get('__name__', '?')}."
        self._space(names, path)

    def _space(self, owner: Any, path: str, every: bool = False) -> None:
        key = (id(owner), "")
        if key not in self._placed:
            self._placed.add(key)
            self._namespaces.append(Namespace(owner, path, every))

    def _follow_all(self, found: Any) -> None:
        for one in found:
            self.follow(one)


_IMMUTABLE_TYPE, _HEAP_TYPE = 1 << 8, 1 << 9


def _is_pythons(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


@functools.lru_cache(maxsize=4096)
def names_of(code: types.CodeType) -> frozenset[str]:
    """Names that code mentions, its inner functions included."""
    names = set(code.co_names)
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            names |= names_of(value)
        elif isinstance(value, str) and value.isidentifier():
            names.add(value)
    return frozenset(names)


def _functions_of(value: Any) -> Iterator[Any]:
    """Functions behind a class attribute or a wrapper."""
    if isinstance(value, types.FunctionType):
        yield value
    elif isinstance(value, property):
        yield from (part for part in (value.fget, value.fset, value.fdel) if part is not None)
    elif isinstance(value, (staticmethod, classmethod, functools.partialmethod, functools.cached_property)):
        yield value.func if hasattr(value, "func") else value.__func__
    elif isinstance(value, (functools._lru_cache_wrapper, _C.CompiledFunction)):
        yield value.__wrapped__


def _dict_place(owner: dict[str, Any], name: str, path: str) -> Place:
    def write(value: Any) -> None:
        if value is MISSING:
            owner.pop(name, None)
        else:
            owner[name] = value

    return Place(path, lambda: owner.get(name, MISSING), write)


def _class_place(owner: type, name: str, path: str) -> Place:
    def write(value: Any) -> None:
        if value is not MISSING:
            type.__setattr__(owner, name, value)
        elif name in owner.__dict__:
            type.__delattr__(owner, name)

    return Place(path, lambda: owner.__dict__.get(name, MISSING), write)


def _cell_place(cell: types.CellType, path: str) -> Place:
    def read() -> Any:
        try:
            return cell.cell_contents
        except ValueError:  # an empty cell
            return MISSING

    def write(value: Any) -> None:
        if value is MISSING:
            del cell.cell_contents
        else:
            cell.cell_contents = value

    return Place(path, read, write)


def _attribute_place(owner: Any, name: str, path: str) -> Place:
    return Place(path, lambda: getattr(owner, name), lambda value: setattr(owner, name, value))
