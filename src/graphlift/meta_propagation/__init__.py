"""Metadata of results without running the user's operations: records, rules, memo, fake tensors."""

from graphlift.meta_propagation.propagator import Propagator
from graphlift.meta_propagation.template import Const, Items, Same, Template, View, Write

__all__ = ["Const", "Items", "Propagator", "Same", "Template", "View", "Write"]
