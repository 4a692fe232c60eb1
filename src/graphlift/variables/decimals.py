"""`decimal.Decimal`: numbers that are known, computed by the real methods.

Each operation reads the thread's context and sets flags in it. What is read is guarded (`read_context`); the
operation is done in a context of the same settings, and the flags that it sets there are set in the program's
own when the graph has run. Whoever asks for the context itself breaks the graph, and so sees them.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import ObjectSource, Source, StateSource
from graphlift.variables.base import NOT_IMPLEMENTED, UNKNOWN, NotImplementedType, VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.builtin_object import BuiltinObjectVariable, make_list, make_tuple
from graphlift.variables.classes import CLASS_METHODS, constructs
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.decimal_contexts import (
    make_context,
    raised_flags,
    read_context,
    read_decimal,
    set_flags,
)
from graphlift.variables.folding import known, wrap
from graphlift.variables.put_off import Call, calls_put_off, put_off
from graphlift.variables.user_defined import wrap_object

_METHODS: Final = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
}
_UNARY: Final = {"-": "__neg__", "+": "__pos__"}

#: Methods that are answered elsewhere, or not at all.
_REFUSED: Final = frozenset(("__hash__", "__sizeof__", "__reduce__", "__reduce_ex__"))
_OF_OBJECT: Final = frozenset(
    (
        *("__getattribute__", "__setattr__", "__delattr__", "__init__", "__init_subclass__"),
        *("__dir__", "__getstate__", "__subclasshook__", "__class__"),
    )
)


class DecimalVariable(BuiltinObjectVariable):
    """A decimal number.

    Attributes:
        value: the number.
    """

    __slots__ = ("value",)
    models = Decimal

    #: The class whose ``__format__`` is a method of the tracker's (see `slots.text`).
    formats = Decimal

    def __init__(self, value: Decimal, source: Source | None = None) -> None:
        self.source = source
        self.value: Final = value

    def python_type(self, tx: Tx) -> type:
        return Decimal

    def children(self) -> Sequence[Var]:
        """It holds nothing."""
        return ()

    def hash_key(self, tx: Tx) -> Hashable:
        return self.refuse(tx, "hash()")

    def truth(self, tx: Tx) -> bool:
        return bool(self.value)

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name in _OF_OBJECT:
            return super().call_method(tx, name, args, kwargs)
        if name in ("__copy__", "__deepcopy__"):
            return self
        if name in _REFUSED:
            self.refuse(tx, f"method {name!r}")
        values = [host(tx, arg) for arg in args]
        named = {key: host(tx, arg) for key, arg in kwargs.items()}
        if UNKNOWN in values or UNKNOWN in named.values():
            self.refuse(tx, f"method {name!r} with arguments that are not known")
        if name == "__format__" and "n" in str(values):
            self.refuse(tx, "a format that asks the locale")
        return compute(tx, getattr(Decimal, name), self.value, *values, **named)

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        return self if name == "real" else compute(tx, getattr, self.value, name)

    # --- operators -----------------------------------------------------------------------------

    def unary(self, tx: Tx, op: str) -> VariableTracker:
        return (
            compute(tx, getattr(Decimal, _UNARY[op]), self.value) if op in _UNARY else super().unary(tx, op)
        )

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        return self._operate(tx, f"__{_METHODS.get(op)}__", other)

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        return self._operate(tx, f"__r{_METHODS.get(op)}__", other)

    def _operate(self, tx: Tx, name: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        method, value = getattr(Decimal, name, None), host(tx, other)
        if value is UNKNOWN and issubclass(other.python_type(tx), (int, Decimal)):
            self.refuse(tx, "an operator with a number that is not known")
        if method is None or value is UNKNOWN:  # only integers and decimals are taken
            return NOT_IMPLEMENTED
        answer = compute(tx, method, self.value, value)
        refused = isinstance(answer, ConstantVariable) and answer.value is NotImplemented
        return NOT_IMPLEMENTED if refused else answer

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if host(tx, other) is UNKNOWN:  # numbers of the user's may be compared with, if they say so
            self.refuse(tx, f"`{op}` with what is not known")
        return self._operate(tx, f"__{_METHODS[op]}__", other)

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(Decimal, [ConstantVariable(read_decimal(self.value))])

    def __repr__(self) -> str:
        return f"DecimalVariable({self.value})"


def host(tx: Tx, var: Var) -> Any:
    """The host value of a decimal number or of anything else that is known, or `UNKNOWN`."""
    operand: VariableTracker = var.realize(tx)
    return operand.value if isinstance(operand, DecimalVariable) else known(tx, operand)


def compute(tx: Tx, function: Callable[..., Any], *args: Any, **kwargs: Any) -> VariableTracker:
    """The tracker of ``function(*args)`` in a context like the program's.

    Flags are set, and what is raised is raised, in the program.
    """
    error = result = None
    with decimal.localcontext(make_context(_settings(tx))) as context:
        try:
            result = function(*args, **kwargs)
        except Exception as raised:
            error = raised
        flags = raised_flags(context)
    if flags:
        _put_off_flags(tx, flags)
    if isinstance(error, decimal.DecimalException):
        tx.raise_(type(error), *(_argument(tx, arg) for arg in error.args))
    if error is not None:
        tx.raise_real(error)
    return _made(tx, result)


def _settings(tx: Tx) -> tuple[Any, ...]:
    """The settings of the program's context, guarded."""
    known_settings: tuple[Any, ...] | None = tx.reads.get(_SETTINGS)
    if known_settings is None:
        known_settings = tx.reads[_SETTINGS] = read_context(None)
        tx.guard("constant", ObjectSource(None, "decimal").child(StateSource, read_context), known_settings)
    return known_settings


#: Where `tx.reads` keeps the settings of the context.
_SETTINGS: Final = (0, "decimal context")


def _argument(tx: Tx, arg: Any) -> Var:
    """Signals are raised with a list of them."""
    if type(arg) is list:
        return make_list(tx, [tx.make.from_value(signal, None) for signal in arg])
    return tx.make.constant(arg)


def _made(tx: Tx, result: Any) -> VariableTracker:
    cls = type(result)
    if cls is Decimal:
        return DecimalVariable(result)
    if isinstance(result, tuple):
        return make_tuple(tx, [_made(tx, item) for item in result], cls)
    return wrap(tx, result)


def _put_off_flags(tx: Tx, flags: tuple[str, ...]) -> None:
    for call in calls_put_off(tx):
        if call.function is set_flags and set(flags) <= set(call.args[0].realize(tx).as_constant()):
            return
    put_off(tx, Call(set_flags, (ConstantVariable(flags),), {}, tx.where()))


@wraps(Decimal)
def _wrap(tx: Tx, value: Decimal, source: Source | None) -> Var:
    """A number that is handed in: guarded by its digits, until they are seen to vary."""
    if source is not None:
        digits = read_decimal(value)
        if tx.capture.varies(source, digits):
            return wrap_object(tx, value, source)
        tx.guard("type", source, Decimal)
        tx.guard("constant", source.child(StateSource, read_decimal), digits)
    return DecimalVariable(value, source)


@constructs(Decimal, whole=True)
def _construct(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if len(args) == 1 and not kwargs and cls is Decimal and isinstance(args[0].realize(tx), DecimalVariable):
        return args[0].realize(tx)
    values = [host(tx, arg) for arg in args]
    named = {key: host(tx, arg) for key, arg in kwargs.items()}
    if cls is not Decimal or UNKNOWN in values or UNKNOWN in named.values():
        tx.fail(
            Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__} made of values that are not known"
        )
    return compute(tx, Decimal, *values, **named)


def _from_float(tx: Tx, cls: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    values = [host(tx, arg) for arg in args]
    if cls.value is not Decimal or kwargs or UNKNOWN in values:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "Decimal.from_float() of these arguments")
    return compute(tx, Decimal.from_float, *values)


CLASS_METHODS[Decimal, "from_float"] = _from_float
