"""A value from the program's state that nothing was asked of yet: no tracker of its kind, no guard."""

from __future__ import annotations

from typing import Final

from graphlift.protocol import Codegen, Tx
from graphlift.sources import Source
from graphlift.variables.base import VariableTracker


class LazyVariableTracker(VariableTracker):
    """Stands for an input until it is used.

    Slots realise it before they ask anything; passing it on, storing it and returning it do not.

    Attributes:
        value: the real object.
    """

    __slots__ = ("_realized", "value")

    def __init__(self, value: object, source: Source) -> None:
        self.source = source
        self.value: Final = value
        self._realized: VariableTracker | None = None

    def realize(self, tx: Tx) -> VariableTracker:
        realized = self._realized
        if realized is None:
            assert self.source is not None
            made = tx.make.from_value(self.value, self.source)
            assert isinstance(made, VariableTracker)
            realized = self._realized = made
        return realized

    def reconstruct(self, codegen: Codegen) -> None:
        if self._realized is not None:
            codegen(self._realized)
        else:
            assert self.source is not None
            codegen.load_source(self.source)
