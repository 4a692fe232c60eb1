"""Exception instances: raised by the program or by its operations, caught, chained, made real.

Owns what the C part of ``BaseException`` keeps (``args``, ``__cause__``, ``__context__``), and how ``except``
clauses match. Mirrors Objects/exceptions.c and PyErr_GivenExceptionMatches of Python/errors.c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CodeType, MemberDescriptorType, TracebackType
from typing import Any, Final

from graphlift.codegen.tracebacks import extend
from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import Source
from graphlift.variables import exception_fields, rebuild
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import maker, wraps_if
from graphlift.variables.classes import ClassVariable, Construct, constructs
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.exception_fields import WITH_FIELDS
from graphlift.variables.slots import attributes, iteration, operators, text
from graphlift.variables.slots.type_lookup import anchor, is_immutable, mro_of
from graphlift.variables.tracebacks import TracebackVariable, arguments_of, same_trace, traceback_of
from graphlift.variables.user_defined import UserDefinedObject, c_new

_FIELDS: Final = BaseException.__dict__
_ARGS: Final = _FIELDS["args"]
_CAUSE: Final = _FIELDS["__cause__"]
_CONTEXT: Final = _FIELDS["__context__"]
_TRACEBACK: Final = _FIELDS["__traceback__"]
_SUPPRESS: Final = _FIELDS["__suppress_context__"]

#: What ``StopIteration.__init__`` keeps its first argument in.
_VALUE: Final = StopIteration.__dict__["value"]

_READABLE: Final = (_ARGS, _CAUSE, _CONTEXT, _SUPPRESS)

#: Fields that only ``__new__`` can set, in the order of its arguments.
_FIXED: Final = tuple(BaseExceptionGroup.__dict__[name] for name in ("message", "exceptions"))

#: Fields in which errors of look-ups note what was looked for; None until something is noted.
_LOOKED_FOR: Final = (
    AttributeError.__dict__["name"],
    AttributeError.__dict__["obj"],
    NameError.__dict__["name"],
)


class ExceptionVariable(UserDefinedObject):
    """An exception instance. Its C fields are members of the handle's `slots`; the handle's `items` are the
    places that it has passed since it was raised, outermost first, as (code, step, step at which the frame
    was left, handle of the globals).
    The handle's `value` is what the program set its traceback to, before those places; else None."""

    __slots__ = ()

    def may_read(self, descriptor: Any) -> bool:
        if descriptor is _TRACEBACK:
            return not self.handle.items and self.handle.value is None
        return descriptor in _READABLE or descriptor is _VALUE or super().may_read(descriptor)

    def may_write(self, descriptor: Any) -> bool:
        return descriptor in (_ARGS, _CAUSE, _CONTEXT, _SUPPRESS) or super().may_write(descriptor)

    def unset_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if descriptor is _SUPPRESS:
            return tx.make.constant(False)  # type: ignore[return-value]
        if descriptor.__objclass__.__module__ == "builtins":
            if descriptor in (_CAUSE, _CONTEXT) or type(descriptor) is MemberDescriptorType:
                return tx.make.constant(None)  # type: ignore[return-value]
            return self.refuse(tx, f"attribute {name!r}")
        return super().unset_member(tx, descriptor, name)

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if descriptor is _TRACEBACK:
            handled = tx.handled_exception() if self.handle.real is not None else None
            if self.handle.real is None or (handled is not None and handled.realize(tx) is self):
                return self.traceback(tx)
        return super().read_member(tx, descriptor, name)

    def traceback(self, tx: Tx) -> VariableTracker:
        """``exception.__traceback__`` of one that was raised or made here."""
        if self.handle.items or self.handle.real is not None:
            return traceback_of(tx, self)
        before: VariableTracker | None = self.handle.value
        return tx.make.constant(None) if before is None else before  # type: ignore[return-value]

    def is_plain(self, tx: Tx) -> bool:
        """Whether a report of it that is made later says the same: all in it is known and Python's own."""
        own = self.instance_dict(tx)
        if self.handle.real is not None or not is_immutable(self.cls) or (own is not None and own.table):
            return False
        linked = (self.read_member(tx, link, link.__name__).realize(tx) for link in (_CAUSE, _CONTEXT))
        known = self.args(tx).realize(tx).is_constant()
        return known and all(
            other.is_constant() or (isinstance(other, ExceptionVariable) and other.is_plain(tx))
            for other in linked
        )

    def is_as_caught(self, tx: Tx, other: ExceptionVariable) -> bool:
        """Whether this is a part of `other` that was not raised anew. Mirrors is_same_exception_metadata."""
        if self.handle.real is not None or other.handle.real is not None:
            tx.fail(Reason.EXCEPTION, "`except*` of a group that exists")
        fields = ((_CAUSE, "__cause__"), (_CONTEXT, "__context__"))
        pairs = ((self.read_member(tx, *field), other.read_member(tx, *field)) for field in fields)
        mine, theirs = (error.traceback(tx) for error in (self, other))
        return same_trace(mine, theirs) and all(
            operators.same_object(tx, one.realize(tx), two.realize(tx)) for one, two in pairs
        )

    def write_member(self, tx: Tx, descriptor: Any, name: str, value: VariableTracker | None) -> None:
        if name == "__traceback__":
            self._replace_traceback(tx, value)
            return
        if value is None and descriptor in (_ARGS, _CAUSE, _CONTEXT):
            tx.raise_(TypeError, f"{name} may not be deleted")
        if value is None:
            self.refuse(tx, f"deleting attribute {name!r}")
        if descriptor in (_CAUSE, _CONTEXT) and not _may_be_linked(tx, value):
            tx.raise_(TypeError, f"exception {name.strip('_')} must be None or derive from BaseException")
        if descriptor is _SUPPRESS and value.realize(tx).python_type(tx) is not bool:
            tx.raise_(TypeError, "attribute value type must be bool")
        if descriptor is _ARGS:
            value = tx.make.tuple(iteration.unpack(tx, value))  # type: ignore[assignment]
        if descriptor is _CAUSE:
            self.write_member(tx, _SUPPRESS, "__suppress_context__", tx.make.constant(True))  # type: ignore[arg-type]
        super().write_member(tx, descriptor, name, value)

    def _replace_traceback(self, tx: Tx, value: VariableTracker | None) -> None:
        """``exception.__traceback__ = value``."""
        if value is None:
            tx.raise_(TypeError, "__traceback__ may not be deleted")
        trace: VariableTracker = value.realize(tx)
        nothing = trace.is_constant() and trace.as_constant() is None
        if not nothing and trace.python_type(tx) is not TracebackType:
            tx.raise_(TypeError, "__traceback__ must be a traceback or None")
        if isinstance(trace, TracebackVariable) and trace.is_whole_of(self):
            return
        if self.handle.real is not None:
            tx.heap.touch(self.handle)
        tx.heap.set_slot(self.handle, "value", trace)
        tx.heap.set_slot(self.handle, "items", [])

    def looked_for(self, tx: Tx, owner: VariableTracker | None, name: str) -> None:
        """Note what a look-up did not find, unless something is noted. Mirrors set_attribute_error_context.

        Arguments:
            owner: whose attribute; None for a global name.
        """
        base: Any = NameError if owner is None else AttributeError
        values: dict[str, Any] = {"name": tx.make.constant(name)}
        if owner is not None:
            values["obj"] = owner
        for field in values:
            known = self.read_member(tx, base.__dict__[field], field).realize(tx)
            if not known.is_constant() or known.as_constant() is not None:
                return
        for field, value in values.items():
            super().write_member(tx, base.__dict__[field], field, value)

    def pass_place(self, tx: Tx, code: CodeType, index: int, module_globals: Handle) -> None:
        """Note that the exception is raised at, or passes through, a step of a frame."""
        passed = self.handle.items or ()
        tx.heap.set_slot(self.handle, "items", [(code, index, index, module_globals), *passed])
        if self.handle.real is not None:
            tx.heap.touch(self.handle)

    def leave_at(self, tx: Tx, code: CodeType, last: int) -> None:
        """Note at which step it leaves the frame that it passed through last, where that is another one."""
        passed = self.handle.items
        if passed and passed[0][0] is code and passed[0][2] != last:
            _, index, _, module_globals = passed[0]
            tx.heap.set_slot(self.handle, "items", [(code, index, last, module_globals), *passed[1:]])

    def fill_fields(self, tx: Tx, values: Mapping[Any, Any]) -> None:
        """Set C fields, by descriptor."""
        for descriptor, value in values.items():
            UserDefinedObject.write_member(self, tx, descriptor, descriptor.__name__, value)

    def keep(self, tx: Tx, args: Sequence[Any]) -> None:
        """What the C ``__init__`` does with its positional arguments."""
        UserDefinedObject.write_member(self, tx, _ARGS, "args", tx.make.tuple(list(args)))  # type: ignore[arg-type]
        if StopIteration in mro_of(self.cls):
            value: Any = args[0] if args else tx.make.constant(None)
            UserDefinedObject.write_member(self, tx, _VALUE, "value", value)

    def args(self, tx: Tx) -> VariableTracker:
        """``exception.args``."""
        return self.read_member(tx, _ARGS, "args")

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        for owner in mro_of(self.cls):
            model = EXCEPTION_METHODS.get((owner, name))
            if model is not None:
                result: VariableTracker = model(tx, self, args, kwargs)
                return result
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, codegen: Codegen) -> None:
        assert self.cls_var is not None
        slots = None if self.handle.slots is None else self.handle.slots.table
        fixed = [(slots or {})[field][1] for field in _FIXED if field in (slots or {})]
        if self.handle.items or self.handle.value is not None:
            trace: Var = ConstantVariable(None) if self.handle.value is None else self.handle.value
            args = [ConstantVariable(len(fixed)), *fixed, trace, *arguments_of(self.handle.items or ())]
            codegen.call(_new_raised, [self.cls_var, *args])
        else:
            codegen.call(c_new(self.cls), [self.cls_var, *fixed])
        codegen.later(lambda: self.fill(codegen))

    def fill(self, codegen: Codegen) -> None:
        """Emit what puts fields and attributes into an exception made here."""
        table = {} if self.handle.slots is None else self.handle.slots.table or {}
        for descriptor, (_, value) in table.items():
            if descriptor not in _FIXED:
                rebuild.store_member(codegen, self, self.cls, descriptor, value)
        rebuild.attributes(codegen, self, self.handle)

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Emit the new entries of an existing exception's traceback, or the writes to its fields."""
        if handle is self.handle:
            if handle.value is not None:
                codegen.run(_TRACEBACK.__set__, [self, handle.value])
            codegen.run(extend, [self, *arguments_of(self.handle.items or ())])
        else:
            rebuild.written_members(codegen, handle, self.cls, without=_FIXED)


def _may_be_linked(tx: Tx, value: VariableTracker) -> bool:
    """Whether a value may be the cause or the context of an exception."""
    kind = value.realize(tx).python_type(tx)
    return kind is type(None) or BaseException in mro_of(kind)


def _new_raised(cls: Any, count: int, *rest: Any) -> BaseException:
    """An exception that was raised and caught, its fields not yet filled (runs in the compiled program).

    Arguments:
        count: how many of the rest are for its C ``__new__``.
        rest: those; the inner part of its traceback; the arguments of `extend`.
    """
    made: BaseException = c_new(cls)(cls, *rest[:count])
    _TRACEBACK.__set__(made, rest[count])
    return extend(made, *rest[count + 1 :])


# --- methods of BaseException -------------------------------------------------------------------


def _init(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if issubclass(self.cls, WITH_FIELDS):
        if not issubclass(self.cls, OSError) or exception_fields.waits_for_init(tx, self.cls):
            if self.handle.real is not None or len(self.handle.slots.table) > 1:  # type: ignore[arg-type, union-attr]
                self.refuse(tx, "a second `__init__`")
            self.fill_fields(tx, exception_fields.filled(tx, self.cls, args, kwargs)[1])
        return tx.make.constant(None)
    fields = {d.__name__: d for d in _LOOKED_FOR if d.__objclass__ in mro_of(self.cls)}
    if not kwargs.keys() <= fields.keys():
        if fields:
            self.refuse(tx, "a keyword argument that it does not know")
        tx.raise_(TypeError, f"{self.cls.__name__}() takes no keyword arguments")
    for name, value in kwargs.items():
        UserDefinedObject.write_member(self, tx, fields[name], name, value)
    self.keep(tx, args)
    return tx.make.constant(None)


def _str(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if issubclass(self.cls, WITH_FIELDS):
        shown = exception_fields.text(tx, self)
        return self.refuse(tx, "str()") if shown is None else tx.make.constant(shown)
    values = iteration.unpack(tx, self.args(tx))
    if not values:
        return tx.make.constant("")
    if len(values) > 1:
        return text.str_(tx, self.args(tx))
    return text.repr_(tx, values[0]) if issubclass(self.cls, KeyError) else text.str_(tx, values[0])


def _repr(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    values = [text.repr_(tx, value).realize(tx) for value in iteration.unpack(tx, self.args(tx))]
    if not all(value.is_constant() for value in values):
        return self.refuse(tx, "repr()")
    shown = ", ".join(value.as_constant() for value in values)
    return tx.make.constant(f"{self.cls.__name__}({shown})")


def _with_traceback(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    self.write_member(tx, _TRACEBACK, "__traceback__", args[0] if args else None)
    return self


def _add_note(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if len(args) != 1 or kwargs:
        self.refuse(tx, "add_note() with other than one argument")
    kind = args[0].realize(tx).python_type(tx)
    if not issubclass(kind, str):
        tx.raise_(TypeError, f"note must be a str, not '{kind.__name__}'")
    if not attributes.hasattr_(tx, self, "__notes__"):
        self.setattr_(tx, "__notes__", tx.make.list([]))  # type: ignore[arg-type]
    notes = attributes.getattr_(tx, self, "__notes__").realize(tx)
    if not issubclass(notes.python_type(tx), list):
        tx.raise_(TypeError, "Cannot add note: __notes__ is not a list")
    beneath = getattr(notes, "storage", None)
    return (notes if beneath is None else beneath).call_method(tx, "append", list(args), {})


#: Models of the methods of C classes of exceptions.
EXCEPTION_METHODS: Final[dict[tuple[type, str], Callable[..., Any]]] = {
    (BaseException, "__init__"): _init,
    (BaseException, "__str__"): _str,
    (BaseException, "__repr__"): _repr,
    (BaseException, "with_traceback"): _with_traceback,
    (BaseException, "add_note"): _add_note,
}


# --- making -------------------------------------------------------------------------------------


_CONSTRUCT: Final[dict[type, Construct]] = {}


def construct(owner: type) -> Callable[[Construct], Construct]:
    """Register how a C ``__new__`` makes exceptions, where it is not that of `BaseException`."""

    def register(model: Construct) -> Construct:
        _CONSTRUCT[owner] = model
        return model

    return register


@constructs(BaseException)
def _new_exception(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    for owner in mro_of(cls):
        if owner in _CONSTRUCT:
            return _CONSTRUCT[owner](tx, cls_var, cls, args, kwargs)
    return exceptions_of(tx, cls, cls_var, args)


def exceptions_of(tx: Tx, cls: type, cls_var: Any, args: Sequence[Any]) -> ExceptionVariable:
    """What ``BaseException.__new__`` makes."""
    made = ExceptionVariable(cls, Handle(), None, cls_var)
    UserDefinedObject.write_member(made, tx, _ARGS, "args", tx.make.tuple(list(args)))  # type: ignore[arg-type]
    return made


@construct(OSError)
def _new_os_error(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if exception_fields.waits_for_init(tx, cls):
        return exceptions_of(tx, cls, cls_var, [])
    kind, values = exception_fields.filled(tx, cls, args, kwargs)
    if cls is OSError and kind is not cls:
        cls, cls_var = kind, tx.make.from_value(kind, None)
    made = exceptions_of(tx, cls, cls_var, [])
    made.fill_fields(tx, values)
    return made


@maker
def exception(tx: Tx, cls: type[BaseException], args: Sequence[Var]) -> ExceptionVariable:
    """See `protocol.Make.exception`."""
    made = ExceptionVariable(cls, Handle(), None, tx.make.from_value(cls, None))
    made.keep(tx, args)
    return made


def of_real(tx: Tx, error: BaseException) -> ExceptionVariable:
    """What stands for an exception that an operation on constants raised."""
    if not isinstance(error, WITH_FIELDS):
        made: Any = tx.make.exception(type(error), [tx.make.constant(arg) for arg in error.args])
        return made  # type: ignore[no-any-return]
    made = exceptions_of(tx, type(error), tx.make.from_value(type(error), None), [])
    made.fill_fields(tx, exception_fields.of_real(tx, error))
    return made  # type: ignore[no-any-return]


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
        behind = _context_of(tx, link, value)
        if behind is value:
            UserDefinedObject.write_member(link, tx, _CONTEXT, "__context__", tx.make.constant(None))  # type: ignore[arg-type]
            break
        link = behind
    if isinstance(value, ExceptionVariable):
        UserDefinedObject.write_member(value, tx, _CONTEXT, "__context__", handled)


def _context_of(tx: Tx, link: ExceptionVariable, value: Any) -> Any:
    """What stands behind `link`, or None where that cannot lead to `value`: nothing that existed before
    knows an exception that was made here, unless it was written."""
    slots = link.handle.slots
    entry = None if slots is None or slots.table is None else slots.table.get(_CONTEXT)
    if entry is not None:
        return entry[1].realize(tx)
    if link.handle.real is None or value.handle.real is None:
        return None
    return link.read_member(tx, _CONTEXT, "__context__").realize(tx)


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
