"""A GraphModule whose graph and code are made only if somebody asks for them.

Running it runs the function made from the record; reading ``graph`` and ``code``, editing the graph and
calling ``recompile()``, copying and pickling work as with any GraphModule.
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

    def __getattr__(self, name: str) -> Any:
        make = self.__dict__.get("_make_graph") if name == "_graph" else None
        if make is None:
            return super().__getattr__(name)
        graph = self.__dict__.setdefault("_graph", make())
        graph.owning_module = self
        self.__dict__.pop("_make_graph", None)
        return graph

    # What looks into the instance dictionary must find the graph there.

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        assert self.graph is not None
        return super().__deepcopy__(memo)

    def __reduce__(self) -> Any:
        assert self.graph is not None
        return super().__reduce__()

    def __reduce_package__(self, exporter: Any) -> Any:
        assert self.graph is not None
        return super().__reduce_package__(exporter)

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


def lazy_module(make_graph: Callable[[], Graph], forward: Callable[..., Any], name: str) -> GraphModule:
    """A GraphModule of the graph that `make_graph` will give.

    Arguments:
        forward: what it runs: a function of the flat inputs, without self.
    """
    module = LazyGraphModule(torch.nn.Module(), Graph(), class_name=name)
    module.__dict__["_make_graph"] = make_graph
    del module.__dict__["_graph"]
    own = type(module)
    own._ready = own.forward = staticmethod(forward)
    return module
