"""Computing with values that are wholly known: the real operation runs now, on the host.

Owns which types may be folded (their operators and methods run no user code and have no side effect), the
bound on what a result may cost, and the way from a host value back to a tracker. Knows no tracker class but
the base. What a folded operation raises is raised in the user's program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from graphlift.operators import BINARY, INPLACE
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import ObjectSource, StateSource
from graphlift.variables.base import UNKNOWN, VariableTracker

#: Exact types whose operators, methods and attributes are pure and run nothing of the user's.
FOLDABLE: set[type] = {
    int,
    float,
    complex,
    bool,
    str,
    bytes,
    type(None),
    type(Ellipsis),
    type(NotImplemented),
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
}

#: Foldable types whose objects are made anew at each run: their trackers.
MADE_ANEW: Final[dict[type, Callable[[Any], Var]]] = {}

#: Bits of the largest integer, and items of the largest string, that folding makes.
SIZE_LIMIT: Final = 1 << 20

#: Containers nested deeper than this are not looked at as a whole (they may hold themselves).
DEPTH_LIMIT: Final = 40


def _bits(value: object) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _multiplied(left: Any, right: Any) -> int:
    if isinstance(left, int) and isinstance(right, int):
        return _bits(left) + _bits(right)
    if isinstance(left, int):
        left, right = right, left
    if isinstance(right, int) and isinstance(left, str | bytes | tuple):
        return len(left) * right
    return 0


def result_size(op: str, left: Any, right: Any) -> int:
    """A bound on the bits or items of ``left op right``, where it may be far larger than its operands."""
    if op == "*":
        return _multiplied(left, right)
    if op == "**" and isinstance(left, int) and isinstance(right, int):
        return _bits(left) * right if abs(left) > 1 else 0
    if op == "<<" and isinstance(left, int) and isinstance(right, int):
        return _bits(left) + right
    if op == "%" and isinstance(left, str | bytes):
        return _width(left)
    return 0


def _width(spec: str | bytes) -> int:
    """The largest number written in a format string, which may be a width."""
    text = spec.decode("latin-1") if isinstance(spec, bytes) else spec
    runs = "".join(c if c.isdecimal() else " " for c in text).split()
    return max((int(run) for run in runs if len(run) > 5), default=0)


def fold(tx: Tx, function: Callable[..., Any], *args: Any, **kwargs: Any) -> VariableTracker:
    """The tracker of ``function(*args)``, host values all; what it raises is raised in the program."""
    if _converts_very_long(function, args):
        tx.fail(Reason.UNSUPPORTED_OPERATION, "a number with very many digits to or from text")
    try:
        value = function(*args, **kwargs)
    except Exception as error:
        if type(error) is ValueError and any(_is_long(arg) or _holds_large(arg) for arg in args):
            _limit_of_digits(tx)
        tx.raise_real(error)
    return computed(tx, value, args)


def computed(tx: Tx, value: Any, args: Sequence[Any]) -> VariableTracker:
    """The tracker of what a function gave for arguments, host values all."""
    if any(map(_holds_large, args)) if _is_long(value) else any(map(_is_long, args)) and _holds_large(value):
        _limit_of_digits(tx)
    return wrap(tx, value)


#: Digits that Python converts to and from text whatever its limit, and bits of a number that may have more.
_DIGITS: Final = sys.int_info.str_digits_check_threshold
_BITS: Final = 3 * _DIGITS


def _converts_very_long(function: Callable[..., Any], args: Sequence[Any]) -> bool:
    """Whether it makes a text of an integer, or the reverse, that takes long, and from Python 3.12 on runs
    functions of the module `_pylong`, which may be replaced."""
    if function is str or function is repr:
        return len(args) == 1 and type(args[0]) is int and args[0].bit_length() > 30_000
    is_text = function is int and args and type(args[0]) in (str, bytes)
    return bool(is_text and len(args[0]) > 6000 and (len(args) == 1 or args[1] in (0, 10)))


def _is_long(value: Any) -> bool:
    """Whether it is a text with room for so many digits."""
    return isinstance(value, str | bytes) and len(value) > _DIGITS


def _holds_large(value: Any, depth: int = 0) -> bool:
    """Whether it is, or holds, a number with so many digits."""
    if isinstance(value, list | tuple | set | frozenset | dict) and depth < DEPTH_LIMIT:
        held = (*value, *value.values()) if isinstance(value, dict) else value
        return any(_holds_large(item, depth + 1) for item in held)
    return _bits(value) > _BITS


def _limit_of_digits(tx: Tx) -> None:
    """Guard the limit of `sys.set_int_max_str_digits`."""
    if tx.reads.get(_LIMIT) is None:
        tx.reads[_LIMIT] = limit = _read_limit(None)
        tx.guard("constant", ObjectSource(None, "sys").child(StateSource, _read_limit), limit)


def _read_limit(_: object) -> int:
    return sys.get_int_max_str_digits()


#: Where `tx.reads` keeps the limit.
_LIMIT: Final = (0, "digits of integers")


def fold_binary(tx: Tx, op: str, left: Any, right: Any, *, inplace: bool = False) -> VariableTracker:
    """``left op right`` of foldable host values; in place errors are worded another way."""
    if op in _MAY_GROW and result_size(op, left, right) > SIZE_LIMIT:
        tx.fail(Reason.UNSUPPORTED_OPERATION, f"a very large result of {op!r}")
    return fold(tx, (INPLACE if inplace else BINARY)[op], left, right)


_MAY_GROW: Final = frozenset(("*", "**", "<<", "%"))


def wrap(tx: Tx, value: Any) -> VariableTracker:
    """The tracker of a value that an operation on known values made just now."""
    made: Any
    cls = type(value)
    if cls in FOLDABLE:
        special = MADE_ANEW.get(cls)
        made = tx.make.constant(value) if special is None else special(value)
    elif cls is tuple or cls is torch.Size:
        made = tx.make.tuple([wrap(tx, item) for item in value], cls)
    elif cls is list:
        made = tx.make.list([wrap(tx, item) for item in value])
    elif cls is dict:
        made = tx.make.dict([(wrap(tx, key), wrap(tx, item)) for key, item in value.items()])
    elif cls is set or cls is frozenset:
        made = tx.make.set([wrap(tx, item) for item in value], cls)
    elif cls is slice:
        made = tx.make.slice(wrap(tx, value.start), wrap(tx, value.stop), wrap(tx, value.step))
    else:
        made = tx.make.from_value(value, None)
    assert isinstance(made, VariableTracker)
    return made


def known(tx: Tx, var: Var) -> Any:
    """The host value of `var` where all of it is known, else `UNKNOWN`; see `snapshot`."""
    tracker: VariableTracker = var.realize(tx)
    return tracker.snapshot(tx)


def is_symbolic(tx: Tx, var: Var) -> bool:
    """Whether `var` is a number that computing with it (rather than folding) keeps open."""
    tracker: VariableTracker = var.realize(tx)
    return tracker.symbolic


def known_all(
    tx: Tx, args: Sequence[Var], kwargs: Mapping[str, Var]
) -> tuple[list[Any], dict[str, Any]] | None:
    """The host values of all arguments of a call, or None when one of them is not known."""
    values: list[Any] = []
    for arg in args:
        value = known(tx, arg)
        if value is UNKNOWN:
            return None
        values.append(value)
    named: dict[str, Any] = {}
    for name, arg in kwargs.items():
        value = named[name] = known(tx, arg)
        if value is UNKNOWN:
            return None
    return values, named


def as_host(tx: Tx, var: Var, what: str) -> Any:
    """The host value of `var`; a break that names `what` when it is not known."""
    value = known(tx, var)
    if value is UNKNOWN:
        tx.fail(Reason.UNSUPPORTED_OPERATION, f"{what} of {var!r}, which is not known before the graph runs")
    return value
