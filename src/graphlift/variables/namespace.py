"""Dictionaries that existed before the capture, read key by key.

One handle stands for one dictionary however it is met: as an instance's ``__dict__``, as a module's
globals, as a plain dictionary. Reading a key that is there yields a lazy tracker, and that it is there is
guarded even if nobody looks at the value; a key that is missing is guarded as absent; only asking for all
keys (length, iteration, comparison) guards the whole set of keys in their order. Mirrors
Objects/dictobject.c.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from enum import Enum
from typing import Any, Final

import torch

from graphlift.heap import Handle, Table
from graphlift.protocol import Tx, Var
from graphlift.sources import DictKeySource, KeySource, Source, is_own_name

#: Guard kinds that this module uses.
ABSENT, HAS_KEY, KEYS, NAMES = "absent", "has_key", "keys", "names"

_NOTHING: Final[Any] = object()

#: A dictionary with this key holds global names.
BUILTINS: Final = "__builtins__"


def shown(real: Any) -> list[Any]:
    """The keys of a dictionary that the program is shown, in their order: of global names not those of
    compiled code, which come and go."""
    found = keys_of(real)
    return [name for name in found if not is_own_name(name)] if _has(real, BUILTINS) else [*found]


def _has(real: Any, key: Hashable) -> bool:
    return dict.__contains__(real, key) if issubclass(type(real), dict) else key in real


def _get(real: Any, key: Hashable) -> Any:
    return dict.__getitem__(real, key) if issubclass(type(real), dict) else real[key]


def keys_of(real: Any) -> Iterator[Any]:
    """The keys in their order, past what a derived class may override."""
    if issubclass(type(real), OrderedDict):
        return OrderedDict.__iter__(real)
    return dict.__iter__(real) if issubclass(type(real), dict) else iter(real)


def handle_at(tx: Tx, real: Any, source: Source | None) -> Handle:
    """The handle of an existing object that was not looked for by `tx.make.from_value`; that two places hold
    this one object is guarded."""
    handle = tx.heap.handle_of(real, source)
    if source is not None and handle.source is not None and handle.source is not source:
        tx.guard("same", source, handle.source)
    return handle


def is_plain_key(key: Any) -> bool:
    """Whether hashing and comparing a key runs no user code."""
    cls = type(key)
    if cls in _PLAIN_KEYS:
        return True
    if cls is tuple or cls is frozenset:
        return all(is_plain_key(item) for item in key)
    if cls.__hash__ in _PLAIN_HASHES and cls.__eq__ in _PLAIN_EQUALS:
        return True
    return isinstance(
        key, (torch.Tensor, torch.device)
    )  # a tensor's hash is its identity, which decides first


def has_plain_keys(real: Any) -> bool:
    """Whether looking for any key runs no user code, and each key stands for itself in a capture."""
    in_any_order = dict.__iter__(real) if issubclass(type(real), dict) else keys_of(real)
    return all(is_plain_key(key) and not isinstance(key, torch.Tensor) for key in in_any_order)


def is_in_order(real: Any) -> bool:
    """Whether an ordered dictionary with plain keys has its order; methods of `dict` leave it behind."""
    try:
        return len([*OrderedDict.__iter__(real)]) == dict.__len__(real)
    except KeyError:
        return False


_PLAIN_KEYS: Final = frozenset(
    (str, int, float, bool, bytes, complex, type(None), type(Ellipsis), torch.dtype, range)
)
_PLAIN_HASHES: Final[tuple[Any, ...]] = (object.__hash__, Enum.__hash__, type.__hash__)
_PLAIN_EQUALS: Final[tuple[Any, ...]] = (object.__eq__, type.__eq__)


def _key_var(tx: Tx, handle: Handle, key: Hashable) -> Var:
    """The tracker of the key object in the existing dictionary that equals `key`."""
    if type(key) is str:
        return tx.make.constant(key)
    position, real = next((i, k) for i, k in enumerate(keys_of(handle.real)) if k is key or k == key)
    if type(real) in _PLAIN_KEYS or handle.source is None:
        return tx.make.from_value(real, None)
    return tx.make.lazy(real, handle.source.child(DictKeySource, position))


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
    if (
        handle.complete
        or (handle.removed and key in handle.removed)
        or (handle.absent and key in handle.absent)
    ):
        return None
    real: dict[Any, Any] = handle.real
    if type(real) is dict:
        found = real.get(key, _NOTHING)
    else:
        found = _get(real, key) if _has(real, key) else _NOTHING
    if found is not _NOTHING:
        if handle.source is None:  # a namespace of graphlift's own: nobody changes it
            value = tx.make.from_value(found, None)
        else:
            source = handle.source.child(kind, key)
            tx.present(source)
            value = tx.make.lazy(found, source)
        _note_read(handle, handle.table, key, (_key_var(tx, handle, key), value))
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
    if found and not handle.complete and handle.source is not None and _has(handle.real, key):
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
    found = shown(real)
    if handle.source is not None:
        tx.guard(NAMES if _has(real, BUILTINS) else KEYS, handle.source, tuple(found))
    table: dict[Hashable, tuple[Any, Any]] = {}
    for key in found:
        if key in removed:
            continue
        entry = handle.table.get(key)
        if entry is None:
            if handle.source is None:
                value = tx.make.from_value(_get(real, key), None)
            else:
                value = tx.make.lazy(_get(real, key), handle.source.child(kind, key))
            entry = (_key_var(tx, handle, key), value)
            _note_read(handle, table, key, entry)
        elif handle.first_table is not None and key not in handle.first_table:
            handle.first_table[key] = (entry[0], None)  # written over unread: known to be there from now on
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
    known = handle.complete or key in (handle.removed or ())
    if handle.source is not None and not known and not _has(handle.real, key):
        tx.guard(ABSENT, handle.source, key)  # stored by the program: deleting it is nothing to be done
    tx.heap.drop(handle, key)
    return True
