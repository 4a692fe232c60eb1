"""graphlift turns PyTorch programs into graphs while they run.

``graphlift.compile`` takes the place of ``torch.compile``. Everything named in `__all__` is public.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphlift import config
from graphlift import errors as exc
from graphlift.compiled import compile, reset, set_stance
from graphlift.compiled.markers import allow_in_graph, disable, disallow_in_graph, mark_dynamic, mark_static

# At once, not later: a submodule imported later would take the function's place.
from graphlift.explain import explain
from graphlift.report import logs as _logs
from graphlift.rules import graph_break, is_compiling

if TYPE_CHECKING:
    from graphlift.backends import list_backends

__version__ = "0.1.0"

__all__ = [
    "allow_in_graph",
    "compile",
    "config",
    "disable",
    "disallow_in_graph",
    "exc",
    "explain",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "reset",
    "set_logs",
    "set_stance",
]

#: Names that are resolved when first asked for, to keep the import short.
_LATER = {
    "list_backends": "graphlift.backends",
}


set_logs = _logs.set_logs
_logs.start()


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'graphlift' has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
