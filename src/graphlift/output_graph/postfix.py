"""Expressions of torch's shape environment as postfix tuples, for guards.

Knows the functions that torch adds to sympy; refuses what it does not know, never approximates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final


class Untranslatable(Exception):
    """No exact translation is known."""


#: Functions of two arguments that both sides know.
_BINARY: Final = {
    "FloorDiv": "//",
    "CleanDiv": "//",
    "Mod": "%",
    "PythonMod": "%",
    "CeilDiv": "ceildiv",
    "IntTrueDiv": "/",
    "FloatTrueDiv": "/",
    "PowByNatural": "**",
    "FloatPow": "**",
    "BitwiseFn_bitwise_and": "&",
    "BitwiseFn_bitwise_or": "|",
    "BitwiseFn_bitwise_xor": "^",
    "LShift": "<<",
    "RShift": ">>",
    "Equality": "==",
    "Unequality": "!=",
    "StrictLessThan": "<",
    "LessThan": "<=",
    "StrictGreaterThan": ">",
    "GreaterThan": ">=",
}
#: Functions of any number of arguments, taken two by two.
_CHAINED: Final = {"Add": "+", "Mul": "*", "And": "and", "Or": "or", "Max": "max", "Min": "min"}
_UNARY: Final = {
    "Not": "not",
    "Abs": "abs",
    "ToFloat": "float",
    "TruncToInt": "trunc",
    "FloorToInt": "floor",
    "CeilToInt": "ceil",
    "RoundToInt": "round",
}


def postfix(expression: Any, inputs: Mapping[Any, tuple[Any, ...]]) -> tuple[Any, ...]:
    """The expression in postfix form.

    Args:
        inputs: for each symbol, the input that it is, or the postfix expression that it stands for.

    Raises:
        Untranslatable: for a function that guards do not have, or a symbol that is no input.
    """
    items: list[Any] = []
    _emit(expression, inputs, items)
    return tuple(items)


def takes_no_step(expression: Any, floats: Collection[Any]) -> bool:
    """Whether the expression compares and rounds the symbols `floats` only, but does not compute with them.

    Torch simplifies arithmetic of floats as if they were real numbers; this much stays as it was.
    """
    if expression.is_Symbol or not any(symbol in floats for symbol in expression.free_symbols):
        return True
    if type(expression).__name__ not in _STEPLESS:
        return False
    return all(takes_no_step(argument, floats) for argument in expression.args)


_STEPLESS: Final = frozenset(
    {
        *("Equality", "Unequality", "StrictLessThan", "LessThan", "StrictGreaterThan", "GreaterThan"),
        *("And", "Or", "Not", "TruncToInt", "FloorToInt", "CeilToInt", "RoundToInt"),
    }
)


def _emit(expression: Any, inputs: Mapping[Any, tuple[Any, ...]], items: list[Any]) -> None:
    if expression.is_Symbol:
        name = inputs.get(expression)
        if name is None:
            raise Untranslatable(str(expression))
        if isinstance(name[0], str):
            items.append(name)
        else:
            items.extend(name)
    elif expression.is_Integer and -(1 << 63) <= expression < 1 << 63:
        items.append(int(expression))
    elif expression.is_Float:
        items.append(float(expression))
    elif expression.is_Boolean and not expression.args:
        items.append(int(bool(expression)))
    else:
        _function(expression, inputs, items)


def _function(expression: Any, inputs: Mapping[Any, tuple[Any, ...]], items: list[Any]) -> None:
    name = type(expression).__name__
    args = expression.args
    if name in _CHAINED:
        _chain(_CHAINED[name], args, inputs, items)
    elif name in _BINARY:
        _emit(args[0], inputs, items)
        _emit(args[1], inputs, items)
        items.append(_BINARY[name])
    elif name in _UNARY:
        _emit(args[0], inputs, items)
        items.append(_UNARY[name])
    elif name == "ModularIndexing":
        _emit(args[0], inputs, items)
        _emit(args[1], inputs, items)
        items.append("//")
        _emit(args[2], inputs, items)
        items.append("%")
    elif name == "Pow" and args[1].is_Integer and int(args[1]) > 0:
        _emit(args[0], inputs, items)
        items.extend((int(args[1]), "**"))
    else:
        raise Untranslatable(name)


def _chain(name: str, args: Any, inputs: Mapping[Any, tuple[Any, ...]], items: list[Any]) -> None:
    _emit(args[0], inputs, items)
    for argument in args[1:]:
        _emit(argument, inputs, items)
        items.append(name)
