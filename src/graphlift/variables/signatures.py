"""``inspect.signature`` of Python functions: names, kinds and defaults of parameters, told from their code.

Mirrors _signature_from_callable and _signature_from_function of Lib/inspect.py. Annotations are not followed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from inspect import CO_VARARGS, CO_VARKEYWORDS, Parameter, Signature
from types import CodeType
from typing import Any, Final, NamedTuple

from graphlift.protocol import Tx, Var
from graphlift.sources import AttrSource
from graphlift.variables import namespace
from graphlift.variables.base import VariableTracker
from graphlift.variables.functions import FunctionVariable, models
from graphlift.variables.methods import BoundMethodVariable


class Row(NamedTuple):
    """One parameter; `default` is None where it has none."""

    name: str
    kind: Any
    default: Var | None


def rows_of(tx: Tx, function: FunctionVariable) -> list[Row]:
    """The parameters of a Python function, in the order of its signature."""
    code = function.code
    rows = [_positional(tx, function, code, index) for index in range(code.co_argcount)]
    end = code.co_argcount + code.co_kwonlyargcount
    after = end
    if code.co_flags & CO_VARARGS:
        rows.append(Row(code.co_varnames[after], Parameter.VAR_POSITIONAL, None))
        after += 1
    only = code.co_varnames[code.co_argcount : end]
    rows += [Row(name, Parameter.KEYWORD_ONLY, function.default(tx, -1, name)) for name in only]
    if code.co_flags & CO_VARKEYWORDS:
        rows.append(Row(code.co_varnames[after], Parameter.VAR_KEYWORD, None))
    return rows


def _positional(tx: Tx, function: FunctionVariable, code: CodeType, index: int) -> Row:
    only = index < code.co_posonlyargcount
    name = code.co_varnames[index]
    kind = Parameter.POSITIONAL_ONLY if only else Parameter.POSITIONAL_OR_KEYWORD
    return Row(name, kind, function.default(tx, index, name))


class ParameterVariable(VariableTracker):
    """An `inspect.Parameter`."""

    __slots__ = ("row",)

    def __init__(self, row: Row) -> None:
        self.source = None
        self.row: Final = row

    def python_type(self, tx: Tx) -> type:
        return Parameter

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        value: Any = None
        if name == "name":
            value = tx.make.constant(self.row.name)
        elif name == "kind":
            value = tx.make.from_value(self.row.kind, None)
        elif name == "default" and self.row.default is not None:
            value = self.row.default
        elif name in ("default", "empty"):
            value = tx.make.from_value(Parameter.empty, None)
        elif isinstance(Parameter.__dict__.get(name), type(Parameter.KEYWORD_ONLY)):
            value = tx.make.from_value(Parameter.__dict__[name], None)
        if value is None:
            return self.refuse(tx, f"attribute {name!r}")
        return value.realize(tx)  # type: ignore[no-any-return]


class SignatureVariable(VariableTracker):
    """An `inspect.Signature`."""

    __slots__ = ("rows",)

    def __init__(self, rows: Sequence[Row]) -> None:
        self.source = None
        self.rows: Final = rows

    def python_type(self, tx: Tx) -> type:
        return Signature

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name == "empty":
            return tx.make.from_value(Signature.empty, None).realize(tx)  # type: ignore[no-any-return]
        if name != "parameters":
            return self.refuse(tx, f"attribute {name!r}")
        return ParametersVariable(self.rows)


class ParametersVariable(VariableTracker):
    """The read-only mapping of a signature's parameters, by name."""

    __slots__ = ("rows",)

    def __init__(self, rows: Sequence[Row]) -> None:
        self.source = None
        self.rows: Final = rows

    def python_type(self, tx: Tx) -> type:
        return type(Signature().parameters)

    def _as_dict(self, tx: Tx) -> Any:
        return tx.make.dict([(tx.make.constant(row.name), ParameterVariable(row)) for row in self.rows])

    def length(self, tx: Tx) -> VariableTracker:
        return tx.make.constant(len(self.rows))  # type: ignore[return-value]

    def truth(self, tx: Tx) -> bool:
        return bool(self.rows)

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        return self._as_dict(tx).getitem(tx, key)  # type: ignore[no-any-return]

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker:
        return self._as_dict(tx).contains(tx, item)  # type: ignore[no-any-return]

    def iter_(self, tx: Tx) -> VariableTracker:
        return self._as_dict(tx).iter_(tx)  # type: ignore[no-any-return]

    def unpack(self, tx: Tx) -> list[VariableTracker]:
        return self._as_dict(tx).unpack(tx)  # type: ignore[no-any-return]

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name in ("keys", "values", "items", "get", "copy"):
            return tx.make.builtin_method(name, self)  # type: ignore[return-value]
        return self.refuse(tx, f"attribute {name!r}")

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        return self._as_dict(tx).call_method(tx, name, args, kwargs)  # type: ignore[no-any-return]


def _unwrapped(tx: Tx, function: VariableTracker) -> VariableTracker:
    """What ``__wrapped__`` leads to, unless ``__signature__`` says something else on the way."""
    while True:
        own = function.instance_dict(tx)
        if own is None:
            return function
        if namespace.lookup(tx, own, "__signature__", AttrSource) is not None:
            return function.refuse(tx, "signature with a `__signature__`")
        inner = namespace.lookup(tx, own, "__wrapped__", AttrSource)
        if inner is None:
            return function
        function = inner.realize(tx)


@models(inspect.signature)
def _signature(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    target: VariableTracker = args[0].realize(tx) if args else tx.make.constant(None)  # type: ignore[assignment]
    if len(args) != 1 or kwargs:
        return target.refuse(tx, "signature with options")
    bound = isinstance(target, BoundMethodVariable)
    function = _unwrapped(
        tx, target.function.realize(tx) if isinstance(target, BoundMethodVariable) else target
    )
    if not isinstance(function, FunctionVariable):
        return target.refuse(tx, "signature")
    rows = rows_of(tx, function)
    if bound and rows and rows[0].kind is not Parameter.VAR_POSITIONAL:
        rows = rows[1:]
    return SignatureVariable(rows)
