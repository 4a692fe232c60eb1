"""Weak references: read and called without being made strong for longer than plain Python would.

Mirrors Objects/weakrefobject.c. Callbacks need no model: nothing of the program's dies during a capture.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import ReferentSource, Source
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.classes import constructs


class WeakReferenceVariable(VariableTracker):
    """A `weakref.ref` that existed before the capture.

    Attributes:
        value: the reference.
    """

    __slots__ = ("value",)

    def __init__(self, value: weakref.ref[Any], source: Source) -> None:
        self.source = source
        self.value: Final = value

    def python_type(self, tx: Tx) -> type:
        return weakref.ref

    def hash_key(self, tx: Tx) -> Hashable:
        return self.refuse(tx, "hash()")

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if args or kwargs:
            return self.refuse(tx, "call with arguments")
        assert self.source is not None
        if self.value() is not None and not _stays_alive(tx, self.value()):
            tx.fail(Reason.UNSUPPORTED_OPERATION, "a weak reference to what the program itself may let go")
        referent = tx.make.from_value(self.value(), self.source.child(ReferentSource, None))
        assert isinstance(referent, VariableTracker)
        return referent


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
    tx.fail(Reason.UNSUPPORTED_OPERATION, "making a weak reference")
