"""Generators of the program: suspended frames that are run on when something is asked of them.

Owns the protocol (``send``, ``throw``, ``close``) and what the end of a generator means. It must not know how
a frame is suspended. Mirrors Objects/genobject.c.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import CodeType, GeneratorType
from typing import Any, Final

from graphlift.errors import ObservedException, Unsupported
from graphlift.heap import Handle
from graphlift.polyfills import itertools_ as polyfills
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.variables import exceptions, rebuild
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import maker, wraps
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.folding import fold
from graphlift.variables.functions import cell_variable
from graphlift.variables.slots import attributes, iteration

_RUNNING: Final = "running"
_DONE: Final = "done"


#: What handlers of the compiler's own do before they let an exception go on; nobody can tell.
_QUIET: Final = frozenset(
    {
        "PUSH_EXC_INFO",
        "POP_EXCEPT",
        "POP_TOP",
        "COPY",
        "SWAP",
        "LOAD_CONST",
        "STORE_FAST",
        "DELETE_FAST",
        "NOP",
    }
)

#: Where they let it go on. `yield from` closes what it delegates to first, which is asked by itself.
_GOES_ON: Final = frozenset({"RERAISE", "CLEANUP_THROW", "CALL_INTRINSIC_1"})


class GeneratorVariable(VariableTracker):
    """A generator object made by the program.

    Attributes:
        handle: `value` is the suspended frame, or one of the words for a running and a finished one; `items`
            is set to an empty list when the frame was started.
        code: the code of its frame.
        names: its name and qualified name: those that its function had when it was called.
    """

    __slots__ = ("code", "handle", "names")

    def __init__(self, code: CodeType, handle: Handle) -> None:
        self.source = None
        self.code: Final = code
        self.handle: Final = handle
        self.names = (code.co_name, code.co_qualname)

    def python_type(self, tx: Tx) -> type:
        return GeneratorType

    def hash_key(self, tx: Tx) -> Any:
        return self

    # --- running on ------------------------------------------------------------------------------

    def resume(self, tx: Tx, sent: Var | None, error: Var | None = None) -> tuple[bool, VariableTracker]:
        """Run on: (True, what it yields) or (False, what it returns)."""
        frame = self.handle.value
        if frame is _RUNNING:
            tx.raise_(ValueError, "generator already executing")
        if frame is _DONE:
            if error is not None:
                raise ObservedException(error)
            return False, _none(tx)
        started = self.handle.items is not None
        if sent is not None and not started and not _is_none(tx, sent):
            tx.raise_(TypeError, "can't send non-None value to a just-started generator")
        tx.heap.set_slot(self.handle, "items", [])
        tx.heap.set_slot(self.handle, "value", _RUNNING)
        try:
            yielded, value = tx.resume_generator(frame, sent if started else None, error)
        except ObservedException as raised:
            tx.heap.set_slot(self.handle, "value", _DONE)
            leaving = stopiteration_error(tx, frame, raised.value)  # from 3.12 on its own code does it
            if leaving is raised.value:
                raise
            raise ObservedException(leaving) from None
        tx.heap.set_slot(self.handle, "value", frame if yielded else _DONE)
        assert isinstance(value, VariableTracker)
        return yielded, value

    def next_(self, tx: Tx) -> VariableTracker | None:
        yielded, value = self.resume(tx, None)
        return value if yielded else None

    def item(self, tx: Tx, sent: Var | None, error: Var | None) -> VariableTracker:
        """The next item; at the end a StopIteration with the generator's value is raised in the program."""
        yielded, value = self.resume(tx, sent, error)
        if yielded:
            return value
        if _is_none(tx, value):
            tx.raise_(StopIteration)
        tx.raise_(StopIteration, value)

    def iter_(self, tx: Tx) -> VariableTracker:
        return self

    def must_close(self) -> bool:
        """Whether dropping it as it stands runs code of the program: it waits in a protected range."""
        frame = self.handle.value
        if self.handle.items is None or frame in (_RUNNING, _DONE):
            return False
        decoded = frame.decoded
        region = decoded.region(frame.ip - 1)
        while region is not None:
            at = region.target
            while decoded.op(at) in _QUIET:
                at += 1
            if decoded.op(at) not in _GOES_ON:
                return True
            region = decoded.region(at)
        return False

    # --- methods ---------------------------------------------------------------------------------

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name in _METHODS:
            return tx.make.builtin_method(name, self)  # type: ignore[return-value]
        if name in _NAMES:
            return tx.make.constant(self.names[_NAMES.index(name)])  # type: ignore[return-value]
        if hasattr(GeneratorType, name):
            return self.refuse(tx, f"attribute {name!r}")
        tx.raise_(AttributeError, f"'generator' object has no attribute '{name}'")

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        model = _METHODS.get(name)
        if model is None:
            return self.refuse(tx, f"method {name!r}")
        least, most = _ARGUMENTS[name]
        if kwargs or not least <= len(args) <= most:
            fold(tx, getattr(_SAMPLE, name), *[None] * len(args), **dict.fromkeys(kwargs))
        result: VariableTracker = model(tx, self, args)
        return result

    def reconstruct(self, codegen: Codegen) -> None:
        frame = self.handle.value
        if frame is _RUNNING:
            raise Unsupported(Reason.GENERATOR, "a generator that is running must become real")
        if frame is _DONE:
            codegen.call(rebuild.new_finished_generator, [ConstantVariable(self.code)])
        elif self.handle.items is None:
            rebuild.generator(codegen, frame, [cell_variable(cell) for cell in frame.closure])
        else:
            rebuild.suspended_generator(codegen, frame)
        if self.names != (self.code.co_name, self.code.co_qualname):
            names = [ConstantVariable(name) for name in self.names]
            codegen.later(lambda: codegen.run(rebuild.name_generator, [self, *names]))


def _none(tx: Tx) -> VariableTracker:
    return tx.make.constant(None)  # type: ignore[return-value]


def _is_none(tx: Tx, value: Any) -> bool:
    known = value.realize(tx)
    return known.is_constant() and known.as_constant() is None


def _next(tx: Tx, self: GeneratorVariable, args: Sequence[Any]) -> VariableTracker:
    return self.item(tx, None, None)


def _iter(tx: Tx, self: GeneratorVariable, args: Sequence[Any]) -> VariableTracker:
    return self


def _send(tx: Tx, self: GeneratorVariable, args: Sequence[Any]) -> VariableTracker:
    return self.item(tx, args[0], None)


def _throw(tx: Tx, self: GeneratorVariable, args: Sequence[Any]) -> VariableTracker:
    first = args[0].realize(tx)
    if len(args) > 1 and _WARNS:
        tx.fail(Reason.GENERATOR, "throw() with more than one argument, which warns")
    if len(args) > 1 and not _is_none(tx, args[1]):
        second = args[1].realize(tx)
        given = issubclass(second.python_type(tx), BaseException)
        error = second if given else first.call(tx, [second], {}).realize(tx)
    else:
        kind = first.python_type(tx)
        thrown = getattr(first, "value", None) if issubclass(kind, type) else kind
        if not (isinstance(thrown, type) and issubclass(thrown, BaseException)):
            text = "exceptions must be classes or instances deriving from BaseException, not "
            tx.raise_(TypeError, text + kind.__name__)
        error = exceptions.instantiate(tx, first)
    return self.item(tx, None, error)


def _close(tx: Tx, self: GeneratorVariable, args: Sequence[Any]) -> VariableTracker:
    if self.handle.value is _DONE:
        return _none(tx)
    if self.handle.items is None:
        tx.heap.set_slot(self.handle, "value", _DONE)
        return _none(tx)
    error = tx.make.exception(GeneratorExit, [])
    try:
        yielded, value = self.resume(tx, None, error)
    except ObservedException as raised:
        if issubclass(raised.value.python_type(tx), GeneratorExit):
            return _none(tx)
        raise
    if yielded:
        tx.raise_(RuntimeError, "generator ignored GeneratorExit")
    return value if _CLOSE_GIVES_VALUE else _none(tx)


_NAMES: Final = ("__name__", "__qualname__")
_METHODS: Final = {
    "__next__": _next,
    "__iter__": _iter,
    "send": _send,
    "throw": _throw,
    "close": _close,
}


def _throw_warns() -> bool:
    """Whether ``throw(type, value)`` is deprecated on this Python."""
    with warnings.catch_warnings(record=True) as warned, suppress(ValueError):
        warnings.simplefilter("always")
        (None for _ in "").throw(ValueError, "")
    return bool(warned)


_WARNS: Final = _throw_warns()


def _close_gives_value() -> bool:
    """Whether ``close`` gives what the generator returns then."""

    def returns() -> Iterator[None]:
        with suppress(GeneratorExit):
            yield
        return True  # type: ignore[return-value]

    made: Any = returns()
    next(made)
    return bool(made.close())


_CLOSE_GIVES_VALUE: Final = _close_gives_value()

#: How many arguments the methods take, at least and at most.
_ARGUMENTS: Final = {"__next__": (0, 0), "__iter__": (0, 0), "send": (1, 1), "throw": (1, 3), "close": (0, 0)}
#: Says what CPython says where they do not fit.
_SAMPLE: Final[Any] = (None for _ in "")


@maker
def generator(tx: Tx, frame: Any) -> GeneratorVariable:
    """See `protocol.Make.generator`."""
    handle = Handle()
    handle.value = frame
    made = GeneratorVariable(frame.code, handle)
    tx.capture.generators.append(made)
    return made


@wraps(GeneratorType)
def wrap_generator(tx: Tx, value: Any, source: Any) -> Var:
    """A generator from outside is never advanced during a capture."""
    tx.fail(Reason.GENERATOR, "a generator that was made outside the captured code")


# --- what the interpreter asks ------------------------------------------------------------------


def send(tx: Tx, receiver: Any, sent: Any) -> tuple[bool, Var]:
    """One step of ``yield from receiver``: (False, what is yielded) or (True, what it returned)."""
    target = receiver.realize(tx)
    if isinstance(target, GeneratorVariable):
        yielded, value = target.resume(tx, sent)
        return not yielded, value
    try:
        if not _is_none(tx, sent):
            item = target.invoke(tx, "send", [sent], {})
        else:
            item = iteration.advance(tx, target)
    except ObservedException as raised:
        stopped = stop_value(tx, raised.value)
        if stopped is None:
            raise
        return True, stopped
    return False, item


def throw(tx: Tx, receiver: GeneratorVariable, error: Var) -> tuple[bool, Var]:
    """As `send`, but an exception is thrown into the receiver."""
    yielded, value = receiver.resume(tx, None, error)
    return not yielded, value


def close_receiver(tx: Tx, receiver: VariableTracker) -> None:
    """Close what ``yield from`` delegates to, if it can be closed. Mirrors gen_close_iter."""
    if isinstance(receiver, GeneratorVariable):
        _close(tx, receiver, ())
    elif attributes.hasattr_(tx, receiver, "close"):
        attributes.getattr_(tx, receiver, "close").realize(tx).call(tx, [], {})


def stop_value(tx: Tx, error: Any) -> VariableTracker | None:
    """The value that a StopIteration carries; None for any other exception."""
    if not exceptions.is_stop_iteration(error, tx):
        return None
    found: VariableTracker = error.getattr_(tx, "value").realize(tx)
    return found


def is_for_c_code(frame: Any) -> bool:
    """Whether a frame is that of a generator that stands for an iterator written in C."""
    return (frame.module_globals.real or {}).get("__name__") == polyfills.__name__


def stopiteration_error(tx: Tx, frame: Any, error: Any) -> VariableTracker:
    """What leaves a generator in place of `error`: a RuntimeError for a StopIteration, else itself."""
    if is_for_c_code(frame) or not exceptions.is_stop_iteration(error, tx):
        return error  # type: ignore[no-any-return]
    made = tx.make.exception(RuntimeError, [tx.make.constant("generator raised StopIteration")])
    exceptions.set_cause(tx, made, error)  # type: ignore[arg-type]
    exceptions.set_context(tx, made, error)
    return made  # type: ignore[return-value]
