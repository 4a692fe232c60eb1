"""What a call gives, detached from the tensors it was found out with.

A `Template` says for each tensor of the result whether it is new, an argument itself, or a view of one,
and what the call does besides. It is what the memo keeps. Owns the reading of a real result into a
template; knows nothing of how the result was produced, nor of graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from graphlift.graph_value import CannotPropagate

#: Classes of results that are plain values: they become constants of the capture.
CONSTANT_CLASSES: Final = frozenset(
    {
        bool,
        int,
        float,
        complex,
        str,
        type(None),
        torch.dtype,
        torch.device,
        torch.layout,
        torch.memory_format,
        torch.Size,
    }
)


class Same:
    """Tensor argument `arg` itself (arguments are counted over distinct tensors, in order)."""

    __slots__ = ("arg",)

    def __init__(self, arg: int) -> None:
        self.arg: Final = arg


class View:
    """A tensor on the storage of argument `arg`, or of a sibling: result tensor ``-1 - arg``."""

    __slots__ = ("arg", "fake", "piece", "record")

    def __init__(self, arg: int, record: Any, piece: bool = False, fake: Any = None) -> None:
        self.arg: Final = arg
        self.record: Final = record
        self.piece: Final = piece
        self.fake: Final = fake


class Const:
    """A Python value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Final = value


class Items:
    """A tuple or list of results; `cls` is its class."""

    __slots__ = ("cls", "items")

    def __init__(self, cls: type, items: tuple[Any, ...]) -> None:
        self.cls: Final = cls
        self.items: Final = items


class Write:
    """The call writes to argument `arg`.

    Attributes:
        record: its metadata afterwards.
        data: whether elements (not only metadata) change.
    """

    __slots__ = ("arg", "data", "record")

    def __init__(self, arg: int, record: Any, data: bool) -> None:
        self.arg: Final = arg
        self.record: Final = record
        self.data: Final = data


class Template:
    """The whole effect of a call.

    Attributes:
        output: a `MetaRecord` (a new tensor), `Same`, `View`, `Const` or `Items` of these.
        writes: arguments it changes.
        random: whether it draws random numbers.
        raises: whether it may fail by the values of its arguments.
    """

    __slots__ = ("output", "raises", "random", "writes")

    def __init__(
        self,
        output: Any,
        writes: tuple[Write, ...] = (),
        random: bool = False,
        raises: bool = False,
    ) -> None:
        self.output: Final = output
        self.writes: Final = writes
        self.random: Final = random
        self.raises: Final = raises

    @property
    def pure(self) -> bool:
        """Whether nothing is lost when nobody uses the result."""
        return not (self.writes or self.random or self.raises)


def _storage(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except NotImplementedError as error:
        raise CannotPropagate("a tensor without a plain storage") from error


class Reader:
    """Reads a real (or fake) result against the stand-ins that went in.

    Args:
        stand_ins: what stood for each tensor argument.
        read: gives the record of a new tensor or view; second argument: the argument it is a view of
            (-1 for none).
    """

    def __init__(self, stand_ins: Sequence[torch.Tensor], read: Callable[[torch.Tensor, int], Any]) -> None:
        self._same = {id(tensor): i for i, tensor in enumerate(stand_ins)}
        self._storages = {_storage(tensor): i for i, tensor in reversed([*enumerate(stand_ins)])}
        self._read = read
        self._results = 0

    def output(self, result: Any) -> Any:
        """The template's form of `result`.

        Raises:
            CannotPropagate: if it holds something that a graph cannot stand for.
        """
        kind = type(result)
        if isinstance(result, torch.Tensor):
            return self._tensor(result)
        if kind in CONSTANT_CLASSES:
            return Const(result)
        if kind is tuple or kind is list or _is_struct(kind):
            pieces = self._pieces(result)
            return Items(kind, tuple(self._piece(x, pieces) for x in result))
        raise CannotPropagate(f"a result of type {kind.__name__}")

    def _tensor(self, tensor: torch.Tensor) -> Any:
        known = self._same.get(id(tensor))
        if known is not None:
            return Same(known)
        place = _storage(tensor)
        base = self._storages.get(place)
        if base is not None:
            return View(base, self._read(tensor, base))
        self._results += 1
        self._storages[place] = -self._results
        self._same[id(tensor)] = -self._results
        return self._read(tensor, -1)

    def _piece(self, item: Any, pieces: bool) -> Any:
        form = self.output(item)
        if pieces and type(form) is View:
            return View(form.arg, form.record, True, form.fake)
        return form

    def _pieces(self, result: Sequence[Any]) -> bool:
        return sum(isinstance(x, torch.Tensor) for x in result) > 1


def _is_struct(kind: type) -> bool:
    if not issubclass(kind, tuple):
        return False
    return hasattr(kind, "_fields") or kind.__module__ == "torch.return_types"
