"""A GraphModule whose code is generated only if somebody asks for it.

Running it runs the function made from the record; reading ``code``, editing the graph and calling
``recompile()``, copying and pickling work as with any GraphModule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch.fx import Graph, GraphModule
from torch.fx._lazy_graph_module import _LazyGraphModule


class LazyGraphModule(_LazyGraphModule):
    """See the module. Each instance has a class of its own, as GraphModules do."""

    _ready: ClassVar[Any] = None

    @classmethod
    def _needs_recompile(cls) -> bool:
        # Code made from the record runs, but there is no text of it yet.
        own = cls.__dict__
        return own.get("forward") is own.get("_ready", own) or super()._needs_recompile()

    @property
    def code(self) -> str:
        """The text of the generated forward."""
        self.real_recompile()
        return GraphModule.code.fget(self)  # type: ignore[attr-defined, no-any-return]


def lazy_module(graph: Graph, forward: Callable[..., Any], name: str) -> GraphModule:
    """A GraphModule of `graph` that runs `forward` (a function of the flat inputs, without self)."""
    module = LazyGraphModule(torch.nn.Module(), graph, class_name=name)
    own = type(module)
    own._ready = own.forward = staticmethod(forward)
    return module
