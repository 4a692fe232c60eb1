"""Functions under ``functools.lru_cache``.

What such a function gives depends on the calls before, of which nothing can be read. One of an installed
package or the standard library is really called, with constant arguments only: it is there to look something
up once. One of the user's breaks the graph. Mirrors lru_cache_new of Modules/_functoolsmodule.c.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any, Final

from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.rules import files
from graphlift.sources import Source
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
        wrapped = (dict_of(self.value) or {}).get("__wrapped__")
        code = getattr(wrapped, "__code__", None)
        if type(code) is not CodeType:
            tx.fail(Reason.SKIPPED_CALLABLE, f"{type(wrapped).__qualname__} object under lru_cache")
        values = [arg.realize(tx) for arg in args]
        named = {name: value.realize(tx) for name, value in kwargs.items()}
        constant = all(value.is_constant() for value in [*values, *named.values()])
        if not constant or files.is_users(code.co_filename):
            tx.fail(
                Reason.SKIPPED_CALLABLE,
                f"{code.co_qualname}, which is under lru_cache",
            )
        return self._really_call(tx, values, named)

    def _really_call(self, tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> VariableTracker:
        known = {name: value.as_constant() for name, value in kwargs.items()}
        try:
            result = self.value(*[value.as_constant() for value in args], **known)
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
