"""Calls with symbolic sizes or numbers among their arguments: made on fake tensors.

Owns what such a call gives, as a template like those of `meta_propagation`; the graph records it the same
way. Results whose sizes are all fixed go back to plain metadata records.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from graphlift.graph_value import WIDE, CannotPropagate, DataDependent, GraphValue, SymValue
from graphlift.meta_propagation.failing import are_ordinary, may_fail
from graphlift.meta_propagation.fakes import execute, fake_of, may_not_be_saved, plain_keys, with_history
from graphlift.meta_propagation.observer import Observer
from graphlift.meta_propagation.policy import TOTAL, refuse
from graphlift.meta_propagation.rehearsal import invoke, replace
from graphlift.meta_propagation.state import TorchState
from graphlift.meta_propagation.template import Const, Items, Reader, Template, View, Write
from graphlift.metadata import MetaRecord, SymbolicMeta, intern
from graphlift.output_graph.record import values_in
from graphlift.output_graph.symbols import Symbols

_SYMBOLIC: Final = (torch.SymInt, torch.SymFloat, torch.SymBool)


class Fake:
    """A new tensor of a dynamic call: its metadata, and the fake that it is."""

    __slots__ = ("fake", "meta")

    def __init__(self, meta: Any, fake: Any) -> None:
        self.meta: Final = meta
        self.fake: Final = fake


class Number:
    """A symbolic number that a call gave."""

    __slots__ = ("sym",)

    def __init__(self, sym: Any) -> None:
        self.sym: Final = sym


def is_dynamic(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether something symbolic is among the arguments."""
    for value in (*values_in(tuple(args)), *values_in(tuple(kwargs.values()))):
        if type(value) is SymValue or (type(value) is GraphValue and type(value.meta) is SymbolicMeta):
            return True
    return False


def present(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of a call with the sizes and numbers of this capture in place of symbolic ones.

    What stands for one tensor is one value again. None where a number is not known.
    """
    stand_ins: dict[GraphValue, GraphValue] = {}

    def put(leaf: Any) -> Any:
        if type(leaf) is SymValue:
            return hint(leaf.sym)
        if type(leaf) is not GraphValue or type(leaf.meta) is MetaRecord:
            return leaf
        if leaf not in stand_ins:
            stand_ins[leaf] = GraphValue(_present_record(leaf.meta))
        return stand_ins[leaf]

    try:
        return [replace(x, put) for x in args], {name: replace(x, put) for name, x in kwargs.items()}
    except _Unknown:
        return None


class _Unknown(Exception):
    """A symbolic number has no value during the capture."""


def hint(number: Any) -> Any:
    """The value of a number during this capture, symbolic or not."""
    if not isinstance(number, _SYMBOLIC):
        return number
    if not number.node.has_hint():
        raise _Unknown
    return number.node.hint


def _present_record(meta: SymbolicMeta) -> MetaRecord:
    shape, stride = tuple(map(hint, meta.shape)), tuple(map(hint, meta.stride))
    rest = (meta.dtype, meta.device, meta.layout, hint(meta.storage_offset), meta.requires_grad, meta.is_leaf)
    return intern((meta.type, meta.key_set, shape, stride, *rest, meta.wrapped_number))


class DynamicCalls:
    """Makes calls on fakes."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols: Final = symbols

    def find(
        self, state: TorchState, target: Any, method: bool, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Template, dict[GraphValue, int]]:
        """As `Propagator.find`."""
        refuse(target)
        if state.foreign is not None:
            raise CannotPropagate(state.foreign)
        tensors: dict[GraphValue, int] = {}
        for value in (*values_in(tuple(args)), *values_in(tuple(kwargs.values()))):
            if type(value) is GraphValue:
                tensors.setdefault(value, len(tensors))
        if not tensors and _on_numbers(target, method):
            return self._numbers(target, method, args, kwargs), tensors
        return self._run(state, target, method, args, kwargs, tensors), tensors

    def fake(self, value: GraphValue) -> Any:
        """The fake that stands for a value."""
        if value.fake is None:
            mode = self._symbols.mode
            value.fake = (
                fake_of(mode, value.meta) if type(value.meta) is MetaRecord else _fake_of(mode, value.meta)
            )
        return value.fake

    def _put(self, leaf: Any) -> Any:
        if type(leaf) is GraphValue:
            return self.fake(leaf)
        return leaf.sym if type(leaf) is SymValue else leaf

    def _numbers(self, target: Any, method: bool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Template:
        """A call on numbers alone; what it raises, it raises in the program too."""
        given = [replace(x, self._put) for x in args]
        named = {k: replace(x, self._put) for k, x in kwargs.items()}
        if target is operator.pow and any(isinstance(x, (float, torch.SymFloat)) for x in given):
            base, exponent = (x if isinstance(x, int | float) else x.node.hint for x in given)
            return Template(Number(self._symbols.computed(base**exponent)), raises=True)
        try:
            result = invoke(target, method, given, named)
        except AssertionError as error:  # of torch's expressions, which do not bear every value of a symbol
            raise CannotPropagate(f"an expression that torch cannot follow: {error}") from error
        return Template(_form_of_number(result), raises=self._may_overflow(target, given))

    def _may_overflow(self, target: Any, numbers: Sequence[Any]) -> bool:
        """Whether a call on numbers can fail by their size (none divides by an open number that can be 0)."""
        if target not in _CONVERSIONS:
            return False
        return not all(self._symbols.is_ordinary(n) for n in numbers if isinstance(n, _SYMBOLIC))

    def _run(
        self,
        state: TorchState,
        target: Any,
        method: bool,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        tensors: Mapping[GraphValue, int],
    ) -> Template:
        observer = Observer(real=False)
        fakes = [self.fake(value) for value in tensors]
        try:
            result = execute(self._symbols.mode, observer, target, method, args, kwargs, self._put)
        except (CannotPropagate, DataDependent):
            raise
        except Exception as error:
            raise CannotPropagate(f"{type(error).__name__}: {error}") from error
        metas = [value.meta for value in tensors]
        output = _DynamicReader(fakes, metas, state.inference).output(result)
        writes = _writes(metas, fakes, observer, state.inference)
        raises = may_fail(target, args, kwargs, integers=True)
        raises = raises or not are_ordinary((args, kwargs), [fake.dtype for fake in fakes])
        raises = raises or (state.grad and may_not_be_saved(metas))
        raises = raises or self._may_refuse(target, args, kwargs, fakes, _tensors(result))
        return Template(output, writes, random=observer.random, raises=raises)

    def _may_refuse(
        self,
        target: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        tensors: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
    ) -> bool:
        """Whether an open number can be one that the call refuses."""
        if target not in TOTAL:
            return any(type(value) is SymValue for value in (*args, *kwargs.values()))
        given = (*values_in(tuple(args)), *values_in(tuple(kwargs.values())))
        numbers = [value.sym for value in given if type(value) is SymValue]
        if not all(map(self._symbols.is_ordinary, numbers)):
            return True
        wide = all(tensor.dtype in WIDE and tensor.dtype is not torch.bool for tensor in tensors)
        wide = wide and all(result.dtype in WIDE for result in results)
        return not wide and any(map(self._symbols.is_given, numbers))


def _tensors(result: Any) -> list[torch.Tensor]:
    found = result if isinstance(result, (tuple, list)) else [result]
    return [value for value in found if isinstance(value, torch.Tensor)]


def _on_numbers(target: Any, method: bool) -> bool:
    """Whether a call without tensors among its arguments computes a number."""
    return method or target in _NUMBER_FUNCTIONS or getattr(target, "__module__", None) in _NUMBER_MODULES


#: From int to float or back: no float is as large as an int can be, and infinity is no int.
_CONVERSIONS: Final = (
    operator.truediv,
    torch.sym_float,
    torch.sym_int,
    math.floor,
    math.ceil,
    math.trunc,
    round,
)
_NUMBER_MODULES: Final = frozenset({"_operator", "math", "builtins"})
_NUMBER_FUNCTIONS: Final = frozenset(
    {torch.sym_int, torch.sym_float, torch.sym_max, torch.sym_min, torch.sym_not, torch.sym_ite}
)


def _form_of_number(result: Any) -> Any:
    if isinstance(result, _SYMBOLIC):
        fixed = _fixed(result)
        return Number(result) if fixed is None else Const(fixed)
    if type(result) in (tuple, list):
        return Items(type(result), tuple(map(_form_of_number, result)))
    return Const(result)


def _fixed(number: Any) -> Any:
    """The Python number that a symbolic one surely is, or None."""
    expression = number.node.expr
    if expression.free_symbols or isinstance(number, torch.SymFloat):
        return None  # as for floats, they are what Python computes
    if isinstance(number, torch.SymBool):
        return bool(expression)
    return int(expression)


def _plain(number: Any) -> Any:
    if isinstance(number, torch.SymInt):
        fixed = _fixed(number)
        return number if fixed is None else fixed
    return number


def _fake_of(mode: Any, meta: SymbolicMeta) -> Any:
    """A fake with symbolic metadata, made anew (its offset is lost, which no operation asks for)."""
    with mode, torch.no_grad():
        fake = torch.empty_strided(meta.shape, meta.stride, dtype=meta.dtype, device=meta.device)
    return with_history(mode, fake, meta.requires_grad, meta.is_leaf)


def meta_of(fake: Any, base: Any, inference: bool) -> Any:
    """The metadata of a fake: a record if everything is fixed.

    Args:
        base: metadata of the value it is a view of, or None.
    """
    if fake.layout is not torch.strided or fake.is_conj() or fake.is_neg():
        raise CannotPropagate("a result of unusual layout")
    keys = plain_keys(fake.device, inference) if base is None else base.key_set
    fields: dict[str, Any] = {
        "type": torch.Tensor,
        "key_set": keys,
        "shape": tuple(map(_plain, fake.shape)),
        "stride": tuple(map(_plain, fake.stride())),
        "dtype": fake.dtype,
        "device": fake.device,
        "layout": fake.layout,
        "storage_offset": _plain(fake.storage_offset()),
        "requires_grad": fake.requires_grad,
        "is_leaf": fake.is_leaf,
        "wrapped_number": False,
    }
    numbers = (*fields["shape"], *fields["stride"], fields["storage_offset"])
    if all(type(number) is int for number in numbers):
        return intern(tuple(fields.values()))
    return SymbolicMeta(fields)


def input_meta(fake: Any, record: MetaRecord) -> Any:
    """The metadata of an input with symbolic sizes: what its fake says, else what the tensor is."""
    fields = {name: getattr(record, name) for name in MetaRecord.__slots__}
    fields["shape"] = tuple(map(_plain, fake.shape))
    fields["stride"] = tuple(map(_plain, fake.stride()))
    fields["storage_offset"] = _plain(fake.storage_offset())
    return SymbolicMeta(fields)


class _DynamicReader(Reader):
    """Reads results that may be symbolic; new tensors come with their fakes."""

    def __init__(self, fakes: Sequence[Any], records: Sequence[Any], inference: bool) -> None:
        def read(tensor: torch.Tensor, base: int) -> Any:
            return meta_of(tensor, records[base] if base >= 0 else None, inference)

        super().__init__(fakes, read)

    def output(self, result: Any) -> Any:
        """The template's form of `result`."""
        if isinstance(result, _SYMBOLIC):
            return _form_of_number(result)
        if type(result) is torch.Size:
            return Items(torch.Size, tuple(map(self.output, result)))
        form = super().output(result)
        if isinstance(form, (MetaRecord, SymbolicMeta)):
            return Fake(form, result)
        if type(form) is View and form.fake is None:
            return View(form.arg, form.record, form.piece, result)
        return form


def _writes(
    records: Sequence[Any], fakes: Sequence[Any], observer: Observer, inference: bool
) -> tuple[Write, ...]:
    found = []
    for i, (record, fake) in enumerate(zip(records, fakes, strict=True)):
        data = fake.untyped_storage()._cdata in observer.written
        if not data and fake.requires_grad == record.requires_grad and fake.dim() == len(record.shape):
            continue
        found.append(Write(i, meta_of(fake, record, inference), data))
    return tuple(found)
