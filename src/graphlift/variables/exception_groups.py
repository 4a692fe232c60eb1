"""Exception groups, and what ``except*`` asks of them. Mirrors Objects/exceptions.c and exception_group_match
of Python/ceval.c."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.polyfills import exception_groups as polyfills
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.exception_fields import c_class
from graphlift.variables.exceptions import (
    EXCEPTION_METHODS,
    ExceptionVariable,
    construct,
    exceptions_of,
    is_exception_class,
    matches,
)
from graphlift.variables.slots import iteration
from graphlift.variables.slots.type_lookup import mro_of
from graphlift.variables.user_defined import UserDefinedObject

_MESSAGE: Final = BaseExceptionGroup.__dict__["message"]
_EXCEPTIONS: Final = BaseExceptionGroup.__dict__["exceptions"]


@construct(BaseExceptionGroup)
def _new_group(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    items: list[Any] | None = None
    shown: list[Any] = [arg.realize(tx) for arg in args]
    if len(shown) == 2 and shown[1].python_type(tx) in (list, tuple):
        items = iteration.unpack(tx, shown[1])
    kind = _made_kind(tx, cls, shown, items)
    if kind is not cls:
        cls_var = tx.make.from_value(kind, None)
    made = exceptions_of(tx, kind, cls_var, args)
    assert items is not None
    held: Any = shown[1] if shown[1].python_type(tx) is tuple else tx.make.tuple(items)
    UserDefinedObject.write_member(made, tx, _MESSAGE, "message", shown[0])
    UserDefinedObject.write_member(made, tx, _EXCEPTIONS, "exceptions", held)
    return made


def _made_kind(tx: Tx, cls: type, args: list[Any], items: list[Any] | None) -> type:
    """The class of what is made: `cls`, or `ExceptionGroup` where plain exceptions are put in its base.

    CPython's constructor decides, asked with exceptions that have nothing but the right base.
    """
    shown = [_shown(tx, arg) for arg in args]
    if items is not None:
        shown[1] = [_shown(tx, item.realize(tx)) for item in items]
    maker = c_class(cls)
    asked: Any = maker
    if cls is not maker:
        bases = (maker, Exception) if Exception in mro_of(cls) and maker is BaseExceptionGroup else (maker,)
        asked = type(cls.__name__, bases, {})
    try:
        kind = type(asked(*shown))
    except (TypeError, ValueError) as error:
        tx.raise_real(error)
    return cls if kind is asked else kind


def _shown(tx: Tx, value: VariableTracker) -> Any:
    if value.is_constant():
        return value.as_constant()
    kind = value.python_type(tx)
    if BaseException in mro_of(kind):
        return Exception() if Exception in mro_of(kind) else BaseException()
    if kind not in (list, tuple) and (hasattr(kind, "__getitem__") or issubclass(kind, str)):
        tx.fail(Reason.EXCEPTION, f"making an exception group of {value!r}")
    return object()


# --- methods ------------------------------------------------------------------------------------


def _split(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.run_host(polyfills.split, [self, *_one(tx, self, "split", args, kwargs)])


def _subgroup(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.run_host(polyfills.subgroup, [self, *_one(tx, self, "subgroup", args, kwargs)])


def _derive(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.run_host(polyfills.derive, [self, *_one(tx, self, "derive", args, kwargs)])


def _one(tx: Tx, self: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
    if len(args) != 1 or kwargs:
        group: Any = BaseExceptionGroup("", [BaseException()])
        try:
            getattr(group, name)(*[None] * len(args), **dict.fromkeys(kwargs))
        except TypeError as error:
            tx.raise_real(error)
    return args


def _str(tx: Tx, self: ExceptionVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    message = self.read_member(tx, _MESSAGE, "message").realize(tx)
    if not message.is_constant():
        self.refuse(tx, "str()")
    count = len(iteration.unpack(tx, self.read_member(tx, _EXCEPTIONS, "exceptions")))
    return tx.make.constant(f"{message.as_constant()} ({count} sub-exception{'s' * (count != 1)})")


for _name, _model in {"split": _split, "subgroup": _subgroup, "derive": _derive, "__str__": _str}.items():
    EXCEPTION_METHODS[BaseExceptionGroup, _name] = _model


# --- except* ------------------------------------------------------------------------------------


def match_group(tx: Tx, value: Var, pattern: Var) -> tuple[Any, Any]:
    """What of the exception `value` the clause ``except* pattern`` takes, and the rest; None for nothing.

    Raises a TypeError in the user's program for a pattern that is not allowed.
    """
    _check_pattern(tx, pattern)
    error: VariableTracker = value.realize(tx)
    nothing = tx.make.constant(None)
    if error.is_constant():
        return nothing, nothing
    if matches(tx, error, pattern):
        return (error if _is_group(tx, error) else _wrapped(tx, error)), nothing
    if not _is_group(tx, error):
        return nothing, error
    pair = iteration.unpack(tx, tx.run_host(polyfills.pair_of, [error, pattern]))
    return pair[0], pair[1]


def _check_pattern(tx: Tx, pattern: Var) -> None:
    asked: VariableTracker = pattern.realize(tx)
    patterns = iteration.unpack(tx, asked) if issubclass(asked.python_type(tx), tuple) else [asked]
    kinds: list[Any] = [one.realize(tx) for one in patterns]
    if not all(map(is_exception_class, kinds)):
        tx.raise_(TypeError, "catching classes that do not inherit from BaseException is not allowed")
    if any(BaseExceptionGroup in mro_of(kind.value) for kind in kinds):
        tx.raise_(TypeError, "catching ExceptionGroup with except* is not allowed. Use except instead.")


def _is_group(tx: Tx, error: VariableTracker) -> bool:
    return BaseExceptionGroup in mro_of(error.python_type(tx))


def _wrapped(tx: Tx, error: VariableTracker) -> Any:
    """The group as which a single exception is handled."""
    group = tx.make.from_value(BaseExceptionGroup, None).realize(tx)
    return group.call(tx, [tx.make.constant(""), tx.make.tuple([error])], {})


def prepare_reraise(tx: Tx, original: Var, parts: Var) -> Any:
    """What is raised behind the clauses; a tracker of None for nothing. Mirrors _PyExc_PrepReraiseStar.

    Arguments:
        original: the exception that was caught.
        parts: the list of what was raised in the clauses and what is left; may hold None.
    """
    error: Any = original.realize(tx)
    found = [part.realize(tx) for part in iteration.unpack(tx, parts)]
    if not found:
        return tx.make.constant(None)
    if not _is_group(tx, error):
        return found[0]
    errors: list[Any] = [part for part in found if not part.is_constant()]
    let_go = [part.is_as_caught(tx, error) for part in errors]
    raised = [part for part, same in zip(errors, let_go, strict=True) if not same]
    reraised = [part for part, same in zip(errors, let_go, strict=True) if same]
    return tx.run_host(polyfills.to_raise, [error, tx.make.list(raised), tx.make.list(reraised)])
