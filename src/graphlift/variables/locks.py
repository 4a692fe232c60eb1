"""Locks: those that the program makes, and letting go of those that existed.

Nobody else has a lock that the program just made, so only its count is kept. Taking one that existed is done
for real, behind a cut, for what is read afterwards is what it protects. Letting it go is put off until all
side effects are done. Mirrors Modules/_threadmodule.c.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx
from graphlift.reasons import Reason
from graphlift.sources import StateSource
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.classes import constructs
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.functions import models
from graphlift.variables.object_methods import C_METHODS
from graphlift.variables.put_off import Call, calls_put_off, put_off
from graphlift.variables.user_defined import UserDefinedObject

_LOCK: Final = type(_thread.allocate_lock())
_RLOCK: Final = _thread.RLock


# --- made by the program --------------------------------------------------------------------------


class MadeLockVariable(UserDefinedObject):
    """A lock that the program made; `handle.value` is how often it is held."""

    __slots__ = ()

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name in ("acquire", "acquire_lock", "__enter__"):
            return tx.make.constant(self._take(tx, args, kwargs))  # type: ignore[return-value]
        if name in ("release", "release_lock", "__exit__") and not kwargs:
            self._let_go(tx)
            return tx.make.constant(None)  # type: ignore[return-value]
        if name in ("locked", "locked_lock") and not args and not kwargs:
            return tx.make.constant(bool(self.handle.value))  # type: ignore[return-value]
        return super().call_method(tx, name, args, kwargs)

    def _take(self, tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        given = [value.realize(tx) for value in (*args, *kwargs.values())]
        if not all(value.is_constant() for value in given):
            self.refuse(tx, "method 'acquire'")
        known = [value.as_constant() for value in given]
        try:  # on a free one, for what it says of its arguments
            _new(self.cls).acquire(*known[: len(args)], **dict(zip(kwargs, known[len(args) :], strict=True)))
        except Exception as error:
            tx.raise_real(error)
        held: int = self.handle.value
        if held and self.cls is _LOCK:
            blocking = known[0] if args else dict(zip(kwargs, known, strict=True)).get("blocking", True)
            if blocking:
                tx.fail(Reason.SIDE_EFFECT, "taking a lock that is held, which waits")
            return False
        tx.heap.set_slot(self.handle, "value", held + 1)
        return True

    def _let_go(self, tx: Tx) -> None:
        if not self.handle.value:
            try:
                _new(self.cls).release()
            except RuntimeError as error:
                tx.raise_real(error)
        tx.heap.set_slot(self.handle, "value", self.handle.value - 1)

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(_held, [ConstantVariable(self.cls is _LOCK), ConstantVariable(self.handle.value)])


def _new(cls: type) -> Any:
    return _thread.allocate_lock() if cls is _LOCK else _RLOCK()


def _held(plain: bool, count: int) -> Any:
    """A lock held so many times (runs in the compiled program)."""
    made = _thread.allocate_lock() if plain else _RLOCK()
    for _ in range(count):
        made.acquire()
    return made


def _make(cls: type) -> MadeLockVariable:
    handle = Handle()
    handle.value = 0
    return MadeLockVariable(cls, handle)


@builtin(_thread.allocate_lock)
def _allocate(tx: Tx) -> Any:
    return _make(_LOCK)


@constructs(_LOCK, whole=True)
def _new_lock(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if cls is not _LOCK or args or kwargs:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"making an object of {cls.__qualname__}")
    return _make(_LOCK)


@constructs(_RLOCK, whole=True)
def _new_rlock(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if cls is not _RLOCK:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"making an object of {cls.__qualname__}")
    return _make(_RLOCK)


@models(threading.RLock)
def _rlock(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return None if args or kwargs else _make(_RLOCK)


# --- that existed ---------------------------------------------------------------------------------


#: What tells whether letting a lock go is right: it is held, or held by this thread.
_HELD: Final[dict[type, Any]] = {_LOCK: _LOCK.locked, _RLOCK: vars(_RLOCK)["_is_owned"]}


def _check_held(tx: Tx, lock: Any) -> None:
    """Guard that the lock is held; breaks where it is not, or was let go by this capture already."""
    held = _HELD[type(lock.value)]
    pending = any(call.args[0] is lock for call in calls_put_off(tx, at_last=True))
    if pending or lock.source is None or not held(lock.value):
        tx.fail(Reason.SIDE_EFFECT, "letting go a lock where that may fail")
    tx.guard("constant", lock.source.child(StateSource, held), True)


def _release(tx: Tx, self: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if tx.is_watched():
        tx.fail(Reason.SIDE_EFFECT, "letting go a lock where its failure would be handled")
    return _leave(tx, self, args, kwargs)


def _leave(tx: Tx, self: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The end of a ``with``, which has taken it."""
    _check_held(tx, self)
    put_off(tx, Call(type(self.value).release, (self,), {}, tx.where()), at_last=True)
    return tx.make.constant(None)


def _take(tx: Tx, self: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    tx.fail(Reason.SIDE_EFFECT, "taking a lock that others may hold")


for _cls in (_LOCK, _RLOCK):
    C_METHODS[_cls, "release"] = _release
    C_METHODS[_cls, "__exit__"] = _leave
    C_METHODS[_cls, "acquire"] = C_METHODS[_cls, "__enter__"] = _take
