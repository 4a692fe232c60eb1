"""Python's operators as data: what the `operator` module has for each symbol, and which methods are asked.

Mirrors the number part of Objects/abstract.c and the names in Objects/typeobject.c. It knows nothing of what
stands on either side.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

BINARY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "@": operator.matmul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}

COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

UNARY: Final[Mapping[str, Callable[[Any], Any]]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
}


def _stem(function: Callable[..., Any]) -> str:
    return function.__name__.strip("_")


INPLACE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    symbol: getattr(operator, f"i{_stem(function)}") for symbol, function in BINARY.items()
}

_NUMBERS: Final = (int, float, complex)


def numbers_lack(op: str, left: type, right: type) -> bool:
    """Whether two classes of builtin numbers answer ``NotImplemented`` to an operator or ordering."""
    if not (issubclass(left, _NUMBERS) and issubclass(right, _NUMBERS)):
        return False
    if op in ("&", "|", "^", "<<", ">>"):
        return not (issubclass(left, int) and issubclass(right, int))
    if op in ("//", "%", "<", "<=", ">", ">="):
        return issubclass(left, complex) or issubclass(right, complex)
    return op == "@"


#: The comparison that the right operand is asked for.
SWAPPED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

# Names of the methods that are asked.
BINARY_METHODS: Final = {symbol: f"__{_stem(function)}__" for symbol, function in BINARY.items()}
REFLECTED_METHODS: Final = {symbol: f"__r{_stem(function)}__" for symbol, function in BINARY.items()}
INPLACE_METHODS: Final = {symbol: f"__i{_stem(function)}__" for symbol, function in BINARY.items()}
COMPARE_METHODS: Final = {symbol: f"__{_stem(function)}__" for symbol, function in COMPARE.items()}
UNARY_METHODS: Final = {symbol: f"__{_stem(function)}__" for symbol, function in UNARY.items()}
