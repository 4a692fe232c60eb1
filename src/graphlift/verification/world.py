"""A program's state twice over: the real one, and a copy taken before a call, in which the call is run again.

Arguments have copies of their own. Names (globals, cells, class attributes, defaults) exist once, so the
second run borrows them: they hold the copies while it lasts, and then again what the first run left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from graphlift.comparison import Comparison
from graphlift.verification.copying import Copier
from graphlift.verification.reach import MISSING, Place, Reach
from graphlift.verification.shared import Shared


class World:
    """What a function and its arguments reach, with its copy.

    Arguments:
        function: the function that is called.

    Attributes:
        shared: what has no copy.
    """

    def __init__(self, function: Any) -> None:
        self.shared = Shared()
        self._reach = Reach(function.__globals__)
        self._copier = Copier(self._reach.follow, self.shared.add)
        self._places: list[Place] = []
        self._copies: list[Any] = []
        self._after: list[Any] = []
        self._plain: list[Any] = []
        self._reach.follow(function)

    def copy(self, value: Any, path: str) -> Any:
        """The copy of an argument; always the same one for one object.

        Raises:
            RecursionError: it is nested too deeply.
        """
        self.shared.where = path
        return self._copier.copy(value)

    def copy_places(self) -> None:
        """Copy what stands in every name that can be reached by now."""
        for place in self._reach.places():
            self._places.append(place)
            self._copies.append(self.copy(place.read(), place.path))

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[None]:
        """Names hold the copies; afterwards they hold again what they hold now."""
        self._add_new()
        self._after = [place.read() for place in self._places]
        for place, copied in zip(self._places, self._copies, strict=True):
            if place.read() is not copied:
                place.write(copied)
        try:
            yield
        finally:
            self._add_new()
            self._after += [MISSING] * (len(self._places) - len(self._after))
            self._plain = [place.read() for place in self._places]
            for place, value in zip(self._places, self._after, strict=True):
                if place.read() is not value:
                    place.write(value)

    def _add_new(self) -> None:
        """Names that came into being since the copies were taken."""
        new = self._reach.appeared()
        self._places += new
        self._copies += [MISSING] * len(new)

    def expect_pairs(self, comparison: Comparison) -> None:
        """Tell which objects correspond: originals and copies."""
        for original, copied in self._copier.pairs:
            comparison.expect(copied, original)

    def compare_places(self, comparison: Comparison) -> None:
        """Compare what both runs left in names."""
        for place, plain, after in zip(self._places, self._plain, self._after, strict=True):
            if plain is MISSING or after is MISSING:
                if plain is not after:
                    run = "plain Python" if after is MISSING else "the compiled run"
                    comparison.differ(place.path, f"exists after {run} only")
            else:
                comparison.compare(plain, after, place.path)
