"""Python constants: values that are their own trackers' knowledge, guarded by type and value."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import BuiltinFunctionType, ClassMethodDescriptorType, MethodDescriptorType, WrapperDescriptorType
from typing import Any, Final, TypeGuard, TypeVar

from graphlift.guards.places import plain_repr
from graphlift.operators import COMPARE, UNARY, numbers_lack
from graphlift.protocol import Codegen, Tx
from graphlift.reasons import Reason
from graphlift.sources import Source
from graphlift.variables.base import NOT_IMPLEMENTED, UNKNOWN, NotImplementedType, VariableTracker
from graphlift.variables.folding import (
    FOLDABLE,
    SIZE_LIMIT,
    fold,
    fold_binary,
    known,
    known_all,
    wrap,
)

SpecialMethod = Callable[[Tx, Any, Sequence[VariableTracker], Mapping[str, VariableTracker]], VariableTracker]
S = TypeVar("S", bound=SpecialMethod)

#: Methods of constants that take values which need not be known: (type, name) -> model.
SPECIAL_METHODS: dict[tuple[type, str], SpecialMethod] = {}

#: Classes of what types hold for their methods.
METHOD_TYPES: Final = (
    MethodDescriptorType,
    WrapperDescriptorType,
    ClassMethodDescriptorType,
    BuiltinFunctionType,
)

#: Further types whose items are asked for by known keys.
INDEXED: Final[set[type]] = set()

#: Methods whose result can be far larger than what they are given.
_MAY_GROW: Final = frozenset(
    (
        "center",
        "expandtabs",
        "format",
        "ljust",
        "replace",
        "rjust",
        "to_bytes",
        "zfill",
        "__format__",
        "__mul__",
        "__rmul__",
    )
)


@functools.cache
def _inversion_warns() -> bool:
    """Whether ``~True`` makes a warning, which must come at each run (Python 3.12 and later)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        operator.invert(True)
    return bool(caught)


def special_method(cls: type, name: str) -> Callable[[S], S]:
    """Register the model of a method that takes arguments which need not be constants."""

    def register(model: S) -> S:
        SPECIAL_METHODS[cls, name] = model
        return model

    return register


#: Numbers that operators of each class take as they are, those of derived classes too.
_TAKEN_BY: Final[dict[type, tuple[type, ...]]] = {
    bool: (int,),
    int: (int,),
    float: (int, float),
    complex: (int, float, complex),
}


class ConstantVariable(VariableTracker):
    """An immutable value known whole: numbers, strings, bytes, None, Ellipsis, torch dtypes, ….

    Operators and methods whose operands are all known are computed at once.

    Attributes:
        value: the constant.
    """

    __slots__ = ("value",)
    leaf = True

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.source = source
        self.value: Final = value

    def python_type(self, tx: Tx) -> type:
        return type(self.value)

    def is_constant(self) -> bool:
        return True

    def as_constant(self) -> Any:
        return self.value

    def snapshot(self, tx: Tx, depth: int = 0) -> Any:
        return self.value if type(self.value) in FOLDABLE else UNKNOWN

    def hash_key(self, tx: Tx) -> Hashable:
        value: Hashable = self.value
        if value != value and self.source is not None:
            tx.fail(Reason.IDENTITY, "a key that is not a number, and so equal to itself alone")
        return value

    def truth(self, tx: Tx) -> bool:
        if self.value is NotImplemented:
            self.refuse(tx, "truth, which warns,")
        return bool(self.value)

    # --- attributes and methods ------------------------------------------------------------

    def _check_foldable(self, tx: Tx, what: str) -> None:
        if type(self.value) not in FOLDABLE:
            self.refuse(tx, what)

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        self._check_foldable(tx, f"attribute {name!r}")
        cls = type(self.value)
        found = getattr(cls, name, None)
        if isinstance(found, METHOD_TYPES) and any(name in base.__dict__ for base in cls.__mro__):
            made = (
                tx.make.from_value(found, None) if name == "__new__" else tx.make.builtin_method(name, self)
            )
            assert isinstance(made, VariableTracker)
            return made
        return fold(tx, getattr, self.value, name)

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        """Of a constant beneath an object of a derived class: fields of numbers."""
        self._check_foldable(tx, f"attribute {name!r}")
        return fold(tx, descriptor.__get__, self.value)

    def setattr_(self, tx: Tx, name: str, value: VariableTracker) -> None:
        self._check_foldable(tx, f"setting attribute {name!r}")
        fold(tx, setattr, self.value, name, None)
        self.refuse(tx, f"setting attribute {name!r}")

    def delattr_(self, tx: Tx, name: str) -> None:
        self._check_foldable(tx, f"deleting attribute {name!r}")
        fold(tx, delattr, self.value, name)

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        self._check_foldable(tx, "call")
        if callable(self.value):  # a torch.device decorates
            self.refuse(tx, "call")
        return self.type_error(tx, "'{}' object is not callable")

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        self._check_foldable(tx, f"method {name!r}")
        special = SPECIAL_METHODS.get((type(self.value), name))
        if special is not None:
            return special(tx, self.value, args, kwargs)
        if name == "__iter__" and not args:
            return self.iter_(tx)
        values = known_all(tx, args, kwargs)
        if values is None:
            self.refuse(tx, f"method {name!r} with arguments that are not known")
        if name in _MAY_GROW:
            self._check_growth(tx, name, values[0])
        return fold(tx, getattr(self.value, name), *values[0], **values[1])

    def _check_growth(self, tx: Tx, name: str, args: list[Any]) -> None:
        size = max((arg for arg in args if isinstance(arg, int)), default=0)
        if name == "replace" and len(args) > 1 and isinstance(args[1], str | bytes):
            size = (len(self.value) + 1) * len(args[1])
        if name in ("__mul__", "__rmul__") and isinstance(self.value, str | bytes):
            size *= len(self.value)
        if size > SIZE_LIMIT:
            tx.fail(Reason.UNSUPPORTED_OPERATION, f"a very large result of {name!r}")

    # --- containers and iteration ----------------------------------------------------------

    def is_text(self) -> bool:
        """Whether it is a str or bytes object."""
        return type(self.value) is str or type(self.value) is bytes

    def length(self, tx: Tx) -> VariableTracker:
        return fold(tx, len, self.value) if self.is_text() else super().length(tx)

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        index = known(tx, key) if self.is_text() or type(self.value) in INDEXED else UNKNOWN
        if not self.is_text():
            return (
                super().getitem(tx, key)
                if index is UNKNOWN
                else fold(tx, operator.getitem, self.value, index)
            )
        if index is UNKNOWN:
            index = type(key.python_type(tx).__name__, (), {})()  # for the text of the error
        return fold(tx, self.value.__getitem__, index)

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        if not self.is_text():
            return NOT_IMPLEMENTED
        value = known(tx, beneath(tx, item, type(self.value)))
        if value is UNKNOWN:
            value = item.python_type(tx)
            tx.raise_(TypeError, f"'in <string>' requires string as left operand, not {value.__name__}")
        return fold(tx, self.value.__contains__, value)

    def unpack(self, tx: Tx) -> list[VariableTracker] | None:
        return [wrap(tx, item) for item in self.value] if self.is_text() else None

    def iter_(self, tx: Tx) -> VariableTracker:
        items = self.unpack(tx)
        if items is None:
            return super().iter_(tx)
        made = tx.make.iterator(items, self.value)
        assert isinstance(made, VariableTracker)
        return made

    # --- operators -------------------------------------------------------------------------

    def unary(self, tx: Tx, op: str) -> VariableTracker:
        self._check_foldable(tx, f"unary {op}")
        if op == "~" and type(self.value) is bool and _inversion_warns():
            self.refuse(tx, "`~`, which warns,")
        return fold(tx, UNARY[op], self.value)

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if type(self.value) not in FOLDABLE:
            return NOT_IMPLEMENTED
        if isinstance(other, ConstantVariable):
            return (
                fold_binary(tx, op, self.value, other.value)
                if type(other.value) in FOLDABLE
                else NOT_IMPLEMENTED
            )
        part: Any = getattr(other, "storage", None)
        if op == "%" and self.is_text():
            if part is not None and part.python_type(tx) is tuple:  # C asks whether it is one, or below
                other = part
            value = other.snapshot(tx)
            if value is not UNKNOWN:
                return fold_binary(tx, op, self.value, value)
            return self.call_method(tx, "__mod__", [other], {})
        if self._takes(part, op):
            return fold_binary(tx, op, self.value, part.value)
        return NOT_IMPLEMENTED

    def _takes(self, part: Any, op: str) -> TypeGuard[ConstantVariable]:
        """Whether it is a number that can be asked about another one, the builtin part of a derived one."""
        return (
            isinstance(part, ConstantVariable)
            and type(part.value) in _TAKEN_BY.get(type(self.value), ())
            and not numbers_lack(op, type(self.value), type(part.value))
        )

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if isinstance(other, ConstantVariable) and {type(self.value), type(other.value)} <= FOLDABLE:
            return fold_binary(tx, op, other.value, self.value)
        part: Any = getattr(other, "storage", None)
        if self._takes(part, op):
            return fold_binary(tx, op, part.value, self.value)
        return NOT_IMPLEMENTED

    def concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if not self.is_text():
            return NOT_IMPLEMENTED
        text = beneath(tx, other, type(self.value))
        if isinstance(text, ConstantVariable) and type(text.value) is type(self.value):
            return fold_binary(tx, "+", self.value, text.value)
        buffer = text.snapshot(tx) if type(self.value) is bytes else UNKNOWN
        if buffer is not UNKNOWN:  # anything with bytes to show
            return fold_binary(tx, "+", self.value, buffer)
        if type(self.value) is str:
            other.type_error(tx, 'can only concatenate str (not "{}") to str')
        other.type_error(tx, "can't concat {} to bytes")

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if (
            isinstance(other, ConstantVariable)
            and type(self.value) in FOLDABLE
            and type(other.value) in FOLDABLE
        ):
            return fold(tx, COMPARE[op], self.value, other.value)
        part: Any = getattr(other, "storage", None)
        if self._takes(part, op):
            return fold(tx, COMPARE[op], self.value, part.value)
        return NOT_IMPLEMENTED

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_const(self.value)

    def __repr__(self) -> str:
        return f"ConstantVariable({type(self.value).__name__}: {plain_repr(self.value)})"


def beneath(tx: Tx, var: VariableTracker, *kinds: type) -> VariableTracker:
    """The builtin part of an object of a class derived from one of `kinds`, else itself; a break where the
    object is of such a class and the part is not known."""
    part = getattr(var, "storage", None)
    if isinstance(part, ConstantVariable):
        return part
    cls = var.python_type(tx)
    if cls not in kinds and any(kind in cls.__mro__ for kind in kinds):
        tx.fail(
            Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__}, which derives from a builtin class"
        )
    return var
