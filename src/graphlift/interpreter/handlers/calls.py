"""Call opcodes and the making of functions; the algorithms are in `variables/slots/calls.py`."""

from __future__ import annotations

from typing import Any

from graphlift.interpreter.dispatch import Translator, handler
from graphlift.interpreter.frame_state import NULL
from graphlift.interpreter.handlers.containers import pop_n
from graphlift.protocol import Var
from graphlift.reasons import Reason
from graphlift.sources import GlobalSource
from graphlift.variables import namespace
from graphlift.variables.cells import CellVariable
from graphlift.variables.slots import iteration, length_hint


def _pop_callable(tx: Translator, args: list[Var]) -> tuple[Var, list[Var]]:
    """The callable below the arguments, and the arguments with the object of a method in front."""
    second = tx.stack.pop()
    first = tx.stack.pop()
    if tx.null_before_callable:
        if first is NULL:
            return second, args
        return first, [second, *args]
    if second is NULL:
        return first, args
    return first, [second, *args]


def _call(tx: Translator, count: int, names: tuple[str, ...]) -> None:
    values = pop_n(tx, count)
    positional = count - len(names)
    function, args = _pop_callable(tx, values[:positional])
    kwargs = dict(zip(names, values[positional:], strict=True)) if names else {}
    tx.stack.append(tx.call(function, args, kwargs))


@handler
def KW_NAMES(tx: Translator, names: tuple[str, ...]) -> None:
    tx.frame.keyword_names = names


@handler
def CALL(tx: Translator, count: int) -> None:
    frame = tx.frame
    if frame.keyword_names:
        names = frame.keyword_names
        frame.keyword_names = ()
        _call(tx, count, names)
        return
    stack = tx.stack  # the same without names, which is nearly every call
    args: list[Var] = []
    if count:
        args = stack[-count:]
        del stack[-count:]
    second = stack.pop()
    first = stack.pop()
    if first is NULL and tx.null_before_callable:
        first = second
    elif second is not NULL or tx.null_before_callable:
        args.insert(0, second)
    stack.append(tx.call(first, args))


@handler
def CALL_KW(tx: Translator, count: int) -> None:
    names = tx.stack.pop().realize(tx).snapshot(tx)
    _call(tx, count, names)


@handler
def CALL_FUNCTION_EX(tx: Translator, has_kwargs: bool) -> None:
    keywords = tx.stack.pop() if has_kwargs else None
    star = tx.stack.pop()
    known = star.realize(tx).unpack(tx)
    args = [NULL] if known is None else list(known)
    function, args = _pop_callable(tx, args)
    if known is None:
        wrong = None
        if not iteration.is_iterable(tx, star.realize(tx)):
            wrong = f"{tx.callable_name(function)} argument after * must be an iterable, not {{}}"
        args[-1:] = iteration.unpack(tx, star, wrong) if wrong else length_hint.unpack(tx, star)
    kwargs = {} if keywords is None else tx.keyword_arguments(keywords)
    tx.stack.append(tx.call(function, args, kwargs))


@handler
def LOAD_BUILD_CLASS(tx: Translator, operand: None) -> None:
    found = namespace.lookup(tx, tx.builtins_handle(), "__build_class__", GlobalSource)
    if found is None:
        tx.raise_(NameError, "__build_class__ not found")
    tx.stack.append(found)


# --- functions --------------------------------------------------------------------------------------


def _make_function(tx: Translator, code: Any, parts: dict[str, Var]) -> Var:
    defaults = parts.get("defaults")
    kwdefaults = parts.get("kwdefaults")
    closure = parts.get("closure")
    annotations = parts.get("annotations")
    cells = [cell.realize(tx) for cell in iteration.unpack(tx, closure)] if closure is not None else []
    handles = [cell.handle for cell in cells if isinstance(cell, CellVariable)]
    assert len(handles) == len(cells)
    return tx.make.function(
        code,
        tx.frame.module_globals,
        name=code.co_name,
        qualname=code.co_qualname,
        defaults=iteration.unpack(tx, defaults) if defaults is not None else (),
        kwdefaults=tx.keyword_arguments(kwdefaults) if kwdefaults is not None else None,
        closure=handles,
        annotations=iteration.unpack(tx, annotations) if annotations is not None else (),
    )


@handler
def MAKE_FUNCTION(tx: Translator, names: tuple[str, ...]) -> None:
    code = tx.stack.pop().realize(tx).as_constant()
    values = pop_n(tx, len(names))
    tx.stack.append(_make_function(tx, code, dict(zip(names, values, strict=True))))
    if not names:
        tx.bare_function = (tx.stack[-1], code, {})


@handler
def SET_FUNCTION_ATTRIBUTE(tx: Translator, part: str) -> None:
    """Follows MAKE_FUNCTION at once: the function is made anew with one part more.

    Where that was made before a cut, this is CPython's to do, too.
    """
    if tx.bare_function is None:
        tx.fail(Reason.UNSUPPORTED_OPERATION, "the parts of a function that a cut came into the making of")
    function = tx.stack.pop()
    value = tx.stack.pop()
    made, code, parts = tx.bare_function
    assert made is function
    parts = {**parts, part: value}
    function = _make_function(tx, code, parts)
    tx.bare_function = (function, code, parts)
    tx.stack.append(function)
