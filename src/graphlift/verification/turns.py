"""Which thread may borrow the program's names for a plain run: one, while no other verifies."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Turns:
    """Verified calls of all threads. Nobody waits for a call that may itself wait for somebody.

    A thread that comes while another has borrowed the names waits for the end of that plain run, unless it
    was started within it, and so belongs to it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: set[int] = set()
        self._alone: int | None = None
        self._outsiders: frozenset[int] = frozenset()

    @contextlib.contextmanager
    def running(self) -> Iterator[bool]:
        """A verified call; False when it belongs to another thread's plain run."""
        here = threading.get_ident()
        with self._changed:
            while self._alone is not None and here in self._outsiders:
                self._changed.wait()
            admitted = self._alone is None
            if admitted:
                self._running.add(here)
        try:
            yield admitted
        finally:
            if admitted:
                with self._changed:
                    self._running.discard(here)

    def alone(self) -> bool:
        """Whether this thread may borrow the names now; ends with `not_alone`."""
        here = threading.get_ident()
        with self._changed:
            if self._running - {here}:
                return False
            self._alone = here
            self._outsiders = frozenset(
                thread.ident for thread in threading.enumerate() if thread.ident is not None
            )
            return True

    def not_alone(self) -> None:
        """The names hold the program's values again."""
        with self._changed:
            self._alone = None
            self._changed.notify_all()


turns = Turns()
