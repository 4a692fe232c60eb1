"""The kinds of guards, one family a file, each kind with its three faces side by side."""

from graphlift.guards.kinds import (
    aliases,
    constants,
    containers,
    dictionaries,
    expressions,
    identity,
    iterators,
    lookups,
    modules,
    state,
    tensors,
)

__all__ = [
    "aliases",
    "constants",
    "containers",
    "dictionaries",
    "expressions",
    "identity",
    "iterators",
    "lookups",
    "modules",
    "state",
    "tensors",
]
