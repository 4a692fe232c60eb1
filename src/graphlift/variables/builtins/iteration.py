"""Builtins of iteration: `iter`, `next`, `enumerate`, `zip`, `map`, `filter`, `reversed`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtin_object import constant
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.classes import constructs
from graphlift.variables.folding import fold
from graphlift.variables.iterators import CallableIteratorVariable, ReversedVariable
from graphlift.variables.lazy_iterators import EnumerateVariable, FilterVariable, MapVariable, ZipVariable
from graphlift.variables.slots import attributes, items, iteration, operators
from graphlift.variables.slots.numbers import index_
from graphlift.variables.slots.type_lookup import type_lookup


@builtin(iter)
def _iter(tx: Tx, value: Var, sentinel: Var | None = None) -> Any:
    if sentinel is None:
        return iteration.iter_(tx, value)
    function: VariableTracker = value.realize(tx)
    if type_lookup(tx, function.python_type(tx), "__call__") is None:
        tx.raise_(TypeError, "iter(v, w): v must be callable")
    return CallableIteratorVariable(function, sentinel.realize(tx))


@builtin(next)
def _next(tx: Tx, iterator: Var, default: Var | None = None) -> Any:
    if default is None:
        return iteration.advance(tx, iterator)
    item = iteration.next_(tx, iterator)
    return default if item is None else item


def _check(tx: Tx, cls: type, wanted: type) -> None:
    if cls is not wanted:
        tx.fail(
            Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__}, which derives from {wanted.__name__}"
        )


@constructs(enumerate, whole=True)
def _enumerate(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    _check(tx, cls, enumerate)
    named = dict(kwargs)
    values = list(args)
    later = ("iterable", "start")[len(values) :]
    values += [named.pop(name) for name in later if name in named]
    if named or not 1 <= len(values) <= 2:
        return fold(tx, enumerate, *[()] * len(args), **dict.fromkeys(kwargs))
    start = constant(tx, 0) if len(values) == 1 else values[1].realize(tx)
    if not start.is_constant() or type(start.as_constant()) is not int:
        start = constant(tx, index_(tx, start))
    return EnumerateVariable(iteration.iter_(tx, values[0]), start)


@constructs(zip, whole=True)
def _zip(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    _check(tx, cls, zip)
    if set(kwargs) - {"strict"}:
        return fold(tx, zip, **dict.fromkeys(kwargs))
    strict = "strict" in kwargs and operators.is_true(tx, kwargs["strict"])
    inner = [iteration.iter_(tx, arg) for arg in args]
    return ZipVariable(inner, strict)


@constructs(map, whole=True)
def _map(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    _check(tx, cls, map)
    if kwargs or len(args) < 2:
        return fold(tx, map, *[None] * len(args), **dict.fromkeys(kwargs))
    return MapVariable(args[0].realize(tx), [iteration.iter_(tx, arg) for arg in args[1:]])


@constructs(filter, whole=True)
def _filter(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    _check(tx, cls, filter)
    if kwargs or len(args) != 2:
        return fold(tx, filter, *[None] * len(args), **dict.fromkeys(kwargs))
    return FilterVariable(args[0].realize(tx), iteration.iter_(tx, args[1]))


@constructs(reversed, whole=True)
def _reversed(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    _check(tx, cls, reversed)
    if kwargs or len(args) != 1:
        return fold(tx, reversed, *[()] * len(args), **dict.fromkeys(kwargs))
    operand: VariableTracker = args[0].realize(tx)
    kind = operand.python_type(tx)
    attr = type_lookup(tx, kind, "__reversed__")
    if attr is not None:
        if attributes.is_none(tx, attr):
            operand.type_error(tx, "'{}' object is not reversible")
        return attributes.call_attr(tx, attr, operand, kind, [])
    if type_lookup(tx, kind, "__getitem__") is None or issubclass(kind, dict | set | frozenset):
        operand.type_error(tx, "'{}' object is not reversible")
    length = items.length(tx, operand)
    return ReversedVariable(operand, reversed, index_(tx, length) - 1)
