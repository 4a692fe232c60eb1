"""What becomes of a callable that captured code meets: looked into, a graph node, modelled, or left alone.

`classify` is the one question. Answers depend on the callable itself, on the user's marks (graphlift's and
torch's own) and on the file that its code comes from; never on arguments. Knows nothing of trackers.
"""

from __future__ import annotations

import types
from typing import Any, Final, Literal

import torch

from graphlift import interop
from graphlift.rules.files import in_torch, is_root_candidate, treatment_of_file
from graphlift.rules.marks import Mark, graph_break, is_compiling, mark, mark_of, unmark
from graphlift.rules.torch_names import ANSWERED, GRAPH, REFUSED
from graphlift.rules.unasked import is_unasked

__all__ = [
    "Mark",
    "Treatment",
    "classify",
    "graph_break",
    "is_compiling",
    "is_root_candidate",
    "is_unasked",
    "keeps_frame",
    "mark",
    "mark_of",
    "model",
    "treatment_of_file",
    "unmark",
]

#: ``inline``: interpret its Python code. ``graph``: a node of the graph. ``model``: torch's (or graphlift's)
#: function with a model of its own, in `variables/torch_functions.py`. ``skip``: break, CPython calls it.
#: ``unknown``: not Python, and nothing is known of it here (builtins have their own registry).
Treatment = Literal["inline", "graph", "model", "skip", "unknown"]

_MODELLED: Final[set[Any]] = {is_compiling, graph_break, *ANSWERED}

#: The file of the import machinery.
_IMPORT: Final = "<frozen importlib._bootstrap>"

#: Python functions of `torch.Tensor` stand for methods of the graph, like the C ones.
_TENSOR_TYPES: Final = (torch.Tensor, torch._C.TensorBase)


def model(function: Any) -> None:
    """Register a hashable callable as one that has a model of its own."""
    _MODELLED.add(function)


def classify(function: Any) -> Treatment:
    """What a call of `function` becomes; also right for things that are not functions (``unknown``)."""
    marked = mark_of(function)
    if marked is not None:
        return "graph" if marked == "graph" else "skip"
    cls = type(function)
    if cls is types.FunctionType:
        return _python_function(function)
    if cls is types.BuiltinFunctionType:
        if function in _MODELLED:
            return "model"
        if function in GRAPH:
            return "skip" if interop.is_refused(function) else "graph"
        return "skip" if function in REFUSED else "unknown"
    if cls is types.MethodDescriptorType or cls is types.WrapperDescriptorType:
        return "model" if function.__objclass__ in _TENSOR_TYPES else "unknown"
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return "graph"
    return "unknown"


def _python_function(function: types.FunctionType) -> Treatment:
    if function in _MODELLED:
        return "model"
    if function in GRAPH:
        return "skip" if interop.is_refused(function) else "graph"
    if function in REFUSED or _marked_for_torch(function):
        return "skip"
    if interop.is_graph_node(function):
        return "graph"
    filename = function.__code__.co_filename
    if in_torch(filename) == "_tensor.py" and _is_tensor_method(function):
        return "model"
    return treatment_of_file(filename)


def _marked_for_torch(function: types.FunctionType) -> bool:
    """Whether one of torch's own markers keeps the function out of captured code."""
    if interop.is_refused(function):
        return True
    # Marks are attributes; most functions have none at all.
    return bool(function.__dict__) and (interop.is_disabled(function) or interop.is_forbidden(function))


def keeps_frame(function: types.FunctionType) -> Literal["no", "itself", "all"]:
    """Whether a frame of the function stays plain: itself alone, or all that runs in it.

    That is what torch's mark asks for. What an import runs, it runs once.
    """
    if function.__code__.co_filename == _IMPORT:
        return "all"
    if not (function.__dict__ and interop.is_disabled(function)):
        return "no"
    return "all" if interop.is_recursively_disabled(function) else "itself"


def _is_tensor_method(function: types.FunctionType) -> bool:
    return vars(torch.Tensor).get(function.__name__) is function
