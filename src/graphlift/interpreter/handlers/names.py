"""Names: fast locals, globals, cells, and the names of class and module bodies.

Mirrors the name opcodes of Python/bytecodes.c; unbound names raise CPython's own messages.
"""

from __future__ import annotations

from typing import NoReturn, cast

from graphlift.errors import ObservedException
from graphlift.heap import Handle
from graphlift.interpreter.dispatch import Translator, handler
from graphlift.interpreter.frame_state import NULL
from graphlift.protocol import Var
from graphlift.reasons import Reason
from graphlift.sources import GlobalSource
from graphlift.variables import cells, namespace
from graphlift.variables.cells import CellVariable
from graphlift.variables.mappings import DictVariable
from graphlift.variables.slots import items, operators

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
        if value.name_hint is not None:
            value.name_hint(tx, name)


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
    handle = tx.frame.module_globals
    entry = None if handle.table is None else handle.table.get(name)
    if entry is not None:  # as `lookup` would find it
        known: Var = entry[1]
        return known
    value = namespace.lookup(tx, handle, name, GlobalSource)
    if value is None:
        value = namespace.lookup(tx, tx.builtins_handle(), name, GlobalSource)
        if value is None:
            _raise_name_error(tx, name, f"name '{name}' is not defined")
    return value


@handler
def LOAD_GLOBAL(tx: Translator, operand: tuple[str, bool]) -> None:
    name, push_null = operand
    stack = tx.stack
    if not push_null:
        stack.append(load_global(tx, name))
    elif tx.null_before_callable:
        stack += (NULL, load_global(tx, name))
    else:
        stack += (load_global(tx, name), NULL)


@handler
def STORE_GLOBAL(tx: Translator, name: str) -> None:
    namespace.store(tx, tx.frame.module_globals, name, tx.make.constant(name), tx.stack.pop())


@handler
def DELETE_GLOBAL(tx: Translator, name: str) -> None:
    if not namespace.delete(tx, tx.frame.module_globals, name, GlobalSource):
        _raise_name_error(tx, name, f"name '{name}' is not defined")


# --- class bodies ---------------------------------------------------------------------------------


def _names(tx: Translator) -> Var:
    """The namespace of the body."""
    if tx.frame.names is None:
        tx.fail(Reason.CLASS_DEFINITION, "code that looks its names up in a mapping")
    return tx.frame.names


def _own_name(tx: Translator, names: Var, name: str) -> Var | None:
    """What a mapping holds under a name; a KeyError of it means nothing."""
    mapping = names.realize(tx)
    key = tx.make.constant(name)
    if type(mapping) is DictVariable and not operators.is_true(tx, operators.contains(tx, key, mapping)):
        return None
    try:
        return items.getitem(tx, mapping, key)
    except ObservedException as error:
        if KeyError not in error.value.python_type(tx).__mro__:
            raise
        return None


@handler
def LOAD_NAME(tx: Translator, name: str) -> None:
    value = _own_name(tx, _names(tx), name)
    tx.stack.append(load_global(tx, name) if value is None else value)


@handler
def STORE_NAME(tx: Translator, name: str) -> None:
    value = tx.stack.pop()
    items.setitem(tx, _names(tx), tx.make.constant(name), value)
    tx.named(value, name)


@handler
def DELETE_NAME(tx: Translator, name: str) -> None:
    try:
        items.delitem(tx, _names(tx), tx.make.constant(name))
    except ObservedException as error:
        if KeyError not in error.value.python_type(tx).__mro__:
            raise
        _raise_name_error(tx, name, f"name '{name}' is not defined")


@handler
def LOAD_LOCALS(tx: Translator, operand: None) -> None:
    tx.stack.append(_names(tx))


@handler
def LOAD_FROM_DICT_OR_GLOBALS(tx: Translator, name: str) -> None:
    value = _own_name(tx, tx.stack.pop(), name)
    tx.stack.append(load_global(tx, name) if value is None else value)


@handler
def LOAD_FROM_DICT_OR_DEREF(tx: Translator, name: str) -> None:
    value = _own_name(tx, tx.stack.pop(), _plain(name))
    tx.stack.append(_load_cell(tx, name) if value is None else value)


@handler
def LOAD_CLASSDEREF(tx: Translator, name: str) -> None:
    value = _own_name(tx, _names(tx), _plain(name))
    tx.stack.append(_load_cell(tx, name) if value is None else value)


@handler
def SETUP_ANNOTATIONS(tx: Translator, operand: None) -> None:
    names = _names(tx)
    if _own_name(tx, names, "__annotations__") is None:
        items.setitem(tx, names, tx.make.constant("__annotations__"), tx.make.dict([]))
