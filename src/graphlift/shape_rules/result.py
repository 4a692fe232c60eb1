"""What a shape rule answers, and the table of rules.

A rule is a plain function of the operation's arguments, in which every tensor is its `MetaRecord`. It
says what the operation gives in terms of the classes below, or `DECLINE` when it was not made (and
tested) for such arguments. Rules know nothing of autograd, dispatch keys or graphs: who calls them adds
that, from the traits a rule is registered with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import torch


class Decline(Exception):
    """Raised inside a rule: not my domain."""


class Fresh:
    """A new tensor with storage of its own."""

    __slots__ = ("device", "dtype", "shape", "stride")

    def __init__(
        self,
        shape: tuple[int, ...],
        stride: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.shape: Final = shape
        self.stride: Final = stride
        self.dtype: Final = dtype
        self.device: Final = device


class ViewOfFirst:
    """A view of the first tensor among the arguments; dtype and device are its."""

    __slots__ = ("offset", "shape", "stride")

    def __init__(self, shape: tuple[int, ...], stride: tuple[int, ...], offset: int) -> None:
        self.shape: Final = shape
        self.stride: Final = stride
        self.offset: Final = offset


class SameAsFirst:
    """The first tensor among the arguments itself."""

    __slots__ = ()


SAME: Final = SameAsFirst()

Answer = Any
Rule = Callable[..., Answer]


class Traits:
    """What is known of an operation beside its shape rule.

    Attributes:
        differentiable: whether a floating result requires grad when an input does.
        first_only: whether only the first tensor among the arguments counts for that.
        random: whether it draws from a generator.
        raises: whether it can fail by the *values* of its arguments.
        factory: whether it makes tensors by the process's defaults (dtype, device).
        value_free: whether Python scalars matter by their type alone.
    """

    __slots__ = ("differentiable", "factory", "first_only", "raises", "random", "value_free")

    def __init__(
        self,
        *,
        differentiable: bool = True,
        first_only: bool = False,
        random: bool = False,
        raises: bool = False,
        factory: bool = False,
        value_free: bool = False,
    ) -> None:
        self.differentiable: Final = differentiable
        self.first_only: Final = first_only
        self.random: Final = random
        self.raises: Final = raises
        self.factory: Final = factory
        self.value_free: Final = value_free


#: Target of a call (a function, or the name of a method) -> its rule and traits.
RULES: Final[dict[Any, tuple[Rule, Traits]]] = {}

_PLAIN: Final = Traits()
_R = TypeVar("_R", bound=Rule)


def rule(*targets: Any, traits: Traits = _PLAIN) -> Callable[[_R], _R]:
    """Register a rule for targets; a string stands for the tensor method of that name."""

    def register(function: _R) -> _R:
        for target in _with_aliases(targets):
            RULES[target] = (function, traits)
        return function

    return register


def _with_aliases(targets: Iterable[Any]) -> Iterable[Any]:
    for target in targets:
        yield target
        # ``torch.Tensor.add(x, y)`` is the method called through its class.
        if isinstance(target, str):
            unbound = getattr(torch.Tensor, target, None)
            if unbound is not None:
                yield unbound
