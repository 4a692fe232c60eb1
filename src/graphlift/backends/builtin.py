"""The backends that graphlift brings: ``eager``, ``aot_eager`` and ``inductor``.

The last two are torch's compilers, imported when first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from graphlift.backends.registry import Wants, backend

_AOT = Wants(fake_inputs=True)
#: What AOTAutograd makes of a graph writes to inputs in its last operations.
_IN_PLAIN_STEPS = _AOT._replace(writes="last")


def _without_settings(name: str, mode: str | None, options: Mapping[str, Any] | None) -> None:
    if options or (mode is not None and mode != "default"):
        raise ValueError(f"backend {name!r} has neither modes nor options")


@backend("eager", Wants(module=False, symbolic_floats=True, writes="in order"))
def eager(mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None) -> Callable[..., Any]:
    """Run the graph as it is, operation by operation."""
    _without_settings("eager", mode, options)
    return _forward


def _forward(graph: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
    forward: Callable[..., Any] = graph.forward
    return forward


@backend("aot_eager", _IN_PLAIN_STEPS)
def aot_eager(
    mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None
) -> Callable[..., Any]:
    """Trace forward and backward through AOTAutograd, then run those graphs as they are."""
    _without_settings("aot_eager", mode, options)
    return _aot


def _aot(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
    from torch._functorch.aot_autograd import aot_module_simplified

    def as_it_is(gm: torch.fx.GraphModule, example_inputs: Any) -> Any:
        return make_boxed_func(gm.forward)

    product: Callable[..., Any] = aot_module_simplified(
        module, inputs, as_it_is, partition_fn=min_cut_rematerialization_partition
    )
    return product


@backend("inductor", _AOT)
def inductor(mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None) -> Callable[..., Any]:
    """Torch's own compiler; modes and options are its."""
    if mode is not None and options:
        raise ValueError("give either a mode or options, not both")
    try:
        patches = _patches(mode, options, dynamic)
    except RuntimeError as error:
        raise ValueError(str(error)) from error

    def compile_graph(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        from torch._inductor.compile_fx import compile_fx

        # Its cache on disk keeps guards on symbolic sizes as text that names their sources, and ours are not
        # written as it would read them.
        chosen = {**patches, "fx_graph_cache": False} if _is_symbolic(inputs) else patches
        product: Any = compile_fx(module, inputs, config_patches=chosen)
        return product  # type: ignore[no-any-return]

    return compile_graph


def _is_symbolic(inputs: Sequence[Any]) -> bool:
    """Whether a number or a size among the inputs is symbolic."""
    return any(
        isinstance(value, (torch.SymInt, torch.SymFloat))
        or (isinstance(value, torch.Tensor) and any(type(size) is not int for size in value.shape))
        for value in inputs
    )


def _patches(mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None) -> dict[str, Any]:
    """The settings of Inductor that a mode or options stand for."""
    wanted: dict[str, Any] = dict(options or {})
    if mode is not None and mode != "default":
        from torch._inductor import list_mode_options

        wanted.update(list_mode_options(mode, dynamic))
    if not wanted:
        return {}
    from torch._inductor import config

    known = config.get_config_copy()
    patches = {}
    for key, value in wanted.items():
        name = key.replace("-", "_")
        if name not in known:
            raise ValueError(f"Inductor has no option {key!r}")
        kind = config.get_type(name)  # type: ignore[attr-defined]
        if isinstance(kind, type) and not isinstance(value, kind):
            raise ValueError(f"Inductor's option {key!r} takes {kind.__name__}, not {type(value).__name__}")
        patches[name] = value
    return patches
