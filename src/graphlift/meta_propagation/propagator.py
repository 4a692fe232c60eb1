"""What a call gives: memo, then rule, then rehearsal, then fake tensors.

Owns that order and the adding of autograd's and the dispatcher's part to what shape rules say. Knows
nothing of the graph that the call becomes part of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

import torch

from graphlift.graph_value import (
    CannotPropagate,
    DataDependent,
    GraphValue,
    MetaError,
)
from graphlift.meta_propagation import memo, policy
from graphlift.meta_propagation.failing import are_ordinary, may_fail
from graphlift.meta_propagation.fakes import may_not_be_saved, plain_keys, run_fake
from graphlift.meta_propagation.observer import TooLarge
from graphlift.meta_propagation.rehearsal import plain_failure, rehearse, replace
from graphlift.meta_propagation.state import TorchState
from graphlift.meta_propagation.template import CONSTANT_CLASSES, Const, Items, Same, Template, View
from graphlift.metadata import MetaRecord, intern
from graphlift.shape_rules import RULES, Decline, Fresh, SameAsFirst, Traits, ViewOfFirst

_LinAlgError: Final[type[Exception]] = getattr(torch.linalg, "LinAlgError", ArithmeticError)
_METHOD_KINDS: Final = (str, type(torch.Tensor.add), type(torch.Tensor.__add__))
_LASTING_KINDS: Final = (*_METHOD_KINDS, BuiltinFunctionType)
#: Operators of the dispatcher: their fake function may be the program's, and be another after a capture.
_OPERATORS: Final = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)

Args = Sequence[Any]
Kwargs = Mapping[str, Any]


class Propagator:
    """Tells what calls give under the global state of the moment."""

    def __init__(self) -> None:
        #: What operators of the program's own gave in this capture, by state and call.
        self._own: dict[Any, dict[Any, MetaRecord | Template]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the global state anew; to be called when the capture changed it."""
        self.state = TorchState()
        self.table = memo.table_for(self.state.key)
        self._own_table = self._own.setdefault(self.state.key, {})

    def find(
        self, target: Any, method: bool, args: Args, kwargs: Kwargs
    ) -> tuple[MetaRecord | Template, dict[GraphValue, int]]:
        """What the call gives, and its distinct tensor arguments in order.

        A bare record stands for the commonest template: one new tensor and nothing else.

        Raises:
            MetaError, CannotPropagate, DataDependent: see there.
        """
        tensors: dict[GraphValue, int] = {}
        key = memo.key_of(target, args, kwargs, tensors)
        table = self._own_table if type(target) in _OPERATORS else self.table
        found = table.get(key)
        if found is None:
            found = self._miss(target, method, args, kwargs, tensors)
            if table is self._own_table or _lasting(target):
                table[key] = found
        return found, tensors

    def _miss(
        self, target: Any, method: bool, args: Args, kwargs: Kwargs, tensors: dict[GraphValue, int]
    ) -> MetaRecord | Template:
        if self.state.foreign is not None:
            raise CannotPropagate(self.state.foreign)
        policy.refuse(target)
        records = [value.meta for value in tensors]
        template = by_rule(self.state, target, args, kwargs, records)
        if template is None:
            template = self._by_running(target, method, args, kwargs, tensors, records)
        if template.pure and type(template.output) is MetaRecord:
            return template.output
        return template

    # --- by running --------------------------------------------------------------------------

    def _by_running(
        self,
        target: Any,
        method: bool,
        args: Args,
        kwargs: Kwargs,
        tensors: dict[GraphValue, int],
        records: list[MetaRecord],
    ) -> Template:
        def swap(stand_ins: Sequence[torch.Tensor]) -> Callable[[Any], Any]:
            return lambda leaf: stand_ins[tensors[leaf]] if type(leaf) is GraphValue else leaf

        try:
            template = _rehearse(target, method, args, kwargs, records, swap)
        except TooLarge:
            template = _fake(target, method, args, kwargs, records, swap, self.state.inference)
        raises = may_fail(target, args, kwargs, _integers(records)) or not _fits(args, kwargs, records)
        raises = raises or (self.state.grad and may_not_be_saved(records))
        return Template(template.output, template.writes, template.random, raises)


def by_rule(
    state: TorchState, target: Any, args: Args, kwargs: Kwargs, records: Sequence[MetaRecord]
) -> Template | None:
    """What the target's shape rule says, or None where there is none or it declines.

    Args:
        records: metadata of the distinct tensors among the arguments.
    """
    known = RULES.get(target)
    if known is None or state.autocast:
        return None
    rule, traits = known
    if traits.factory and state.default_device is not None:
        return None
    if not all(_ordinary(record) for record in records):
        return None
    if not _fits(args, kwargs, records) or (state.grad and may_not_be_saved(records)):
        return None
    if type(target) in _METHOD_KINDS and (not args or type(args[0]) is not GraphValue):
        return None
    given = [replace(x, _meta) for x in args]
    named = {k: replace(x, _meta) for k, x in kwargs.items()}
    try:
        answer = rule(*given, **named)
    except (Decline, TypeError, AttributeError, IndexError, ValueError, RuntimeError):
        # Arguments of kinds and in places that the rule knows nothing of, or that torch itself refuses.
        return None
    finish = _Finish(state, traits, records)
    raises = traits.raises or (target in policy.DIVISIONS and finish.integers)
    return Template(finish(answer), random=traits.random, raises=raises)


def _fits(args: Args, kwargs: Kwargs, records: Sequence[MetaRecord]) -> bool:
    """Whether tensors of these hold the numbers among the arguments, so that rules may speak of the call."""
    return are_ordinary((args, kwargs), [record.dtype for record in records])


def _rehearse(
    target: Any, method: bool, args: Args, kwargs: Kwargs, records: list[MetaRecord], swap: Any
) -> Template:
    """Rehearse; what fails whatever the tensors hold is a `MetaError`."""
    try:
        return rehearse(target, method, args, kwargs, records, swap)
    except (TooLarge, CannotPropagate, DataDependent):
        raise
    except _LinAlgError as error:
        raise TooLarge("fails by value") from error
    except Exception as error:
        first = error
    try:
        return rehearse(target, method, args, kwargs, records, swap, fill=0)
    except (TooLarge, CannotPropagate, DataDependent):
        raise
    except Exception as second:
        if type(second) is type(first) and str(second) == str(first):
            raise MetaError(plain_failure(target, method, args, kwargs, records, swap)) from None
        raise CannotPropagate(f"it fails in a way that depends on values: {second}") from second


def _fake(
    target: Any,
    method: bool,
    args: Args,
    kwargs: Kwargs,
    records: list[MetaRecord],
    swap: Any,
    inference: bool,
) -> Template:
    try:
        return run_fake(target, method, args, kwargs, records, swap, inference)
    except (CannotPropagate, DataDependent):
        raise
    except Exception as error:
        raise CannotPropagate(f"{type(error).__name__}: {error}") from error


def _lasting(target: Any) -> bool:
    """Whether the memo may hold the target: it is torch's or Python's own, so no object of the user's."""
    if type(target) is FunctionType:
        return target.__module__.partition(".")[0] == "torch"
    return type(target) in _LASTING_KINDS


def _meta(leaf: Any) -> Any:
    return leaf.meta if type(leaf) is GraphValue else leaf


def _integers(records: Sequence[MetaRecord]) -> bool:
    return any(not (r.dtype.is_floating_point or r.dtype.is_complex) for r in records)


def _ordinary(record: MetaRecord) -> bool:
    """Whether rules may speak of this tensor: a plain class and the dispatch keys of a plain tensor."""
    if record.layout is not torch.strided:
        return False
    keys = record.key_set
    return keys == plain_keys(record.device, False) or keys == plain_keys(record.device, True)


class _Finish:
    """Turns a rule's answer into a template's output."""

    def __init__(self, state: TorchState, traits: Traits, records: Sequence[MetaRecord]) -> None:
        counted = records[:1] if traits.first_only else records
        self._grad_mode = state.grad
        self._differentiable = traits.differentiable
        self._grad = state.grad and traits.differentiable and any(r.requires_grad for r in counted)
        self._inference = state.inference
        self._records = records
        self.integers = _integers(records)

    def __call__(self, answer: Any) -> Any:
        kind = type(answer)
        if kind is Fresh:
            return self._fresh(answer)
        if kind is ViewOfFirst:
            return View(0, self._view(answer))
        if kind is SameAsFirst:
            return Same(0)
        if kind in CONSTANT_CLASSES:
            return Const(answer)
        return Items(kind, tuple(self._piece(x) for x in answer))

    def _piece(self, answer: Any) -> Any:
        if type(answer) is ViewOfFirst:
            return View(0, self._view(answer), piece=True)
        return self(answer)

    def _fresh(self, answer: Fresh) -> MetaRecord:
        keys = plain_keys(answer.device, self._inference)
        grad = self._grad and (answer.dtype.is_floating_point or answer.dtype.is_complex)
        return self._record(keys, answer.shape, answer.stride, answer.dtype, answer.device, 0, grad, not grad)

    def _view(self, answer: ViewOfFirst) -> MetaRecord:
        base = self._records[0]
        # Without grad mode a view of what requires grad is a leaf that requires grad.
        grad = base.requires_grad and self._differentiable
        leaf = not (grad and self._grad_mode)
        return self._record(
            base.key_set, answer.shape, answer.stride, base.dtype, base.device, answer.offset, grad, leaf
        )

    def _record(
        self,
        keys: int,
        shape: tuple[int, ...],
        stride: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
        offset: int,
        grad: bool,
        leaf: bool,
    ) -> MetaRecord:
        fields = (torch.Tensor, keys, shape, stride, dtype, device, torch.strided, offset, grad, leaf, False)
        return intern(fields)
