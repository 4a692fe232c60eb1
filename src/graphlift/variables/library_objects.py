"""Mutable objects of C classes of the standard library whose contents are plain data (`library_states.py`):
`bytearray`, `array.array`, `io.StringIO`, `io.BytesIO`.

What the program does to one is done at once, by the real method, to a host object of the same contents; the
heap keeps the contents themselves, a constant, so that a roll-back is a store. Arguments must be known. The
contents of a bytearray or array that existed before are guarded when it is first looked into, and written
back when they changed; once they were seen to vary from call to call, looking breaks. Streams that existed
before are no business of this file.
"""

from __future__ import annotations

import io
import operator
from array import array
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NoReturn

from graphlift import _C
from graphlift.errors import Unsupported
from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import Source, StateSource
from graphlift.variables.base import NOT_IMPLEMENTED, UNKNOWN, NotImplementedType, VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.builtin_object import BuiltinObjectVariable, constant, make_list, make_tuple
from graphlift.variables.classes import CLASS_METHODS, constructs
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.folding import SIZE_LIMIT, known, known_all, wrap
from graphlift.variables.iterators import SequenceIteratorVariable
from graphlift.variables.library_states import STATES
from graphlift.variables.ranges import SliceVariable
from graphlift.variables.slots import iteration
from graphlift.variables.slots.numbers import has_index, index_, repeat_count

_VALUES: Final = (bytearray, array)
_STREAMS: Final = (io.StringIO, io.BytesIO)

#: Classes of values that have bytes to show, which the methods of bytearrays and arrays ask for.
_BUFFERS: Final = (bytes, bytearray, array, memoryview)

#: What shows an address or a file, or hands out or takes the memory of an object.
_REFUSED: Final = frozenset(
    (
        *("buffer_info", "getbuffer", "readinto", "readinto1", "fromfile", "tofile", "detach", "fileno"),
        *("__alloc__", "__sizeof__", "__buffer__", "__release_buffer__", "__class_getitem__"),
    )
)

#: Special methods that are done on the host, beside all that are no special ones.
_SPECIAL: Final = frozenset(
    ("__init__", "__enter__", "__copy__", "__mod__", "__reduce__", "__reduce_ex__", "__setstate__")
)

#: Methods that take anything to iterate over and go through it first, and those that do so step by step.
_ITERATING: Final = ((bytearray, "extend"), (bytearray, "join"))
_STEPWISE: Final[dict[tuple[type, str], str]] = {
    (array, "extend"): "append",
    (io.StringIO, "writelines"): "write",
    (io.BytesIO, "writelines"): "write",
}

#: Methods whose result may be far larger than what they are given.
_MAY_GROW: Final = frozenset(
    ("center", "expandtabs", "ljust", "rjust", "zfill", "truncate", "seek", "__init__")
)


class LibraryObjectVariable(BuiltinObjectVariable):
    """An object whose contents are known.

    Attributes:
        cls: its class.
        handle: the heap's; its `value` are the contents, None of one that nobody looked into yet.
    """

    __slots__ = ("_host", "cls", "handle")

    def __init__(self, cls: type, handle: Handle, source: Source | None = None) -> None:
        self.source = source
        self.cls: Final = cls
        self.handle: Final = handle
        #: The host object last worked with, and its contents.
        self._host: tuple[Any, Any] | None = None

    def python_type(self, tx: Tx) -> type:
        return self.cls

    def children(self) -> Sequence[Var]:
        """It holds no object of the program's."""
        return ()

    # --- contents ------------------------------------------------------------------------------

    def _state(self, tx: Tx) -> Any:
        handle, source = self.handle, self.source
        if handle.value is None and source is not None:
            read = STATES[self.cls].read
            state = read(handle.real)
            self._check_size(tx, state)
            if tx.capture.varies(source, state):
                self.refuse(tx, "contents, which change from call to call,")
            tx.guard("constant", source.child(StateSource, read), state)
            handle.value = (state,)
        return handle.value[0]

    def _check_size(self, tx: Tx, state: Any) -> None:
        text = next((x for x in (state if type(state) is tuple else (state,)) if type(x) in (str, bytes)), "")
        if len(text) > SIZE_LIMIT:
            self.refuse(tx, "very large contents")

    def host(self, tx: Tx) -> Any:
        """A host object with its present contents."""
        state, before = self._state(tx), self._host
        if before is None or before[1] is not state:
            before = self._host = (STATES[self.cls].make(state), state)
        return before[0]

    def _keep(self, tx: Tx, host: Any) -> None:
        """Note what became of the contents."""
        before, state = self._state(tx), STATES[self.cls].read(host)
        if state == before:
            self._host = (host, before)
            return
        self._check_size(tx, state)
        if self.handle.real is not None and len(host) != len(self.handle.real):
            self._check_resizable(tx)
        tx.heap.set_value(self.handle, (state,))
        self._host = (host, state)

    def _check_resizable(self, tx: Tx) -> None:
        """An existing object cannot be resized while somebody looks at its memory."""
        source = self.source
        if source is None or self.cls is not bytearray or _C.bytearray_exports(self.handle.real):
            self.refuse(tx, "a new length")
        tx.guard("constant", source.child(StateSource, _C.bytearray_exports), 0)

    def run(self, tx: Tx, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """``function(host, *args, **kwargs)``: itself where that is the host, else a host value.

        What is raised is raised in the program.
        """
        host = self.host(tx)
        self._host = None  # a break may leave it in any state
        try:
            result = function(host, *args, **kwargs)
        except Exception as error:
            self._keep(tx, host)
            tx.raise_real(error)
        self._keep(tx, host)
        return self if result is host else result

    def do(self, tx: Tx, function: Callable[..., Any], *args: Any, **kwargs: Any) -> VariableTracker:
        """As `run`, a tracker."""
        return made(tx, self.run(tx, function, *args, **kwargs))

    def snapshot(self, tx: Tx, depth: int = 0) -> Any:
        return STATES[self.cls].make(self._state(tx)) if self.cls in _VALUES else UNKNOWN

    # --- methods and attributes ----------------------------------------------------------------

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name == "getbuffer":
            _look()
        if name in _REFUSED:
            self.refuse(tx, f"method {name!r}")
        if name == "__exit__":
            return self.do(tx, self.cls.__exit__, None, None, None)  # type: ignore[attr-defined]
        if name == "__deepcopy__" and len(args) == 1 and not kwargs:
            return self.do(tx, self.cls.__deepcopy__, None)  # type: ignore[attr-defined]
        if name.startswith("__") and name not in _SPECIAL and not (name == "__repr__" and self.is_buffer):
            return super().call_method(tx, name, args, kwargs)
        step = _STEPWISE.get((self.cls, name))
        values = known_all(tx, args, kwargs)
        if values is None and step is not None and len(args) == 1 and not kwargs:
            return self._go_through(tx, step, args[0])
        if values is None and (self.cls, name) in _ITERATING and len(args) == 1 and not kwargs:
            values = known_all(tx, [make_list(tx, iteration.unpack(tx, args[0]))], {})
        if values is None:
            self.refuse(tx, f"method {name!r} with arguments that are not known")
        if name in _MAY_GROW and any(type(x) is int and x > SIZE_LIMIT for x in values[0]):
            self.refuse(tx, f"a very large result of {name!r}")
        return self.do(tx, getattr(self.cls, name), *values[0], **values[1])

    @property
    def is_buffer(self) -> bool:
        """Whether it is a sequence that shows its memory, no stream."""
        return self.cls in _VALUES

    def _go_through(self, tx: Tx, step: str, items: VariableTracker) -> VariableTracker:
        for item in iteration.each(tx, items):
            self.call_method(tx, step, [item], {})
        return constant(tx, None)

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if name not in _ATTRIBUTES:
            self.refuse(tx, f"attribute {name!r}")
        return self.do(tx, getattr, name)

    def setattr_(self, tx: Tx, name: str, value: VariableTracker) -> None:
        if not self.is_buffer:  # it has a dictionary
            self.refuse(tx, f"setting attribute {name!r}")
        super().setattr_(tx, name, value)

    def hash_key(self, tx: Tx) -> Hashable:
        if self.is_buffer:
            self.type_error(tx, "unhashable type: '{}'")
        return self.refuse(tx, "hash()")

    # --- containers ----------------------------------------------------------------------------

    def _known(self, tx: Tx, value: VariableTracker, what: str) -> Any:
        """A host value for an item, a key or an operand; objects that are numbers are asked which."""
        found = known(tx, value)
        if found is UNKNOWN and has_index(tx, value):
            found = index_(tx, value)
        return self.refuse(tx, f"{what} that is not known") if found is UNKNOWN else found

    def length(self, tx: Tx) -> VariableTracker:
        return self.do(tx, len) if self.is_buffer else super().length(tx)

    def truth(self, tx: Tx) -> VariableTracker | bool:
        return bool(self.host(tx)) if self.is_buffer else True

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        if not self.is_buffer:
            return super().getitem(tx, key)
        return self.do(tx, operator.getitem, self._known(tx, key, "an index"))

    def setitem(self, tx: Tx, key: VariableTracker, value: VariableTracker) -> NotImplementedType | None:
        if not self.is_buffer:
            return NOT_IMPLEMENTED
        if isinstance(key, SliceVariable) and self.cls is bytearray and known(tx, value) is UNKNOWN:
            value = make_list(tx, iteration.unpack(tx, value))
        index = self._known(tx, key, "an index")
        self.run(tx, operator.setitem, index, self._known(tx, value, "an item"))
        return None

    def delitem(self, tx: Tx, key: VariableTracker) -> NotImplementedType | None:
        if not self.is_buffer:
            return NOT_IMPLEMENTED
        self.run(tx, operator.delitem, self._known(tx, key, "an index"))
        return None

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        if not self.is_buffer or (self.cls is array and known(tx, item) is UNKNOWN):
            return NOT_IMPLEMENTED
        return self.do(tx, operator.contains, self._known(tx, item, "an item"))

    def unpack(self, tx: Tx) -> list[VariableTracker] | None:
        return [wrap(tx, item) for item in self.host(tx)] if self.is_buffer else None

    def iter_(self, tx: Tx) -> VariableTracker:
        if self.is_buffer:
            return SequenceIteratorVariable(self, type(iter(self.host(tx))))
        return self.do(tx, iter)

    def next_(self, tx: Tx) -> VariableTracker | None:
        if self.is_buffer:
            return super().next_(tx)
        line = self.run(tx, next, None)
        return None if line is None else constant(tx, line)

    # --- operators -----------------------------------------------------------------------------

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if op != "%" or self.cls is not bytearray:
            return NOT_IMPLEMENTED
        return self.call_method(tx, "__mod__", [other], {})

    def concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if not self.is_buffer:
            return NOT_IMPLEMENTED
        return self.do(tx, operator.concat, self._known(tx, other, "an operand"))

    def inplace_concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if not self.is_buffer:
            return NOT_IMPLEMENTED
        return self.do(tx, operator.iconcat, self._known(tx, other, "an operand"))

    def _times(self, tx: Tx, count: VariableTracker) -> int:
        times = repeat_count(tx, count)
        if len(self.host(tx)) * times > SIZE_LIMIT:
            iteration.too_long(tx, self)
        return times

    def repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        return self.do(tx, operator.mul, self._times(tx, count)) if self.is_buffer else NOT_IMPLEMENTED

    def inplace_repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        return self.do(tx, operator.imul, self._times(tx, count)) if self.is_buffer else NOT_IMPLEMENTED

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if not self.is_buffer:
            return NOT_IMPLEMENTED
        value = known(tx, other)
        if value is UNKNOWN:
            kind = other.python_type(tx)
            if issubclass(kind, _BUFFERS) or kind.__module__.startswith("numpy"):
                self.refuse(tx, f"`{op}` with what is not known")
            return NOT_IMPLEMENTED
        answer = self.run(tx, getattr(self.cls, _COMPARE[op]), value)
        return NOT_IMPLEMENTED if answer is NotImplemented else constant(tx, answer)

    # --- becoming real -------------------------------------------------------------------------

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(STATES[self.cls].make, [ConstantVariable(self.handle.value[0])])

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Give the existing object its new contents."""
        codegen.run(STATES[self.cls].put, [self, ConstantVariable(handle.value[0])])

    def __repr__(self) -> str:
        return f"LibraryObjectVariable({self.cls.__name__})"


_COMPARE: Final = dict(
    zip(
        ("==", "!=", "<", "<=", ">", ">="),
        (f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge")),
        strict=True,
    )
)

_ATTRIBUTES: Final = frozenset(("typecode", "itemsize", "closed", "line_buffering", "encoding", "errors"))


def made(tx: Tx, value: Any) -> VariableTracker:
    """The tracker of what a method gave just now; it may hold objects of these classes."""
    if isinstance(value, VariableTracker):
        return value
    cls = type(value)
    if cls in STATES:
        return new_object(tx, cls, STATES[cls].read(value))
    if cls is tuple:
        return make_tuple(tx, [made(tx, item) for item in value])
    if cls is list:
        return make_list(tx, [made(tx, item) for item in value])
    return wrap(tx, value)


def new_object(tx: Tx, cls: type, state: Any) -> LibraryObjectVariable:
    """An object that the program made."""
    handle = Handle()
    handle.value = (state,)
    handle.tracker = var = LibraryObjectVariable(cls, handle)
    return var


@wraps(*_VALUES)
def _wrap(tx: Tx, value: Any, source: Source | None) -> Var:
    """Its type is guarded now, its contents when somebody looks into it."""
    if source is None:
        tx.fail(
            Reason.UNSUPPORTED_VALUE, f"an object of {type(value).__name__} made outside the captured code"
        )
    tx.guard("type", source, type(value))
    handle = tx.heap.handle_of(value, source)
    handle.tracker = var = LibraryObjectVariable(type(value), handle, source)
    return var


def _look() -> NoReturn:
    """Whoever looks at an object's memory keeps it from being resized while a variable holds the view. Behind
    a cut variables that nothing reads are gone, so the frame runs plainly."""
    raise Unsupported(Reason.UNSUPPORTED_VALUE, "a view of an object's memory", whole=True)


@constructs(memoryview, whole=True)
def _view(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    _look()


@constructs(*_VALUES, *_STREAMS, whole=True)
def _construct(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if cls not in STATES:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__}, which derives from a C class")
    place = (bytearray, array).index(cls) if cls in _VALUES else 0  # of the argument to go through
    values = known_all(tx, args, kwargs)
    if values is None and cls in _VALUES and len(args) == place + 1 and not kwargs:
        values = known_all(tx, [*args[:place], _contents(tx, cls, args[place])], {})
    if values is None:
        tx.fail(
            Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__} made of values that are not known"
        )
    if any(type(x) is int and x > SIZE_LIMIT for x in values[0]) or not _is_followed(cls, *values):
        tx.fail(Reason.UNSUPPORTED_VALUE, f"such an object of {cls.__qualname__}")
    try:
        value = cls(*values[0], **values[1])
    except Exception as error:
        tx.raise_real(error)
    return made(tx, value)


def _contents(tx: Tx, cls: type, given: Any) -> Var:
    if cls is bytearray and has_index(tx, given):
        return constant(tx, index_(tx, given))
    return make_list(tx, iteration.unpack(tx, given))


def _is_followed(cls: type, args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether such an object is its contents: text in the wide code, which newer Pythons warn of, is not, nor
    is a stream that remembers which ends of lines it met."""
    if cls is array:
        return not args or args[0] != "u"
    newline = args[1] if len(args) > 1 else kwargs.get("newline", "\n")
    return cls is not io.StringIO or newline not in (None, "")


def _from_hex(tx: Tx, cls: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    values = known_all(tx, args, kwargs)
    if values is None or cls.value is not bytearray:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "bytearray.fromhex() of these arguments")
    try:
        value = bytearray.fromhex(*values[0], **values[1])
    except Exception as error:
        tx.raise_real(error)
    return made(tx, value)


CLASS_METHODS[bytearray, "fromhex"] = _from_hex
