"""`write`, `writelines` and `flush` of text streams that existed: put off as `print` is, under the same
conditions (`output.py`)."""

from __future__ import annotations

import _io
import io
from collections.abc import Mapping, Sequence
from typing import Any

from graphlift.protocol import Tx
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtins import output
from graphlift.variables.folding import known
from graphlift.variables.object_methods import C_METHODS
from graphlift.variables.put_off import Call, put_off
from graphlift.variables.slots import iteration


def _kind(tx: Tx, stream: Any, name: str) -> tuple[Any, str]:
    """The class whose methods the stream has, and its encoding; a break where a call cannot be put off."""
    if tx.is_watched():
        output.refuse(tx, name, "where its failure would be handled")
    takes = output.encoding_of(tx, stream)
    if takes is None:
        output.refuse(tx, name, "of a stream that is not Python's own")
    return (io.StringIO if issubclass(stream.cls, io.StringIO) else io.TextIOWrapper), takes


def _write(tx: Tx, stream: VariableTracker, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    kind, takes = _kind(tx, stream, "write")
    text = known(tx, args[0]) if len(args) == 1 and not kwargs else None
    if type(text) is not str:
        output.refuse(tx, "write", "of what is no text, or not known")
    shown = tx.make.constant(text)
    output.check_encodable(tx, shown, takes)
    put_off(tx, Call(kind.write, (stream, shown), {}, tx.where()))
    return tx.make.constant(len(text))


def _flush(tx: Tx, stream: VariableTracker, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    kind, _ = _kind(tx, stream, "flush")
    if args or kwargs:
        output.refuse(tx, "flush", "with arguments")
    put_off(tx, Call(kind.flush, (stream,), {}, tx.where()))
    return tx.make.constant(None)


def _write_lines(tx: Tx, stream: VariableTracker, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    _kind(tx, stream, "writelines")
    if len(args) != 1 or kwargs:
        output.refuse(tx, "writelines", "with other arguments than lines")
    for line in iteration.each(tx, args[0]):
        _write(tx, stream, [line], {})
    return tx.make.constant(None)


C_METHODS[io.TextIOWrapper, "write"] = C_METHODS[io.StringIO, "write"] = _write
C_METHODS[io.TextIOWrapper, "flush"] = C_METHODS[_io._IOBase, "flush"] = _flush
C_METHODS[_io._IOBase, "writelines"] = _write_lines
