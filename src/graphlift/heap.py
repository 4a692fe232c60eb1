"""Contents of mutable objects during a capture, with undo.

Trackers are immutable handles; what their objects hold lives here, changed only through the verbs of
`Heap`, each of which logs how to take it back. Rolling back is undoing to a length; reading is a plain
attribute access. The order of the log is the program's order of writes. The heap knows nothing of
trackers beyond holding them, and nothing of guards or code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

Table = dict[Hashable, tuple[Any, Any]]


class _Making(threading.local):
    """Where this thread's new handles are noted, so that the end of the capture can take them apart."""

    handles: list[Handle] | None = None


_making: Final = _Making()


class Handle:
    """One mutable object: its contents now, and where it came from.

    Which of the fields carry contents depends on the kind of object:

    Attributes:
        real: the object as it existed before the capture, or None if the program made it.
        source: where `real` can be found again, or None.
        items: contents of list-like objects (trackers), or None while not yet loaded.
        table: contents of dictionaries and sets: key identity -> (key tracker, value tracker).
        complete: whether `table` holds every key (else `real` is asked for the others).
        by_place: whether all keys of `real` were read by their places, for want of a way to look them up.
        removed: keys of `real` that were deleted at some time (a later store puts them at the end), each
            with what it was deleted by.
        absent: keys found missing in `real` while `table` was not complete.
        value: one free place: a cell's contents, an iterator's position, a suspended frame.
        namespace: the handle of the object's instance dictionary, made when first needed.
        slots: the handle of what the object keeps in C (``__slots__``, fields of functions and exceptions):
            its table is keyed by the descriptor that reads it; made when first needed.
        dirty: whether the program wrote to it.
        first_items, first_table: contents at the first write.
    """

    __slots__ = (
        "absent",
        "by_place",
        "complete",
        "dirty",
        "first_items",
        "first_table",
        "items",
        "namespace",
        "real",
        "removed",
        "slots",
        "source",
        "table",
        "tracker",
        "value",
    )

    def __init__(self, real: Any = None, source: Any = None) -> None:
        self.real: Any = real  # never another object; None once the capture is over
        self.source: Any = source
        self.items: list[Any] | None = None
        self.table: Table | None = None
        self.complete = real is None
        self.by_place = False
        self.removed: dict[Hashable, Any] | None = None
        self.absent: set[Hashable] | None = None
        self.value: Any = None
        self.namespace: Handle | None = None
        self.slots: Handle | None = None
        self.tracker: Any = None
        self.dirty = False
        self.first_items: list[Any] | None = None
        self.first_table: Table | None = None
        made = _making.handles
        if made is not None:
            made.append(self)


class Heap:
    """All handles of one capture and the log of what the program wrote to them."""

    def __init__(self) -> None:
        self._log: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._handles: dict[int, Handle] = {}
        self._made: list[Handle] = []
        _making.handles = self._made
        #: Handles in the order of their first write.
        self.written: dict[Handle, None] = {}

    # --- finding handles -------------------------------------------------------------------

    def handle_of(self, real: Any, source: Any) -> Handle:
        """The handle of an existing object, one per object and capture."""
        handle = self._handles.get(id(real))
        if handle is None:
            handle = self._handles[id(real)] = Handle(real, source)
        return handle

    def existing(self) -> Iterable[Handle]:
        """The handles of all existing objects that the capture has met."""
        return self._handles.values()

    def known(self, real: Any) -> Handle | None:
        """The handle of an existing object if the capture has met it."""
        return self._handles.get(id(real))

    def knows_any(self, reals: Iterable[Any]) -> bool:
        """Whether the capture has met one of some existing objects."""
        return not self._handles.keys().isdisjoint(map(id, reals))

    # --- writing ---------------------------------------------------------------------------

    def splice(self, handle: Handle, start: int, stop: int, items: Sequence[Any]) -> None:
        """Replace ``handle.items[start:stop]`` by `items`."""
        assert handle.items is not None
        self.touch(handle)
        old = handle.items[start:stop]
        handle.items[start:stop] = items
        self._log.append((_unsplice, (handle, start, start + len(items), old)))

    def set_items(self, handle: Handle, items: list[Any]) -> None:
        """Replace all items (reordering, clearing)."""
        assert handle.items is not None
        self.splice(handle, 0, len(handle.items), items)

    def put(self, handle: Handle, key: Hashable, entry: tuple[Any, Any]) -> None:
        """Store an entry; an existing key keeps its place, a new one goes to the end."""
        table = handle.table
        assert table is not None
        self.touch(handle)
        if key in table:
            self._log.append((table.__setitem__, (key, table[key])))
        else:
            self._log.append((table.pop, (key,)))
        table[key] = entry

    def drop(self, handle: Handle, key: Hashable) -> None:
        """Delete an entry that is there."""
        table = handle.table
        assert table is not None
        self.set_table(handle, {k: e for k, e in table.items() if k != key})
        if not handle.complete:
            self.set_slot(handle, "removed", {**(handle.removed or {}), key: table[key][0]})

    def set_table(self, handle: Handle, table: Table) -> None:
        """Replace the whole table (clearing, reordering)."""
        self.touch(handle)
        self.set_slot(handle, "table", table)

    def set_value(self, handle: Handle, value: Any) -> None:
        """Write the free place (a cell's contents, an iterator's position)."""
        self.touch(handle)
        self.set_slot(handle, "value", value)

    def set_slot(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of any object of the capture so that a roll-back restores it."""
        self._log.append((setattr, (owner, name, getattr(owner, name))))
        setattr(owner, name, value)

    def touch(self, handle: Handle) -> None:
        """Note that the program is about to write to `handle`."""
        if not handle.dirty:
            handle.first_items = None if handle.items is None else list(handle.items)
            handle.first_table = None if handle.table is None else dict(handle.table)
            handle.dirty = True
            self.written[handle] = None
            self._log.append((self._untouch, (handle,)))

    def on_undo(self, action: Callable[..., Any], *args: Any) -> None:
        """Have `action(*args)` called when this point is rolled back."""
        self._log.append((action, args))

    def _untouch(self, handle: Handle) -> None:
        handle.dirty = False
        handle.first_items = handle.first_table = None
        del self.written[handle]

    # --- taking back -----------------------------------------------------------------------

    def mark(self) -> int:
        """The present length of the log, for `rollback`."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Undo everything written since `mark`, latest first."""
        log = self._log
        while len(log) > mark:
            action, args = log.pop()
            action(*args)

    def clear(self) -> None:
        """Forget everything: the capture is over. Trackers and handles hold each other in circles."""
        self._log.clear()
        for handle in self._made:
            handle.items = handle.table = handle.value = handle.namespace = handle.slots = handle.tracker = (
                None
            )
            handle.first_items = handle.first_table = None
            handle.real = handle.source = None  # a tracker may be held in a circle beside the handle's
        self._made.clear()
        if _making.handles is self._made:
            _making.handles = None
        self._handles.clear()
        self.written.clear()


def _unsplice(handle: Handle, start: int, stop: int, old: list[Any]) -> None:
    assert handle.items is not None
    handle.items[start:stop] = old
