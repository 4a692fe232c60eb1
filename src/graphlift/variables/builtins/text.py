"""Text: `str`, `repr`, `format`, `bytes`, and the methods of strings that take values which are not known."""

from __future__ import annotations

import operator
import re
from _string import (  # type: ignore[import-not-found]
    formatter_field_name_split,
    formatter_parser,
)
from collections.abc import Mapping, Sequence
from typing import Any

from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import UNKNOWN, VariableTracker
from graphlift.variables.builtin_object import constant
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.classes import constructs
from graphlift.variables.constant import beneath, special_method
from graphlift.variables.derived_values import derived_value
from graphlift.variables.folding import SIZE_LIMIT, fold, known, known_all
from graphlift.variables.sequences import TupleVariable
from graphlift.variables.slots import attributes, items, iteration, length_hint, text
from graphlift.variables.slots.type_lookup import type_lookup


@builtin(repr)
def _repr(tx: Tx, value: Var) -> Any:
    return text.repr_(tx, value)


@builtin(ascii)
def _ascii(tx: Tx, value: Var) -> Any:
    return text.ascii_(tx, value)


@builtin(format)
def _format(tx: Tx, value: Var, spec: Var | None = None) -> Any:
    return text.format_(tx, value, constant(tx, "") if spec is None else spec)


@constructs(str, whole=True)
def _str(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if cls is not str:
        return derived_value(tx, cls_var, cls, _str(tx, cls_var, str, args, kwargs))
    if not args and not kwargs:
        return constant(tx, "")
    if len(args) == 1 and not kwargs:
        return text.str_(tx, args[0])
    values = known_all(tx, args, kwargs)
    if values is None:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "str() of values that are not known")
    return fold(tx, str, *values[0], **values[1])


def _is_gone_through(tx: Tx, value: Any) -> bool:
    """Whether ``bytes(value)`` can do nothing but iterate."""
    operand: VariableTracker = value.realize(tx)
    cls = operand.python_type(tx)
    converts = any(
        type_lookup(tx, cls, name) is not None for name in ("__bytes__", "__index__", "__buffer__")
    )
    return not converts and not issubclass(cls, (str, memoryview)) and iteration.is_iterable(tx, operand)


@constructs(bytes, whole=True)
def _bytes(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if cls is not bytes:
        return derived_value(tx, cls_var, cls, _bytes(tx, cls_var, bytes, args, kwargs))
    values = known_all(tx, args, kwargs)
    if values is None and len(args) == 1 and not kwargs and _is_gone_through(tx, args[0]):
        values = known_all(tx, [tx.make.list(iteration.unpack(tx, args[0]))], {})
    if values is None:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "bytes() of values that are not known")
    if values[0] and isinstance(values[0][0], int) and values[0][0] > SIZE_LIMIT:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "a very long bytes object")
    return fold(tx, bytes, *values[0], **values[1])


# --- methods of strings -------------------------------------------------------------------------------


@special_method(str, "join")
@special_method(bytes, "join")
def _join(tx: Tx, separator: Any, args: Sequence[Var], kwargs: Mapping[str, Var]) -> VariableTracker:
    if kwargs or len(args) != 1:
        return fold(tx, separator.join, *[()] * len(args), **dict.fromkeys(kwargs))
    found = length_hint.fast(tx, args[0], "can only join an iterable")
    parts = [known(tx, item) for item in found]
    if any(part is UNKNOWN for part in parts):
        return _join_unknown(tx, separator, found, parts)
    return fold(tx, separator.join, parts)


def _join_unknown(tx: Tx, separator: Any, found: list[Any], parts: list[Any]) -> VariableTracker:
    """Something that is not known stands in the way: an error when it is no string, else a break."""
    for number, (item, part) in enumerate(zip(found, parts, strict=True)):
        kind = item.realize(tx).python_type(tx)
        if part is UNKNOWN and not issubclass(kind, type(separator)):
            expected = "str instance" if isinstance(separator, str) else "a bytes-like object"
            tx.raise_(TypeError, f"sequence item {number}: expected {expected}, {kind.__name__} found")
    tx.fail(Reason.UNSUPPORTED_BUILTIN, "joining strings that are not known")


@special_method(str, "format")
def _str_format(tx: Tx, template: str, args: Sequence[Var], kwargs: Mapping[str, Var]) -> VariableTracker:
    values = known_all(tx, args, kwargs)
    if values is not None:
        return fold(tx, template.format, *values[0], **values[1])
    try:
        fields = list(formatter_parser(template))
    except ValueError as error:
        tx.raise_real(error)
    parts: list[str] = []
    number = 0
    for literal, name, spec, conversion in fields:
        parts.append(literal)
        if name is None:
            continue
        if spec and "{" in spec:
            tx.fail(Reason.UNSUPPORTED_BUILTIN, "str.format() with nested fields")
        if not name or name[0] in ".[":
            name, number = f"{number}{name}", number + 1
        value = _converted(tx, _field(tx, name, args, kwargs), conversion)
        part = known(tx, text.format_(tx, value, constant(tx, spec or "")))
        if part is UNKNOWN:
            tx.fail(Reason.UNSUPPORTED_BUILTIN, "str.format() of a value that is not known")
        parts.append(part)
    return constant(tx, "".join(parts))


def _field(tx: Tx, name: str, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    first, rest = formatter_field_name_split(name)
    if isinstance(first, int):
        if first >= len(args):
            tx.raise_(IndexError, f"Replacement index {first} out of range for positional args tuple")
        value: Var = args[first]
    elif first in kwargs:
        value = kwargs[first]
    else:
        tx.raise_(KeyError, first)
    for is_attribute, key in rest:
        value = (
            attributes.getattr_(tx, value, key)
            if is_attribute
            else items.getitem(tx, value, constant(tx, key))
        )
    return value


def _converted(tx: Tx, value: Var, letter: str | None) -> Var:
    return value if letter is None else _CONVERSIONS[letter](tx, value)


_CONVERSIONS = {"s": text.str_, "r": text.repr_, "a": text.ascii_}


# --- the operator % ----------------------------------------------------------------------------------

_PERCENT = re.compile(
    r"%(?:\((?P<key>[^()]*)\))?(?P<how>[#0\- +]*(?:\d+)?(?:\.\d+)?)[hlL]?(?P<letter>[a-zA-Z%])"
)


@special_method(str, "__mod__")
def _percent(tx: Tx, template: str, args: Sequence[Var], kwargs: Mapping[str, Var]) -> VariableTracker:
    """``template % values`` where not all values are known: strings are made of them one by one."""
    if kwargs or len(args) != 1:
        return fold(tx, template.__mod__, *[()] * len(args), **dict.fromkeys(kwargs))
    value: VariableTracker = args[0].realize(tx)
    if value.snapshot(tx) is not UNKNOWN:
        return fold(tx, operator.mod, template, value.snapshot(tx))
    given = list(value.items) if isinstance(value, TupleVariable) else [value]
    parts, end, used = [], 0, 0
    for match in _PERCENT.finditer(template):
        parts.append(_literal(tx, template[end : match.start()]))
        end = match.end()
        if match["letter"] == "%":
            parts.append("%")
        elif match["key"] is not None:
            parts.append(_percent_field(tx, match, items.getitem(tx, value, constant(tx, match["key"]))))
        elif used == len(given):
            tx.raise_(TypeError, "not enough arguments for format string")
        else:
            parts.append(_percent_field(tx, match, given[used]))
            used += 1
    parts.append(_literal(tx, template[end:]))
    is_mapping = type_lookup(tx, value.python_type(tx), "__getitem__") is not None and given == [value]
    if used < len(given) and not is_mapping:
        tx.raise_(TypeError, "not all arguments converted during string formatting")
    return constant(tx, "".join(parts))


def _literal(tx: Tx, part: str) -> str:
    if "%" in part:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, f"the format {part!r}")
    return part


def _percent_field(tx: Tx, match: re.Match[str], value: Var) -> str:
    convert = _CONVERSIONS.get(match["letter"])
    operand = value.realize(tx)
    part = operand if convert is not None else beneath(tx, operand)
    if part is not operand and text.converts_itself(tx, operand.python_type(tx)):
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "formatting of a number that converts itself")
    if convert is None:
        plain, letter = known(tx, part), match["letter"]
    else:
        plain, letter = known(tx, convert(tx, value)), "s"
    if plain is UNKNOWN:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, f"formatting of {value!r}, which is not known")
    try:
        made: str = f"%{match['how']}{letter}" % (plain,)
    except Exception as error:
        if part is not operand:
            tx.fail(Reason.UNSUPPORTED_BUILTIN, "a failing format, whose error names a derived class")
        tx.raise_real(error)
    return made
