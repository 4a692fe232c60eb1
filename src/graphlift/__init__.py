"""graphlift turns PyTorch programs into graphs while they run.

``graphlift.compile`` takes the place of ``torch.compile``. Everything named in `__all__` is public. The
package itself imports little: torch and the compiler come when a name that needs them is first asked for, so
that `graphlift.eval_frame` can be used without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphlift import config
from graphlift import errors as exc
from graphlift.report import logs
from graphlift.report.logs import set_logs

if TYPE_CHECKING:
    from graphlift.backends import list_backends
    from graphlift.compiled import compile, reset, set_stance
    from graphlift.compiled.markers import (
        allow_in_graph,
        disable,
        disallow_in_graph,
        mark_dynamic,
        mark_static,
    )
    from graphlift.report.explain import explain
    from graphlift.rules import graph_break, is_compiling

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

logs.start()


def _load() -> None:
    """Bring in all that needs torch, at once: captured programs then find plain names here."""
    from graphlift.quiet import collector_paused

    with collector_paused():  # one full collection costs more than all the modules
        from graphlift.backends import list_backends
        from graphlift.compiled import compile, markers, reset, set_stance
        from graphlift.report.explain import explain
        from graphlift.rules import graph_break, is_compiling

    globals().update(
        allow_in_graph=markers.allow_in_graph,
        compile=compile,
        disable=markers.disable,
        disallow_in_graph=markers.disallow_in_graph,
        explain=explain,
        graph_break=graph_break,
        is_compiling=is_compiling,
        list_backends=list_backends,
        mark_dynamic=markers.mark_dynamic,
        mark_static=markers.mark_static,
        reset=reset,
        set_stance=set_stance,
    )


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'graphlift' has no attribute {name!r}")
    _load()
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
