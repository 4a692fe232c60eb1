"""From the heap's written handles to code that does the writes for real, once, after the graph ran.

New values are computed from the graph's results and from sources read before anything is written, so the
order among writes to plain containers cannot be seen; program order is kept all the same. Objects that
the program made are built with their final contents and need no writing back.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from types import CellType
from typing import Any, cast

from graphlift.bytecode.verbs import Verbs
from graphlift.codegen.pycodegen import PyCodegen
from graphlift.errors import InternalError, Unsupported
from graphlift.heap import Handle, Heap, Table
from graphlift.protocol import Var
from graphlift.reasons import Reason
from graphlift.variables import keys
from graphlift.variables.namespace import BUILTINS, shown


class SideEffects:
    """Writes back what a capture changed.

    Arguments:
        heap: the capture's heap in its final state.
        codegen: where to emit to.
    """

    def __init__(self, heap: Heap, codegen: PyCodegen) -> None:
        self._codegen = codegen
        self._emitter: Verbs = codegen.emitter
        self._written = [h for h in heap.written if h.real is not None and h.source is not None]

    def emit(self) -> None:
        """Emit all writes, in the order in which the objects were first written to."""
        for handle in self._written:
            write_back = getattr(handle.tracker, "write_back", None)
            if write_back is not None:
                write_back(self._codegen, handle)
            else:
                self._writer(handle)(handle)
        self._codegen.put_in_place()

    def _writer(self, handle: Handle) -> Callable[[Handle], None]:
        kind = type(handle.real)  # the object itself is not asked for its class
        if kind is CellType:
            return self._cell
        if handle.items is not None and issubclass(kind, (list, deque)):
            return self._items
        if handle.table is not None and issubclass(kind, dict):
            return self._table
        if handle.table is not None and issubclass(kind, set):
            return self._set
        raise InternalError(f"no way to write back to {kind.__qualname__}")

    # --- one kind each ---------------------------------------------------------------------

    def _owner(self, handle: Handle) -> None:
        self._codegen.load_source(handle.source)

    def _cell(self, handle: Handle) -> None:
        if handle.value is None:
            self._owner(handle)
            self._emitter.delete_attr("cell_contents")
        else:
            self._codegen(handle.value)
            self._owner(handle)
            self._emitter.store_attr("cell_contents")

    def _items(self, handle: Handle) -> None:
        items = handle.items or []
        if items == handle.first_items:
            return
        if issubclass(type(handle.real), deque):
            self._run(deque.clear, handle)
            self._run(deque.extend, handle, items)
            return
        emitter = self._emitter
        emitter.prepare_call()
        emitter.load_const(list.__setitem__)
        emitter.callable_ready()
        self._owner(handle)
        for _ in range(2):
            emitter.load_const(None)
        emitter.build_slice(2)
        self._build_list(items)
        emitter.call(3)
        emitter.pop()

    def _build_list(self, items: list[Var]) -> None:
        for item in items:
            self._codegen(item)
        self._emitter.build_list(len(items))

    def _run(self, function: Any, handle: Handle, items: list[Var] | None = None) -> None:
        """Call a method of a builtin class on the object, past anything its subclass overrides."""
        emitter = self._emitter
        emitter.prepare_call()
        emitter.load_const(function)
        emitter.callable_ready()
        self._owner(handle)
        if items is not None:
            self._build_list(items)
        emitter.call(1 if items is None else 2)
        emitter.pop()

    def _set(self, handle: Handle) -> None:
        table = handle.table or {}
        if handle.first_table is not None and list(table) == list(handle.first_table):
            return
        self._run(set.clear, handle)
        self._run(set.update, handle, [entry[0] for entry in table.values()])

    def _table(self, handle: Handle) -> None:
        table = handle.table or {}
        plain = type(handle.real) in (dict, OrderedDict)
        base = OrderedDict if issubclass(type(handle.real), OrderedDict) else dict
        deleted, stored, rebuilt = _difference(handle, table, base)
        if rebuilt:
            self._run(base.clear, handle)
        identities = [*(handle.first_table or {}), *table]
        if keys.open_parts(identities):
            owner = handle.tracker
            for key_var in deleted:
                keys.run_stored(self._codegen, base.__delitem__, [owner, key_var], identities)
            for key_var, value in stored:
                keys.run_stored(self._codegen, base.__setitem__, [owner, key_var, value], identities)
            return
        for key_var in deleted:
            self._delete(handle, key_var, plain, base)
        for key_var, value in stored:
            self._store(handle, key_var, value, plain, base)

    def _store(self, handle: Handle, key: Var, value: Var, plain: bool, base: Any) -> None:
        emitter = self._emitter
        if plain:
            self._codegen(value)
            self._owner(handle)
            self._codegen(key)
            emitter.store_subscr()
            return
        emitter.prepare_call()
        emitter.load_const(base.__setitem__)
        emitter.callable_ready()
        self._owner(handle)
        self._codegen(key)
        self._codegen(value)
        emitter.call(3)
        emitter.pop()

    def _delete(self, handle: Handle, key: Var, plain: bool, base: Any) -> None:
        emitter = self._emitter
        if plain:
            self._owner(handle)
            self._codegen(key)
            emitter.delete_subscr()
            return
        emitter.prepare_call()
        emitter.load_const(base.__delitem__)
        emitter.callable_ready()
        self._owner(handle)
        self._codegen(key)
        emitter.call(2)
        emitter.pop()


def _difference(handle: Handle, table: Table, base: Any) -> tuple[list[Var], list[tuple[Var, Var]], bool]:
    """What to delete, what to store, and whether the dictionary must be emptied first.

    Deleting and storing keeps the order of the keys that stay and puts new ones at the end; where that is
    not the order wanted, everything is stored anew.

    Arguments:
        base: the builtin class whose methods read the dictionary, past anything its subclass overrides.
    """
    first = handle.first_table or {}
    removed = handle.removed or {}
    real: Any = first if handle.by_place else dict.fromkeys(shown(handle.real))
    was = [key for key in real if key not in removed and (not handle.complete or key in table)]
    gone = [key for key in real if key in removed or (handle.complete and key not in table)]
    fresh = [key for key in table if key not in real or key in removed]
    exchanged = any(key in first and first[key][0] is not entry[0] for key, entry in table.items())
    if handle.complete and (exchanged or list(table) != [*was, *fresh]):
        if BUILTINS in real:  # emptying it would take the names away that compiled code stands under
            raise Unsupported(Reason.SIDE_EFFECT, "another order of global names")
        return [], [cast(tuple[Var, Var], entry) for entry in table.values()], True
    stored = [
        entry
        for key, entry in table.items()
        if key in removed or key not in first or first[key][1] is not entry[1]
    ]
    deleted = [removed[key] if key in removed else first[key][0] for key in gone]
    return deleted, cast(list[tuple[Var, Var]], stored), False
