"""What some C classes of exceptions keep in fields of their own beside ``args`` (``errno``, ``lineno``, ...).

CPython's own constructor fills them, run on stand-ins for what a capture does not know; so what it takes,
makes of it and refuses is as in the running Python. Groups are in `exception_groups.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import BuiltinFunctionType, MemberDescriptorType
from typing import Any, Final

from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.slots.type_lookup import Binding, is_immutable, mro_of, namespace_of, type_lookup

#: Classes whose fields are filled here.
WITH_FIELDS: Final = (OSError, SyntaxError, UnicodeError, ImportError, SystemExit)

_ARGS: Final = BaseException.__dict__["args"]

#: Constructors that only store what they are given, whatever it is.
_STORING: Final = (ImportError, SystemExit)


def c_class(cls: type) -> type:
    """The nearest class of exceptions written in C."""
    kinds: Iterator[type] = (base for base in mro_of(cls) if BaseException in mro_of(base))
    return next(base for base in kinds if is_immutable(base) or base is ExceptionGroup)


def fields_of(cls: type) -> list[Any]:
    """The descriptors of the fields that the C class of `cls` has beside those of every exception."""
    owners = [base for base in mro_of(c_class(cls)) if base not in (BaseException, object)]
    members = (value for owner in owners for value in namespace_of(owner).values())
    return [value for value in members if type(value) is MemberDescriptorType]


class _Unknown:
    """Stands for a value that the capture does not know."""


class _StandIns:
    """Real objects in the place of trackers, and the way back."""

    def __init__(self, tx: Tx, storing: bool) -> None:
        self._tx = tx
        self._storing = storing
        self._trackers: dict[int, Any] = {}
        self._alive: list[Any] = []

    def of(self, var: Var) -> Any:
        """What stands for a tracker; breaks where what is made would depend on an unknown value."""
        value: VariableTracker = var.realize(self._tx)
        if value.is_constant():
            shown = value.as_constant()
        elif value.python_type(self._tx) is tuple:
            shown = tuple(self.of(item) for item in value.unpack(self._tx) or ())
        elif self._storing or not issubclass(value.python_type(self._tx), (int, str, bytes, list)):
            shown = _Unknown()
        else:
            self._tx.fail(Reason.EXCEPTION, f"making an exception of {value!r}, which is not known")
        self.stands_for(shown, value)
        return shown

    def stands_for(self, shown: Any, var: Any) -> None:
        """Note which tracker a real object stands for."""
        self._alive.append(shown)
        self._trackers.setdefault(id(shown), var)

    def back(self, value: Any) -> Any:
        """The tracker of a field's value."""
        known = self._trackers.get(id(value))
        if known is None:
            made = self._tx.make
            known = made.tuple(list(map(self.back, value))) if type(value) is tuple else made.constant(value)
            self.stands_for(value, known)
        return known


def filled(tx: Tx, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[type, dict[Any, Any]]:
    """What the C constructor makes of arguments: the result's class; ``args`` and the fields by descriptor.

    Raises what the constructor raises, in the user's program.
    """
    maker = c_class(cls)
    if kwargs and not issubclass(maker, ImportError):
        tx.raise_(TypeError, f"{cls.__name__}() takes no keyword arguments")
    shown = _StandIns(tx, issubclass(maker, _STORING))
    values = [shown.of(arg) for arg in args]
    named = {name: shown.of(value) for name, value in kwargs.items()}
    if any(isinstance(value, _Unknown) for value in values) and issubclass(
        maker, (SyntaxError, UnicodeError)
    ):
        tx.fail(Reason.EXCEPTION, f"making a {maker.__name__} of values that are not known")
    if maker is BlockingIOError and len(args) > 2:
        tx.fail(Reason.EXCEPTION, "making a BlockingIOError that counts characters")
    try:
        real = maker(*values, **named)
    except (TypeError, ValueError) as error:
        tx.raise_real(error)
    return type(real), read(real, shown)


def read(real: BaseException, shown: _StandIns) -> dict[Any, Any]:
    """``args`` and the fields of a real exception, as trackers by descriptor."""
    return {_ARGS: shown.back(real.args)} | {
        field: shown.back(value)
        for field in fields_of(type(real))
        if is_set(field, value := field.__get__(real), len(real.args))
    }


def is_set(field: Any, value: object, count: int) -> bool:
    """Whether something is stored in a field that reads as `value`, in an exception with `count` arguments.

    A field of which nothing is known reads as None; ``OSError(None, None)`` stores it.
    """
    return value is not None or (field.__name__ in ("errno", "strerror") and 2 <= count <= 5)


def of_real(tx: Tx, error: BaseException) -> dict[Any, Any]:
    """``args`` and the fields of an exception that an operation on constants raised."""
    return read(error, _StandIns(tx, True))


def waits_for_init(tx: Tx, cls: type) -> bool:
    """Whether ``OSError.__new__`` leaves the arguments to ``OSError.__init__``. Mirrors oserror_use_init."""
    init, new = type_lookup(tx, cls, "__init__"), type_lookup(tx, cls, "__new__")
    assert init is not None and new is not None
    return init.binding is not Binding.C_METHOD and type(new.raw) is BuiltinFunctionType


def text(tx: Tx, made: Any) -> str | None:
    """``str()`` of an exception, by its C class's own method; None where its fields are not all known."""
    maker: Any = c_class(made.cls)
    real = maker.__new__(maker)
    for field in (_ARGS, *fields_of(maker)):
        found, value = _known(tx, made.read_member(tx, field, field.__name__))
        if not found:
            return None
        if is_set(field, value, len(real.args)):
            field.__set__(real, value)
    shown: str = maker.__str__(real)
    return shown


def _known(tx: Tx, var: Var) -> tuple[bool, Any]:
    """Whether a value is known, and the value."""
    value: VariableTracker = var.realize(tx)
    if value.is_constant():
        return True, value.as_constant()
    if value.python_type(tx) is not tuple:
        return False, None
    items = [_known(tx, item) for item in value.unpack(tx) or ()]
    return all(found for found, _ in items), tuple(item for _, item in items)
