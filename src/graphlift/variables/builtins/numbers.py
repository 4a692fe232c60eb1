"""Builtins of numbers: `abs`, `divmod`, `pow`, `round`, `int`, `float`, `bool`, `complex`, `math`."""

from __future__ import annotations

import cmath
import math
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from graphlift.polyfills import reductions
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import NOT_IMPLEMENTED, UNKNOWN, NotImplementedType, VariableTracker, c_name
from graphlift.variables.builtin_object import constant, make_tuple
from graphlift.variables.builtins.registry import PURE, builtin
from graphlift.variables.classes import CLASS_METHODS, constructs
from graphlift.variables.constant import ConstantVariable, beneath
from graphlift.variables.derived_values import derived_value
from graphlift.variables.folding import fold, is_symbolic, known, known_all
from graphlift.variables.slots import attributes, calls, operators
from graphlift.variables.slots.type_lookup import Binding, mro_of, type_lookup

_LEFT_OUT = {"perm", "comb", "factorial", "pow", "prod", "ldexp", "floor", "ceil", "trunc"}

PURE.update(
    value
    for module in (math, cmath)
    for name, value in vars(module).items()
    if callable(value) and not name.startswith("_") and name not in _LEFT_OUT
)
PURE.update(
    (chr, ord, hex, oct, bin, math.ldexp, math.pow, str.maketrans, bytes.maketrans, zlib.crc32, zlib.adler32)
)
PURE.update((unicodedata.normalize, unicodedata.category, unicodedata.name, unicodedata.lookup))
PURE.update((float.fromhex, int.from_bytes, bytes.fromhex))


def special(tx: Tx, value: Var, name: str, *args: Var) -> VariableTracker | None:
    """Call a special method looked up on the type; None when the type has none."""
    bound = attributes.lookup_special(tx, value.realize(tx), name)
    return None if bound is None else cast(VariableTracker, calls.call(tx, bound, list(args), {}).realize(tx))


@builtin(abs)
def _abs(tx: Tx, value: Var) -> Any:
    number = UNKNOWN if is_symbolic(tx, value) else known(tx, value)
    if number is not UNKNOWN:
        return fold(tx, abs, number)
    made = special(tx, value, "__abs__")
    return value.realize(tx).type_error(tx, "bad operand type for abs(): '{}'") if made is None else made


#: Numbers whose ``divmod`` is ``//`` and ``%``.
_DIVIDED = frozenset({int, float, bool})


@builtin(divmod)
def _divmod(tx: Tx, left: Var, right: Var) -> Any:
    # A division by zero has an error of its own.
    open_numbers = (is_symbolic(tx, left) or is_symbolic(tx, right)) and operators.is_true(tx, right)
    values = None if open_numbers else known_all(tx, (left, right), {})
    if values is not None:
        return fold(tx, divmod, *values[0])
    parts = [_number_beneath(tx, left), _number_beneath(tx, right)]
    if all(part.realize(tx).python_type(tx) in _DIVIDED for part in parts):
        left, right = parts
        values = None if open_numbers else known_all(tx, (left, right), {})
        if values is not None:
            return fold(tx, divmod, *values[0])
    first, second = left.realize(tx).python_type(tx), right.realize(tx).python_type(tx)
    if not (first in _DIVIDED and second in _DIVIDED):
        answer = _divided(tx, left, right)
        if not isinstance(answer, NotImplementedType):
            return answer
        names = f"'{c_name(first)}' and '{c_name(second)}'"  # that they have ``//`` is another matter
        tx.raise_(TypeError, f"unsupported operand type(s) for divmod(): {names}")
    return make_tuple(tx, [operators.binary(tx, "//", left, right), operators.binary(tx, "%", left, right)])


def _number_beneath(tx: Tx, value: Var) -> Var:
    """The number that one of a derived class is to ``divmod``, unless the class divides in its own way."""
    number: Any = value.realize(tx)
    part = getattr(number, "storage", None)
    if not isinstance(part, ConstantVariable) or type(part.value) not in _DIVIDED:
        return value
    found = [type_lookup(tx, number.python_type(tx), name) for name in ("__divmod__", "__rdivmod__")]
    plain = all(attr is not None and attr.binding is Binding.C_METHOD for attr in found)
    return part if plain else value


def _divided(tx: Tx, left: Var, right: Var) -> VariableTracker | NotImplementedType:
    """``divmod`` by the methods of the operands (``binary_op1``)."""
    first, second = left.realize(tx), right.realize(tx)
    tries = [(first, "__divmod__", second), (second, "__rdivmod__", first)]
    if first.python_type(tx) is second.python_type(tx):
        tries.pop()
    elif operators.goes_first(tx, second, first, "__rdivmod__"):
        tries.reverse()
    for value, name, other in tries:
        if value.python_type(tx) in _DIVIDED:  # they take only each other
            continue
        made = special(tx, value, name, other)
        answer = NOT_IMPLEMENTED if made is None else operators.answer_of(tx, made)
        if not isinstance(answer, NotImplementedType):
            return answer
    return NOT_IMPLEMENTED


@builtin(pow)
def _pow(tx: Tx, base: Var, exp: Var, mod: Var | None = None) -> Any:
    if mod is None or known(tx, mod) is None:
        return operators.binary(tx, "**", base, exp)
    values = known_all(tx, (base, exp, mod), {})
    if values is None:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "pow() with a modulus")
    return fold(tx, pow, *values[0])


@builtin(round)
def _round(tx: Tx, number: Var, ndigits: Var | None = None) -> Any:
    args = (number,) if ndigits is None else (number, ndigits)
    values = known_all(tx, args, {})
    if values is not None:
        return fold(tx, round, *values[0])
    made = special(tx, number, "__round__", *args[1:])
    if made is None:
        number.realize(tx).type_error(tx, "type {} doesn't define __round__ method")
    return made


def _rounding(function: Any, name: str) -> None:
    def model(tx: Tx, number: Var) -> Any:
        made = special(tx, number, name)
        if made is None:
            tx.fail(Reason.UNSUPPORTED_BUILTIN, f"rounding of {number!r}")
        return made

    builtin(function)(model)


for _function, _name in ((math.floor, "__floor__"), (math.ceil, "__ceil__"), (math.trunc, "__trunc__")):
    _rounding(_function, _name)


def _bounded(function: Any) -> None:
    def model(tx: Tx, *args: Var) -> Any:
        values = known_all(tx, args, {})
        if values is None or any(isinstance(value, int) and value > 5000 for value in values[0]):
            tx.fail(Reason.UNSUPPORTED_BUILTIN, f"math.{function.__name__}() of these arguments")
        return fold(tx, function, *values[0])

    builtin(function)(model)


for _bound in (math.factorial, math.perm, math.comb):
    _bounded(_bound)


@builtin(math.prod)
def _prod(tx: Tx, iterable: Var, *, start: Var | None = None) -> Any:
    return tx.run_host(reductions.product, [iterable, constant(tx, 1) if start is None else start])


# --- classes --------------------------------------------------------------------------------------------


def _number(tx: Tx, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    alone = len(args) == 1 and not kwargs
    values = (
        None if alone and cls is not complex and is_symbolic(tx, args[0]) else known_all(tx, args, kwargs)
    )
    if values is not None:
        return fold(tx, cls, *values[0], **values[1])
    if not alone:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, f"{cls.__name__}() of values that are not known")
    value = args[0].realize(tx)
    for name in names:
        if name == "__trunc__" and attributes.user_special(tx, value, name):
            tx.fail(Reason.UNSUPPORTED_BUILTIN, "int() by `__trunc__`, which warns")
        made = special(tx, value, name)
        if made is not None:
            return _checked(tx, cls, name, made, value)
    text = beneath(tx, value, str, bytes, bytearray)
    if isinstance(text, ConstantVariable) and text.is_text():
        return fold(tx, cls, text.value)
    if _may_hold_text(value.python_type(tx)):
        tx.fail(Reason.UNSUPPORTED_BUILTIN, f"{cls.__name__}() of {value!r}, which may hold text")
    return _no_number(tx, cls, value)


#: Classes written in C whose objects, and those of classes derived from them, are no buffers.
_NO_BUFFERS: Final = frozenset(
    {object, list, dict, tuple, set, frozenset, type, type(None), slice, range, int, float, complex}
)
_HEAP_TYPE: Final = 1 << 9
_IMMUTABLE_TYPE: Final = 1 << 8


def _may_hold_text(cls: type) -> bool:
    """Whether numbers may be read from objects of the class as from text: strings, and what is a buffer."""
    if hasattr(cls, "__buffer__"):
        return True
    return any(_is_written_in_c(base) and base not in _NO_BUFFERS for base in mro_of(cls))


def _is_written_in_c(cls: type) -> bool:
    return not cls.__flags__ & _HEAP_TYPE or bool(cls.__flags__ & _IMMUTABLE_TYPE)


def _checked(tx: Tx, cls: type, name: str, made: VariableTracker, value: VariableTracker) -> Any:
    """What a conversion method gave must be of the class (or an integer, for ``__index__``)."""
    kind = made.python_type(tx)
    wanted = _GIVES.get(name, cls)
    if kind is wanted:
        number = UNKNOWN if is_symbolic(tx, made) and wanted is cls else known(tx, made)
        return fold(tx, cls, number) if number is not UNKNOWN else made
    if issubclass(kind, wanted):
        tx.fail(
            Reason.UNSUPPORTED_BUILTIN, f"{cls.__name__}() of an object whose {name} gives a derived class"
        )
    owner = f"{value.python_type(tx).__name__}." if name == "__float__" else ""
    tx.raise_(TypeError, f"{owner}{name} returned non-{wanted.__name__} (type {kind.__name__})")


_GIVES: Final = {"__index__": int, "__float__": float}


def _no_number(tx: Tx, cls: type, value: VariableTracker) -> Any:
    if cls is int:
        text = "int() argument must be a string, a bytes-like object or a real number, not '{}'"
    elif cls is float:
        text = "float() argument must be a string or a real number, not '{}'"
    else:
        text = "complex() first argument must be a string or a number, not '{}'"
    return value.type_error(tx, text)


@constructs(int, whole=True)
def _int(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if cls is not int:
        return derived_value(tx, cls_var, cls, _int(tx, cls_var, int, args, kwargs))
    return _number(tx, int, args, kwargs, ("__int__", "__index__", "__trunc__"))


@constructs(float, whole=True)
def _float(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if cls is not float:
        return derived_value(tx, cls_var, cls, _float(tx, cls_var, float, args, kwargs))
    return _number(tx, float, args, kwargs, ("__float__", "__index__"))


@constructs(complex, whole=True)
def _complex(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if cls is not complex:
        return derived_value(tx, cls_var, cls, _complex(tx, cls_var, complex, args, kwargs))
    return _number(tx, complex, args, kwargs, ("__complex__", "__float__", "__index__"))


@constructs(bool, whole=True)
def _bool(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs or len(args) > 1:
        values = [None] * len(args)
        return fold(tx, bool, *values, **dict.fromkeys(kwargs))
    if not args:
        return constant(tx, False)
    truth = operators.truth(tx, args[0])
    if isinstance(truth, bool):
        return constant(tx, truth)
    made = special(tx, truth, "__bool__")
    return truth if made is None else made


def _folded_class_method(owner: type, name: str) -> None:
    def model(tx: Tx, cls: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        values = known_all(tx, args, kwargs)
        if values is None or cls.value is not owner:
            tx.fail(Reason.UNSUPPORTED_BUILTIN, f"{owner.__name__}.{name}() of these arguments")
        return fold(tx, getattr(owner, name), *values[0], **values[1])

    CLASS_METHODS[owner, name] = model


for _owner, _name in ((int, "from_bytes"), (float, "fromhex"), (bytes, "fromhex")):
    _folded_class_method(_owner, _name)
