"""Copies of objects with everything they hold, one copy for each object however often it is met.

Like `copy.deepcopy`, with three differences: instances of a class that says nothing about copying are copied
by what they hold, so no code of the program runs; what cannot be copied is shared, and only that; and
whatever code is met on the way (functions, classes) is reported, for code has state that lies elsewhere.
"""

from __future__ import annotations

import contextlib
import copy
import copyreg
import enum
import functools
import gc
import logging
import threading
import types
import warnings
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import torch

from graphlift.comparison.reading import SHARED, instance_dict, slot_names
from graphlift.verification.tensors import TensorCopies

_ATOMIC: tuple[type, ...] = (
    *SHARED,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    type(None),
    type(...),
    type(NotImplemented),
    types.CodeType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.GenericAlias,
    types.UnionType,
    property,
    staticmethod,
    classmethod,
    functools.cached_property,
    functools.partialmethod,
    enum.Enum,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
    torch.Size,
    logging.Logger,
)

#: What stands for something outside, for a run that cannot be had twice, or for results kept in C.
_UNCOPIED: tuple[type, ...] = (
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
    types.FrameType,
    types.TracebackType,
    threading.Thread,
    threading.local,
    type(threading.Lock()),
    type(threading.RLock()),
    functools._lru_cache_wrapper,
)


class Copier:
    """Copies for one verified call.

    Arguments:
        code: called with each function and class that is met, once or more.
        shared: called with each object that is left shared because it cannot be copied.

    Attributes:
        memo: identity of an original -> its copy, as `copy.deepcopy` has it.
        pairs: (original, copy) of what was copied; keeps the originals alive.
    """

    def __init__(self, code: Callable[[Any], None], shared: Callable[[Any], None]) -> None:
        self.memo: dict[int, Any] = {}
        self.pairs: list[tuple[Any, Any]] = []
        self._code = code
        self._shared = shared
        self._asked: set[int] = set()
        self._tensors = TensorCopies(self.copy, self._remember)

    def copy(self, value: Any) -> Any:
        """The copy of a value: always the same one; the value itself where it has none."""
        cls = type(value)
        if cls in _LEAVES:
            return value
        if id(value) in self.memo:
            return self.memo[id(value)]
        if issubclass(cls, (types.FunctionType, type)):
            self._code(value)
            return value
        if issubclass(cls, _ATOMIC):
            return self._atom(value)
        if issubclass(cls, _UNCOPIED):
            return self._share(value)
        try:
            return self._made(value, cls)
        except RecursionError:
            raise
        except Exception:
            return self._share(value)

    def _remember(self, value: Any, made: Any) -> None:
        self.memo[id(value)] = made
        self.pairs.append((value, made))

    def _share(self, value: Any) -> Any:
        self._remember(value, value)
        self._code(value)
        self._shared(value)
        return value

    def _atom(self, value: Any) -> Any:
        """What has no copy: methods of C types go with their object, other things are what they are."""
        if isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
            owner: Any = value.__self__
            if owner is None or isinstance(owner, (types.ModuleType, type)):
                return value
            made = getattr(self.copy(owner), value.__name__)
            self._remember(value, made)
            return made
        self._code(value)
        return value

    def _made(self, value: Any, cls: type) -> Any:
        if isinstance(value, torch.Tensor) and self._tensors.knows(value):
            return self._tensors.copied(value)
        if cls in _WAYS:
            return _WAYS[cls](self, value)
        if cls in copyreg.dispatch_table:
            return self._by_protocol(value)
        if hasattr(cls, "__deepcopy__"):
            return self._by_itself(value)
        self._code(cls)
        if hasattr(cls, "__del__"):
            return self._share(value)  # the end of a copy must not end what both stand for
        base: Any = next((base for base in _STORAGE if issubclass(cls, base)), object)
        if _says_nothing(cls, base) and _is_python_over(cls, base):
            return self._by_contents(value, cls, base)
        return self._by_protocol(value)

    # --- instances -----------------------------------------------------------------------------

    def _by_contents(self, value: Any, cls: type, base: type) -> Any:
        """A new instance that holds copies of what the old one holds; `__init__` does not run."""
        made, fill = _STORAGE[base](self, value, cls) if base in _STORAGE else (object.__new__(cls), None)
        self._remember(value, made)
        if fill is not None:
            fill()
        self._attributes(value, made)
        return made

    def _attributes(self, value: Any, made: Any) -> None:
        own = instance_dict(value)
        if own is not None:
            target = instance_dict(made)
            if target is not None:
                # The dictionary may have been copied already, on its own.
                copied = self.memo.get(id(own))
                if copied is None:
                    self._remember(own, target)
                    for name, item in list(own.items()):
                        dict.__setitem__(target, name, self.copy(item))
                else:
                    object.__setattr__(made, "__dict__", copied)
        for name in slot_names(type(value)):
            with contextlib.suppress(AttributeError):
                object.__setattr__(made, name, self.copy(object.__getattribute__(value, name)))

    def _by_itself(self, value: Any) -> Any:
        """By its own `__deepcopy__`; what it holds is copied here first, so that it is found in the memo."""
        if id(value) not in self._asked:
            self._asked.add(id(value))
            for held in gc.get_referents(value):
                self.copy(held)
        if id(value) in self.memo:
            return self.memo[id(value)]
        made = copy.deepcopy(value, self.memo)
        self._remember(value, made)
        return made

    def _by_protocol(self, value: Any) -> Any:
        """By what pickling and copying agree on: a callable, its arguments, state and items."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            reductor = copyreg.dispatch_table.get(type(value))
            recipe = reductor(value) if reductor else value.__reduce_ex__(4)
        if isinstance(recipe, str):
            return value
        build, args, state, listed, mapped = (*recipe, None, None, None)[:5]
        if build is copyreg.__newobj_ex__:  # type: ignore[attr-defined]
            args = (args[0], tuple(map(self.copy, args[1])), {k: self.copy(v) for k, v in args[2].items()})
        made = build(*[self.copy(item) for item in args])
        if id(value) in self.memo:
            return self.memo[id(value)]
        self._remember(value, made)
        if state is not None:
            _set_state(made, self.copy(state))
        for item in listed or ():
            made.append(self.copy(item))
        for key, item in mapped or ():
            made[self.copy(key)] = self.copy(item)
        return made

    # --- kinds of their own --------------------------------------------------------------------

    def _list(self, value: list[Any]) -> Any:
        made: list[Any] = []
        self._remember(value, made)
        made.extend(map(self.copy, list(value)))
        return made

    def _tuple(self, value: tuple[Any, ...]) -> Any:
        copied = tuple(map(self.copy, value))
        if id(value) in self.memo:  # it holds itself, by a detour
            return self.memo[id(value)]
        same = all(left is right for left, right in zip(value, copied, strict=True))
        self._remember(value, value if same else copied)
        return self.memo[id(value)]

    def _dict(self, value: dict[Any, Any]) -> Any:
        made: dict[Any, Any] = {}
        self._remember(value, made)
        for key, item in list(value.items()):
            made[self.copy(key)] = self.copy(item)
        return made

    def _method(self, value: types.MethodType) -> Any:
        made = types.MethodType(self.copy(value.__func__), self.copy(value.__self__))
        if id(value) not in self.memo:
            self._remember(value, made)
        return self.memo[id(value)]

    def _cell(self, value: types.CellType) -> Any:
        """A cell belongs to its functions, which are shared: its contents are exchanged instead."""
        return value

    def _view(self, value: Any) -> Any:
        """Of a dictionary's keys, values or items."""
        of: dict[Any, Any] = self.copy(gc.get_referents(value)[0])
        made = (
            of.keys()
            if isinstance(value, _KEYS)
            else of.items()
            if isinstance(value, _ITEMS)
            else of.values()
        )
        self._remember(value, made)
        return made

    def _proxy(self, value: types.MappingProxyType[Any, Any]) -> Any:
        made = types.MappingProxyType(self.copy(gc.get_referents(value)[0]))
        self._remember(value, made)
        return made

    def _reference(self, value: weakref.ref[Any]) -> Any:
        target = value()
        copied = None if target is None else self.copy(target)
        made = value if copied is target else weakref.ref(copied)
        self._remember(value, made)
        return made

    def _generator(self, value: torch.Generator) -> Any:
        made = value if value is torch.default_generator else value.clone_state()
        self._remember(value, made)
        return made


_LEAVES = frozenset({int, float, complex, bool, str, bytes, type(None), types.CodeType})

_KEYS: Any = type({}.keys())
_VALUES: Any = type({}.values())
_ITEMS: Any = type({}.items())

_WAYS: dict[type, Callable[[Copier, Any], Any]] = {
    list: Copier._list,
    tuple: Copier._tuple,
    dict: Copier._dict,
    types.MethodType: Copier._method,
    types.CellType: Copier._cell,
    types.MappingProxyType: Copier._proxy,
    _KEYS: Copier._view,
    _VALUES: Copier._view,
    _ITEMS: Copier._view,
    weakref.ref: Copier._reference,
    torch.Generator: Copier._generator,
}

Empty = tuple[Any, Callable[[], None] | None]


def _empty_mapping(base: Any) -> Callable[[Copier, Any, type], Empty]:
    def empty(copier: Copier, value: Any, cls: type) -> Empty:
        made = base.__new__(cls)

        def fill() -> None:
            if isinstance(value, defaultdict):
                made.default_factory = copier.copy(value.default_factory)
            for key, item in list(base.items(value)):
                base.__setitem__(made, copier.copy(key), copier.copy(item))

        return made, fill

    return empty


def _empty_list(copier: Copier, value: Any, cls: Any) -> Empty:
    made = list.__new__(cls)
    return made, lambda: list.extend(made, [copier.copy(item) for item in list.__iter__(value)])


def _empty_deque(copier: Copier, value: Any, cls: Any) -> Empty:
    made = deque.__new__(cls)
    items = list(deque.__iter__(value))
    return made, lambda: deque.__init__(made, [copier.copy(item) for item in items], value.maxlen)


def _empty_set(copier: Copier, value: Any, cls: Any) -> Empty:
    made = set.__new__(cls)
    return made, lambda: set.update(made, [copier.copy(item) for item in set.__iter__(value)])


def _whole(base: Any) -> Callable[[Copier, Any, type], Empty]:
    def whole(copier: Copier, value: Any, cls: type) -> Empty:
        return base.__new__(cls, [copier.copy(item) for item in base.__iter__(value)]), None

    return whole


def _empty_error(copier: Copier, value: Any, cls: Any) -> Empty:
    made = BaseException.__new__(cls)

    def fill() -> None:
        made.args = copier.copy(value.args)
        made.__cause__, made.__context__ = copier.copy(value.__cause__), copier.copy(value.__context__)
        made.__suppress_context__ = value.__suppress_context__

    return made, fill


#: Classes of C that hold objects, the special ones first: how an instance of a subclass is made again.
_STORAGE: dict[Any, Callable[[Copier, Any, type], Empty]] = {
    OrderedDict: _empty_mapping(OrderedDict),
    defaultdict: _empty_mapping(dict),
    dict: _empty_mapping(dict),
    list: _empty_list,
    deque: _empty_deque,
    set: _empty_set,
    frozenset: _whole(frozenset),
    tuple: _whole(tuple),
    BaseException: _empty_error,
}

_DISALLOW_INSTANTIATION, _IMMUTABLE_TYPE, _HEAP_TYPE = 1 << 7, 1 << 8, 1 << 9


def _says_nothing(cls: Any, base: Any) -> bool:
    """Whether a class leaves it to Python how its instances are pickled."""
    silent = (base.__reduce__, object.__reduce__)
    return cls.__reduce_ex__ is object.__reduce_ex__ and cls.__reduce__ in silent


def _is_python_over(cls: type, base: type) -> bool:
    """Whether all classes above `base` were made by ``class``: C code keeps nothing in instances there."""
    return all(_is_python_class(one) for one in cls.__mro__ if one not in base.__mro__)


def _is_python_class(cls: type) -> bool:
    flags = cls.__flags__ & (_DISALLOW_INSTANTIATION | _IMMUTABLE_TYPE | _HEAP_TYPE)
    return flags == _HEAP_TYPE and not isinstance(cls.__dict__.get("__new__"), types.BuiltinFunctionType)


def _set_state(made: Any, state: Any) -> None:
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        made.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(made, name, value)
