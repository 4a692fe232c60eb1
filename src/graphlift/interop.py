"""The one room in which TorchDynamo may be named: its users' markers and its registry of backends.

It is imported inside functions, and only where something of its must be asked; a mark that needs it cannot
exist while nobody has imported it. Nothing here does any work of a capture.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from types import FunctionType
from typing import Any, Final, NamedTuple

_REGISTRY: Final = "torch._dynamo.backends.registry"
_ENTRY_POINTS: Final = "torch_dynamo_backends"


# --- backends ---------------------------------------------------------------------------------------


def backend_names(debug: bool = False) -> list[str]:
    """The names in torch's registry, and those that installed packages add.

    Args:
        debug: also those meant for debugging and experiments.
    """
    registry = importlib.import_module(_REGISTRY)
    names: list[str] = registry.list_backends(exclude_tags=() if debug else ("debug", "experimental"))
    return names


def backend(name: str) -> Callable[..., Any] | None:
    """The backend of this name in torch's registry or of an installed package, or None.

    A package's entry point is loaded without importing torch's registry.
    """
    for point in entry_points(group=_ENTRY_POINTS):
        if point.name == name:
            loaded: Callable[..., Any] = point.load()
            return loaded
    registry = importlib.import_module(_REGISTRY)
    if name not in registry.list_backends(exclude_tags=()):
        return None
    found: Callable[..., Any] = registry.lookup_backend(name)
    return found


# --- marks on callables -----------------------------------------------------------------------------


def _static(target: object, name: str, default: object = None) -> Any:
    """An attribute read without running anybody's code."""
    return inspect.getattr_static(target, name, default)


def is_disabled(function: object) -> bool:
    """Whether the user asked that it, and what it calls, runs plainly (``torch.compiler.disable``)."""
    return _static(function, "_torchdynamo_disable", False) is True


def is_recursively_disabled(function: object) -> bool:
    """Whether what a disabled function calls is to run plainly too."""
    return _static(function, "_torchdynamo_disable_recursive", True) is not False


def original_of(function: object) -> Any:
    """The function that a wrapper of ``torch.compile`` or ``torch.compiler.disable`` stands for, or None."""
    return _static(function, "_torchdynamo_orig_callable")


def uncompiled(model: Any) -> Any:
    """What ``torch.compile`` was given to make `model`; anything else is given back as it is."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    if frames is None:
        return model
    if isinstance(model, frames.OptimizedModule):
        return model._orig_mod
    original = None if is_disabled(model) else original_of(model)
    return model if original is None else original


def is_constant_result(function: object) -> bool:
    """Whether the user said that its result never changes (``torch.compiler.assume_constant_result``)."""
    return _static(function, "_dynamo_marked_constant", False) is True


def is_forbidden(function: object) -> bool:
    """Whether it must not be called in captured code."""
    return _static(function, "_dynamo_forbidden", False) is True


def _marked(table: str, function: object) -> bool:
    rules = sys.modules.get("torch._dynamo.trace_rules")
    ids = None if rules is None else getattr(rules, table, None)
    return ids is not None and id(function) in ids


def is_graph_node(function: object) -> bool:
    """Whether the user said to keep it whole in the graph (``torch.compiler.allow_in_graph``)."""
    # The table also lists by identity what torch itself put in; both mean the same.
    return _marked("_allowed_callable_ids", function)


def is_refused(function: object) -> bool:
    """Whether the user said to keep it out of graphs (``disallow_in_graph``)."""
    return _marked("_disallowed_callable_ids", function)


def tagged(function: FunctionType) -> str | None:
    """The free variable that holds what the function stands for, if it is one of torch's tagging wrappers.

    Importing torch's front end wraps ``Module.__init__`` and ``Module.__setstate__``, to note for itself when
    a module was made; captured code takes what is beneath, for nothing else reads the note.
    """
    name = {"patched_init": "init", "patched_setstate": "setstate"}.get(function.__name__)
    if name is None or function.__module__ != "torch._dynamo.mutation_guard":
        return None
    return name if name in function.__code__.co_freevars else None


def is_graph_break(function: object) -> bool:
    """Whether it is ``torch._dynamo.graph_break``."""
    dynamo = sys.modules.get("torch._dynamo")
    return dynamo is not None and function is getattr(dynamo, "graph_break", None)


# --- marks on tensors -------------------------------------------------------------------------------


class DimMarks(NamedTuple):
    """What the user said of a tensor's dimensions (``torch._dynamo.mark_dynamic`` and its kin).

    Attributes:
        dynamic: must be symbolic.
        weak: are symbolic unless the program fixes them.
        static: must not be symbolic.
        ranges: for dynamic ones, (dimension, least, greatest); None for no bound.
    """

    dynamic: frozenset[int]
    weak: frozenset[int]
    static: frozenset[int]
    ranges: tuple[tuple[int, int | None, int | None], ...]


_UNMARKED: Final = DimMarks(frozenset(), frozenset(), frozenset(), ())


def dim_marks(tensor: Any) -> DimMarks:
    """The marks on a tensor's dimensions."""
    own = tensor.__dict__
    if not own:
        return _UNMARKED

    def dims(name: str) -> frozenset[int]:
        return frozenset(own.get(name, ()))

    ranges = tuple((limits.dim, limits.min, limits.max) for limits in own.get("_dynamo_dynamic_range", ()))
    return DimMarks(
        dims("_dynamo_dynamic_indices") | dims("_dynamo_unbacked_indices"),
        dims("_dynamo_weak_dynamic_indices"),
        dims("_dynamo_static_indices"),
        ranges,
    )
