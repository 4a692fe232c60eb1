"""How a source is loaded in an entry's code.

Parameters are locals of the entry. Everything else was found by the guard program on its way and comes in
the entry's hidden binding, a tuple: no attribute is looked up again, so nothing that the program did in
the meantime, and no user code, can come between guard and use.
"""

from __future__ import annotations

from graphlift.bytecode.verbs import Verbs
from graphlift.sources import ParamSource, Source

#: The hidden local that holds the binding; no user's name can be the same.
BINDING = ".binding"


class BindingSlots:
    """The sources that an entry's binding must hold, in order."""

    def __init__(self) -> None:
        self._slots: dict[Source, int] = {}

    def slot(self, source: Source) -> int:
        """The position of `source` in the binding."""
        return self._slots.setdefault(source, len(self._slots))

    def sources(self) -> tuple[Source, ...]:
        """All of them."""
        return tuple(self._slots)


def load_source(emitter: Verbs, source: Source, slots: BindingSlots) -> None:
    """Push the value at `source`."""
    if type(source) is ParamSource:
        emitter.load_fast(source.name())
        return
    emitter.load_fast(BINDING)
    emitter.load_const(slots.slot(source))
    emitter.subscr()
