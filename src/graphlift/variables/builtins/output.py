"""Output that is put off: `print` to a plain stream, done after the graph ran, in program order.

What is written must be known without a tensor's data, and nobody may see when it is written. So the stream
must be one of Python's own, down to the file: its methods run none of the user's code, and the entry's
guards keep it so. Everything else breaks, and CPython prints at its place. Prints are kept in the ledger
of effects, so a cut, a rerun or an exception finds them there like any other effect.

Not seen is the failure of the stream itself (a full disk, a closed file): it comes where the effects are
done. Where the program could handle it, the call breaks.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import torch

from graphlift.errors import Unsupported
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import UNKNOWN, VariableTracker
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.folding import FOLDABLE, known
from graphlift.variables.lazy import LazyVariableTracker
from graphlift.variables.library_objects import LibraryObjectVariable
from graphlift.variables.put_off import Call, calls_put_off, put_off
from graphlift.variables.sequences import TupleVariable
from graphlift.variables.slots import attributes, text
from graphlift.variables.symbolic import SymNodeVariable
from graphlift.variables.tensor import TensorVariable
from graphlift.variables.user_defined import UserDefinedObject

#: Classes of values that print as they are: nothing can change them, and their text is ASCII.
_NUMBERS: Final = frozenset({int, float, bool, complex, type(None)})

_TEXT_STREAMS: Final = (io.TextIOWrapper, io.StringIO)


# --- print -----------------------------------------------------------------------------------------------


@builtin(print)
def _print(
    tx: Tx,
    *args: Var,
    sep: Var | None = None,
    end: Var | None = None,
    file: Var | None = None,
    flush: Var | None = None,
) -> Any:
    options = {"sep": sep, "end": end, "flush": flush}
    kwargs: dict[str, Var] = {name: _option(tx, name, value) for name, value in options.items() if value}
    stream = None if file is None else file.realize(tx)
    if stream is None or (stream.is_constant() and stream.as_constant() is None):
        stream = standard_stream(tx, "stdout")
    else:
        kwargs["file"] = stream
    if isinstance(stream, LibraryObjectVariable) and stream.cls is io.StringIO:
        _write(tx, stream, args, kwargs)
        return None
    if tx.is_watched():
        refuse(tx, "print", "where its failure would be handled")
    if stream.is_constant() and stream.as_constant() is None:  # a process without a terminal: nothing happens
        return None
    takes = encoding_of(tx, stream)
    if takes is None:
        refuse(tx, "print", "to a stream that is not Python's own")
    before = len(calls_put_off(tx))
    shown = tuple(_shown(tx, value, takes) for value in args)
    if len(calls_put_off(tx)) != before:
        refuse(tx, "print", "of an object that prints by itself")
    for value in kwargs.values():
        check_encodable(tx, value, takes)
    put_off(tx, Call(print, shown, kwargs, tx.where()))
    return None


def _write(tx: Tx, stream: LibraryObjectVariable, args: Sequence[Var], options: Mapping[str, Var]) -> None:
    """Print to a stream that the program made, at once. Mirrors builtin_print of Python/bltinmodule.c."""
    between, last = (
        default if (given := known(tx, options[name]) if name in options else None) is None else given
        for name, default in (("sep", " "), ("end", "\n"))
    )
    for index, value in enumerate(args):
        if index:
            stream.do(tx, io.StringIO.write, between)
        stream.call_method(tx, "write", [text.str_(tx, value)], {})
    stream.do(tx, io.StringIO.write, last)
    if "flush" in options and known(tx, options["flush"]):
        stream.do(tx, io.StringIO.flush)


def refuse(tx: Tx, name: str, why: str) -> NoReturn:
    """Break, for the call must happen at its place."""
    tx.fail(Reason.INPUT_OUTPUT, f"call of {name}() {why}")


def _option(tx: Tx, name: str, value: Var) -> Var:
    plain = known(tx, value)
    if (name != "flush" and type(plain) not in (str, type(None))) or type(plain) not in (
        str,
        bool,
        type(None),
    ):
        refuse(tx, "print", f"with {name}={value.realize(tx)!r}")
    return tx.make.constant(plain)


def _shown(tx: Tx, value: Var, encoding: str) -> Var:
    """What to print for an argument: a number, a string that is handed in, or the text of it."""
    if handed_in(tx, value, encoding):
        return value
    item: VariableTracker = value.realize(tx)
    if is_symbolic(tx, item):
        return item
    if isinstance(item, TensorVariable):
        refuse(tx, "print", "of a tensor")
    if item.source is not None and not _is_lasting(tx, item):
        # Its text would have to be guarded, and most likely it is another one at the next call.
        refuse(tx, "print", "of an object that can change")
    try:
        shown = known(tx, text.str_(tx, item))
    except Unsupported as error:
        refuse(tx, "print", f"of a value whose text is not known ({error.context})")
    if type(shown) is not str:
        refuse(tx, "print", "of a value whose text is not known")
    made = tx.make.constant(shown)
    check_encodable(tx, made, encoding)
    return made


def handed_in(tx: Tx, value: Var, encoding: str) -> bool:
    """Whether it is a number or string of the program's that nothing was asked of yet.

    Of such only the class is guarded; each call shows its own.
    """
    if type(value) is not LazyVariableTracker or value.source is None:
        return False
    kind = type(value.value)
    if kind in _NUMBERS or (kind is str and encoding in ("any", "utf-8")):
        tx.guard("type", value.source, kind)
        return True
    return False


def is_symbolic(tx: Tx, item: Any) -> bool:
    """Whether it is a number that this capture does not fix, or a tuple (a shape) with such among numbers."""
    if type(item) is not TupleVariable:
        return type(item) is SymNodeVariable
    items = [part.realize(tx) for part in item.items]
    numbers = all(type(part) is SymNodeVariable or _is_number(part) for part in items)
    return numbers and any(type(part) is SymNodeVariable for part in items)


def is_immutable(value: Any) -> bool:
    """Whether nothing can change a constant and what it prints."""
    if type(value) in (tuple, torch.Size):
        return all(map(is_immutable, value))
    return type(value) in FOLDABLE


def _is_number(item: Any) -> bool:
    return bool(item.is_constant() and type(item.as_constant()) in _NUMBERS)


def _is_lasting(tx: Tx, item: VariableTracker) -> bool:
    """Whether nothing can change what an object of the program's prints."""
    kind = item.python_type(tx)
    return kind in FOLDABLE or kind in (tuple, torch.Size)


def check_encodable(tx: Tx, value: Var, encoding: str) -> None:
    """Break for a text that the stream could not write, which is an error at the call's place."""
    plain = known(tx, value) if value.realize(tx).is_constant() else None
    if type(plain) is str and not plain.isascii():
        try:
            plain.encode("utf-8" if encoding == "any" else encoding)
        except UnicodeError:
            refuse(tx, "print", "of a text that the stream cannot write")


# --- streams ---------------------------------------------------------------------------------------------


def standard_stream(tx: Tx, name: str) -> VariableTracker:
    """``sys.stdout`` or ``sys.stderr`` as it is now; a break once the program has set it to anything but a
    stream that it made itself."""
    module: Any = tx.make.from_value(sys, None)
    handle = module.instance_dict(tx)
    stream: VariableTracker = attributes.getattr_(tx, module, name).realize(tx)
    if handle.dirty and not isinstance(stream, LibraryObjectVariable):
        refuse(tx, "print", f"after sys.{name} was set")
    return stream


def encoding_of(tx: Tx, stream: VariableTracker) -> str | None:
    """The encoding of a stream that is Python's own down to its file, "any" for one that keeps text; None for
    other objects. That it is so is guarded."""
    if not isinstance(stream, UserDefinedObject) or stream.value is None or stream.source is None:
        return None
    kind: Any = next((cls for cls in _TEXT_STREAMS if issubclass(stream.cls, cls)), None)
    if kind is None:
        return None
    for name in ("write", "flush"):
        method = stream.plain_method(tx, name)
        if method is None or method.raw is not getattr(kind, name):
            return None
    if kind is io.StringIO:
        return "any"
    encoding = known(tx, attributes.getattr_(tx, stream, "encoding"))
    buffer = attributes.getattr_(tx, stream, "buffer").realize(tx)
    if buffer.python_type(tx) in (io.BufferedWriter, io.BufferedRandom):
        buffer = attributes.getattr_(tx, buffer, "raw").realize(tx)
    if encoding is UNKNOWN or buffer.python_type(tx) not in (io.FileIO, io.BytesIO):
        return None
    return str(encoding).lower()
