"""Functions put under ``functools.lru_cache`` by the program: what they gave is kept as C keeps it.

A cache that holds something cannot become real, for nobody can put results into it. Mirrors
Modules/_functoolsmodule.c.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.errors import Unsupported
from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.variables import rebuild
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtin_object import make_tuple
from graphlift.variables.classes import constructs
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import type_lookup
from graphlift.variables.user_defined import UserDefinedObject

_WRAPPER: Final[Any] = functools._lru_cache_wrapper
_CACHE_INFO: Final[Any] = vars(functools)["_CacheInfo"]


class _Mark:
    """Stands in a key between positional arguments and named ones."""


class MadeCacheVariable(UserDefinedObject):
    """A function under ``lru_cache``; `handle.value` is how often it was found there and how often not.

    Attributes:
        function: the function.
        maxsize: how many results are kept; None: all.
        typed: whether arguments of different types differ.
        entries: the tracker of a dictionary of results, the one used last at the end.
    """

    __slots__ = ("entries", "function", "maxsize", "typed")

    def __init__(self, function: Var, maxsize: int | None, typed: bool, entries: Any) -> None:
        super().__init__(_WRAPPER, Handle())
        self.handle.value = (0, 0)
        self.function: Final[Any] = function
        self.maxsize: Final = maxsize
        self.typed: Final = typed
        self.entries: Final = entries

    def children(self) -> tuple[Var, ...]:
        """What it holds."""
        return (self.function, self.entries)

    # --- calls -----------------------------------------------------------------------------------

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if self.maxsize == 0:
            self._count(tx, 0, 1)
            return self._ask(tx, args, kwargs)
        key = self._key(tx, args, kwargs)
        found = self.entries.find(tx, key)
        if found is not None:
            self._count(tx, 1, 0)
            if self.maxsize is not None:
                self.entries.delitem(tx, key)
                self.entries.store(tx, key, found)
            return found.realize(tx)  # type: ignore[no-any-return]
        self._count(tx, 0, 1)
        result = self._ask(tx, args, kwargs)
        if self.maxsize is not None and self.entries.find(tx, key) is not None:
            return result  # it called itself
        table = self.entries.table(tx)
        if self.maxsize is not None and len(table) >= self.maxsize:
            self.entries.delitem(tx, next(iter(table.values()))[0])
        self.entries.store(tx, key, result)
        return result

    def _ask(self, tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> VariableTracker:
        return self.function.realize(tx).call(tx, args, kwargs).realize(tx)  # type: ignore[no-any-return]

    def _count(self, tx: Tx, hits: int, misses: int) -> None:
        found, not_found = self.handle.value
        tx.heap.set_slot(self.handle, "value", (found + hits, not_found + misses))

    def _key(self, tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        values = [arg.realize(tx) for arg in args]
        if not self.typed and not kwargs and len(values) == 1 and values[0].python_type(tx) in (int, str):
            return values[0]
        parts: list[Any] = list(values)
        named = [value.realize(tx) for value in kwargs.values()]
        if kwargs:
            parts.append(tx.make.from_value(_Mark, None))
            for name, value in zip(kwargs, named, strict=True):
                parts += [tx.make.constant(name), value]
        if self.typed:
            parts += [attributes.class_of(tx, value, value.python_type(tx)) for value in (*values, *named)]
        return make_tuple(tx, parts)

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name == "__call__":
            return self.call(tx, args, kwargs)
        if name == "cache_info" and not args and not kwargs:
            counts = (*self.handle.value, self.maxsize, len(self.entries.table(tx)))
            info = [tx.make.constant(count) for count in counts]
            return tx.make.tuple(info, _CACHE_INFO)  # type: ignore[return-value]
        if name == "cache_clear" and not args and not kwargs:
            tx.heap.set_slot(self.handle, "value", (0, 0))
            self.entries.call_method(tx, "clear", [], {})
            return tx.make.constant(None)  # type: ignore[return-value]
        if name in ("__copy__", "__deepcopy__"):
            return self
        return super().call_method(tx, name, args, kwargs)

    # --- becoming real ---------------------------------------------------------------------------

    def reconstruct(self, codegen: Codegen) -> None:
        if self.entries.handle.table or self.handle.value != (0, 0):
            raise Unsupported(
                Reason.UNSUPPORTED_VALUE, "a function under lru_cache, made and called here, must become real"
            )
        codegen.call(
            _new_cache, [self.function, ConstantVariable(self.maxsize), ConstantVariable(self.typed)]
        )
        codegen.later(lambda: rebuild.attributes(codegen, self, self.handle))

    def __repr__(self) -> str:
        return "MadeCacheVariable()"


def _new_cache(function: Any, maxsize: int | None, typed: bool) -> Any:
    """An empty cache (runs in the compiled program)."""
    return _WRAPPER(function, maxsize, typed, _CACHE_INFO)


@constructs(_WRAPPER, whole=True)
def _new_wrapper(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    given = [arg.realize(tx) for arg in args]
    if cls is not _WRAPPER or kwargs or len(given) != 4:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"making an object of {cls.__qualname__}")
    function, maxsize, typed, _ = given
    if not maxsize.is_constant() or not typed.is_constant():
        tx.fail(Reason.UNSUPPORTED_VALUE, "a cache of a size that is not known")
    if type_lookup(tx, function.python_type(tx), "__call__") is None:
        tx.raise_(TypeError, "the first argument must be callable")
    size = maxsize.as_constant()
    return MadeCacheVariable(function, size, bool(typed.as_constant()), tx.make.dict([]))
