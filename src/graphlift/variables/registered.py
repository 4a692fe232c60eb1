"""Every file of this package, imported for what it registers (rules, makers, models)."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

from graphlift import variables


def import_all() -> None:
    """Import every module of the package; order does not matter, for rules have their own."""
    for module in walk_packages(variables.__path__, "graphlift.variables."):
        import_module(module.name)
