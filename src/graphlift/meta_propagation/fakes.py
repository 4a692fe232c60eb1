"""Finds out what a call gives with torch's fake tensors: the last resort of the static path.

Imports `FakeTensorMode` when first needed (that alone takes a second). One mode serves all captures,
and one fake tensor each metadata record, for a static call leaves nothing behind in either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch

from graphlift.graph_value import CannotPropagate, DataDependent
from graphlift.meta_propagation.observer import Observer
from graphlift.meta_propagation.rehearsal import extent, invoke, replace
from graphlift.meta_propagation.template import Reader, Template, Write
from graphlift.metadata import PLAIN_CLASSES, MetaRecord, intern

_shared: list[Any] = []


def shared_mode() -> Any:
    """The fake mode of all static captures."""
    if not _shared:
        from torch._subclasses.fake_tensor import FakeTensorMode

        _shared.append(FakeTensorMode())
    return _shared[0]


_key_sets: Final[dict[tuple[torch.device, bool], int]] = {}


def plain_keys(device: torch.device, inference: bool) -> int:
    """Dispatch keys of an ordinary new tensor on `device`."""
    found = _key_sets.get((device, inference))
    if found is None:
        with torch.inference_mode(inference):
            tensor = torch.empty(0, device=device)
        found = _key_sets[device, inference] = torch._C._dispatch_keys(tensor).raw_repr()
    return found


def may_not_be_saved(records: Sequence[Any]) -> bool:
    """Whether an operation that autograd follows may have to save an inference tensor, which it refuses.

    Args:
        records: metadata of its tensors, symbolic or not.
    """
    if not any(record.requires_grad for record in records):
        return False
    return any(record.key_set == plain_keys(record.device, True) for record in records)


def with_history(mode: Any, fake: Any, requires_grad: bool, is_leaf: bool) -> Any:
    """A fresh fake without a history as one that requires grad, and is a leaf or has a history of its own."""
    if not requires_grad:
        return fake
    fake.requires_grad_()
    if is_leaf:
        return fake
    with torch.enable_grad(), mode:
        return fake.view_as(fake)


def fake_of(mode: Any, record: MetaRecord) -> Any:
    """A fake tensor with this metadata (a leaf, or with a history of its own, as the record says).

    Raises:
        CannotPropagate: when the record's dispatch keys are not those of an ordinary tensor.
    """
    from torch._subclasses.fake_tensor import FakeTensor

    if record.layout is not torch.strided or record.type not in PLAIN_CLASSES:
        raise CannotPropagate("a tensor of unusual class or layout")
    inference = record.key_set == plain_keys(record.device, True)
    if not inference and record.key_set != plain_keys(record.device, False):
        raise CannotPropagate("a tensor with unusual dispatch keys")
    with torch.inference_mode(inference), torch.no_grad():
        memory = torch.empty(extent(record), dtype=record.dtype, device="meta")
        bare = torch.empty(0, dtype=record.dtype, device="meta")
        bare.set_(memory.untyped_storage(), record.storage_offset, record.shape, record.stride)
        fake: Any = FakeTensor(mode, bare, record.device)
    fake = with_history(mode, fake, record.requires_grad, record.is_leaf)
    if record.type is not torch.Tensor and record.requires_grad == record.is_leaf:
        fake._is_param = record.type is torch.nn.Parameter
    return fake


def record_of_fake(fake: Any, base: MetaRecord | None, inference: bool) -> MetaRecord:
    """The record of the tensor that a fake result stands for.

    Args:
        base: the record of the argument it is a view of, if any.
        inference: whether inference mode is on.
    """
    if fake.is_conj() or fake.is_neg() or fake.layout is not torch.strided:
        raise CannotPropagate("a result of unusual layout")
    keys = plain_keys(fake.device, inference) if base is None else base.key_set
    return intern(
        (
            torch.Tensor,
            keys,
            tuple(fake.shape),
            tuple(fake.stride()),
            fake.dtype,
            fake.device,
            fake.layout,
            fake.storage_offset(),
            fake.requires_grad,
            fake.is_leaf,
            False,
        )
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Keep torch from printing pages about a call that fails, for failing is one of our answers."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    disabled = logger.disabled
    logger.disabled = True  # a level would have to be forgotten by every logger of the process
    try:
        yield
    finally:
        logger.disabled = disabled


def run_fake(
    target: Any,
    method: bool,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    records: Sequence[MetaRecord],
    swap: Callable[[Sequence[torch.Tensor]], Callable[[Any], Any]],
    inference: bool,
) -> Template:
    """Make the call on fake tensors and read what happened; arguments as for `rehearse`.

    Raises:
        CannotPropagate, DataDependent: when the result cannot be told.
        Exception: whatever the fake call raises for other reasons.
    """
    mode = shared_mode()
    fakes = [fake_of(mode, record) for record in records]
    observer = Observer(real=False)
    result = execute(mode, observer, target, method, args, kwargs, swap(fakes))

    def read(tensor: torch.Tensor, base: int) -> MetaRecord:
        return record_of_fake(tensor, records[base] if base >= 0 else None, inference)

    output = Reader(fakes, read).output(result)
    writes = []
    for i, (record, fake) in enumerate(zip(records, fakes, strict=True)):
        data = fake.untyped_storage()._cdata in observer.written
        after = record_of_fake(fake, record, inference)
        if data or after.fields()[1:] != record.fields()[1:]:
            writes.append(Write(i, after, data))
    return Template(output, tuple(writes), random=observer.random, raises=True)


def execute(
    mode: Any,
    observer: Observer,
    target: Any,
    method: bool,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    put: Callable[[Any], Any],
) -> Any:
    """Make the call under a fake mode, with failures of fake execution in our words."""
    from torch._subclasses import fake_tensor as ft

    given = tuple(replace(x, put) for x in args)
    named = {k: replace(x, put) for k, x in kwargs.items()}
    try:
        with quiet(), mode, observer:
            return invoke(target, method, given, named)
    except (ft.DataDependentOutputException, ft.DynamicOutputShapeException) as error:
        raise DataDependent(str(error)) from error
    except (ft.UnsupportedFakeTensorException, ft.UnsupportedOperatorException) as error:
        raise CannotPropagate(f"{type(error).__name__}: {error}") from error
    except NotImplementedError as error:
        raise CannotPropagate(str(error)) from error
    finally:
        observer.restore()
