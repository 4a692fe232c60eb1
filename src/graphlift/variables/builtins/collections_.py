"""Builtin functions that reduce or order iterables, and the classes `tuple`, `range`, `slice`."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import torch

from graphlift.polyfills import mappings, reductions
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import UNKNOWN, VariableTracker
from graphlift.variables.builtin_object import constant, make_list, make_tuple
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.classes import CLASS_METHODS, constructs
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.dict_views import MappingProxyVariable
from graphlift.variables.folding import fold, is_symbolic, known
from graphlift.variables.ranges import RangeVariable
from graphlift.variables.sequences import storage
from graphlift.variables.sets import SetVariable
from graphlift.variables.slots import attributes, iteration, length_hint, operators, sorting
from graphlift.variables.slots.numbers import index_

# --- reductions ---------------------------------------------------------------------------------------


def _all_numbers(found: Sequence[Any]) -> bool:
    return all(
        isinstance(item, ConstantVariable) and type(item.value) in (int, float, bool) for item in found
    )


_NUMBERS = (int, float, bool)

#: Whether this Python's `sum` of floats is more exact than adding them one by one.
_COMPENSATES = sum([0.1] * 10) == 1.0


def _sum_symbols(tx: Tx, values: Sequence[Any], begin: VariableTracker) -> VariableTracker:
    """The sum of numbers some of which are symbolic."""
    if _COMPENSATES and any(value.python_type(tx) is float for value in (*values, begin)):
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "sum() of floats that are not known")
    total = begin
    for value in values:
        total = operators.binary(tx, "+", total, value)
    return total


@builtin(sum)
def _sum(tx: Tx, iterable: Var, start: Var | None = None) -> Any:
    begin: Any = constant(tx, 0) if start is None else start.realize(tx)
    if isinstance(begin, ConstantVariable) and isinstance(begin.value, str | bytes):
        kind = "strings" if isinstance(begin.value, str) else "bytes"
        joiner = "''" if kind == "strings" else "b''"
        tx.raise_(TypeError, f"sum() can't sum {kind} [use {joiner}.join(seq) instead]")
    found = iterable.realize(tx).unpack(tx)
    if found is not None:
        values: list[Any] = [item.realize(tx) for item in found]
        if _all_numbers([*values, begin]):
            return fold(tx, sum, [value.value for value in values], begin.value)
        if begin.python_type(tx) in _NUMBERS and all(value.python_type(tx) in _NUMBERS for value in values):
            return _sum_symbols(tx, values, begin)
    return tx.run_host(reductions.sum_, [iteration.iter_once(tx, iterable), begin])


@builtin(any)
def _any(tx: Tx, iterable: Var) -> Any:
    found = iterable.realize(tx).unpack(tx)
    if found is not None:
        return any(operators.is_true(tx, item) for item in found)
    return tx.run_host(reductions.any_, [iterable])


@builtin(all)
def _all(tx: Tx, iterable: Var) -> Any:
    found = iterable.realize(tx).unpack(tx)
    if found is not None:
        return all(operators.is_true(tx, item) for item in found)
    return tx.run_host(reductions.all_, [iterable])


def _extreme(
    tx: Tx, function: Any, polyfill: Any, args: Sequence[Var], key: Var | None, default: Var | None
) -> Any:
    name = function.__name__
    if not args:
        tx.raise_(TypeError, f"{name} expected at least 1 argument, got 0")
    if len(args) > 1 and default is not None:
        tx.raise_(TypeError, f"Cannot specify a default for {name}() with multiple positional arguments")
    found = list(args) if len(args) > 1 else iteration.unpack(tx, args[0])
    if not found:
        if default is not None:
            return default
        tx.raise_(ValueError, _EMPTY_TEXTS[name])
    plain = key is None or known(tx, key) is None
    values = [UNKNOWN if is_symbolic(tx, item) else known(tx, item) for item in found]
    if plain and not any(value is UNKNOWN for value in values):
        index = fold(tx, function, range(len(values)), key=values.__getitem__).as_constant()
        return found[index]
    nothing = constant(tx, None)
    return tx.run_host(polyfill, [make_list(tx, found), nothing if plain else cast(Var, key), nothing])


def _empty_text(function: Any) -> str:
    try:
        function([])
    except ValueError as error:
        return str(error)
    raise AssertionError


_EMPTY_TEXTS = {"min": _empty_text(min), "max": _empty_text(max)}


@builtin(min)
def _min(tx: Tx, *args: Var, key: Var | None = None, default: Var | None = None) -> Any:
    return _extreme(tx, min, reductions.smallest, args, key, default)


@builtin(max)
def _max(tx: Tx, *args: Var, key: Var | None = None, default: Var | None = None) -> Any:
    return _extreme(tx, max, reductions.largest, args, key, default)


@builtin(functools.reduce)
def _reduce(tx: Tx, function: Var, iterable: Var, start: Var | None = None) -> Any:
    iterator = iteration.iter_once(tx, iterable, "reduce() arg 2 must support iteration")
    if start is None:
        start = iteration.next_(tx, iterator)
        if start is None:
            tx.raise_(TypeError, "reduce() of empty iterable with no initial value")
    return tx.run_host(reductions.reduce, [function, iterator, start])


@builtin(sorted)
def _sorted(tx: Tx, iterable: Var, *, key: Var | None = None, reverse: Var | None = None) -> Any:
    operand: VariableTracker = iterable.realize(tx)
    found: Sequence[Any] | None = None
    if key is None or known(tx, key) is None:
        beneath = storage(operand) if attributes.user_special(tx, operand, "__iter__") is None else operand
        found = beneath.unordered(tx) if isinstance(beneath, SetVariable) else None
        if found is not None and any(known(tx, item) is UNKNOWN for item in found):
            found = None  # of those that are neither before nor behind each other the order would be seen
    if found is None:
        found = length_hint.unpack(tx, operand)
    return make_list(tx, sorting.sort(tx, list(found), key, reverse))


# --- classes ------------------------------------------------------------------------------------------


@constructs(torch.Size, whole=True)
def _size(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs or len(args) > 1:
        return fold(tx, torch.Size, *[()] * len(args), **dict.fromkeys(kwargs))
    return make_tuple(tx, iteration.unpack(tx, args[0]) if args else [], torch.Size)


@constructs(range, whole=True)
def _range(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs or not 1 <= len(args) <= 3:
        return fold(tx, range, *[0] * len(args), **dict.fromkeys(kwargs))
    numbers = [index_(tx, arg) for arg in args]
    try:
        return RangeVariable(range(*numbers))
    except ValueError as error:
        tx.raise_real(error)


@constructs(slice, whole=True)
def _slice(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs or not 1 <= len(args) <= 3:
        return fold(tx, slice, *[None] * len(args), **dict.fromkeys(kwargs))
    nothing = constant(tx, None)
    if len(args) == 1:
        return tx.make.slice(nothing, args[0], nothing)
    return tx.make.slice(*args, *[nothing] * (3 - len(args)))


@constructs(MappingProxyType, whole=True)
def _proxy(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs or len(args) != 1:
        return fold(tx, MappingProxyType, *[{}] * len(args), **dict.fromkeys(kwargs))
    mapping: VariableTracker = args[0].realize(tx)
    if not issubclass(mapping.python_type(tx), dict):
        tx.fail(Reason.UNSUPPORTED_BUILTIN, f"a proxy of {mapping!r}")
    return MappingProxyVariable(mapping)


def _fromkeys(tx: Tx, cls: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``dict.fromkeys``: the class is called without arguments, then items are set."""
    if kwargs or not 1 <= len(args) <= 2:
        return fold(tx, dict.fromkeys, *[()] * len(args), **dict.fromkeys(kwargs))
    value = args[1] if len(args) == 2 else constant(tx, None)
    keys = iteration.unpack(tx, args[0])
    if cls.value is dict:
        return tx.make.dict([(key, value) for key in keys])
    return tx.run_host(mappings.fromkeys, [cls, make_tuple(tx, keys), value])


CLASS_METHODS[dict, "fromkeys"] = CLASS_METHODS[OrderedDict, "fromkeys"] = _fromkeys
