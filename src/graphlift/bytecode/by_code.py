"""What is known of code objects, for as long as each lives.

Code objects are told apart by identity: equal ones may differ in file name, in their function's globals,
and in what was made of them. (`weakref.WeakKeyDictionary` would take equal ones for one.)
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from types import CodeType
from typing import Generic, TypeVar

V = TypeVar("V")


class ByCode(Generic[V]):
    """A mapping from code objects, held weakly, to values. A value must not hold its own key."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[int, tuple[weakref.ref[CodeType], V]] = {}

    def get(self, code: CodeType) -> V | None:
        """The value for this very code object, or None."""
        row = self._rows.get(id(code))
        return row[1] if row is not None and row[0]() is code else None

    def __setitem__(self, code: CodeType, value: V) -> None:
        rows, key = self._rows, id(code)

        def forget(reference: weakref.ref[CodeType]) -> None:
            row = rows.get(key)
            if row is not None and row[0] is reference:
                del rows[key]

        rows[key] = weakref.ref(code, forget), value

    def __contains__(self, code: CodeType) -> bool:
        return self.get(code) is not None

    def __iter__(self) -> Iterator[CodeType]:
        """The code objects that are alive now."""
        return iter([code for reference, _ in list(self._rows.values()) if (code := reference()) is not None])

    def __len__(self) -> int:
        return len(self._rows)

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()
