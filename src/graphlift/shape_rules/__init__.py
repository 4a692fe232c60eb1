"""Shape rules: what common operations give, in plain Python, for plain tensors.

The table is filled by importing the modules below; see `result.py` for what a rule is.
"""

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

__all__ = ["RULES", "SAME", "Decline", "Fresh", "SameAsFirst", "Traits", "ViewOfFirst", "rule"]
