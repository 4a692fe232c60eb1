"""Shape rules: what common operations give, in plain Python, for plain tensors.

The table is filled by importing the modules below; see `result.py` for what a rule is.
"""

from graphlift.shape_rules import combining, factories, layers, matrix, pointwise, reductions, views
from graphlift.shape_rules.result import (
    RULES,
    SAME,
    Decline,
    Fresh,
    SameAsFirst,
    Traits,
    ViewOfFirst,
    rule,
)

#: The files that hold rules; importing them fills the table.
FAMILIES = (pointwise, views, matrix, reductions, layers, combining, factories)

__all__ = ["FAMILIES", "RULES", "SAME", "Decline", "Fresh", "SameAsFirst", "Traits", "ViewOfFirst", "rule"]
