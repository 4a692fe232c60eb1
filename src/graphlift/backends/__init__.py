"""From a captured graph to something that runs it."""

from graphlift.backends import builtin
from graphlift.backends.calling import BackendError, compile_graph
from graphlift.backends.registry import (
    Backend,
    Wants,
    Writes,
    check_name,
    list_backends,
    lookup,
    writes_of,
)

__all__ = [
    "Backend",
    "BackendError",
    "Wants",
    "Writes",
    "builtin",
    "check_name",
    "compile_graph",
    "list_backends",
    "lookup",
    "writes_of",
]
