"""The kind for relations between numbers: symbolic ints and floats, sizes and strides of tensors.

An expression is a tuple in postfix form. Its items are numbers, names of operations, and inputs:
``("int", source)``, ``("float", source)``, ``("size", source, dim)``, ``("stride", source, dim)``,
``("offset", source)``. It must come out true. Both faces are exact or fail: no integer beyond 64 bits, no
integer beyond 53 bits that meets a float, no infinite result.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from graphlift.guards.guard import Guard, Kind, kind
from graphlift.guards.kinds.showing import show
from graphlift.guards.places import Rows
from graphlift.guards.torch_readers import read_plainly

Number = int | float
_EXACT: Final = 1 << 53
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class _NotExactError(Exception):
    """No exact answer exists."""


def _fits(value: Number) -> Number:
    if type(value) is int and not _LEAST <= value <= _MOST:
        raise _NotExactError
    return value


def _exactly(function: Callable[[Any, Any], Any]) -> Callable[[Number, Number], Number]:
    """An operation on two numbers, of which an int that meets a float must be exact as one."""

    def run(a: Number, b: Number) -> Number:
        if type(a) is not type(b) and max(abs(n) for n in (a, b) if type(n) is int) > _EXACT:
            raise _NotExactError
        return _fits(function(a, b))

    return run


def _ints(function: Callable[[int, int], int]) -> Callable[[Number, Number], Number]:
    def run(a: Number, b: Number) -> Number:
        if type(a) is not int or type(b) is not int:
            raise _NotExactError
        return _fits(function(a, b))

    return run


def _true_division(a: Number, b: Number) -> float:
    if any(type(n) is int and abs(n) > _EXACT for n in (a, b)):
        raise _NotExactError
    return a / b


def _power(a: Number, b: Number) -> Number:
    if type(a) is int and type(b) is int:
        if b < 0:
            raise _NotExactError
        if abs(a) > 1 and b > 63:
            raise _NotExactError
        return int(a**b)
    result = a**b
    if isinstance(result, complex) or not math.isfinite(result):
        raise _NotExactError
    return float(result)


def _least(a: Number, b: Number) -> Number:
    if a != a or b != b:
        raise _NotExactError
    return min(a, b)


def _greatest(a: Number, b: Number) -> Number:
    if a != a or b != b:
        raise _NotExactError
    return max(a, b)


def _shift_left(a: int, b: int) -> int:
    if b > 62:
        raise _NotExactError
    return a << b


def _compare(function: Callable[[Any, Any], bool]) -> Callable[[Any, Any], int]:
    return lambda a, b: int(function(a, b))


def _rounding(function: Callable[[float], int]) -> Callable[[Number], Number]:
    def run(a: Number) -> Number:
        if type(a) is int:
            return a
        if not abs(a) <= 9.2e18:
            raise _NotExactError
        return function(a)

    return run


def _to_float(a: Number) -> float:
    if type(a) is int and abs(a) > _EXACT:
        raise _NotExactError
    return float(a)


_BINARY: Final[dict[str, Callable[[Any, Any], Number]]] = {
    "+": _exactly(operator.add),
    "-": _exactly(operator.sub),
    "*": _exactly(operator.mul),
    "//": _exactly(operator.floordiv),
    "%": _exactly(operator.mod),
    "ceildiv": _ints(lambda a, b: -(-a // b)),
    "/": _true_division,
    "**": _exactly(_power),
    "min": _exactly(_least),
    "max": _exactly(_greatest),
    "==": _exactly(_compare(operator.eq)),
    "!=": _exactly(_compare(operator.ne)),
    "<": _exactly(_compare(operator.lt)),
    "<=": _exactly(_compare(operator.le)),
    ">": _exactly(_compare(operator.gt)),
    ">=": _exactly(_compare(operator.ge)),
    "same": lambda a, b: int(type(a) is type(b) and struct.pack("d", a) == struct.pack("d", b)),
    "and": lambda a, b: int(bool(a) and bool(b)),
    "or": lambda a, b: int(bool(a) or bool(b)),
    "&": _ints(operator.and_),
    "|": _ints(operator.or_),
    "^": _ints(operator.xor),
    "<<": _ints(_shift_left),
    ">>": _ints(operator.rshift),
}

_UNARY: Final[dict[str, Callable[[Any], Number]]] = {
    "not": lambda a: int(not a),
    "neg": lambda a: _fits(-a),
    "abs": lambda a: _fits(abs(a)),
    "float": _to_float,
    "trunc": _rounding(math.trunc),
    "floor": _rounding(math.floor),
    "ceil": _rounding(math.ceil),
    "round": _rounding(round),
}


def evaluate(items: Sequence[Any], inputs: Callable[[tuple[Any, ...]], Number]) -> bool:
    """Whether a postfix expression is true; `inputs` gives the number of an input.

    Raises:
        IndexError: it is not in postfix form.
        KeyError: an unknown operation.
    """
    stack: list[Number] = []
    try:
        for item in items:
            if isinstance(item, tuple):
                stack.append(_fits(inputs(item)))
            elif not isinstance(item, str):
                stack.append(item)
            elif item in _UNARY:
                stack[-1] = _UNARY[item](stack[-1])
            else:
                right = stack.pop()
                stack[-1] = _BINARY[item](stack[-1], right)
    except (_NotExactError, ArithmeticError, ValueError):
        return False
    return bool(stack[0])


def _number(item: tuple[Any, ...], value: Any) -> Number:
    """The number that an input stands for."""
    sort = item[0]
    if sort in ("int", "float"):
        if type(value) is not (int if sort == "int" else float):
            raise _NotExactError
        return value
    if not issubclass(type(value), torch.Tensor):
        raise _NotExactError
    read = read_plainly(value)
    if sort == "offset":
        return int(read[8])
    numbers = read[6] if sort == "size" else read[7]
    if item[2] >= len(numbers):
        raise _NotExactError
    return int(numbers[item[2]])


@kind
class ExpressionKind(Kind):
    """A relation that must be true. Source: None; payload: the items of the expression."""

    name = "expression"
    rank = 2

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        ats: dict[int, int] = {}
        kept: list[Any] = []
        for item in guard.payload:
            if isinstance(item, tuple):
                at = rows.at(item[1])
                item = (item[0], ats.setdefault(at, len(ats)), *item[2:])
            kept.append(item)
        order = tuple(ats)
        rows.add(
            "expression", -1, *((i[0], order[i[1]], *i[2:]) if isinstance(i, tuple) else i for i in kept)
        )
        return order, tuple(kept)

    def holds(self, payload: Any, *values: Any) -> bool:
        return evaluate(payload, lambda item: _number(item, values[item[1]]))

    def describe(self, payload: Any, *names: str) -> str:
        return in_infix(payload, names)

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        now = []
        for item in dict.fromkeys(item for item in payload if isinstance(item, tuple)):
            try:
                number = show(_number(item, values[item[1]]))
            except _NotExactError:
                number = show(values[item[1]])
            now.append(f"{_input_name(item, names)} is {number}")
        return f"{in_infix(payload, names)} was true; now {', '.join(now) or 'it is not'}"


def _input_name(item: tuple[Any, ...], names: Sequence[str]) -> str:
    name: str = names[item[1]]
    if item[0] in ("int", "float"):
        return name
    return f"{name}.storage_offset()" if item[0] == "offset" else f"{name}.{item[0]}({item[2]})"


def in_infix(items: Sequence[Any], names: Sequence[str]) -> str:
    """An expression as people write it."""
    stack: list[str] = []
    for item in items:
        if isinstance(item, tuple):
            stack.append(_input_name(item, names))
        elif not isinstance(item, str):
            stack.append(repr(item))
        elif item in _UNARY:
            stack[-1] = f"-{stack[-1]}" if item == "neg" else f"{item}({stack[-1]})"
        else:
            right = stack.pop()
            stack[-1] = (
                f"{item}({stack[-1]}, {right})" if item.isalpha() and item not in ("and", "or")
                else f"({stack[-1]} {item} {right})"
            )  # fmt: skip
    text: str = stack[0]
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text
