"""Weak references: read and called without being made strong for longer than plain Python would.

Mirrors Objects/weakrefobject.c. Callbacks are not followed: nothing of the program's dies during a capture.
"""

from __future__ import annotations

import _weakref
import weakref
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NoReturn

from graphlift.errors import Unsupported
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import ReferentSource, Source
from graphlift.variables.base import NotImplementedType, VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.cells import CellVariable
from graphlift.variables.classes import constructs

_MADE: Final = (0, "weak references")


class _ReferenceVariable(VariableTracker):
    """A `weakref.ref`; calling it gives the object."""

    __slots__ = ()

    def python_type(self, tx: Tx) -> type:
        return weakref.ref

    def hash_key(self, tx: Tx) -> Hashable:
        return self.refuse(tx, "hash()")

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        return self.refuse(tx, "call with arguments") if args or kwargs else self._referred(tx)

    def _referred(self, tx: Tx) -> VariableTracker:
        """The object; breaks where the program may have let it go."""
        raise NotImplementedError


class WeakReferenceVariable(_ReferenceVariable):
    """One that existed before the capture.

    Attributes:
        value: the reference.
    """

    __slots__ = ("value",)

    def __init__(self, value: weakref.ref[Any], source: Source) -> None:
        self.source = source
        self.value: Final = value

    def _referred(self, tx: Tx) -> VariableTracker:
        assert self.source is not None
        value = self.value()
        met = None if value is None else tx.capture.objects.get(id(value))
        held = met is not None and _is_held(tx, met[1].realize(tx))
        if value is not None and not held and not _stays_alive(tx, value):
            _may_be_gone(tx)
        referent = tx.make.from_value(value, self.source.child(ReferentSource, None))
        assert isinstance(referent, VariableTracker)
        return referent


class MadeWeakReferenceVariable(_ReferenceVariable):
    """One that the program made.

    Attributes:
        referent: what it refers to.
    """

    __slots__ = ("referent",)

    def __init__(self, referent: VariableTracker) -> None:
        self.source = None
        self.referent: Final = referent

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        return self.refuse(tx, f"`{op}`")

    def _referred(self, tx: Tx) -> VariableTracker:
        if not _is_held(tx, self.referent):
            _may_be_gone(tx)
        return self.referent

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(weakref.ref, [self.referent])


def _may_be_gone(tx: Tx) -> NoReturn:
    tx.fail(Reason.UNSUPPORTED_OPERATION, "a weak reference to what the program itself may let go")


def _is_held(tx: Any, referent: VariableTracker) -> bool:
    """Whether a local variable of a frame that runs holds the object at this point."""
    while tx is not None:
        for value in tx.symbolic_locals.values():
            held = value.handle.value if isinstance(value, CellVariable) else value
            if held is not None and held.realize(tx) is referent:
                return True
        tx = tx.parent
    return False


def _stays_alive(tx: Tx, referent: object) -> bool:
    """Whether the captured program met the object inside another one, and wrote to none on the way there.

    Locals do not count: plain Python would free their values when the program drops them, a capture later.
    """
    met = tx.capture.objects.get(id(referent))
    place = None if met is None else met[1].source
    if place is None or place.base is None:
        return False
    written = {handle.source for handle in tx.heap.written}
    while place is not None:
        if place in written:
            return False
        place = place.base
    return True


@wraps(weakref.ref)
def _wrap(tx: Tx, value: weakref.ref[Any], source: Source | None) -> Var:
    if source is None:
        tx.fail(Reason.UNSUPPORTED_VALUE, "a weak reference without a place")
    tx.guard("type", source, weakref.ref)
    return WeakReferenceVariable(value, source)


@constructs(weakref.ref, whole=True)
def _make(tx: Tx, _: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if cls is not weakref.ref or kwargs or not 1 <= len(args) <= 2 or not _is_none(tx, args[1:]):
        what = "making a weak reference with a callback, or of a derived class"
        raise Unsupported(Reason.UNSUPPORTED_OPERATION, what, whole=True)
    referent = args[0].realize(tx)
    kind = referent.python_type(tx)
    if not kind.__weakrefoffset__:
        tx.raise_(TypeError, f"cannot create weak reference to '{kind.__name__}' object")
    made: dict[Any, Any] = tx.reads.setdefault(_MADE, {})
    return made.setdefault(referent, MadeWeakReferenceVariable(referent))


@builtin(_weakref.proxy)
def _proxy(tx: Tx, referent: Var, callback: Var | None = None, /) -> Any:
    raise Unsupported(Reason.UNSUPPORTED_OPERATION, "making a weak proxy", whole=True)


def check_none_made(tx: Tx, codegen: Any) -> None:
    """Break where a reference would become real at a cut: behind it locals that nothing reads are gone."""
    for reference in tx.reads.get(_MADE, {}).values():
        if codegen.has_made(reference):
            raise Unsupported(Reason.UNSUPPORTED_VALUE, "a weak reference that was made before a cut")


def _is_none(tx: Tx, args: Sequence[Any]) -> bool:
    known = [arg.realize(tx) for arg in args]
    return all(value.is_constant() and value.as_constant() is None for value in known)
