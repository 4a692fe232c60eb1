"""Functions under ``functools.lru_cache``.

What such a function gives for equal arguments is, by its contract, settled at the first call. One of an
installed package or the standard library is really called, with constant arguments only, and what it gives is
taken as it is; one of the user's is looked into, and must then give a constant and change nothing. Mirrors
lru_cache_new of Modules/_functoolsmodule.c.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.heap import Handle
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.rules import files
from graphlift.sources import AttrSource, Source
from graphlift.variables import namespace
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.rebuild import dict_of
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import TypeAttr, anchor
from graphlift.variables.user_defined import UserDefinedObject

_WRAPPER: Final = functools._lru_cache_wrapper


class CachedFunctionVariable(UserDefinedObject):
    """A function under ``lru_cache``; its attributes are in its dictionary."""

    __slots__ = ()

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        own = self.instance_dict(tx)
        assert own is not None
        wrapped: Any = namespace.lookup(tx, own, "__wrapped__", AttrSource)
        code = (dict_of(self.value) or {})["__wrapped__"].__code__
        values = [arg.realize(tx) for arg in args]
        named = {name: value.realize(tx) for name, value in kwargs.items()}
        constant = all(value.is_constant() for value in [*values, *named.values()])
        if constant and not files.is_users(code.co_filename):
            return self._really_call(tx, values, named)
        return self._look_into(tx, wrapped.realize(tx), values, named)

    def _really_call(self, tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> VariableTracker:
        known = {name: value.as_constant() for name, value in kwargs.items()}
        try:
            result = self.value(*[value.as_constant() for value in args], **known)
        except Exception as error:
            tx.raise_real(error)
        return tx.make.from_value(result, None)  # type: ignore[return-value]

    def _look_into(
        self, tx: Tx, wrapped: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> VariableTracker:
        before = _changes(tx)
        result: VariableTracker = wrapped.call(tx, args, kwargs).realize(tx)
        if not result.is_constant() or _changes(tx) != before:
            tx.fail(Reason.SIDE_EFFECT, f"a call of {self!r} that does more than give a constant")
        return result

    def __repr__(self) -> str:
        return "CachedFunctionVariable()"


def _changes(tx: Tx) -> list[Handle]:
    return [handle for handle in tx.heap.written if handle.real is not None]


@wraps(_WRAPPER)
def wrap_cached_function(tx: Tx, value: Any, source: Source | None) -> Var:
    """A function under ``lru_cache``; its identity is guarded, for its cache belongs to it."""
    if source is None:
        source = anchor(tx, value)
    else:
        tx.guard("is", source, value)
    handle = tx.heap.handle_of(value, source)
    made = CachedFunctionVariable(type(value), handle, source)
    handle.tracker = made
    return made


@attributes.binds(_WRAPPER)
def _bind_cached(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    """As a function does: it becomes a method."""
    function = attr.value(tx)
    return function if obj is None else tx.make.bound_method(function, obj)
