"""Exception instances: raised by the program or by its operations, caught, chained, made real.

Owns what the C part of ``BaseException`` keeps (``args``, ``__cause__``, ``__context__``), and how ``except``
clauses match. Mirrors Objects/exceptions.c and PyErr_GivenExceptionMatches of Python/errors.c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.errors import Unsupported
from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import Source
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import maker, wraps_if
from graphlift.variables.classes import ClassVariable, constructs
from graphlift.variables.slots import attributes, iteration
from graphlift.variables.slots.type_lookup import anchor, mro_of
from graphlift.variables.tracebacks import TracebackVariable
from graphlift.variables.user_defined import UserDefinedObject, c_new

_FIELDS: Final = BaseException.__dict__
_ARGS: Final = _FIELDS["args"]
_CAUSE: Final = _FIELDS["__cause__"]
_CONTEXT: Final = _FIELDS["__context__"]
_SUPPRESS: Final = _FIELDS["__suppress_context__"]

#: C classes of exceptions whose objects are nothing but `args` and one field that can be told from them.
_VALUE_FIELDS: Final[dict[Any, int]] = {
    StopIteration.__dict__["value"]: 0,
}

#: C classes that keep what they are given in fields of their own.
_WITH_FIELDS: Final = (OSError, SyntaxError, UnicodeError, ImportError, SystemExit, BaseExceptionGroup)


class ExceptionVariable(UserDefinedObject):
    """An exception instance. Its C fields are members of the handle's `slots`."""

    __slots__ = ()

    def may_read(self, descriptor: Any) -> bool:
        return descriptor in (_ARGS, _SUPPRESS) or descriptor in _VALUE_FIELDS or super().may_read(descriptor)

    def may_write(self, descriptor: Any) -> bool:
        return descriptor in (_ARGS, _CAUSE, _CONTEXT, _SUPPRESS) or super().may_write(descriptor)

    def unset_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if descriptor in _VALUE_FIELDS:
            values = iteration.unpack(tx, self.args(tx))
            at = _VALUE_FIELDS[descriptor]
            return values[at] if at < len(values) else tx.make.constant(None)  # type: ignore[return-value]
        if descriptor in (_CAUSE, _CONTEXT):
            return tx.make.constant(None)  # type: ignore[return-value]
        if descriptor is _SUPPRESS:
            return tx.make.constant(False)  # type: ignore[return-value]
        if descriptor.__objclass__.__module__ == "builtins":
            return self.refuse(tx, f"attribute {name!r}")
        return super().unset_member(tx, descriptor, name)

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if name == "__traceback__" and self.handle.value is None:
            handled = tx.handled_exception()
            if handled is not None and handled.realize(tx) is self:
                return TracebackVariable()
        return super().read_member(tx, descriptor, name)

    def write_member(self, tx: Tx, descriptor: Any, name: str, value: VariableTracker | None) -> None:
        if name == "__traceback__":
            # Which frames a traceback shows is not followed; that there is one, while none was taken away.
            if value is None or not isinstance(value.realize(tx), TracebackVariable):
                tx.heap.set_slot(self.handle, "value", "traceback replaced")
            return
        if value is None:
            self.refuse(tx, f"deleting attribute {name!r}")
        if descriptor is _ARGS:
            value = tx.make.tuple(iteration.unpack(tx, value))  # type: ignore[assignment]
        if descriptor is _CAUSE:
            self.write_member(tx, _SUPPRESS, "__suppress_context__", tx.make.constant(True))  # type: ignore[arg-type]
        super().write_member(tx, descriptor, name, value)

    def args(self, tx: Tx) -> VariableTracker:
        """``exception.args``."""
        return self.read_member(tx, _ARGS, "args")

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        model = _METHODS.get(name)
        if model is None:
            return super().call_method(tx, name, args, kwargs)
        result: VariableTracker = model(tx, self, args, kwargs)
        return result

    def reconstruct(self, codegen: Codegen) -> None:
        if issubclass(self.cls, _WITH_FIELDS):
            raise Unsupported(Reason.EXCEPTION, f"{self!r}, which keeps fields of its own, must become real")
        assert self.cls_var is not None
        codegen.call(c_new(self.cls), [self.cls_var])
        codegen.later(lambda: self.fill(codegen))


# --- methods of BaseException -------------------------------------------------------------------


def _init(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if kwargs:
        tx.raise_(TypeError, f"{self.cls.__name__}() takes no keyword arguments")
    UserDefinedObject.write_member(self, tx, _ARGS, "args", tx.make.tuple(list(args)))  # type: ignore[arg-type]
    return tx.make.constant(None)


def _str(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    values = iteration.unpack(tx, self.args(tx))
    if issubclass(self.cls, _WITH_FIELDS):
        return self.refuse(tx, "str()")
    if not values:
        return tx.make.constant("")
    if len(values) > 1:
        return self.args(tx).invoke(tx, "__str__", [], {})
    value = values[0].realize(tx)
    if issubclass(self.cls, KeyError):
        return value.invoke(tx, "__repr__", [], {})
    return value.invoke(tx, "__str__", [], {})


def _repr(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    values = [value.realize(tx) for value in iteration.unpack(tx, self.args(tx))]
    if not all(value.is_constant() for value in values):
        return self.refuse(tx, "repr()")
    shown = ", ".join(repr(value.as_constant()) for value in values)
    return tx.make.constant(f"{self.cls.__name__}({shown})")


def _with_traceback(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if not args or not isinstance(args[0].realize(tx), TracebackVariable):
        tx.heap.set_slot(self.handle, "value", "traceback replaced")
    return self


def _add_note(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if not attributes.hasattr_(tx, self, "__notes__"):
        self.setattr_(tx, "__notes__", tx.make.list([]))  # type: ignore[arg-type]
    return attributes.getattr_(tx, self, "__notes__").realize(tx).invoke(tx, "append", list(args), {})


_METHODS: Final = {
    "__init__": _init,
    "__str__": _str,
    "__repr__": _repr,
    "with_traceback": _with_traceback,
    "add_note": _add_note,
}


# --- making -------------------------------------------------------------------------------------


@constructs(BaseException)
def _new_exception(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if issubclass(cls, _WITH_FIELDS):
        tx.fail(Reason.EXCEPTION, f"making an exception of class {cls.__qualname__}")
    made = ExceptionVariable(cls, Handle(), None, cls_var)
    UserDefinedObject.write_member(made, tx, _ARGS, "args", tx.make.tuple(list(args)))  # type: ignore[arg-type]
    return made


@maker
def exception(tx: Tx, cls: type[BaseException], args: Sequence[Var]) -> ExceptionVariable:
    """See `protocol.Make.exception`."""
    made = ExceptionVariable(cls, Handle(), None, tx.make.from_value(cls, None))
    UserDefinedObject.write_member(made, tx, _ARGS, "args", tx.make.tuple(list(args)))  # type: ignore[arg-type]
    return made


def _is_exception(value: object) -> bool:
    return BaseException in mro_of(type(value))


@wraps_if(_is_exception, order=70)
def wrap_exception(tx: Tx, value: BaseException, source: Source | None) -> ExceptionVariable:
    """An exception instance that exists."""
    if source is None:
        source = anchor(tx, value)
    tx.guard("type", source, type(value))
    handle = tx.heap.handle_of(value, source)
    made = ExceptionVariable(type(value), handle, source)
    handle.tracker = made
    return made


# --- what the interpreter asks ------------------------------------------------------------------


def instantiate(tx: Tx, value: Var) -> VariableTracker:
    """What ``raise value`` raises: an instance, made from the class if need be."""
    raised: VariableTracker = value.realize(tx)
    if is_exception_class(raised):
        raised = raised.call(tx, [], {}).realize(tx)
        if not issubclass(raised.python_type(tx), BaseException):
            tx.raise_(
                TypeError,
                f"calling {value!r} should have returned an instance of BaseException, "
                f"not {raised.python_type(tx).__name__}",
            )
    if not issubclass(raised.python_type(tx), BaseException):
        tx.raise_(TypeError, "exceptions must derive from BaseException")
    return raised


def is_exception_class(value: VariableTracker) -> bool:
    """Whether a realised tracker is a class of exceptions."""
    return isinstance(value, ClassVariable) and BaseException in mro_of(value.value)


def set_cause(tx: Tx, value: VariableTracker, cause: Var) -> None:
    """``raise value from cause``."""
    origin: VariableTracker = cause.realize(tx)
    if is_exception_class(origin):
        origin = instantiate(tx, origin)
    elif origin.python_type(tx) is not type(None) and not issubclass(origin.python_type(tx), BaseException):
        tx.raise_(TypeError, "exception causes must derive from BaseException")
    value.write_member(tx, _CAUSE, "__cause__", origin)


def set_context(tx: Tx, value: Any, handled: Any) -> None:
    """Note that `value` was raised while `handled` was being handled; cycles are cut as CPython cuts them."""
    if value is handled:
        return
    link, seen = handled, set()
    while isinstance(link, ExceptionVariable) and id(link) not in seen:
        seen.add(id(link))
        behind = _context_of(link)
        if behind is value:
            UserDefinedObject.write_member(link, tx, _CONTEXT, "__context__", tx.make.constant(None))  # type: ignore[arg-type]
            break
        link = behind
    if isinstance(value, ExceptionVariable):
        UserDefinedObject.write_member(value, tx, _CONTEXT, "__context__", handled)


def _context_of(value: ExceptionVariable) -> Any:
    slots = value.handle.slots
    entry = None if slots is None or slots.table is None else slots.table.get(_CONTEXT)
    return None if entry is None else entry[1]


def matches(tx: Tx, value: Var, pattern: Var) -> bool:
    """Whether ``except pattern`` catches the exception.

    Raises a TypeError in the user's program for a pattern that is no exception class.
    """
    kind = value.realize(tx).python_type(tx)
    asked: VariableTracker = pattern.realize(tx)
    several = asked.python_type(tx)
    patterns = iteration.unpack(tx, asked) if issubclass(several, tuple) else [asked]
    found = False
    for one in patterns:
        candidate = one.realize(tx)
        if not is_exception_class(candidate):
            tx.raise_(TypeError, "catching classes that do not inherit from BaseException is not allowed")
        found = found or getattr(candidate, "value", None) in mro_of(kind)
    return found


def is_stop_iteration(value: Any, tx: Tx) -> bool:
    """Whether an exception ends an iteration."""
    return StopIteration in mro_of(value.python_type(tx))
