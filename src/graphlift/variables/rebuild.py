"""How objects that the program made become real: the functions that emitted code calls, and who calls them.

The functions named `new_...` and `fill_...` run in the compiled program. None of them runs user code: objects
come from the nearest C `__new__`, contents are put straight into instance dictionaries and C fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CellType, CodeType, FunctionType
from typing import Any

from graphlift.codegen.suspended import new_suspended, suspended_code
from graphlift.errors import Unsupported
from graphlift.heap import Handle
from graphlift.protocol import Codegen, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.cells import CellVariable
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.namespace import BUILTINS
from graphlift.variables.slots.type_lookup import mro_of, namespace_of


class PlaceVariable(VariableTracker):
    """What stands at a source, for emitted code only; nothing is known about it."""

    __slots__ = ()


# --- in the compiled program --------------------------------------------------------------------


def new_function(
    code: CodeType, module_globals: dict[str, Any], name: str, qualname: str, *cells: Any
) -> FunctionType:
    """A function without defaults."""
    made = FunctionType(code, module_globals, name, None, cells or None)
    made.__qualname__ = qualname
    return made


def new_function_of(names: dict[str, Any], module_globals: dict[str, Any], *parts: Any) -> FunctionType:
    """`new_function` with `names` for its builtins, which its globals, still being filled, may lack."""
    code, *others = parts
    if BUILTINS in module_globals:
        return new_function(code, module_globals, *others)
    module_globals[BUILTINS] = names  # CPython reads it when it makes the function
    try:
        return new_function(code, module_globals, *others)
    finally:
        del module_globals[BUILTINS]


def new_generator(code: CodeType, module_globals: dict[str, Any], cells: int, *values: Any) -> Any:
    """A generator that was made but not run yet; `values` are its cells, then its parameters in order."""
    params = list(values[cells:])
    args = params[: code.co_argcount]
    del params[: code.co_argcount]
    names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    named = dict(zip(names, params, strict=False))
    del params[: len(names)]
    if code.co_flags & CO_VARARGS:
        args += params.pop(0)
    if code.co_flags & CO_VARKEYWORDS:
        named |= params.pop(0)
    return FunctionType(code, module_globals, code.co_name, None, values[:cells] or None)(*args, **named)


def new_finished_generator(code: CodeType) -> Any:
    """A generator that has come to its end."""
    params: list[Any] = [None] * (code.co_argcount + code.co_kwonlyargcount)
    params += [()] * bool(code.co_flags & CO_VARARGS) + [{}] * bool(code.co_flags & CO_VARKEYWORDS)
    cells = [CellType() for _ in code.co_freevars]
    made = new_generator(code, {}, len(cells), *cells, *params)
    made.close()
    return made


def name_generator(made: Any, name: str, qualname: str) -> None:
    """Give a generator the names of the function that it was made by."""
    made.__name__, made.__qualname__ = name, qualname


def fill_defaults(made: FunctionType, keyword_names: tuple[str, ...], *values: Any) -> None:
    """Give a function its defaults; the last ones belong to `keyword_names`."""
    count = len(values) - len(keyword_names)
    made.__defaults__ = values[:count] or None
    made.__kwdefaults__ = dict(zip(keyword_names, values[count:], strict=True)) or None


def dict_of(value: Any) -> dict[str, Any] | None:
    """The instance dictionary of any object, past hooks and properties of its class; None without one."""
    for cls in mro_of(type(value)):
        getter = namespace_of(cls).get("__dict__")
        if getter is not None and hasattr(type(getter), "__objclass__"):
            own: dict[str, Any] = getter.__get__(value)
            return own
    return None


def fill_dict(value: Any, names: tuple[str, ...], *values: Any) -> None:
    """Put attributes into an instance's dictionary."""
    own = dict_of(value)
    assert own is not None
    own.update(zip(names, values, strict=True))


def fill_member(value: Any, depth: int, name: str, member: Any) -> None:
    """Store through the member descriptor `name` of the class at `depth` of the resolution order."""
    namespace_of(mro_of(type(value))[depth])[name].__set__(value, member)


def clear_member(value: Any, depth: int, name: str) -> None:
    """Delete through a member descriptor; nothing may be there (stored and deleted by the program)."""
    with suppress(AttributeError):
        namespace_of(mro_of(type(value))[depth])[name].__delete__(value)


# --- emitting it --------------------------------------------------------------------------------


def function(codegen: Codegen, made: Any, cells: Sequence[Var]) -> None:
    """Build a function that the program made (`made` is its `FunctionVariable`)."""
    code, names = ConstantVariable(made.code), [ConstantVariable(name) for name in made.names]
    found: Handle = made.module_globals
    own = found.table.get(BUILTINS) if found.real is None and found.table is not None else None
    if own is None:
        codegen.call(new_function, [code, _globals_of(found, made), *names, *cells])
    else:
        codegen.call(new_function_of, [own[1], _globals_of(found, made), code, *names, *cells])
    codegen.later(lambda: _fill_function(codegen, made))


def _globals_of(handle: Handle, made: Any) -> Var:
    """The dictionary in which a function that the program made finds its global names."""
    if handle.source is not None:
        return PlaceVariable(handle.source)
    if handle.real is None and isinstance(handle.tracker, VariableTracker):
        return handle.tracker
    raise Unsupported(Reason.UNSUPPORTED_VALUE, f"{made!r} must become real and lives in no module")


def generator(codegen: Codegen, frame: Any, cells: Sequence[Var]) -> None:
    """Build a generator whose frame has not been started.

    Arguments:
        frame: the frame's state: its code, locals and globals.
        cells: the cells of its free variables.
    """
    source = frame.module_globals.source
    code: CodeType = frame.code
    if source is None:
        raise Unsupported(Reason.GENERATOR, f"{code.co_qualname} must become real and lives in no module")
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    found = [frame.symbolic_locals[name] for name in code.co_varnames[:count]]
    # A parameter that inner functions use has moved into a cell, which nobody else has seen yet.
    params = [value.handle.value if isinstance(value, CellVariable) else value for value in found]
    start: list[Var] = [ConstantVariable(code), PlaceVariable(source), ConstantVariable(len(cells))]
    codegen.call(new_generator, [*start, *cells, *params])


def suspended_generator(codegen: Codegen, frame: Any) -> None:
    """Build a generator whose frame (its state) waits at a ``yield``."""
    source = frame.module_globals.source
    if source is None:
        raise Unsupported(
            Reason.GENERATOR, f"{frame.code.co_qualname} must become real and lives in no module"
        )
    shape, values = frame.suspended_shape()
    code = ConstantVariable(suspended_code(frame.code, shape))
    codegen.call(new_suspended, [code, PlaceVariable(source), *values])


def _fill_function(codegen: Codegen, made: Any) -> None:
    if made.made_defaults or made.made_kwdefaults:
        names = ConstantVariable(tuple(made.made_kwdefaults))
        codegen.run(fill_defaults, [made, names, *made.made_defaults, *made.made_kwdefaults.values()])
    members(codegen, made, FunctionType, made.handle)
    attributes(codegen, made, made.handle)


def attributes(codegen: Codegen, made: Var, handle: Handle) -> None:
    """Fill the instance dictionary of an object that the program made."""
    own = handle.namespace
    if own is None or not own.table:
        return
    entries = list(own.table.values())
    if not all(key.is_constant() for key, _ in entries):
        raise Unsupported(Reason.UNSUPPORTED_VALUE, "an instance dictionary with keys that are no names")
    names = ConstantVariable(tuple(key.as_constant() for key, _ in entries))
    codegen.run(fill_dict, [made, names, *(value for _, value in entries)])


def members(codegen: Codegen, made: Var, cls: type, handle: Handle) -> None:
    """Fill the C fields of an object that the program made."""
    if handle.slots is not None and handle.slots.table:
        for descriptor, (_, value) in handle.slots.table.items():
            store_member(codegen, made, cls, descriptor, value)


def store_member(codegen: Codegen, owner: Var, cls: type, descriptor: Any, value: Var | None) -> None:
    """Store one C field through its descriptor; None deletes it."""
    where: list[Var] = [
        ConstantVariable(mro_of(cls).index(descriptor.__objclass__)),
        ConstantVariable(descriptor.__name__),
    ]
    if value is None:
        codegen.run(clear_member, [owner, *where])
    else:
        codegen.run(fill_member, [owner, *where, value])


def written_members(codegen: Codegen, handle: Handle, cls: type, without: Sequence[Any] = ()) -> None:
    """The writes to C fields of an object that existed (`handle` is its `slots`).

    Arguments:
        without: descriptors of fields that nobody can write.
    """
    first = handle.first_table or {}
    for descriptor, (_, value) in (handle.table or {}).items():
        before = first.get(descriptor)
        if descriptor not in without and (before is None or before[1] is not value):
            store_member(codegen, handle.tracker, cls, descriptor, value)
    for descriptor in handle.removed or ():
        if descriptor not in (handle.table or {}):  # and not stored again since
            store_member(codegen, handle.tracker, cls, descriptor, None)


def instance(
    codegen: Codegen, cls: Var, new: Callable[..., Any], made: Any, fill: Callable[[], None]
) -> None:
    """Build an object by the C function `new` and fill it when it exists."""
    codegen.call(new, [cls])
    codegen.later(fill)
