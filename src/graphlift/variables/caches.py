"""Functions under ``functools.lru_cache``.

What such a function gives depends on the calls before, of which nothing can be read. One of an installed
package or the standard library is really called, with constant arguments only: it is there to look something
up once. One of the user's breaks the graph. Mirrors lru_cache_new of Modules/_functoolsmodule.c.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any, Final

from graphlift.heap import Handle
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.rules import files
from graphlift.sources import Source
from graphlift.variables.base import UNKNOWN, VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.generic_aliases import lasting
from graphlift.variables.rebuild import dict_of
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import TypeAttr, anchor
from graphlift.variables.user_defined import UserDefinedObject

_WRAPPER: Final = functools._lru_cache_wrapper


#: Where `tx.reads` keeps what functions of `typing` gave for arguments that are made here.
_KEPT: Final = (0, "kept results")


def _constant(tx: Tx, value: Any) -> Any:
    return value.as_constant() if value.is_constant() else UNKNOWN


class CachedFunctionVariable(UserDefinedObject):
    """A function under ``lru_cache``; its attributes are in its dictionary."""

    __slots__ = ()

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        wrapped = (dict_of(self.value) or {}).get("__wrapped__")
        code = getattr(wrapped, "__code__", None)
        if type(code) is not CodeType:
            tx.fail(Reason.SKIPPED_CALLABLE, f"{type(wrapped).__qualname__} object under lru_cache")
        of_typing = code.co_filename == typing.__file__
        read = lasting if of_typing else _constant
        values = [read(tx, arg.realize(tx)) for arg in args]
        named = {name: read(tx, value.realize(tx)) for name, value in kwargs.items()}
        known = all(value is not UNKNOWN for value in [*values, *named.values()])
        if of_typing and not known:  # with what is made here nothing can have been kept before
            return self._made_call(tx, args, kwargs)
        if not known or files.is_users(code.co_filename):
            tx.fail(
                Reason.SKIPPED_CALLABLE,
                f"{code.co_qualname}, which is under lru_cache",
            )
        return self._really_call(tx, values, named)

    def _made_call(self, tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> VariableTracker:
        """A call that is looked into, its result kept for further ones of this capture."""
        if kwargs:
            tx.fail(Reason.SKIPPED_CALLABLE, "a function under lru_cache, with keyword arguments")
        key = (id(self.value), *(arg.realize(tx).hash_key(tx) for arg in args))
        kept: Any = tx.reads.setdefault(_KEPT, Handle())
        if kept.table is None:
            kept.table, kept.complete = {}, True
        found = kept.table.get(key)
        if found is None:
            function: Any = attributes.getattr_(tx, self, "__wrapped__").realize(tx)
            result = function.call(tx, args, kwargs)
            tx.heap.put(kept, key, (self, result))
            return result.realize(tx)  # type: ignore[no-any-return]
        return found[1].realize(tx)  # type: ignore[no-any-return]

    def _really_call(self, tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> VariableTracker:
        try:
            result = self.value(*args, **kwargs)
        except Exception as error:
            tx.raise_real(error)
        return tx.make.from_value(result, None)  # type: ignore[return-value]

    def __repr__(self) -> str:
        return "CachedFunctionVariable()"


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
    return attributes.bind_function(tx, attr, obj, cls)
