"""Functions of ``inspect`` that look at the interpreter itself, without doing so."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable
from types import GetSetDescriptorType, MappingProxyType
from typing import Any

#: More wrappers than any program has; Python bounds them by its recursion limit.
_LIMIT = 1000


class _Wrapping:
    __wrapped__ = None


#: Whether a class counts as a wrapper, too; newer Pythons look for functions only.
_CLASSES_WRAP = inspect.unwrap(_Wrapping) is None


def unwrap(func: Any, stop: Callable[[Any], object] | None = None) -> Any:
    """``inspect.unwrap``.

    https://docs.python.org/3/library/inspect.html#inspect.unwrap
    """
    first = func
    met = [func]
    while (_CLASSES_WRAP or not isinstance(func, type)) and hasattr(func, "__wrapped__"):
        if stop is not None and stop(func):
            break
        func = func.__wrapped__
        if len(met) >= _LIMIT or any(func is each for each in met):
            raise ValueError(f"wrapper loop when unwrapping {first!r}")
        met.append(func)
    return func


def shadowed_dict(cls: type) -> Any:
    """What stands for ``__dict__`` on a class instead of the descriptor that Python puts there, if anything.

    https://docs.python.org/3/library/inspect.html#inspect.getattr_static
    """
    for owner in type.__dict__["__mro__"].__get__(cls):
        own = type.__dict__["__dict__"].__get__(owner)
        if "__dict__" in own:
            found = own["__dict__"]
            is_plain = type(found) is GetSetDescriptorType and found.__name__ == "__dict__"
            if not (is_plain and found.__objclass__ is owner):
                return found
    return inspect._sentinel  # type: ignore[attr-defined]


_Parameter: Any = inspect.Parameter
_Signature: Any = inspect.Signature
_EMPTY: Any = inspect.Parameter.empty


def signature(function: Any, first: int) -> Any:
    """The signature of a plain function without its first few parameters, as ``inspect.signature`` has it.

    https://docs.python.org/3/library/inspect.html#inspect.signature
    """
    code = function.__code__
    names, count, behind = code.co_varnames, code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    defaults, annotations = function.__defaults__ or (), function.__annotations__
    without = count - len(defaults)
    parameters: OrderedDict[str, Any] = OrderedDict()
    for at in range(first, count):
        kind = (
            _Parameter.POSITIONAL_ONLY if at < code.co_posonlyargcount else _Parameter.POSITIONAL_OR_KEYWORD
        )
        _add(parameters, names[at], kind, annotations, _EMPTY if at < without else defaults[at - without])
    has_rest = code.co_flags & inspect.CO_VARARGS
    if has_rest:
        _add(parameters, names[behind], _Parameter.VAR_POSITIONAL, annotations, _EMPTY)
    if count < behind:
        by_name = function.__kwdefaults__ or {}
        for name in names[count:behind]:
            default = dict.get(by_name, name, _EMPTY)
            _add(parameters, name, _Parameter.KEYWORD_ONLY, annotations, default)
    if code.co_flags & inspect.CO_VARKEYWORDS:
        name = names[behind + 1 if has_rest else behind]
        _add(parameters, name, _Parameter.VAR_KEYWORD, annotations, _EMPTY)
    made = object.__new__(_Signature)
    made._parameters = MappingProxyType(parameters)
    made._return_annotation = dict.get(annotations, "return", _EMPTY)
    return made


def _add(parameters: dict[str, Any], name: str, kind: Any, annotations: dict[str, Any], default: Any) -> None:
    made = object.__new__(_Parameter)
    made._name = name
    made._kind = kind
    made._default = default
    made._annotation = dict.get(annotations, name, _EMPTY)
    parameters[name] = made
