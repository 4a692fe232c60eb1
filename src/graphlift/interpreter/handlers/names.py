"""Names: fast locals, globals, cells, and the names of class and module bodies.

Mirrors the name opcodes of Python/bytecodes.c; unbound names raise CPython's own messages.
"""

from __future__ import annotations

from typing import NoReturn, cast

from graphlift.heap import Handle
from graphlift.interpreter.dispatch import Handler, Translator, family, handler
from graphlift.interpreter.frame_state import NULL
from graphlift.protocol import Var
from graphlift.sources import GlobalSource
from graphlift.variables import cells, namespace
from graphlift.variables.cells import CellVariable

_UNBOUND_LOCAL = "cannot access local variable '{}' where it is not associated with a value"
_UNBOUND_FREE = "cannot access free variable '{}' where it is not associated with a value in enclosing scope"


@handler
def LOAD_FAST(tx: Translator, name: str) -> None:
    try:
        tx.stack.append(tx.symbolic_locals[name])
    except KeyError:
        tx.raise_(UnboundLocalError, _UNBOUND_LOCAL.format(name))


@handler
def LOAD_FAST_CHECK(tx: Translator, name: str) -> None:
    LOAD_FAST(tx, name)


@handler
def LOAD_FAST_AND_CLEAR(tx: Translator, name: str) -> None:
    tx.stack.append(tx.symbolic_locals.pop(name, NULL))


@handler
def STORE_FAST(tx: Translator, name: str) -> None:
    value = tx.stack.pop()
    if value is NULL:
        tx.symbolic_locals.pop(name, None)
    else:
        tx.symbolic_locals[name] = value
        tx.named(value, name)


@handler
def DELETE_FAST(tx: Translator, name: str) -> None:
    if tx.symbolic_locals.pop(name, None) is None:
        tx.raise_(UnboundLocalError, _UNBOUND_LOCAL.format(name))


# --- cells --------------------------------------------------------------------------------------


@handler
def MAKE_CELL(tx: Translator, name: str) -> None:
    cell = Handle()
    cell.value = tx.symbolic_locals.get(name)
    tx.symbolic_locals[name] = cells.of(cell)


@handler
def COPY_FREE_VARS(tx: Translator, names: tuple[str, ...]) -> None:
    for name, cell in zip(names, tx.frame.closure, strict=True):
        tx.symbolic_locals[name] = cells.of(cell)


def _cell(tx: Translator, name: str) -> Handle:
    return cast(CellVariable, tx.symbolic_locals[name]).handle


def _plain(name: str) -> str:
    return name.removesuffix(".free")


@handler
def LOAD_CLOSURE(tx: Translator, name: str) -> None:
    tx.stack.append(tx.symbolic_locals[name])


def _load_cell(tx: Translator, name: str) -> Var:
    value = cells.load(tx, _cell(tx, name), _plain(name))
    if value is None:
        _raise_unbound_cell(tx, name)
    return value


def _raise_unbound_cell(tx: Translator, name: str) -> NoReturn:
    if _plain(name) in tx.code.co_cellvars:
        tx.raise_(UnboundLocalError, _UNBOUND_LOCAL.format(_plain(name)))
    _raise_name_error(tx, _plain(name), _UNBOUND_FREE.format(_plain(name)))


def _raise_name_error(tx: Translator, name: str, text: str) -> NoReturn:
    error = tx.make.exception(NameError, [tx.make.constant(text)])
    error.realize(tx).looked_for(tx, None, name)
    tx.raise_var(error)


@handler
def LOAD_DEREF(tx: Translator, name: str) -> None:
    tx.stack.append(_load_cell(tx, name))


@handler
def STORE_DEREF(tx: Translator, name: str) -> None:
    value = tx.stack.pop()
    cells.store(tx, _cell(tx, name), value)
    tx.named(value, _plain(name))


@handler
def DELETE_DEREF(tx: Translator, name: str) -> None:
    cell = _cell(tx, name)
    if cells.load(tx, cell, _plain(name)) is None:
        _raise_unbound_cell(tx, name)
    cells.store(tx, cell, None)


# --- globals ------------------------------------------------------------------------------------


def load_global(tx: Translator, name: str) -> Var:
    """The value of a global or builtin name; NameError in the user's program when there is none."""
    value = namespace.lookup(tx, tx.frame.module_globals, name, GlobalSource)
    if value is None:
        value = namespace.lookup(tx, tx.builtins_handle(), name, GlobalSource)
        if value is None:
            _raise_name_error(tx, name, f"name '{name}' is not defined")
    return value


@handler
def LOAD_GLOBAL(tx: Translator, operand: tuple[str, bool]) -> None:
    name, push_null = operand
    if push_null and tx.null_before_callable:
        tx.stack.append(NULL)
    tx.stack.append(load_global(tx, name))
    if push_null and not tx.null_before_callable:
        tx.stack.append(NULL)


@handler
def STORE_GLOBAL(tx: Translator, name: str) -> None:
    namespace.store(tx, tx.frame.module_globals, name, tx.make.constant(name), tx.stack.pop())


@handler
def DELETE_GLOBAL(tx: Translator, name: str) -> None:
    if not namespace.delete(tx, tx.frame.module_globals, name, GlobalSource):
        _raise_name_error(tx, name, f"name '{name}' is not defined")


# --- class and module bodies, which are not captured ----------------------------------------------


@family(
    "LOAD_NAME",
    "STORE_NAME",
    "DELETE_NAME",
    "LOAD_LOCALS",
    "LOAD_CLASSDEREF",
    "LOAD_FROM_DICT_OR_GLOBALS",
    "LOAD_FROM_DICT_OR_DEREF",
    "SETUP_ANNOTATIONS",
)
def _class_body(name: str) -> Handler:
    def run(tx: Translator, operand: object) -> None:
        tx.missing(f"{name} {operand}")

    return run
