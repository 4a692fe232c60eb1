"""Which numbers and sizes become symbolic: those seen to change from one capture to the next.

One policy belongs to one compiled object. What is a parameter itself, and sizes of tensors, are shared by
all who compile the code; numbers found inside objects are not, for another instance's differing number
is no change. Knows nothing of graphs or symbols.
"""

from __future__ import annotations

from typing import Final

import torch

from graphlift import config, interop
from graphlift.graph_value import LARGEST_FLOAT, LARGEST_INT
from graphlift.sources import ParamSource, Source

#: Attributes of a tensor that hold its marked dimensions.
DYNAMIC, STATIC = "_graphlift_dynamic", "_graphlift_static"


class Seen:
    """The last value seen at each place, and the places where it changed."""

    __slots__ = ("changed", "last")

    def __init__(self) -> None:
        self.last: dict[str, object] = {}
        self.changed: set[str] = set()

    def note(self, place: str, value: object) -> bool:
        """Note a value; True when the place has ever held another one."""
        former = self.last.setdefault(place, value)
        if former != value or type(former) is not type(value):
            self.last[place] = value
            self.changed.add(place)
        return place in self.changed


class DynamicPolicy:
    """Answers for one capture after the other, in the order in which inputs are met.

    Arguments:
        dynamic: the wish given to `compile`: True makes all sizes symbolic at once, False none, None
            those that change.
        shared: what the code's own parameters were seen to be, by anyone.
    """

    __slots__ = ("_dynamic", "_own", "_shared")

    def __init__(self, dynamic: bool | None, shared: Seen) -> None:
        self._dynamic: Final = dynamic
        self._own: Final = Seen()
        self._shared: Final = shared

    def number(self, source: Source, value: float) -> bool:
        """Whether the int or float at `source` is to be symbolic in this capture."""
        if type(value) is bool or self._dynamic is False or not _is_ordinary(value):
            return False
        if type(value) is float and config.specialize_float:
            return False
        seen = self._shared if type(source) is ParamSource else self._own
        changed = seen.note(source.name(), value)
        return changed and (config.automatic_dynamic or self._dynamic is True) and value not in (0, 1)

    def moves(self, source: Source, position: object) -> bool:
        """Whether the iterator at `source`, of a resumed loop, stands elsewhere from capture to capture."""
        if type(source) is not ParamSource or not source.name().startswith("."):
            return False  # one that the program was handed is another iterator each time
        return self._own.note(f"{source.name()}.position", position)

    def contents(self, source: Source, state: object) -> bool:
        """Whether the contents of the object at `source`, a constant, differ from capture to capture."""
        seen = self._shared if type(source) is ParamSource else self._own
        return seen.note(f"contents of {source.name()}", hash(state))

    def sizes(self, source: Source, tensor: torch.Tensor) -> tuple[bool, ...] | None:
        """For each dimension of the tensor at `source`, whether its size is to be symbolic; None for none.

        Sizes 0 and 1 stay fixed, for broadcasting gives them a meaning of their own, and so do parameters'.
        The user's marks (`mark_dynamic`, `mark_static`) go before everything but ``dynamic=False``.
        """
        if self._dynamic is False or isinstance(tensor, torch.nn.Parameter):
            return None
        marked, fixed = _marks(tensor)
        wanted = tuple(
            size > 1 and dim not in fixed and (dim in marked or self._changes(source, dim, size))
            for dim, size in enumerate(tensor.shape)
        )
        return wanted if any(wanted) else None

    def _changes(self, source: Source, dim: int, size: int) -> bool:
        if self._dynamic is True or (self._dynamic is None and not config.assume_static_by_default):
            return True
        return self._shared.note(f"{source.name()}.size({dim})", size) and config.automatic_dynamic


def _is_ordinary(value: float) -> bool:
    """Whether a symbol can stand for the number: torch's operations can take it."""
    return abs(value) <= (LARGEST_FLOAT if type(value) is float else LARGEST_INT)


def _marks(tensor: torch.Tensor) -> tuple[frozenset[int], frozenset[int]]:
    """The dimensions that the user marked as dynamic and as static."""
    own = tensor.__dict__
    if not own:
        return frozenset(), frozenset()
    theirs = interop.dim_marks(tensor)
    dynamic = own.get(DYNAMIC, frozenset()) | theirs.dynamic | theirs.weak
    return dynamic, own.get(STATIC, frozenset()) | theirs.static
