"""What users say about single callables and tensors: run this plainly, keep it whole, this size varies."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from graphlift import _C
from graphlift.dynamic import DYNAMIC, STATIC
from graphlift.rules import mark

F = TypeVar("F", bound=Callable[..., Any])


def disable(function: Any = None) -> Any:
    """Keep a function out of every capture: it and whatever it calls run plainly.

    Works as a function and as a decorator.
    """
    if function is None:
        return disable

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        return _C.plain_call(function, *args, **kwargs)

    mark(plain, "skip")
    return plain


def allow_in_graph(function: F) -> F:
    """Make calls of a function one node of the graph; graphlift never looks into it.

    The function must work on tensors and constants and have no effects but its result.
    """
    mark(function, "graph")
    return function


def disallow_in_graph(function: F) -> F:
    """Cut the graph where a function is called, though the call would fit into it."""
    mark(function, "refuse")
    return function


def _mark_dimensions(tensor: torch.Tensor, name: str, dims: int | list[int] | tuple[int, ...]) -> None:
    wanted = {dims} if isinstance(dims, int) else set(dims)
    rank = tensor.dim()
    for dim in wanted:
        if not -rank <= dim < rank:
            raise IndexError(f"a tensor of {rank} dimensions has no dimension {dim}")
    marked = {dim % rank for dim in wanted}
    setattr(tensor, name, frozenset(marked | getattr(tensor, name, frozenset())))


def mark_dynamic(tensor: torch.Tensor, dims: int | list[int] | tuple[int, ...]) -> None:
    """Make these sizes of a tensor symbolic from the first capture on.

    Raises:
        IndexError: the tensor has no such dimension.
    """
    _mark_dimensions(tensor, DYNAMIC, dims)


def mark_static(tensor: torch.Tensor, dims: int | list[int] | tuple[int, ...] | None = None) -> None:
    """Keep these sizes (all, when `dims` is None) of a tensor fixed, however often they change.

    Raises:
        IndexError: the tensor has no such dimension.
    """
    _mark_dimensions(tensor, STATIC, tuple(range(tensor.dim())) if dims is None else dims)
