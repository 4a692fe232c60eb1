"""Arguments to parameters, exactly as CPython binds them.

Owns the fast path (positional arguments, exact count) and the full algorithm. Errors are those of the
running Python: a function of the same signature is really called and its TypeError raised in the user's
program. Mirrors initialize_locals of Python/ceval.c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType
from typing import Final, NoReturn

from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason

_COLLECTING: Final = CO_VARARGS | CO_VARKEYWORDS

#: Gives the default of a parameter by (position, name), or None when it has none.
Defaults = Callable[[int, str], "Var | None"]


def bind_positional(code: CodeType, args: Sequence[Var]) -> dict[str, Var] | None:
    """As `bind_arguments` where each parameter is positional and filled by an argument; else None."""
    if len(args) == code.co_argcount and not code.co_kwonlyargcount and not code.co_flags & _COLLECTING:
        return dict(zip(code.co_varnames, args, strict=False))
    return None


def bind_arguments(
    tx: Tx,
    code: CodeType,
    qualname: str,
    args: Sequence[Var],
    kwargs: Mapping[str, Var],
    default_of: Defaults,
) -> dict[str, Var]:
    """Each parameter of `code` with its value, in the order of ``co_varnames``.

    Arguments:
        default_of: asked for the parameters that no argument fills; keyword-only ones by position -1.

    Raises a TypeError in the user's program where CPython does.
    """
    bound = None if kwargs else bind_positional(code, args)
    if bound is not None:
        return bound
    return _Binding(tx, code, qualname, args, kwargs, default_of).bound()


class _Binding:
    """One binding in progress."""

    def __init__(
        self,
        tx: Tx,
        code: CodeType,
        qualname: str,
        args: Sequence[Var],
        kwargs: Mapping[str, Var],
        default_of: Defaults,
    ) -> None:
        self._tx = tx
        self._code = code
        self._qualname = qualname
        self._args = args
        self._kwargs = kwargs
        self._default_of = default_of

    def bound(self) -> dict[str, Var]:
        code = self._code
        count = code.co_argcount
        named = count + code.co_kwonlyargcount
        values: dict[str, Var] = dict(zip(code.co_varnames[:count], self._args, strict=False))
        if len(self._args) > count and not code.co_flags & CO_VARARGS:
            self._refuse()
        extra = self._take_keywords(values, named)
        bound = {
            name: self._value(values, index, name) for index, name in enumerate(code.co_varnames[:named])
        }
        if code.co_flags & CO_VARARGS:
            bound[code.co_varnames[named]] = self._tx.make.tuple(list(self._args[count:]))
            named += 1
        if code.co_flags & CO_VARKEYWORDS:
            entries = [(self._tx.make.constant(key), value) for key, value in extra.items()]
            bound[code.co_varnames[named]] = self._tx.make.dict(entries)
        return bound

    def _take_keywords(self, values: dict[str, Var], named: int) -> dict[str, Var]:
        """Put keyword arguments to the parameters of their name; what is left goes to ``**kwargs``."""
        code = self._code
        by_name = set(code.co_varnames[code.co_posonlyargcount : named])
        extra: dict[str, Var] = {}
        for name, value in self._kwargs.items():
            if name in by_name:
                if name in values:
                    self._refuse()
                values[name] = value
            elif code.co_flags & CO_VARKEYWORDS:
                extra[name] = value
            else:
                self._refuse()
        return extra

    def _value(self, values: dict[str, Var], index: int, name: str) -> Var:
        value = values.get(name)
        if value is None:
            value = self._default_of(index if index < self._code.co_argcount else -1, name)
            if value is None:
                self._refuse()
        return value

    def _refuse(self) -> NoReturn:
        """Raise the TypeError of this call."""
        stand_in = _same_signature(self._code, self._has_default)
        stand_in.__name__, stand_in.__qualname__ = self._code.co_name, self._qualname
        try:
            stand_in(*([None] * len(self._args)), **dict.fromkeys(self._kwargs))
        except TypeError as error:
            self._tx.raise_real(error)
        self._tx.fail(
            Reason.UNSUPPORTED_OPERATION, f"a call of {self._qualname} with arguments that do not fit"
        )

    def _has_default(self, index: int, name: str) -> bool:
        return self._default_of(index, name) is not None


def _same_signature(code: CodeType, has_default: Callable[[int, str], bool]) -> Callable[..., None]:
    """A function that does nothing, with the parameters of `code`."""
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = iter(code.co_varnames)
    parts: list[str] = []
    for index in range(count):
        name = next(names)
        parts.append(name + ("=None" if has_default(index, name) else ""))
        if index + 1 == code.co_posonlyargcount:
            parts.append("/")
    keyword_only = [next(names) for _ in range(only)]
    if code.co_flags & CO_VARARGS:
        parts.append("*" + next(names))
    elif only:
        parts.append("*")
    parts.extend(name + ("=None" if has_default(-1, name) else "") for name in keyword_only)
    if code.co_flags & CO_VARKEYWORDS:
        parts.append("**" + next(names))
    scope: dict[str, Callable[..., None]] = {}
    exec(f"def stand_in({', '.join(parts)}): pass", scope)
    return scope["stand_in"]
