"""Tools for testing graphlift and programs compiled with it."""

from graphlift.comparison import Comparison
from graphlift.testing.backends import CompileCounter, EagerAndRecordGraphs, operations
from graphlift.testing.check import Captured, Checked, check, check_fresh

__all__ = [
    "Captured",
    "Checked",
    "Comparison",
    "CompileCounter",
    "EagerAndRecordGraphs",
    "check",
    "check_fresh",
    "operations",
]
