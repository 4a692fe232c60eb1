"""`struct`: what packs into a buffer, and what unpacks step by step."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.constant import special_method
from graphlift.variables.folding import known_all, wrap
from graphlift.variables.library_objects import LibraryObjectVariable


def _pack_into(tx: Tx, pack: Callable[..., None], buffer: Any, args: Sequence[Any]) -> VariableTracker:
    """Pack into a buffer that is known; `pack` takes the buffer, an offset and values."""
    values = known_all(tx, args, {})
    into: VariableTracker = buffer.realize(tx)
    if values is None or not isinstance(into, LibraryObjectVariable) or not into.is_buffer:
        tx.fail(
            Reason.UNSUPPORTED_BUILTIN, "struct.pack_into() of such a buffer, or of values that are not known"
        )
    return into.do(tx, pack, *values[0])


@builtin(struct.pack_into)
def _pack_into_function(tx: Tx, layout: Var, buffer: Var, /, *args: Var) -> VariableTracker:
    text = known_all(tx, [layout], {})
    if text is None:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "struct.pack_into() of a format that is not known")
    return _pack_into(tx, lambda host, *values: struct.pack_into(text[0][0], host, *values), buffer, args)


@special_method(struct.Struct, "pack_into")
def _pack_into_method(
    tx: Tx, value: struct.Struct, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> VariableTracker:
    if not args or kwargs:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "Struct.pack_into() without a buffer")
    return _pack_into(tx, lambda host, *values: value.pack_into(host, *values), args[0], args[1:])


def _steps(
    tx: Tx, unpack: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> VariableTracker:
    """An iterator over all that is unpacked; what it is unpacked from cannot change meanwhile."""
    values = known_all(tx, args, kwargs)
    if values is None or any(type(value) is bytearray for value in values[0]):
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "struct.iter_unpack() of what can change or is not known")
    try:
        found = list(unpack(*values[0], **values[1]))
    except Exception as error:
        tx.raise_real(error)
    iterator = tx.make.iterator([wrap(tx, item) for item in found])
    assert isinstance(iterator, VariableTracker)
    return iterator


@builtin(struct.iter_unpack)
def _iter_unpack_function(tx: Tx, layout: Var, buffer: Var, /) -> VariableTracker:
    return _steps(tx, struct.iter_unpack, [layout, buffer], {})


@special_method(struct.Struct, "iter_unpack")
def _iter_unpack_method(
    tx: Tx, value: struct.Struct, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> VariableTracker:
    return _steps(tx, value.iter_unpack, args, kwargs)
