"""Whether two object graphs came out the same: values, identity, aliasing; knows nothing of captures."""

from graphlift.comparison.objects import Comparison
from graphlift.comparison.reading import short

__all__ = ["Comparison", "short"]
