"""The checked way to run a compiled function: beside it, plain Python runs on copies, and both must agree."""

from graphlift.verification.function import VerifiedFunction
from graphlift.verification.trial import pause, run

__all__ = ["VerifiedFunction", "pause", "run"]
