"""Mutable objects of C classes of the standard library whose contents are plain data: what that is, and how
an object is made of it. The functions here also run in compiled programs and in guards; they run none of the
user's code.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Callable
from typing import Any, Final, NamedTuple


class StateKind(NamedTuple):
    """How the objects of a class are taken apart.

    Attributes:
        read: the contents of an object, a constant; `CLOSED` for a closed stream.
        make: a new object with such contents.
        put: give an existing object such contents.
    """

    read: Callable[[Any], Any]
    make: Callable[[Any], Any]
    put: Callable[[Any, Any], None]


#: The contents of a closed stream.
CLOSED: Final = None


def read_bytearray(value: Any) -> bytes:
    """The bytes."""
    return bytes(value)


def put_bytearray(value: bytearray, state: bytes) -> None:
    """Exchange the bytes."""
    value[:] = state


def read_array(value: Any) -> tuple[str, bytes]:
    """The code of the items' type, and the items as they lie in memory."""
    return value.typecode, value.tobytes()


def make_array(state: tuple[str, bytes]) -> Any:
    """An array."""
    return array(*state)


def put_array(value: Any, state: tuple[str, bytes]) -> None:
    """Exchange the items."""
    value[:] = array(*state)


def _read_stream(value: Any) -> Any:
    return CLOSED if value.closed else value.__getstate__()[:-1]


def _put_stream(value: Any, state: Any) -> None:
    if state is CLOSED:
        value.close()
    else:
        value.__setstate__((*state, None))


def make_text_stream(state: Any) -> io.StringIO:
    """A text stream in memory."""
    made = io.StringIO()
    _put_stream(made, state)
    return made


def make_byte_stream(state: Any) -> io.BytesIO:
    """A byte stream in memory."""
    made = io.BytesIO()
    _put_stream(made, state)
    return made


STATES: Final[dict[type, StateKind]] = {
    bytearray: StateKind(read_bytearray, bytearray, put_bytearray),
    array: StateKind(read_array, make_array, put_array),
    io.StringIO: StateKind(_read_stream, make_text_stream, _put_stream),
    io.BytesIO: StateKind(_read_stream, make_byte_stream, _put_stream),
}
