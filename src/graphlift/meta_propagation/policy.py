"""Which operations the graph must not take, and what is known of the others without running them.

Tables only. A name here stands for the tensor method, for ``torch.NAME`` and for
``torch.nn.functional.NAME`` where these exist.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, Final

import torch

from graphlift.graph_value import CannotPropagate, DataDependent

#: They hand tensor data to Python.
_DATA: Final = """
item tolist numpy __bool__ __int__ __float__ __index__ __complex__ __array__ is_nonzero equal allclose
__contains__ __format__ __iter__ __reversed__ nonzero argwhere unique unique_consecutive masked_select
bincount repr __repr__ __str__
"""

#: They reach past a tensor's metadata and elements: storage, history, other processes, Python objects.
_BEYOND: Final = """
data_ptr storage untyped_storage _typed_storage storage_type backward register_hook
register_post_accumulate_grad_hook retain_grad share_memory_ set_ resize_ resize_as_ is_shared pin_memory
is_pinned module_load __reduce_ex__ __deepcopy__ __setstate__ __dlpack__ __dlpack_device__ apply_ map_ map2_
record_stream _make_subclass as_subclass rename rename_ refine_names align_to align_as set_default_dtype
manual_seed seed initial_seed set_rng_state get_rng_state from_numpy frombuffer from_file from_dlpack
set_data swap_tensors _version cuda save load _make_wrapper_subclass
"""

#: Cannot fail by the values of their arguments, draw nothing and write nothing.
_TOTAL: Final = """
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax angle
any arccos arccosh arcsin arcsinh arctan arctanh arctan2 argmax argmin argsort as_strided asin asinh atan
atan2 atanh atleast_1d atleast_2d atleast_3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d
adaptive_avg_pool2d adaptive_max_pool2d baddbmm batch_norm bfloat16 bitwise_and bitwise_not bitwise_or
bitwise_xor block_diag bmm bool broadcast_tensors broadcast_to bucketize byte cat celu ceil chunk clamp
clamp_max clamp_min clip clone col_indices column_stack complex concat concatenate conj conj_physical
constant_pad_nd contiguous conv1d conv2d conv3d conv_transpose1d conv_transpose2d copysign cos cosh
cosine_similarity count_nonzero cpu cross cummax cummin cumprod cumsum deg2rad detach diag diag_embed
diagonal diff dim div divide dot double dsplit dstack einsum elu empty empty_like eq erf erfc erfinv exp exp2
expand expand_as expm1 eye flatten flip fliplr flipud float float_power floor fmax fmin frac full full_like
ge gelu geqrf ger glu greater greater_equal group_norm gt half hann_window hardshrink
hardsigmoid hardswish hardtanh heaviside histc hsplit hstack hypot imag inner instance_norm int interpolate
is_complex is_contiguous is_floating_point isclose isfinite isin isinf isnan isneginf isposinf isreal
layer_norm le leaky_relu lerp less less_equal lgamma linear linspace local_response_norm log
log10 log1p log2 log_softmax logaddexp logcumsumexp logical_and logical_not logical_or logical_xor logit
logspace logsumexp long lt masked_fill matmul max max_pool1d max_pool2d maximum mean median meshgrid min
minimum mish mm moveaxis movedim mse_loss msort mul multiply mv nan_to_num nanmean nansum narrow ndim ne neg
negative new_empty new_full new_ones new_zeros nextafter norm normalize not_equal numel
ones ones_like outer pad permute pixel_shuffle positive pow prelu prod rad2deg ravel real reciprocal relu
relu6 repeat reshape reshape_as resolve_conj resolve_neg rms_norm roll rot90 round rsqrt rsub
scaled_dot_product_attention selu sgn short sigmoid sign signbit silu sin sinc sinh size slice_scatter
smooth_l1_loss softmax softmin softplus softshrink softsign sort split split_with_sizes sqrt square squeeze
stack std std_mean stride sub subtract sum swapaxes swapdims t tan tanh tanhshrink tensor_split threshold
tile to to_padded topk trace transpose trapezoid tril true_divide trunc type type_as unbind unflatten unfold
unsqueeze upsample vander var var_mean vdot view view_as view_as_complex view_as_real vsplit vstack where
xlogy zeros zeros_like arange tensor scalar_tensor result_type promote_types can_cast numel movedim T mT H mH
pairwise_distance cdist fft_fft softmin logsigmoid huber_loss l1_loss unflatten linalg_norm
"""

_OPERATORS: Final[tuple[Any, ...]] = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.pow,
    operator.matmul,
    operator.neg,
    operator.pos,
    operator.invert,
    operator.abs,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
)


def targets_named(names: str | Iterable[str]) -> Iterable[Any]:
    """Everything a graph may call by these names: methods (as strings and unbound), functions."""
    for name in names.split() if isinstance(names, str) else names:
        yield name
        for owner in (torch.Tensor, torch, torch.nn.functional):
            found = getattr(owner, name, None)
            if callable(found):
                yield found


DATA_DEPENDENT: Final[frozenset[Any]] = frozenset(targets_named(_DATA))
BEYOND: Final[frozenset[Any]] = frozenset(targets_named(_BEYOND))
TOTAL: Final[frozenset[Any]] = frozenset({*targets_named(_TOTAL), *_OPERATORS})


def refuse(target: Any) -> None:
    """Raise for a target that no graph may hold.

    Raises:
        DataDependent, CannotPropagate: see there.
    """
    if target in DATA_DEPENDENT:
        raise DataDependent(name_of(target))
    if target in BEYOND:
        raise CannotPropagate(f"{name_of(target)} reaches past the graph")


def name_of(target: Any) -> str:
    """A target's name, for people."""
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


#: Operators of Python that fail on integer tensors holding zero.
DIVISIONS: Final[frozenset[Any]] = frozenset(
    {*targets_named("floor_divide remainder fmod div"), operator.floordiv, operator.mod}
)
