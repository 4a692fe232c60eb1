"""Watches which torch operators a call comes down to.

Owns the dispatch mode that looks at each operator before it runs and stops the call when the operator's
result cannot be told from metadata. Used around rehearsals and around fake execution alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from graphlift.graph_value import CannotPropagate, DataDependent

_DATA_TAGS: Final = frozenset({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape})

#: Operators whose result depends on values although no tag says so.
_UNTAGGED_DATA: Final = frozenset(
    {
        "aten::_pack_padded_sequence",
        "aten::_pad_packed_sequence",
        "aten::_unique",
        "aten::_unique2",
        "aten::unique_dim",
        "aten::segment_reduce",
        "aten::_nested_tensor_from_mask",
        "aten::to_padded_tensor",
        "aten::_to_dense",
        "aten::_ctc_loss",
        "aten::bincount",
    }
)

#: Operators that write to arguments although their schemas do not say so: which, and the flag among the
#: arguments without which they do not.
_UNTOLD_WRITES: Final[dict[str, tuple[tuple[int, ...], int | None]]] = {
    "aten::native_batch_norm": ((3, 4), 5),
    "aten::cudnn_batch_norm": ((3, 4), 5),
    "aten::miopen_batch_norm": ((3, 4), 5),
    "aten::batch_norm_update_stats": ((1, 2), None),
    "aten::batch_norm_gather_stats": ((3, 4), None),
    "aten::batch_norm_gather_stats_with_counts": ((3, 4), None),
}

#: Elements beyond which an operator is not run for real on the side.
_LARGE: Final = 1 << 14
_LARGE_PRODUCT: Final = 1 << 24


#: Kernels that show that metadata alone decide an operator's result.
_META_KEYS: Final = ("Meta", "CompositeExplicitAutograd", "CompositeImplicitAutograd")


class TooLarge(Exception):
    """Running this for real would take long or much memory."""


class _Facts:
    """What matters of one operator, read from its schema once."""

    __slots__ = ("data", "flag", "foreign", "has_meta", "random", "writes")

    def __init__(self, operator: Any) -> None:
        schema = operator._schema
        tags = set(operator.tags)
        self.data = bool(tags & _DATA_TAGS) or schema.name in _UNTAGGED_DATA
        self.random = torch.Tag.nondeterministic_seeded in tags
        self.foreign = operator.namespace not in ("aten", "prims", "prim")
        untold, self.flag = _UNTOLD_WRITES.get(schema.name, ((), None))
        told = (
            i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write
        )
        self.writes = (*told, *untold)
        self.has_meta = _has_meta(operator.name())


def _has_meta(name: str) -> bool:
    try:
        return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in _META_KEYS)
    except RuntimeError:
        # Questions such as ``prim::device`` have no entry in the dispatcher.
        return True


_facts: dict[Any, _Facts] = {}


def _facts_of(operator: Any) -> _Facts:
    facts = _facts.get(operator)
    if facts is None:
        facts = _facts[operator] = _Facts(operator)
    return facts


class Observer(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode for one call.

    Attributes:
        generator: the default generator's state before the first draw, or None when none was made.
        written: storages (addresses) that operators wrote to, or were about to write to.
        has_written: those of operators that came to their end.

    Args:
        real: whether the operators run on real tensors, which forbids large ones and operators that
            cannot run on metadata alone.
    """

    def __init__(self, real: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.generator: torch.Tensor | None = None
        self.written: set[int] = set()
        self.has_written: set[int] = set()
        self._real = real

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Else torch wraps the method below so that the first look imports half a second of modules.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Look at the operator, then let it run."""
        keywords = kwargs or {}
        facts = _facts_of(func)
        if facts.data and not _by_numbers(func, args):
            raise DataDependent(func.name())
        if facts.random and self.generator is None:
            self.generator = torch.get_rng_state()
        if facts.writes:
            self._note_writes(func, facts, args, keywords)
        if self._real:
            if facts.foreign or not facts.has_meta:
                raise TooLarge(func.name())
            _check_size((*args, *keywords.values()))
        result = func(*args, **keywords)
        if facts.writes:
            self.has_written = set(self.written)
        return result

    def has_drawn(self) -> bool:
        """Whether the default generator has moved."""
        return self.generator is not None and not torch.equal(self.generator, torch.get_rng_state())

    @property
    def random(self) -> bool:
        """Whether a generator was drawn from."""
        return self.generator is not None

    def restore(self) -> None:
        """Put the default generator back where it was."""
        if self.generator is not None:
            torch.set_rng_state(self.generator)

    def _note_writes(
        self, func: Any, facts: _Facts, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        if facts.flag is not None and not args[facts.flag]:
            return
        for i in facts.writes:
            value = args[i] if i < len(args) else kwargs.get(func._schema.arguments[i].name)
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(tensor, torch.Tensor):
                    self.written.add(_address(tensor))


#: Indices of these types select by value.
_MASKS: Final = (torch.bool, torch.uint8)


def _by_numbers(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether an indexing operator has no mask among its indices, so that shapes alone decide."""
    if func._schema.name not in ("aten::index", "aten::_unsafe_index"):
        return False
    return all(index is None or index.dtype not in _MASKS for index in args[1])


def _address(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except NotImplementedError as error:
        raise CannotPropagate("a write to a tensor without a plain storage") from error


def _check_size(values: tuple[Any, ...]) -> None:
    product = 1
    for value in values:
        if isinstance(value, torch.Tensor):
            product *= max(_checked(value), 1)
        elif isinstance(value, (list, tuple)):
            size = 1
            for item in value:
                if isinstance(item, torch.Tensor):
                    _checked(item)
                elif isinstance(item, int):
                    size *= max(abs(item), 1)
            product *= size
        elif type(value) is int and abs(value) > _LARGE:
            raise TooLarge("a large number")
    if product > _LARGE_PRODUCT:
        raise TooLarge("large operands")


def _checked(tensor: torch.Tensor) -> int:
    count = tensor.numel()
    if count > _LARGE:
        raise TooLarge("a large tensor")
    return count
