"""Opcodes that build containers, unpack them, and match patterns against them."""

from __future__ import annotations

from typing import Any

from graphlift.interpreter.dispatch import Handler, Translator, family, handler
from graphlift.polyfills import matching, merging
from graphlift.protocol import Var
from graphlift.variables import mappings
from graphlift.variables.slots import calls, items, iteration, length_hint


def pop_n(tx: Translator, count: int) -> list[Any]:
    """Pop `count` values, the deepest first."""
    if not count:
        return []
    values = tx.stack[-count:]
    del tx.stack[-count:]
    return values


@handler
def BUILD_TUPLE(tx: Translator, count: int) -> None:
    tx.stack.append(tx.make.tuple(pop_n(tx, count)))


@handler
def BUILD_LIST(tx: Translator, count: int) -> None:
    tx.stack.append(tx.make.list(pop_n(tx, count)))


@handler
def BUILD_SET(tx: Translator, count: int) -> None:
    tx.stack.append(tx.make.set(pop_n(tx, count)))


@handler
def BUILD_MAP(tx: Translator, count: int) -> None:
    values = pop_n(tx, 2 * count)
    tx.stack.append(tx.make.dict(list(zip(values[::2], values[1::2], strict=True))))


@handler
def BUILD_CONST_KEY_MAP(tx: Translator, count: int) -> None:
    keys = [tx.code_constant(key) for key in tx.stack.pop().realize(tx).snapshot(tx)]
    tx.stack.append(tx.make.dict(list(zip(keys, pop_n(tx, count), strict=True))))


@handler
def BUILD_SLICE(tx: Translator, count: int) -> None:
    step = tx.stack.pop() if count == 3 else tx.make.constant(None)
    stop, start = tx.stack.pop(), tx.stack.pop()
    tx.stack.append(tx.make.slice(start, stop, step))


# --- strings --------------------------------------------------------------------------------------


@handler
def BUILD_STRING(tx: Translator, count: int) -> None:
    parts = tx.make.tuple(pop_n(tx, count))
    tx.stack.append(calls.call_method(tx, tx.make.constant(""), "join", [parts], {}))


_CONVERT = {"s": str, "r": repr, "a": ascii}


def _convert(tx: Translator, value: Var, letter: str) -> Var:
    if not letter:
        return value
    return tx.call(tx.make.from_value(_CONVERT[letter], None), [value])


def _format(tx: Translator, value: Var, spec: Var) -> Var:
    return tx.call(tx.make.from_value(format, None), [value, spec])


@handler
def FORMAT_VALUE(tx: Translator, operand: tuple[str, bool]) -> None:
    letter, has_spec = operand
    spec = tx.stack.pop() if has_spec else tx.make.constant("")
    tx.stack[-1] = _format(tx, _convert(tx, tx.stack[-1], letter), spec)


@handler
def CONVERT_VALUE(tx: Translator, letter: str) -> None:
    tx.stack[-1] = _convert(tx, tx.stack[-1], letter)


@handler
def FORMAT_SIMPLE(tx: Translator, operand: None) -> None:
    tx.stack[-1] = _format(tx, tx.stack[-1], tx.make.constant(""))


@handler
def FORMAT_WITH_SPEC(tx: Translator, operand: None) -> None:
    spec = tx.stack.pop()
    tx.stack[-1] = _format(tx, tx.stack[-1], spec)


# --- growing ones under construction ----------------------------------------------------------------

_GROW = {"LIST_APPEND": "append", "SET_ADD": "add", "SET_UPDATE": "update"}


@family(*_GROW)
def _grow(name: str) -> Handler:
    method = _GROW[name]

    def run(tx: Translator, depth: int) -> None:
        value = tx.stack.pop()
        calls.call_method(tx, tx.stack[-depth], method, [value], {})

    return run


@handler
def LIST_EXTEND(tx: Translator, depth: int) -> None:
    value = tx.stack.pop().realize(tx)
    if not iteration.is_iterable(tx, value):
        value.type_error(tx, "Value after * must be an iterable, not {}")
    calls.call_method(tx, tx.stack[-depth], "extend", [value], {})


@handler
def DICT_UPDATE(tx: Translator, depth: int) -> None:
    value = tx.stack.pop()
    tx.run_host(merging.update_display, [tx.stack[-depth], value])


@handler
def MAP_ADD(tx: Translator, depth: int) -> None:
    value, key = tx.stack.pop(), tx.stack.pop()
    items.setitem(tx, tx.stack[-depth], key, value)


@handler
def DICT_MERGE(tx: Translator, depth: int) -> None:
    value = tx.stack.pop()
    if mappings.merge_named(tx, tx.stack[-depth].realize(tx), value.realize(tx)):
        return
    function = tx.stack[-depth - 2] if tx.null_before_callable else tx.stack[-depth - 3]
    name = tx.make.constant(tx.callable_name(function))
    tx.run_host(merging.merge_keywords, [tx.stack[-depth], value, name])


@handler
def LIST_TO_TUPLE(tx: Translator, operand: None) -> None:
    tx.stack[-1] = tx.make.tuple(iteration.unpack(tx, tx.stack[-1]))


# --- unpacking --------------------------------------------------------------------------------------


@handler
def UNPACK_SEQUENCE(tx: Translator, count: int) -> None:
    values = iteration.unpack_exactly(tx, tx.stack.pop(), count)
    tx.stack.extend(reversed(values))


@handler
def UNPACK_EX(tx: Translator, operand: tuple[int, int]) -> None:
    before, after = operand
    values = length_hint.unpack_ex(tx, tx.stack.pop(), before, after)
    tx.stack.extend(reversed(values))


# --- match ------------------------------------------------------------------------------------------


@handler
def GET_LEN(tx: Translator, operand: None) -> None:
    tx.stack.append(items.length(tx, tx.stack[-1]))


@handler
def MATCH_SEQUENCE(tx: Translator, operand: None) -> None:
    tx.stack.append(tx.run_host(matching.is_sequence, [tx.stack[-1]]))


@handler
def MATCH_MAPPING(tx: Translator, operand: None) -> None:
    tx.stack.append(tx.run_host(matching.is_mapping, [tx.stack[-1]]))


@handler
def MATCH_KEYS(tx: Translator, operand: None) -> None:
    tx.stack.append(tx.run_host(matching.match_keys, [tx.stack[-2], tx.stack[-1]]))


@handler
def MATCH_CLASS(tx: Translator, count: int) -> None:
    names = tx.stack.pop()
    cls, subject = tx.stack.pop(), tx.stack.pop()
    arguments = [subject, cls, tx.make.constant(count), names]
    tx.stack.append(tx.run_host(matching.match_class, arguments))
