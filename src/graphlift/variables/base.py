"""The base of all trackers: one method per Python slot, each refusing by name until overridden.

Conventions for every tracker:

* A tracker is an immutable handle. What can change lives in the heap (`heap.Handle`).
* Receivers and operands (`other`, `key`, …) handed to the methods below have been realised by the slot
  functions in `variables/slots/`; items of `args`/`kwargs` in calls may be lazy: use ``arg.realize(tx)``.
* Handlers never call these methods themselves: they ask a slot function, which mirrors CPython's.
* Methods raise `Unsupported` (through ``tx.fail``) for what is not modelled and `ObservedException`
  (through ``tx.raise_``) for what Python itself refuses.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, final

from graphlift.errors import Unsupported
from graphlift.guards.holding import is_static_type
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason

if TYPE_CHECKING:
    from graphlift.heap import Handle
    from graphlift.sources import Source


@final
class NotImplementedType:
    """The type of `NOT_IMPLEMENTED`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NOT_IMPLEMENTED"


#: What `binary`, `compare` and friends return where Python's own method returns ``NotImplemented``.
NOT_IMPLEMENTED = NotImplementedType()


@final
class UnknownType:
    """The type of `UNKNOWN`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


#: What `snapshot` gives for a value that is not wholly known now.
UNKNOWN = UnknownType()


def c_name(cls: type) -> str:
    """What CPython's messages call a class (`tp_name`): one made in C outside builtins with its module."""
    if not is_static_type(cls) or cls.__module__ == "builtins":
        return cls.__name__
    return f"{cls.__module__}.{cls.__qualname__}"


class VariableTracker(Var):
    """A value known in one particular way.

    Attributes:
        source: where the value can be found again at the next call, or None if the program made it.
    """

    __slots__ = ()

    #: Whether the value is made real without making another object of the program, so that it is never part
    #: of a cycle.
    leaf: ClassVar[bool] = False

    #: Whether the program may find it in another way than by a name (a class: `__subclasses__`), so that it
    #: must become real where a frame is cut, though no name that is left refers to it.
    found_otherwise: ClassVar[bool] = False

    #: Whether it is a number not fixed by the capture: asking for its value (`snapshot`) fixes it.
    symbolic: ClassVar[bool] = False

    def __init__(self, source: Source | None = None) -> None:
        self.source = source

    # --- what is it ------------------------------------------------------------------------

    def realize(self, tx: Tx) -> VariableTracker:
        """Itself; a lazy tracker gives the tracker of its kind."""
        return self

    def python_type(self, tx: Tx) -> type:
        """``type(value)``."""
        return self.refuse(tx, "type()")

    def is_constant(self) -> bool:
        """Whether `as_constant` gives a value (then it runs no user code)."""
        return False

    def as_constant(self) -> Any:
        """The Python value, where all of it is known now (also tuples, slices, … of constants).

        Raises:
            ValueError: it is not known now.
        """
        raise ValueError(f"{self!r} is not a constant")

    def snapshot(self, tx: Tx, depth: int = 0) -> Any:
        """A host copy made only of builtin (and torch's plain value) types, or `UNKNOWN`.

        For functions that read a value and keep nothing of it (folding, formatting). Looking at it or at
        what it holds runs no user code. Containers that may hold themselves give up at some `depth`.
        """
        return UNKNOWN

    def hash_key(self, tx: Tx) -> Hashable:
        """What stands for the value as a dictionary key: equal keys for values that Python finds equal.

        Raises a ``TypeError`` in the user's program for unhashable values.
        """
        return self.refuse(tx, "hash()")

    def store_key(self, tx: Tx) -> Hashable:
        """As `hash_key`, for a key that is about to be stored (and may be looked for later)."""
        return self.hash_key(tx)

    # --- attributes (tp_getattro, tp_setattro) ---------------------------------------------

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        """``value.name``; raises AttributeError in the user's program when there is none."""
        return self.refuse(tx, f"attribute {name!r}")

    def setattr_(self, tx: Tx, name: str, value: VariableTracker) -> None:
        """``value.name = value``."""
        self.refuse(tx, f"setting attribute {name!r}")

    def delattr_(self, tx: Tx, name: str) -> None:
        """``del value.name``."""
        self.refuse(tx, f"deleting attribute {name!r}")

    def instance_dict(self, tx: Tx) -> Handle | None:
        """The handle of the value's own ``__dict__``; None where it has none (or none that is followed)."""
        return None

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        """What a member or getset descriptor of the value's (C) class reads from it."""
        return self.refuse(tx, f"attribute {name!r}")

    def write_member(self, tx: Tx, descriptor: Any, name: str, value: VariableTracker | None) -> None:
        """Store through a member or getset descriptor; None deletes."""
        self.refuse(tx, f"setting attribute {name!r}")

    # --- calls -----------------------------------------------------------------------------

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        """``value(*args, **kwargs)``."""
        return self.refuse(tx, "call")

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        """A method that the value's builtin type defines in C, e.g. ``append``, ``__len__``."""
        return self.refuse(tx, f"method {name!r}")

    def invoke(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        """``value.name(*args, **kwargs)``; overridden where the bound method need not be made."""
        return self.getattr_(tx, name).realize(tx).call(tx, args, kwargs)

    # --- containers ------------------------------------------------------------------------

    def length(self, tx: Tx) -> VariableTracker:
        """``len(value)``."""
        return self.type_error(tx, "object of type '{}' has no len()")

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        """``value[key]``."""
        return self.type_error(tx, "'{}' object is not subscriptable")

    def setitem(self, tx: Tx, key: VariableTracker, value: VariableTracker) -> NotImplementedType | None:
        """``value[key] = value``; NOT_IMPLEMENTED where the class has nothing for it."""
        return NOT_IMPLEMENTED

    def delitem(self, tx: Tx, key: VariableTracker) -> NotImplementedType | None:
        """``del value[key]``; NOT_IMPLEMENTED where the class has nothing for it."""
        return NOT_IMPLEMENTED

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        """``item in value``; NOT_IMPLEMENTED: iterate instead."""
        return NOT_IMPLEMENTED

    # --- iteration -------------------------------------------------------------------------

    def iter_(self, tx: Tx) -> VariableTracker:
        """``iter(value)``."""
        return self.type_error(tx, "'{}' object is not iterable")

    def next_(self, tx: Tx) -> VariableTracker | None:
        """``next(value)``; None when exhausted (whatever value the StopIteration carries)."""
        return self.type_error(tx, "'{}' object is not an iterator")

    def unpack(self, tx: Tx) -> list[VariableTracker] | None:
        """All items at once where that cannot be told from iterating (list, tuple, …), else None."""
        return None

    # --- operators -------------------------------------------------------------------------

    def truth(self, tx: Tx) -> VariableTracker | bool:
        """``bool(value)``: a bool, or a tracker (tensor, symbolic bool) that is not known now."""
        return True

    def unary(self, tx: Tx, op: str) -> VariableTracker:
        """``-value``, ``+value``, ``~value``, `op` being ``-``, ``+`` or ``~``."""
        return self.type_error(tx, f"bad operand type for unary {op}: '{{}}'")

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        """``value op other`` by the value's own type (``+``, ``-``, ``*``, ``/``, ``//``, ``%``, ``**``,
        ``@``, ``&``, ``|``, ``^``, ``<<``, ``>>``)."""
        return NOT_IMPLEMENTED

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        """``other op value`` by the value's reflected method."""
        return NOT_IMPLEMENTED

    def inplace(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        """``value op= other``; NOT_IMPLEMENTED: the plain operator is tried."""
        return NOT_IMPLEMENTED

    def concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        """``value + other`` of sequences (``sq_concat``), tried after the numeric slots of both."""
        return NOT_IMPLEMENTED

    def repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        """``value * count`` of sequences (``sq_repeat``), tried after the numeric slots of both;
        `count` is what `slots.numbers.repeat_count` is for."""
        return NOT_IMPLEMENTED

    def inplace_concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        """``value += other`` of sequences; NOT_IMPLEMENTED: `concat` is tried."""
        return NOT_IMPLEMENTED

    def inplace_repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        """``value *= count`` of sequences; NOT_IMPLEMENTED: `repeat` is tried."""
        return NOT_IMPLEMENTED

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        """``value op other`` for ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``."""
        return NOT_IMPLEMENTED

    # --- becoming real ---------------------------------------------------------------------

    def reconstruct(self, codegen: Codegen) -> None:
        """Emit code that builds the value (used only where there is no source to load it from)."""
        raise Unsupported(Reason.UNSUPPORTED_VALUE, f"{self!r} would have to be built at run time")

    # --- refusing --------------------------------------------------------------------------

    def refuse(self, tx: Tx, what: str) -> NoReturn:
        """Break: this kind of value does not model `what`."""
        tx.fail(Reason.UNSUPPORTED_OPERATION, f"{what} on {self!r}")

    def type_error(self, tx: Tx, text: str) -> NoReturn:
        """Raise the TypeError that Python raises, the type's name filled into `text`."""
        tx.raise_(TypeError, text.format(c_name(self.python_type(tx))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
