"""Values of the tensor graph, as trackers hold them: tensors, symbolic numbers, and why a call failed.

Pure data: how they come about is `output_graph`'s business. A `GraphValue` *is* the identity of a
tensor during a capture: an operation that returns its argument gives the very same object back.
"""

from __future__ import annotations

from typing import Any, Final

import torch


class GraphValue:
    """One tensor of the graph.

    Attributes:
        meta: its `MetaRecord`, or on the dynamic path an object with the same attributes whose sizes
            may be symbolic.
        var: whatever tracker the variables layer keeps for this tensor.
        source: where a graph input comes from (None for results).
        real: the tensor that a graph input was at capture time (None for results).
        base: the value whose storage this is a view of, or None.
        views: values that share this one's storage, or None (kept on the base only).
        index: position of the operation that made it; for an input, -1.
        name: name that the user's program gave it first, or None.
        history: the value whose view it is for autograd, too (a detached one shares memory only), or None.
        piece: whether autograd refuses writes to it (one of several views made at once, or made without
            grad mode).
        fake: the fake tensor that stands for it, where one was needed.
    """

    __slots__ = (
        "base",
        "fake",
        "history",
        "index",
        "meta",
        "name",
        "piece",
        "real",
        "source",
        "var",
        "views",
    )

    def __init__(self, meta: Any, index: int = -1) -> None:
        self.meta = meta
        self.index = index
        self.var: Any = None
        self.source: Any = None
        self.real: torch.Tensor | None = None
        self.base: GraphValue | None = None
        self.views: list[GraphValue] | None = None
        self.name: str | None = None
        self.history: GraphValue | None = None
        self.piece = False
        self.fake: Any = None

    @property
    def root(self) -> GraphValue:
        """The value whose storage this one lives on: itself, where it is no view of the graph's."""
        return self if self.base is None else self.base

    def __repr__(self) -> str:
        return f"GraphValue({self.name or self.index}: {self.meta!r})"


#: What a symbolic int or float that the program hands in is at most, either way: so large a number, and the
#: sum of a few, still fits where torch's operations take a number.
LARGEST_INT: Final = 1 << 61
LARGEST_FLOAT: Final = torch.finfo(torch.float32).max
#: Tensors of these hold each such number.
WIDE: Final = frozenset({torch.float32, torch.float64, torch.complex64, torch.complex128, torch.bool})


class SymValue:
    """A number that the graph computes or is handed: int, float or bool not fixed by the capture.

    Attributes:
        sym: the `torch.SymInt`, `torch.SymFloat` or `torch.SymBool`.
        source: where an input comes from (None for results).
        index: position of the operation that made it; -1 for an input.
        exact: the steps that make a float, as a postfix expression over inputs; None if nobody knows them.
        hint: what it is in this capture, where that was computed; else None.
    """

    __slots__ = ("exact", "hint", "index", "name", "source", "sym", "var")

    def __init__(self, sym: Any, index: int = -1) -> None:
        self.sym = sym
        self.exact: tuple[Any, ...] | None = None
        self.hint: Any = None
        self.index = index
        self.source: Any = None
        self.var: Any = None
        self.name: str | None = None

    def __repr__(self) -> str:
        return f"SymValue({self.sym})"


class GraphContainer:
    """A tuple or list that an operation returned, as a value inside the graph; its items are getitems."""

    __slots__ = ("index", "name")

    def __init__(self, index: int) -> None:
        self.index: Final = index
        self.name: str | None = None


class StructResult:
    """What `OutputGraph.call` gives for a result of a tuple subclass: its class and its items.

    `cls` is a structured sequence of torch (`torch.return_types.max`, ...), a named tuple, or
    `torch.Size` when sizes are symbolic.
    """

    __slots__ = ("cls", "items")

    def __init__(self, cls: type, items: tuple[Any, ...]) -> None:
        self.cls: Final = cls
        self.items: Final = items

    def __repr__(self) -> str:
        return f"StructResult({self.cls.__name__}, {self.items})"


class GraphError(Exception):
    """An operation did not become part of the graph; the graph is as it was before the call."""


class MetaError(GraphError):
    """The operation fails on tensors of these metadata, whatever their values.

    Attributes:
        error: the exception that plain execution raises.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error: Final = error


class CannotPropagate(GraphError):
    """Nobody can tell what the operation gives without running it; cut the graph there."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason: Final = reason


class Warns(CannotPropagate):
    """The operation warns each time that it is called; cut the graph there."""


class DataDependent(GraphError):
    """The result's shape, or the result itself if a Python value, depends on tensor values."""

    def __init__(self, operation: str) -> None:
        super().__init__(operation)
        self.operation: Final = operation
