"""The module `operator`: each function is the slot of the same meaning."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from graphlift.operators import BINARY, COMPARE, INPLACE, UNARY
from graphlift.protocol import Codegen, Tx, Var
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtin_object import BuiltinObjectVariable, make_tuple
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.classes import constructs
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.folding import fold
from graphlift.variables.object_methods import constant_name
from graphlift.variables.slots import attributes, calls, items, operators
from graphlift.variables.slots.numbers import index_


def _binary(function: Any, op: str, apply: Callable[[Tx, str, Var, Var], VariableTracker]) -> None:
    def model(tx: Tx, left: Var, right: Var) -> Any:
        return apply(tx, op, left, right)

    builtin(function)(model)


def _unary(function: Any, op: str) -> None:
    def model(tx: Tx, value: Var) -> Any:
        return operators.unary(tx, op, value)

    builtin(function)(model)


for _op in BINARY:
    _binary(BINARY[_op], _op, operators.binary)
    _binary(INPLACE[_op], _op, operators.inplace)
for _op in COMPARE:
    _binary(COMPARE[_op], _op, operators.compare)
for _op in UNARY:
    _unary(UNARY[_op], _op)
_unary(operator.inv, "~")


@builtin(operator.not_)
def _not(tx: Tx, value: Var) -> Any:
    return operators.not_(tx, value)


@builtin(operator.truth)
def _truth(tx: Tx, value: Var) -> Any:
    return operators.is_true(tx, value)


@builtin(operator.is_)
def _is(tx: Tx, left: Var, right: Var) -> Any:
    return operators.is_(tx, left, right)


@builtin(operator.is_not)
def _is_not(tx: Tx, left: Var, right: Var) -> Any:
    return operators.not_(tx, operators.is_(tx, left, right))


@builtin(operator.contains)
def _contains(tx: Tx, holder: Var, item: Var) -> Any:
    return operators.contains(tx, item, holder)


@builtin(operator.getitem)
def _getitem(tx: Tx, holder: Var, key: Var) -> Any:
    return items.getitem(tx, holder, key)


@builtin(operator.setitem)
def _setitem(tx: Tx, holder: Var, key: Var, value: Var) -> None:
    items.setitem(tx, holder, key, value)


@builtin(operator.delitem)
def _delitem(tx: Tx, holder: Var, key: Var) -> None:
    items.delitem(tx, holder, key)


@builtin(operator.index)
def _index(tx: Tx, value: Var) -> Any:
    return index_(tx, value)


@builtin(operator.abs)
def _abs(tx: Tx, value: Var) -> Any:
    return calls.call(tx, tx.make.from_value(abs, None), [value], {})


@builtin(operator.concat)
def _concat(tx: Tx, left: Var, right: Var) -> Any:
    result: VariableTracker = left.realize(tx)
    if not hasattr(result.python_type(tx), "__getitem__"):
        result.type_error(tx, "'{}' object can't be concatenated")
    return operators.binary(tx, "+", left, right)


# --- callables ----------------------------------------------------------------------------------------


class GetterVariable(BuiltinObjectVariable):
    """`itemgetter` or `attrgetter`: gets one value or a tuple of them.

    Attributes:
        keys: keys, or attribute names.
        kind: the class.
    """

    __slots__ = ("keys", "kind")

    def __init__(self, keys: Sequence[Var], kind: Any) -> None:
        self.source = None
        self.keys: Final = tuple(keys)
        self.kind: Final = kind

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return self.keys

    def python_type(self, tx: Tx) -> type:
        return self.kind  # type: ignore[no-any-return]

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if kwargs or len(args) != 1:
            return fold(tx, self.kind("a"), *[None] * len(args), **dict.fromkeys(kwargs))
        found = [self._get(tx, args[0], key) for key in self.keys]
        return found[0] if len(found) == 1 else make_tuple(tx, found)

    def _get(self, tx: Tx, value: Any, key: Var) -> VariableTracker:
        if self.kind is operator.itemgetter:
            return items.getitem(tx, value, key)
        for name in key.realize(tx).as_constant().split("."):
            value = attributes.getattr_(tx, value, name)
        result: VariableTracker = value.realize(tx)
        return result

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(self.kind, self.keys)


class MethodCallerVariable(BuiltinObjectVariable):
    """`methodcaller`.

    Attributes:
        name: the method's name.
        args, kwargs: what it is called with.
    """

    __slots__ = ("args", "kwargs", "name")
    models = operator.methodcaller

    def __init__(self, name: str, args: Sequence[Var], kwargs: Mapping[str, Var]) -> None:
        self.source = None
        self.name: Final = name
        self.args: Final = tuple(args)
        self.kwargs: Final = dict(kwargs)

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return (*self.args, *self.kwargs.values())

    def python_type(self, tx: Tx) -> type:
        return self.models

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if kwargs or len(args) != 1:
            return fold(tx, operator.methodcaller("a"), *[None] * len(args), **dict.fromkeys(kwargs))
        result: VariableTracker = calls.call_method(tx, args[0], self.name, list(self.args), self.kwargs)
        return result

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(operator.methodcaller, [ConstantVariable(self.name), *self.args], self.kwargs)


@constructs(operator.itemgetter, operator.attrgetter, whole=True)
def _getter(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs or not args:
        return fold(tx, cls, *[None] * len(args), **dict.fromkeys(kwargs))
    if cls is operator.attrgetter:
        for arg in args:
            if arg.realize(tx).python_type(tx) is not str:
                tx.raise_(TypeError, "attribute name must be a string")
            constant_name(tx, arg)
    return GetterVariable(args, cls)


@constructs(operator.methodcaller, whole=True)
def _method_caller(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if not args:
        return fold(tx, operator.methodcaller, **dict.fromkeys(kwargs))
    name = args[0].realize(tx)
    if name.python_type(tx) is not str:
        tx.raise_(TypeError, "method name must be a string")
    return MethodCallerVariable(constant_name(tx, name), args[1:], kwargs)
