"""``super()``: attribute look-up that starts behind a class. Mirrors superobject of Objects/typeobject.c."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from graphlift.protocol import Codegen, Tx
from graphlift.reasons import Reason
from graphlift.sources import SlotSource, Source
from graphlift.variables import cells
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.cells import CellVariable
from graphlift.variables.classes import ClassVariable, constructs
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import (
    Binding,
    TypeAttr,
    guard_mro,
    look_in_order,
    mro_of,
    type_lookup,
)


class SuperVariable(VariableTracker):
    """A bound super object.

    Attributes:
        behind: the class behind which the look-up starts.
        instance: the object (or class) that attributes are bound to.
        kind: the class whose method resolution order is followed.
    """

    __slots__ = ("behind", "instance", "kind")

    def __init__(
        self, behind: Any, instance: VariableTracker, kind: type, source: Source | None = None
    ) -> None:
        self.source = source
        self.behind: Final = behind
        self.instance: Final = instance
        self.kind: Final = kind

    def python_type(self, tx: Tx) -> type:
        return super

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        attr = None if name == "__class__" else self._lookup(tx, name)
        if attr is not None:
            bound: VariableTracker = attributes.bind(tx, attr, self._bound_to(), self.kind).realize(tx)
            return bound
        if name == "__thisclass__":
            return self.behind  # type: ignore[no-any-return]
        if name == "__self__":
            return self.instance
        if name == "__self_class__":
            return tx.make.from_value(self.kind, None).realize(tx)  # type: ignore[no-any-return]
        if name == "__class__":
            return tx.make.from_value(super, None).realize(tx)  # type: ignore[no-any-return]
        if type_lookup(tx, super, name) is not None:
            return self.refuse(tx, f"attribute {name!r}")
        tx.raise_(AttributeError, f"'super' object has no attribute '{name}'")

    def invoke(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        attr = self._lookup(tx, name)
        instance = self._bound_to()
        if attr is None or instance is None:
            return super().invoke(tx, name, args, kwargs)
        result: VariableTracker = attributes.call_attr(tx, attr, instance, self.kind, args, kwargs)
        return result

    def _bound_to(self) -> VariableTracker | None:
        """The object to bind to; None where the super object stands for the class itself."""
        instance = self.instance
        return None if isinstance(instance, ClassVariable) and instance.value is self.kind else instance

    def _lookup(self, tx: Tx, name: str) -> TypeAttr | None:
        mro = guard_mro(tx, self.kind)
        attr = look_in_order(tx, mro[mro.index(self.behind.value) + 1 :], name)
        of_c = attr is not None and attr.binding is Binding.C_METHOD and attr.owner is not object
        if of_c and attr is not None and self._bound_to() is not None:
            attributes.check_nearest(tx, attr.raw, self.kind)
        return attr

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(super, [self.behind, self.instance])

    def __repr__(self) -> str:
        return f"SuperVariable({self.behind!r})"


_THIS, _SELF, _SELF_CLASS = (super.__dict__[f"__{name}__"] for name in ("thisclass", "self", "self_class"))


@wraps(super)
def wrap_super(tx: Tx, value: super, source: Source | None) -> SuperVariable:
    """A super object that exists: its three fields are read in C."""
    kind = _SELF_CLASS.__get__(value)
    if source is None or kind is None:
        tx.fail(Reason.UNSUPPORTED_VALUE, "a super object that is unbound or has no place")
    tx.guard("type", source, super)
    tx.guard("is", source.child(SlotSource, _SELF_CLASS), kind)
    behind: Any = tx.make.from_value(_THIS.__get__(value), source.child(SlotSource, _THIS))
    instance: Any = tx.make.from_value(_SELF.__get__(value), source.child(SlotSource, _SELF))
    return SuperVariable(behind, instance, kind, source)


@constructs(super, whole=True)
def _new_super(
    tx: Any, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> SuperVariable:
    if cls is not super:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__}, a class derived from super")
    if kwargs:
        tx.raise_(TypeError, "super() takes no keyword arguments")
    if len(args) > 2:
        tx.raise_(TypeError, f"super() expected at most 2 arguments, got {len(args)}")
    behind, instance = _implied(tx) if not args else (args[0].realize(tx), _second(tx, args))
    if not isinstance(behind, ClassVariable):
        tx.raise_(TypeError, f"super() argument 1 must be a type, not {behind.python_type(tx).__name__}")
    if isinstance(instance, ClassVariable) and behind.value in mro_of(instance.value):
        return SuperVariable(behind, instance, instance.value)
    kind = instance.python_type(tx)
    if behind.value not in mro_of(kind):
        _refuse(tx, behind.value, instance)
    return SuperVariable(behind, instance, kind)


def _refuse(tx: Tx, behind: type, instance: VariableTracker) -> NoReturn:
    """The TypeError of an object of another class, as the running Python words it."""
    is_class = isinstance(instance, ClassVariable)
    name = (
        instance.value.__name__ if isinstance(instance, ClassVariable) else instance.python_type(tx).__name__
    )
    stand_in = type(name, (), {})
    try:
        super(behind, stand_in if is_class else stand_in())
    except TypeError as error:
        tx.raise_real(error)
    tx.fail(Reason.UNSUPPORTED_OPERATION, "a super object of another class")


def _second(tx: Any, args: Sequence[Any]) -> Any:
    if len(args) == 1:
        args[0].realize(tx).refuse(tx, "an unbound super object")
    return args[1].realize(tx)


def _implied(tx: Any) -> tuple[Any, Any]:
    """What ``super()`` takes from the calling frame: its class cell and its first argument."""
    frame = tx.frame
    if not frame.code.co_argcount:
        tx.raise_(RuntimeError, "super(): no arguments")
    name = frame.code.co_varnames[0]
    first: Any = frame.symbolic_locals.get(name)
    if isinstance(first, CellVariable) and name in frame.code.co_cellvars:
        first = cells.load(tx, first.handle, name)
    if first is None:
        tx.raise_(RuntimeError, "super(): arg[0] deleted")
    cell = frame.symbolic_locals.get("__class__")
    if "__class__" not in frame.code.co_freevars or not isinstance(cell, CellVariable):
        tx.raise_(RuntimeError, "super(): __class__ cell not found")
    behind: Any = cells.load(tx, cell.handle, "__class__")
    if behind is None:
        tx.raise_(RuntimeError, "super(): empty __class__ cell")
    known = behind.realize(tx)
    if not isinstance(known, ClassVariable):
        tx.raise_(RuntimeError, f"super(): __class__ is not a type ({known.python_type(tx).__name__})")
    return known, first.realize(tx)
