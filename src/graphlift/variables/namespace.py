"""Dictionaries that existed before the capture, read key by key.

One handle stands for one dictionary however it is met: as an instance's ``__dict__``, as a module's
globals, as a plain dictionary. Reading a key that is there yields a lazy tracker (whose accessor fails
when the key is gone); a key that is missing is guarded as absent; only asking for all keys (length,
iteration, comparison) guards the whole set of keys in their order. Mirrors Objects/dictobject.c.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from graphlift.heap import Handle, Table
from graphlift.protocol import Tx, Var
from graphlift.sources import KeySource, Source

#: Guard kinds that this module uses.
ABSENT, HAS_KEY, KEYS = "absent", "has_key", "keys"


def lookup(tx: Tx, handle: Handle, key: Hashable, kind: type[Source] = KeySource) -> Var | None:
    """The value under a constant `key`, or None when there is none.

    Arguments:
        handle: the dictionary's handle; `handle.table` may be incomplete.
        key: the key itself (keys that existed before the capture are told by their value).
        kind: class of the source of an entry (how it is named to the user).
    """
    if handle.table is None:
        handle.table = {}
    entry = handle.table.get(key)
    if entry is not None:
        value: Var = entry[1]
        return value
    if handle.complete or (handle.removed and key in handle.removed) or (handle.absent and key in handle.absent):
        return None
    real: dict[Any, Any] = handle.real
    if key in real:
        if handle.source is None:  # a namespace of graphlift's own: nobody changes it
            value = tx.make.from_value(real[key], None)
        else:
            value = tx.make.lazy(real[key], handle.source.child(kind, key))
        _note_read(handle, handle.table, key, (tx.make.constant(key), value))
        return value
    if handle.source is not None:
        tx.guard(ABSENT, handle.source, key)
    if handle.absent is None:
        handle.absent = set()
    handle.absent.add(key)
    return None


def _note_read(handle: Handle, table: Table, key: Hashable, entry: tuple[Var, Var]) -> None:
    """Keep what was read; it is no write, also when the dictionary was written to before."""
    table[key] = entry
    if handle.first_table is not None:
        handle.first_table[key] = entry


def has(tx: Tx, handle: Handle, key: Hashable, kind: type[Source] = KeySource) -> bool:
    """Whether `key` is there; a positive answer about the program's own state is guarded too."""
    found = lookup(tx, handle, key, kind) is not None
    if found and not handle.complete and handle.source is not None and key in handle.real:
        tx.guard(HAS_KEY, handle.source, key)
    return found


def complete(tx: Tx, handle: Handle, kind: type[Source] = KeySource) -> None:
    """Load every key, in the order that Python would show now."""
    if handle.complete:
        return
    if handle.table is None:
        handle.table = {}
    real: dict[Any, Any] = handle.real
    removed = handle.removed or ()
    if handle.source is not None:
        tx.guard(KEYS, handle.source, tuple(real))
    table: dict[Hashable, tuple[Any, Any]] = {}
    for key in real:
        if key in removed:
            continue
        entry = handle.table.get(key)
        if entry is None:
            assert handle.source is not None
            entry = (tx.make.constant(key), tx.make.lazy(real[key], handle.source.child(kind, key)))
            _note_read(handle, table, key, entry)
        table[key] = entry
    for key, entry in handle.table.items():
        table.setdefault(key, entry)
    tx.heap.set_slot(handle, "table", table)
    tx.heap.set_slot(handle, "complete", True)


def store(tx: Tx, handle: Handle, key: Hashable, key_var: Var, value: Var) -> None:
    """``d[key] = value``. Needs no guard: the store is done for real whether the key is there or not,
    and whoever asks for order or length completes the handle."""
    if handle.table is None:
        handle.table = {}
    tx.heap.put(handle, key, (key_var, value))


def delete(tx: Tx, handle: Handle, key: Hashable, kind: type[Source] = KeySource) -> bool:
    """``del d[key]``; False when the key is not there."""
    if not has(tx, handle, key, kind):
        return False
    tx.heap.drop(handle, key)
    return True
