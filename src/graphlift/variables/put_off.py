"""Calls that are put off until the graph has run: what the program does to the outside world.

They are kept in the ledger of effects, so a cut, a rerun or an exception finds them there like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var, Where
from graphlift.sources import ObjectSource
from graphlift.variables.base import VariableTracker


class Call(NamedTuple):
    """One call that is put off.

    Attributes:
        function: what is called, a function that belongs to the process.
        args, kwargs: trackers of immutable values and of objects that existed.
        where: the call's place in the user's program.
    """

    function: Any
    args: tuple[Var, ...]
    kwargs: dict[str, Var]
    where: Where


class _Outside:
    """Stands for the outside world as something that the program writes to."""


#: What is done among the effects, in program order, and what is done when all of them are.
_OUTSIDE: Final = {False: _Outside(), True: _Outside()}


class CallsVariable(VariableTracker):
    """The calls, as an object in the ledger.

    Attributes:
        at_last: whether they come when all other effects are done.
    """

    __slots__ = ("at_last",)

    def __init__(self, at_last: bool) -> None:
        self.source = None
        self.at_last: Final = at_last

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Emit the calls."""
        if self.at_last:
            codegen.at_last(lambda: self._emit(codegen, handle))
        else:
            self._emit(codegen, handle)

    def _emit(self, codegen: Codegen, handle: Handle) -> None:
        for call in handle.items or ():
            with codegen.standing_at(call.where):
                codegen.run(call.function, call.args, call.kwargs)


def put_off(tx: Tx, call: Call, at_last: bool = False) -> None:
    """Do `call` when the graph has run, behind what was put off before; `at_last`: behind all effects."""
    handle = _ledger(tx, at_last)
    assert handle.items is not None
    tx.heap.splice(handle, len(handle.items), len(handle.items), [call])


def calls_put_off(tx: Tx, at_last: bool = False) -> Sequence[Call]:
    """Those so far."""
    return _ledger(tx, at_last).items or ()


def _ledger(tx: Tx, at_last: bool) -> Handle:
    key = (0, ("put off", at_last))
    handle: Handle | None = tx.reads.get(key)
    if handle is None:
        name = "locks" if at_last else "output"
        handle = tx.reads[key] = Handle(_OUTSIDE[at_last], ObjectSource(None, name))
        handle.items = []
        handle.tracker = CallsVariable(at_last)
    return handle
