"""Which calls can fail by the values of tensors, when their metadata are in order.

Tables by name, as in `policy`. A call that no table knows counts as one that can fail.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import torch

from graphlift.graph_value import LARGEST_FLOAT, LARGEST_INT, GraphValue
from graphlift.meta_propagation.policy import DIVISIONS, TOTAL, targets_named

#: They draw random numbers, and their parameters are no tensors.
_RANDOM: Final = """
dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout rrelu gumbel_softmax
rand rand_like randn randn_like randint randint_like randperm
normal_ uniform_ exponential_ geometric_ cauchy_ log_normal_ random_ dropout_ alpha_dropout_ rrelu_
"""

#: They write to their first argument, and are no in-place form of a total operation.
_WRITING: Final = "copy_ fill_ zero_ fill_diagonal_ squeeze_ unsqueeze_ transpose_ detach_"

#: They compute, draw and write without a look at values.
_OTHERS: Final = """
multi_head_attention_forward binary_cross_entropy_with_logits kl_div poisson_nll_loss hinge_embedding_loss
margin_ranking_loss triplet_margin_loss cosine_embedding_loss soft_margin_loss relu_ elu_ celu_ selu_
leaky_relu_ threshold_ hardtanh_ mse_loss softplus
"""

_IN_PLACE: Final = (
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.itruediv,
    operator.ipow,
    operator.imatmul,
    operator.iand,
    operator.ior,
    operator.ixor,
    operator.ilshift,
    operator.irshift,
)


def _in_place_forms() -> list[str]:
    names = {name for name in TOTAL if isinstance(name, str)}
    return [f"{name}_" for name in names if hasattr(torch.Tensor, f"{name}_")]


#: Their result's metadata follow from their arguments', but they look at values.
_CHECKS_VALUES: Final = frozenset(targets_named("histc"))

_SURE: Final = frozenset(
    {
        *(TOTAL - _CHECKS_VALUES),
        *_IN_PLACE,
        *targets_named(f"{_RANDOM} {_WRITING} {_OTHERS}"),
        *targets_named(_in_place_forms()),
    }
)
_INTEGER_DIVISIONS: Final = frozenset(
    {
        *DIVISIONS,
        *targets_named("floor_divide_ remainder_ fmod_ div_ divide_"),
        operator.ifloordiv,
        operator.imod,
    }
)
_READS: Final = frozenset({operator.getitem, "__getitem__", torch.Tensor.__getitem__})
_STORES: Final = frozenset({operator.setitem, "__setitem__", torch.Tensor.__setitem__})
_MASKS: Final = (torch.bool, torch.uint8)


def may_fail(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any], integers: bool) -> bool:
    """Whether a call may fail by the values of its arguments.

    Args:
        args, kwargs: its arguments, in the graph's form.
        integers: whether a tensor among them holds integers.
    """
    if target in _INTEGER_DIVISIONS:
        return integers
    if target in _READS or target in _STORES:
        return len(args) < 2 or _index_may_fail(args[1], args[2:])
    if target in _SURE:
        # A parameter that is usually a number and here a tensor is checked by its values.
        return target in _CHECKED and any(type(x) is GraphValue for x in (*args[1:], *kwargs.values()))
    return True


def are_ordinary(arguments: Any, dtypes: Iterable[torch.dtype]) -> bool:
    """Whether every operation has a kernel for these dtypes, and tensors of them can hold the ints and floats
    among nested arguments."""
    found = list(dtypes)
    if not _EVERYWHERE.issuperset(found):
        return False
    most = min(map(_most, found), default=LARGEST_FLOAT)
    whole = min(most, LARGEST_INT)
    return not any(
        (whole if type(number) is int else most) < abs(number) < math.inf for number in _numbers(arguments)
    )


#: Dtypes for which operations are not missing on some device.
_EVERYWHERE: Final = frozenset(
    {
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
    }
)


@functools.cache
def _most(dtype: torch.dtype) -> float:
    """The largest number that tensors of a dtype hold, no larger than any operation takes."""
    if dtype is torch.bool:
        return LARGEST_FLOAT
    if dtype.is_floating_point or dtype.is_complex:
        return min(torch.finfo(dtype).max, LARGEST_FLOAT)
    return torch.iinfo(dtype).max


def _numbers(value: Any) -> Iterator[float]:
    kind = type(value)
    if kind is int or kind is float:
        yield value
    elif kind is tuple or kind is list:
        for item in value:
            yield from _numbers(item)
    elif kind is dict:
        yield from _numbers(tuple(value.values()))


#: Of those that cannot fail, the ones that can when a parameter behind the first is a tensor.
_CHECKED: Final = frozenset(targets_named("narrow tensor_split"))


def _index_may_fail(index: Any, stored: Sequence[Any]) -> bool:
    """Whether an index goes by numbers in tensors, or by a mask whose count must fit what is stored."""
    parts = index if type(index) is tuple else (index,)
    for part in parts:
        if type(part) is GraphValue:
            if part.meta.dtype not in _MASKS or any(not _is_single(x) for x in stored):
                return True
        elif type(part) is list or type(part) is tuple:
            return True
    return False


def _is_single(value: Any) -> bool:
    """Whether a stored value is one number."""
    return type(value) in (int, float, bool, complex) or (type(value) is GraphValue and value.meta.ndim == 0)
