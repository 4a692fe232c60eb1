"""What `compile` gives back: wrappers for every kind of callable, their limits, compiled modules."""

from __future__ import annotations

from graphlift.compiled.context import records_of, reset
from graphlift.compiled.stance import set_stance
from graphlift.compiled.worth import nothing_given_up
from graphlift.compiled.wrap import compile

__all__ = ["compile", "nothing_given_up", "records_of", "reset", "set_stance"]
