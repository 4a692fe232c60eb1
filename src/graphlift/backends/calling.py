"""Handing a captured graph to a backend, and naming the user's line when the backend fails.

The backend runs inside a `TracingContext` whose fake mode is made only if somebody asks for it, so that
backends which do not ask stay cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch._guards import TracingContext, tracing

from graphlift.backends.registry import Backend, lookup
from graphlift.errors import GraphliftError
from graphlift.quiet import collector_back
from graphlift.rules.torch_names import AUTOCAST_DEVICES


class Graph(Protocol):
    """What is asked of a captured graph."""

    @property
    def graph_module(self) -> Any:
        """The graph as an FX module."""

    @property
    def fake_mode(self) -> Any:
        """The mode of its fake tensors; made when first asked for."""

    @property
    def has_fake_mode(self) -> bool:
        """Whether that mode was made."""

    def example_inputs(self, *, fake: bool = False) -> list[Any]:
        """Its inputs at capture time."""

    def readable(self) -> str:
        """The graph as text."""

    def release(self) -> None:
        """Let go of the program's tensors."""

    @property
    def has_symbolic_floats(self) -> bool:
        """Whether an input is a float that the capture did not fix."""

    def with_fixed_floats(self) -> tuple[Graph, Callable[[Callable[..., Any]], Callable[..., Any]]]:
        """The graph without such inputs, and what makes of its product one of this graph."""


class Settings(Protocol):
    """What is asked of capture settings."""

    @property
    def backend(self) -> str | Callable[..., Any]:
        """A name or a callable."""

    @property
    def mode(self) -> str | None:
        """A mode of the backend."""

    @property
    def options(self) -> Any:
        """Options of the backend."""

    @property
    def dynamic(self) -> bool | None:
        """Whether sizes are symbolic from the start."""


class BackendError(GraphliftError):
    """A backend failed to compile a graph; the cause is what it raised."""


class _LazyContext(TracingContext):
    """A tracing context that makes its fake mode when asked for it, until the backend is done."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._done = False
        self._chosen: Any = None
        super().__init__(None)

    @property
    def fake_mode(self) -> Any:
        """The graph's fake mode, unless another was set."""
        if self._chosen is not None or (self._done and not self._graph.has_fake_mode):
            return self._chosen
        return self._graph.fake_mode

    @fake_mode.setter
    def fake_mode(self, mode: Any) -> None:
        self._chosen = mode

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Inside, a backend works. `tracing` asks for the mode once more at its end, to clean it up."""
        try:
            yield
        finally:
            self._done = True


def compile_graph(graph: Graph, settings: Settings) -> Callable[..., Any]:
    """What the settings' backend makes of a captured graph.

    Returns:
        a callable of the flat inputs that gives a tuple (or list) of the outputs.

    Raises:
        BackendError: the backend raised something.
        ValueError: there is no such backend.
    """
    chosen = lookup(settings.backend, settings.mode, settings.options, settings.dynamic)
    if graph.has_symbolic_floats and not chosen.wants.symbolic_floats:
        fixed, restored = graph.with_fixed_floats()
        product = restored(_compile(fixed, chosen))
    else:
        product = _compile(graph, chosen)
    graph.release()
    return product


@contextmanager
def _torch_state_kept() -> Iterator[None]:
    """Put back what a graph that sets grad mode or autocast changed while a compiler traced it."""
    grad, cache = torch.is_grad_enabled(), torch.is_autocast_cache_enabled()
    casts = [
        (kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in AUTOCAST_DEVICES
    ]
    try:
        yield
    finally:
        torch._C._set_grad_enabled(grad)
        torch.set_autocast_cache_enabled(cache)
        for kind, enabled, dtype in casts:
            torch.set_autocast_enabled(kind, enabled)
            torch.set_autocast_dtype(kind, dtype)


def _compile(graph: Graph, chosen: Backend) -> Callable[..., Any]:
    if not chosen.wants.module:
        return chosen.call(graph, ())
    try:
        context = _LazyContext(graph)
        with _torch_state_kept(), tracing(context), context.serving():
            module, inputs = graph.graph_module, graph.example_inputs(fake=chosen.wants.fake_inputs)
            with collector_back():
                product = chosen.call(module, inputs)
    except Exception as error:
        raise BackendError(_sentence(chosen.name, error, graph)) from error
    if not callable(product):
        raise BackendError(f"backend {chosen.name!r} gave {type(product).__name__}, which cannot be called")
    return product


def _sentence(name: str, error: Exception, graph: Graph) -> str:
    return (
        f"backend {name!r} failed with {type(error).__name__}: {error}\n\n"
        f"while compiling this graph:\n{graph.readable()}"
    )
