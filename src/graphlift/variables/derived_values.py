"""Objects of classes derived from numbers and texts: attributes, and a constant beneath (`storage`)."""

from __future__ import annotations

from typing import Any, Final

from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx
from graphlift.reasons import Reason
from graphlift.sources import SlotSource, Source
from graphlift.variables.base import UNKNOWN
from graphlift.variables.builder import wraps_if
from graphlift.variables.constant import ConstantVariable, beneath
from graphlift.variables.graph_calls import as_graph_argument, graph_argument, refuse_overloads
from graphlift.variables.slots.type_lookup import anchor, is_of_c, mro_of, type_lookup
from graphlift.variables.user_defined import UserDefinedObject

_KINDS: Final = (int, float, complex, str, bytes)


class DerivedValueVariable(UserDefinedObject):
    """An object of a class derived from a number's or a text's."""

    __slots__ = ()

    def reconstruct(self, codegen: Codegen) -> None:
        assert self.cls_var is not None and self.storage is not None
        kind: Any = next(kind for kind in _KINDS if kind in mro_of(self.cls))
        codegen.call(kind.__new__, [self.cls_var, self.storage])
        codegen.later(lambda: self.fill(codegen))


def derived_value(tx: Tx, cls_var: Any, cls: type, plain: Any) -> DerivedValueVariable:
    """What ``__new__`` of a builtin class gives for a class derived from it.

    Arguments:
        plain: what it gives for the builtin class itself.
    """
    value = beneath(tx, plain.realize(tx), *_KINDS).snapshot(tx)
    if _is_from_c(cls):
        tx.fail(Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__}, a class in C")
    if value is UNKNOWN or type(value) not in _KINDS:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__} whose value is not known")
    if type_lookup(tx, cls, "__del__") is not None:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__}, which has a finalizer")
    return DerivedValueVariable(cls, Handle(), None, cls_var, ConstantVariable(value))


def _number_of(cls: type) -> Any:
    """The builtin number class from which a class of the program's derives."""
    kind = next((kind for kind in (int, float) if kind in mro_of(cls) and kind is not cls), None)
    return None if kind is None or _is_from_c(cls) else kind


def _is_from_c(cls: type) -> bool:
    """Whether a class in C stands between it and the builtin class, whose methods are then not all
    (`numpy.float64`)."""
    above = mro_of(cls)
    first = next(at for at, base in enumerate(above) if base in (*_KINDS, object))
    return any(is_of_c(base) for base in above[:first])


@wraps_if(lambda value: type(value) is not bool and _number_of(type(value)) is not None, order=65)
def wrap_derived(tx: Tx, value: Any, source: Source | None) -> UserDefinedObject:
    """A number of a derived class that exists: class and number are guarded."""
    kind = _number_of(type(value))
    if source is None:
        source = anchor(tx, value)
    tx.guard("type", source, type(value))
    plain = kind.__dict__["real"].__get__(value)
    tx.guard("constant", source.child(SlotSource, kind.__dict__["real"]), plain)
    handle = tx.heap.handle_of(value, source)
    made = DerivedValueVariable(type(value), handle, source, None, ConstantVariable(plain))
    handle.tracker = made
    return made


@graph_argument(DerivedValueVariable)
def _as_argument(tx: Tx, var: DerivedValueVariable) -> Any:
    """It is what is beneath to torch."""
    refuse_overloads(tx, var.cls)
    assert var.storage is not None
    return as_graph_argument(tx, var.storage)
