"""Rules of element-wise operations: arithmetic, comparisons, activations, conversions of sign and size."""

# ruff: noqa: A002 (parameters are named as torch names them)
from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F

from graphlift.metadata import MetaRecord
from graphlift.shape_rules.result import Decline, Fresh, Traits, rule
from graphlift.shape_rules.strides import (
    broadcast,
    common_device,
    contiguous,
    elementwise,
    floating,
    promote,
    require_row_major,
)

_VALUE_FREE = Traits(value_free=True)


def named(names: str, *owners: Any) -> Iterable[Any]:
    """The functions and methods of these names: ``torch.NAME``, the method, and those of `owners`."""
    for name in names.split():
        if hasattr(torch.Tensor, name):
            yield name
        for owner in (torch, *owners):
            if hasattr(owner, name) and not name.startswith("__"):
                yield getattr(owner, name)


def _numbers_only(*operands: Any) -> None:
    for operand in operands:
        kind = type(operand)
        if kind is int:
            if not -(2**63) <= operand < 2**63:
                raise Decline
        elif kind is not MetaRecord and kind is not float and kind is not bool:
            raise Decline
    if not any(type(x) is MetaRecord for x in operands):
        raise Decline


def fits(value: float, dtype: torch.dtype) -> bool:
    """Whether a floating dtype can hold a number (infinities and nan it can)."""
    return not torch.finfo(dtype).max < abs(value) < math.inf


def _scale(dtype: torch.dtype, alpha: Any) -> None:
    if type(alpha) is float and not dtype.is_floating_point:
        raise Decline
    if type(alpha) not in (int, float):
        raise Decline


@rule(
    operator.add,
    operator.sub,
    *named("add __add__ __radd__"),
    traits=_VALUE_FREE,
)
def add(a: Any, b: Any, *, alpha: Any = 1) -> Fresh:
    """Sums."""
    _numbers_only(a, b)
    dtype = promote((a, b))
    _scale(dtype, alpha)
    return elementwise((a, b), dtype)


@rule(operator.sub, *named("sub subtract __sub__"), traits=_VALUE_FREE)
def sub(a: Any, b: Any, *, alpha: Any = 1) -> Fresh:
    """Differences, which booleans do not have."""
    _numbers_only(a, b)
    if any(x.dtype is torch.bool if type(x) is MetaRecord else type(x) is bool for x in (a, b)):
        raise Decline
    return add(a, b, alpha=alpha)


@rule(*named("rsub __rsub__"), traits=_VALUE_FREE)
def rsub(a: MetaRecord, b: Any, *, alpha: Any = 1) -> Fresh:
    """Differences the other way round."""
    if type(a) is not MetaRecord:
        raise Decline
    return sub(b, a, alpha=alpha)


@rule(operator.mul, *named("mul multiply __mul__ __rmul__"), traits=_VALUE_FREE)
def mul(a: Any, b: Any) -> Fresh:
    """Products."""
    _numbers_only(a, b)
    return elementwise((a, b), promote((a, b)))


@rule(operator.truediv, *named("true_divide __truediv__"), traits=_VALUE_FREE)
def true_divide(a: Any, b: Any) -> Fresh:
    """Quotients, which are floats."""
    _numbers_only(a, b)
    return elementwise((a, b), floating(promote((a, b))))


@rule(*named("div divide"))
def div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Fresh:
    """Quotients, perhaps rounded."""
    if rounding_mode is None:
        return true_divide(a, b)
    if rounding_mode not in ("floor", "trunc"):
        raise Decline
    return floor_divide(a, b)


@rule(*named("floor_divide remainder fmod __floordiv__ __mod__"))
def floor_divide(a: MetaRecord, b: Any) -> Fresh:
    """Rounded quotients and remainders."""
    if type(a) is not MetaRecord:
        raise Decline
    return floor_divide_operator(a, b)


@rule(operator.floordiv, operator.mod)
def floor_divide_operator(a: Any, b: Any) -> Fresh:
    """As operators they take the number on either side."""
    _numbers_only(a, b)
    dtype = promote((a, b))
    if dtype is torch.bool or dtype.is_complex:
        raise Decline
    if type(b) in (int, bool) and b == 0:
        raise Decline
    return elementwise((a, b), dtype)


@rule(operator.pow, *named("pow __pow__"))
def power(a: MetaRecord, b: Any) -> Fresh:
    """Powers of floats."""
    _numbers_only(a, b)
    if type(a) is not MetaRecord:
        raise Decline
    dtype = promote((a, b))
    if not dtype.is_floating_point:
        raise Decline
    if type(a) is MetaRecord and type(b) is MetaRecord and not (a.shape and b.shape):
        raise Decline
    return elementwise((a, b), dtype)


@rule(
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    traits=_VALUE_FREE,
)
def compare_operator(a: Any, b: Any) -> Fresh:
    """Comparisons; as operators they take the number on either side."""
    _numbers_only(a, b)
    if promote((a, b)).is_complex:
        raise Decline
    _in_program_order(a, b)
    return elementwise((a, b), torch.bool)


@rule(
    *named("eq ne not_equal lt less le less_equal gt greater ge greater_equal"),
    *named("__eq__ __ne__ __lt__ __le__ __gt__ __ge__"),
    traits=_VALUE_FREE,
)
def compare(a: MetaRecord, b: Any) -> Fresh:
    """Comparisons."""
    if type(a) is not MetaRecord:
        raise Decline
    return compare_operator(a, b)


def _in_program_order(a: Any, b: Any) -> None:
    """Decline where Python may ask the second operand first, for then the layout follows that one."""
    if type(a) is MetaRecord and type(b) is MetaRecord and b.type is not a.type:
        require_row_major(a, b)


@rule(
    operator.and_,
    operator.or_,
    operator.xor,
    *named("bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__"),
)
def bitwise(a: Any, b: Any) -> Fresh:
    """Bitwise connectives of integers and booleans."""
    _numbers_only(a, b)
    dtype = promote((a, b))
    if dtype.is_floating_point or dtype.is_complex:
        raise Decline
    return elementwise((a, b), dtype)


@rule(*named("logical_and logical_or logical_xor"))
def logical(a: MetaRecord, b: MetaRecord) -> Fresh:
    """Logical connectives of tensors."""
    if type(a) is not MetaRecord or type(b) is not MetaRecord:
        raise Decline
    return elementwise((a, b), torch.bool)


@rule(*named("logical_not isnan isfinite isinf"))
def predicate(a: MetaRecord) -> Fresh:
    """Predicates on each element."""
    if a.dtype.is_complex or not a.dtype.is_floating_point:
        raise Decline
    return elementwise((a,), torch.bool)


@rule(*named("maximum minimum"))
def maximum(a: MetaRecord, b: MetaRecord) -> Fresh:
    """The larger or smaller of two elements."""
    if type(a) is not MetaRecord or type(b) is not MetaRecord or promote((a, b)).is_complex:
        raise Decline
    return elementwise((a, b), promote((a, b)))


@rule(
    *named(
        "exp log log2 log10 log1p expm1 sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh"
        " atanh erf erfc reciprocal sigmoid exp2",
        F,
    )
)
def transcendental(a: MetaRecord) -> Fresh:
    """Functions of one real variable; integers become floats."""
    if a.dtype.is_complex:
        raise Decline
    return elementwise((a,), floating(a.dtype))


@rule(operator.neg, *named("neg negative __neg__ square"))
def negate(a: MetaRecord) -> Fresh:
    """Functions that keep the dtype and refuse booleans."""
    if a.dtype is torch.bool or a.dtype.is_complex:
        raise Decline
    return elementwise((a,), a.dtype)


@rule(operator.abs, *named("abs absolute __abs__ floor ceil round trunc sign", F))
def rounding(a: MetaRecord) -> Fresh:
    """Functions that keep the dtype; for floats."""
    if not a.dtype.is_floating_point:
        raise Decline
    return elementwise((a,), a.dtype)


@rule(operator.invert, *named("bitwise_not __invert__"))
def invert(a: MetaRecord) -> Fresh:
    """Bitwise complement."""
    if a.dtype.is_floating_point or a.dtype.is_complex:
        raise Decline
    return elementwise((a,), a.dtype)


@rule(
    *named("relu", F),
    F.silu,
    F.mish,
    F.relu6,
    F.hardswish,
    F.hardsigmoid,
    F.hardtanh,
    F.softplus,
)
def activation(a: MetaRecord, *, inplace: bool = False) -> Fresh:
    """Activations without parameters."""
    if not a.dtype.is_floating_point or inplace:
        raise Decline
    return elementwise((a,), a.dtype)


@rule(F.gelu)
def gelu(a: MetaRecord, *, approximate: str = "none") -> Fresh:
    """The Gaussian error linear unit."""
    if not a.dtype.is_floating_point or approximate not in ("none", "tanh"):
        raise Decline
    return elementwise((a,), a.dtype)


@rule(F.leaky_relu, F.elu, F.celu)
def leaky(a: MetaRecord, slope: Any = 0.01, inplace: bool = False) -> Fresh:
    """Activations with one number."""
    if not a.dtype.is_floating_point or type(slope) not in (int, float) or inplace:
        raise Decline
    return elementwise((a,), a.dtype)


@rule(*named("clamp clip"))
def clamp(a: MetaRecord, min: Any = None, max: Any = None) -> Fresh:
    """Elements held between two bounds."""
    bounds = [x for x in (min, max) if x is not None]
    if not bounds or a.dtype.is_complex or a.dtype is torch.bool:
        raise Decline
    if not all(type(x) in (int, float) for x in bounds):
        raise Decline
    return elementwise((a,), promote((a, *bounds)))


@rule(*named("clamp_min clamp_max"))
def clamp_one(a: MetaRecord, bound: Any) -> Fresh:
    """Elements held on one side of a bound."""
    return clamp(a, bound)


@rule(torch.where)
def where(condition: MetaRecord, a: Any, b: Any) -> Fresh:
    """Elements of one of two tensors."""
    if type(condition) is not MetaRecord or condition.dtype is not torch.bool:
        raise Decline
    _numbers_only(condition, a, b)
    if type(a) is not MetaRecord and type(b) is not MetaRecord:
        raise Decline
    dtype = promote((a, b))
    tensors = [x for x in (condition, a, b) if type(x) is MetaRecord]
    if any(not x.shape for x in tensors):
        raise Decline
    return elementwise((condition, a, b), dtype)


@rule("where")
def where_method(a: MetaRecord, condition: MetaRecord, b: Any) -> Fresh:
    """As a method the condition comes second."""
    return where(condition, a, b)


@rule(*named("masked_fill"))
def masked_fill(a: MetaRecord, mask: MetaRecord, value: Any) -> Fresh:
    """Elements replaced where a mask holds."""
    if mask.dtype is not torch.bool or type(value) not in (bool, int, float):
        raise Decline
    if not a.shape:
        raise Decline
    if not a.dtype.is_floating_point or not fits(value, a.dtype):
        raise Decline
    require_row_major(a, mask)
    shape = broadcast((a.shape, mask.shape))
    return Fresh(shape, contiguous(shape), a.dtype, common_device((a, mask)))


@rule(*named("lerp"))
def lerp(a: MetaRecord, b: MetaRecord, weight: Any) -> Fresh:
    """Between two tensors."""
    if a.dtype is not b.dtype or not a.dtype.is_floating_point or type(weight) is not float:
        raise Decline
    return elementwise((a, b), a.dtype)


@rule(*named("addcmul addcdiv"))
def addcmul(a: MetaRecord, b: MetaRecord, c: MetaRecord, *, value: Any = 1) -> Fresh:
    """A tensor plus a product or quotient of two."""
    if not (a.dtype is b.dtype is c.dtype and a.dtype.is_floating_point) or type(value) not in (int, float):
        raise Decline
    return elementwise((a, b, c), a.dtype)
