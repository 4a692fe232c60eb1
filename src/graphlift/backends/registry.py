"""Backends by name, and what each wants to be handed.

A backend is ``backend(graph_module, example_inputs, **settings) -> callable`` of the flat inputs. Our own
are registered here by decorator; other names are asked of torch's registry. Knows nothing of graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeVar

from graphlift import interop

Writes = Literal["in order", "last", "unknown"]


class Wants(NamedTuple):
    """What a backend is handed.

    Attributes:
        fake_inputs: fake tensors instead of the capture's real ones.
        module: a graph module (else the captured graph itself).
        symbolic_floats: float inputs that are not fixed (else their values become assumptions).
        writes: when its products write to the graph's inputs: in the order of the operations, after all
            that can fail, or nobody knows.
    """

    fake_inputs: bool = False
    module: bool = True
    symbolic_floats: bool = False
    writes: Writes = "unknown"


class Backend(NamedTuple):
    """A backend ready to be called.

    Attributes:
        name: as errors name it.
        call: ``call(graph, inputs)``; mode and options are bound already.
        wants: what it is handed.
    """

    name: str
    call: Callable[[Any, Any], Callable[..., Any]]
    wants: Wants


#: Makes a backend's call from mode, options and the ``dynamic`` setting.
Maker = Callable[
    [str | None, Mapping[str, Any] | None, bool | None], Callable[[Any, Any], Callable[..., Any]]
]
_M = TypeVar("_M", bound=Maker)

_makers: Final[dict[str, tuple[Maker, Wants]]] = {}


def backend(name: str, wants: Wants) -> Callable[[_M], _M]:
    """Register the maker of a backend of our own."""

    def register(maker: _M) -> _M:
        _makers[name] = (maker, wants)
        return maker

    return register


def list_backends(debug: bool = False) -> list[str]:
    """Names that `compile` takes, sorted.

    Args:
        debug: also those meant for debugging and experiments.
    """
    return sorted({*_makers, *interop.backend_names(debug)})


def writes_of(backend: str | Callable[..., Any]) -> Writes:
    """When products of the backend that a user's setting means write to the graph's inputs."""
    known = _makers.get(backend) if isinstance(backend, str) else None
    return "unknown" if known is None else known[1].writes


def check_name(backend: str | Callable[..., Any]) -> None:
    """Find out early that a backend's name is wrong; nothing of the backend is imported for ours.

    Raises:
        ValueError: nobody knows the name.
    """
    if isinstance(backend, str) and backend not in _makers and interop.backend(backend) is None:
        raise _unknown(backend)


def _unknown(name: str) -> ValueError:
    return ValueError(f"there is no backend named {name!r}; known are {', '.join(list_backends())}")


def lookup(
    backend: str | Callable[..., Any],
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    dynamic: bool | None = None,
) -> Backend:
    """The backend that a user's setting means.

    Raises:
        ValueError: for a name that nobody knows, and for a mode or option that the backend refuses.
    """
    if not isinstance(backend, str):
        name = getattr(backend, "__name__", type(backend).__name__)
        return Backend(name, _with_settings(backend, mode, options), Wants(symbolic_floats=True))
    known = _makers.get(backend)
    if known is not None:
        maker, wants = known
        return Backend(backend, maker(mode, options, dynamic), wants)
    found = interop.backend(backend)
    if found is None:
        raise _unknown(backend)
    return Backend(backend, _with_settings(found, mode, options), Wants())


def _with_settings(
    function: Callable[..., Any], mode: str | None, options: Mapping[str, Any] | None
) -> Callable[[Any, Any], Callable[..., Any]]:
    """`function` with those settings as keywords that were given."""
    settings: dict[str, Any] = {}
    if mode is not None and mode != "default":
        settings["mode"] = mode
    if options:
        settings["options"] = dict(options)
    if not settings:
        return function
    return lambda graph, inputs: function(graph, inputs, **settings)
