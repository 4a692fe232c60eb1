"""Finds out what a call gives by making it, on the side, with small stand-ins on the CPU.

The truth about metadata is what plain execution does; for small CPU tensors asking it costs a few
microseconds, against a hundred for fake tensors (and a second for their import). The stand-ins have
exactly the metadata of the arguments and hold ones; an `Observer` stops whatever would depend on
their values. Random state is put back.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Final

import torch

from graphlift.graph_value import CannotPropagate, GraphError, Warns
from graphlift.meta_propagation.observer import Observer, TooLarge
from graphlift.meta_propagation.template import Reader, Template, Write
from graphlift.metadata import MetaRecord, record_of

_LARGEST_STORAGE = 1 << 16


def extent(record: MetaRecord) -> int:
    """How many elements of storage a tensor reaches to, from the storage's start."""
    if 0 in record.shape:
        return record.storage_offset
    last = record.storage_offset
    for size, stride in zip(record.shape, record.stride, strict=True):
        last += (size - 1) * stride
    return last + 1


def stand_in(record: MetaRecord, fill: int = 1) -> torch.Tensor:
    """A real tensor with exactly this metadata.

    Raises:
        TooLarge: when it would be big or is not on the CPU.
        CannotPropagate: when such a tensor cannot be made by hand.
    """
    if record.device.type != "cpu" or record.layout is not torch.strided:
        raise TooLarge("not a plain CPU tensor")
    size = extent(record)
    if size > _LARGEST_STORAGE:
        raise TooLarge("a large tensor")
    inference = not record.requires_grad and _is_inference(record)
    with torch.inference_mode(inference), torch.no_grad():
        tensor = _plain(record, size, fill)
    if record.type is not torch.Tensor:
        tensor = _of_class(record, tensor)
    elif record.requires_grad:
        tensor = tensor.requires_grad_() if record.is_leaf else _with_history(tensor)
    if record_of(tensor) is not record:
        raise CannotPropagate(f"a tensor like {record!r} cannot be made on the side")
    return tensor


def _plain(record: MetaRecord, size: int, fill: int) -> torch.Tensor:
    memory = torch.full((size,), fill, dtype=record.dtype)
    empty = torch.empty(0, dtype=record.dtype)
    tensor = empty.set_(memory.untyped_storage(), record.storage_offset, record.shape, record.stride)
    for twist in (torch.conj, torch._neg_view):
        # A bit among the dispatch keys says that the elements are meant conjugated, or negated.
        if record.dtype.is_complex and torch._C._dispatch_keys(tensor).raw_repr() != record.key_set:
            twisted = twist(tensor)
            if torch._C._dispatch_keys(twisted).raw_repr() == record.key_set:
                return twisted
    return tensor


def _of_class(record: MetaRecord, tensor: torch.Tensor) -> torch.Tensor:
    if record.type is torch.nn.Parameter:
        return torch.nn.Parameter(tensor, requires_grad=record.requires_grad)
    raise CannotPropagate(f"a tensor of class {record.type.__name__}")


def _with_history(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor on the same memory that is the result of an operation, and no view."""
    with torch.enable_grad():
        result = torch.zeros((), dtype=tensor.dtype).requires_grad_() * 1
    result.data = tensor
    return result


_inference_keys: list[int] = []


def _is_inference(record: MetaRecord) -> bool:
    if not _inference_keys:
        with torch.inference_mode():
            _inference_keys.append(torch._C._dispatch_keys(torch.empty(0)).raw_repr())
    return record.key_set == _inference_keys[0]


def replace(value: Any, swap: Callable[[Any], Any]) -> Any:
    """A copy of a nest of tuples, lists, dicts and slices with `swap` applied to its leaves."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([replace(x, swap) for x in value])
    if kind is dict:
        return {k: replace(x, swap) for k, x in value.items()}
    if kind is slice:
        return slice(replace(value.start, swap), replace(value.stop, swap), replace(value.step, swap))
    return swap(value)


def invoke(target: Any, method: bool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Make the call that a graph node stands for."""
    if method:
        return getattr(args[0], target)(*args[1:], **kwargs)
    return target(*args, **kwargs)


@contextmanager
def _told() -> Iterator[list[warnings.WarningMessage]]:
    """The warnings that come meanwhile on this thread, which nobody is shown.

    No filter of the program's is asked, and no count of what was shown is touched: `warnings.catch_warnings`
    makes all of it count anew.
    """
    module: Any = warnings
    filters, show, thread = module.filters, module._showwarnmsg, get_ident()
    told: list[warnings.WarningMessage] = []

    def tell(message: warnings.WarningMessage) -> None:
        if get_ident() == thread:
            told.append(message)
        else:
            show(message)

    module.filters, module._showwarnmsg = [("always", None, Warning, None, 0)], tell
    try:
        yield told
    finally:
        module.filters, module._showwarnmsg = filters, show


#: How texts end of warnings that torch's C++ gives, many of them once a process.
_ONCE: Final = "Triggered internally"


def _check_warnings(told: Sequence[warnings.WarningMessage]) -> None:
    """Break where the call warns each time: then it does at its own place. What torch may tell once a process
    is told now, for it will not be again."""
    for message in told:
        if _ONCE in str(message.message):
            warnings.warn_explicit(message.message, message.category, message.filename, message.lineno)
    again = next((str(each.message) for each in told if _ONCE not in str(each.message)), None)
    if again is not None:
        raise Warns(again)


def rehearse(
    target: Any,
    method: bool,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    records: Sequence[MetaRecord],
    swap: Callable[[Sequence[torch.Tensor]], Callable[[Any], Any]],
    fill: int = 1,
) -> Template:
    """Make the call on stand-ins and read what happened.

    Args:
        records: metadata of the distinct tensor arguments.
        swap: given the stand-ins in that order, gives the function that puts them into the arguments.

    Raises:
        TooLarge: when it should not be run for real.
        CannotPropagate, DataDependent: when its result cannot be told, or it fails when it has drawn random
            numbers or written to an argument, which a graph without the call would not do.
        Exception: whatever the call itself raises.
    """
    stand_ins = [stand_in(record, fill) for record in records]
    put = swap(stand_ins)
    given = tuple(replace(x, put) for x in args)
    named = {k: replace(x, put) for k, x in kwargs.items()}
    observer = Observer(real=True)
    told: Sequence[warnings.WarningMessage] = ()
    try:
        with observer, _told() as told:
            result = invoke(target, method, given, named)
        _check_warnings(told)
    except (GraphError, TooLarge):
        raise
    except Exception as error:
        _check_warnings(told)  # what it said before it failed
        changed = (_was_written(tensor, fill, observer) for tensor in stand_ins)
        if observer.has_drawn() or any(changed):
            raise CannotPropagate(f"it fails half done: {error}") from error
        raise
    finally:
        observer.restore()
    reader = Reader(stand_ins, lambda tensor, _base: read(tensor))
    output = reader.output(result)
    return Template(output, _writes(records, stand_ins, observer), random=observer.random, raises=True)


def plain_failure(
    target: Any,
    method: bool,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    records: Sequence[MetaRecord],
    swap: Callable[[Sequence[torch.Tensor]], Callable[[Any], Any]],
) -> Exception:
    """The exception of a call that failed in a rehearsal, as it is when nobody watches.

    Some composite operations take another way under a dispatch mode, and fail in other words.

    Raises:
        CannotPropagate: it does not fail then.
    """
    put = swap([stand_in(record) for record in records])
    generator = torch.get_rng_state()
    try:
        invoke(
            target, method, [replace(x, put) for x in args], {k: replace(x, put) for k, x in kwargs.items()}
        )
    except Exception as error:
        return error
    finally:
        torch.set_rng_state(generator)
    raise CannotPropagate("it fails only when it is watched")


def read(tensor: torch.Tensor) -> MetaRecord:
    """The record of a result.

    Raises:
        CannotPropagate: for classes and layouts that records do not describe.
    """
    if tensor.layout is not torch.strided or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise CannotPropagate(f"a result of class {type(tensor).__name__} and layout {tensor.layout}")
    return record_of(tensor)


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _was_written(tensor: torch.Tensor, fill: int, observer: Observer) -> bool:
    """Whether operators changed a stand-in before one failed, perhaps that one itself."""
    storage = _storage(tensor)
    if storage not in observer.written:
        return False
    return storage in observer.has_written or not bool((tensor.detach() == fill).all())


def _writes(
    records: Sequence[MetaRecord], stand_ins: Sequence[torch.Tensor], observer: Observer
) -> tuple[Write, ...]:
    found = []
    for i, (record, tensor) in enumerate(zip(records, stand_ins, strict=True)):
        data = _storage(tensor) in observer.written
        after = read(tensor)
        if data or after is not record:
            found.append(Write(i, after, data))
    return tuple(found)
