"""Methods of tensors that have a model of their own; all others are graph nodes or refused by name.

One function per method in one table (`METHODS`). Each takes the tensor's graph value and the trackers of the
arguments. The lists of what is refused are in `rules/torch_names.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import torch

from graphlift.graph_value import GraphValue
from graphlift.operators import (
    BINARY,
    BINARY_METHODS,
    COMPARE,
    COMPARE_METHODS,
    INPLACE,
    INPLACE_METHODS,
    REFLECTED_METHODS,
    UNARY,
    UNARY_METHODS,
)
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.rules.torch_names import GRAPH_METHODS, REFUSED_METHODS, VALUE_METHODS
from graphlift.variables.folding import as_host
from graphlift.variables.graph_calls import as_graph_argument, graph_result, record
from graphlift.variables.tensor_attributes import (
    ATTRIBUTES,
    TENSOR_FIELD,
    is_static,
    numel_of,
    shape_of,
    size_of,
    stride_of,
)

Method = Callable[[Tx, GraphValue, Sequence[Var], Mapping[str, Var]], Var]

METHODS: Final[dict[str, Method]] = {}

#: Names that `type(x)` finds as methods (what `getattr` gives a bound method for).
METHOD_NAMES: Final = GRAPH_METHODS | REFUSED_METHODS | VALUE_METHODS

#: Operators by the special method that stands for them. Tensors have no ``__imatmul__``.
OPERATORS: Final[dict[str, Any]] = {
    **{BINARY_METHODS[op]: function for op, function in BINARY.items()},
    **{INPLACE_METHODS[op]: function for op, function in INPLACE.items() if op != "@"},
    **{COMPARE_METHODS[op]: function for op, function in COMPARE.items()},
    **{UNARY_METHODS[op]: function for op, function in UNARY.items()},
    "__abs__": operator.abs,
    "__getitem__": operator.getitem,
    "__setitem__": operator.setitem,
}

#: The same for operators whose left operand is the argument.
REFLECTED: Final[dict[str, Any]] = {REFLECTED_METHODS[op]: function for op, function in BINARY.items()}


def has_method(name: str) -> bool:
    """Whether tensors have a method of this name."""
    return name in METHODS or name in METHOD_NAMES or name in OPERATORS or name in REFLECTED


def call_tensor_method(
    tx: Tx, value: GraphValue, name: str, args: Sequence[Var], kwargs: Mapping[str, Var]
) -> Var:
    """``value.name(*args, **kwargs)``."""
    method = METHODS.get(name)
    if method is not None:
        return method(tx, value, args, kwargs)
    if name in GRAPH_METHODS:
        return as_node(tx, name, value, args, kwargs)
    if not kwargs:
        if name in OPERATORS:
            return record(tx, OPERATORS[name], (value, *(as_graph_argument(tx, arg) for arg in args)))
        if name in REFLECTED and len(args) == 1:
            return record(tx, REFLECTED[name], (as_graph_argument(tx, args[0]), value))
    return refuse(tx, name)


def as_node(tx: Tx, name: str, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    """The method as a node of the graph."""
    plain = [as_graph_argument(tx, arg) for arg in args]
    named = {key: as_graph_argument(tx, arg) for key, arg in kwargs.items()}
    return record(tx, name, (value, *plain), named, method=True)


def refuse(tx: Tx, name: str) -> NoReturn:
    """Break for a method that is not modelled."""
    reason = Reason.DATA_DEPENDENT_VALUE if name in VALUE_METHODS else Reason.UNSUPPORTED_OPERATION
    tx.fail(reason, f"Tensor.{name}()")


def _method(*names: str) -> Callable[[Method], Method]:
    def register(function: Method) -> Method:
        for name in names:
            METHODS[name] = function
        return function

    return register


def _dimension(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> int | None:
    """The optional ``dim`` argument of `size` and `stride`, counted from the front."""
    given = [*args, *(kwargs[name] for name in ("dim",) if name in kwargs)]
    if not given or len(given) > 1 or len(kwargs) > 1:
        return None
    dim = as_host(tx, given[0], "a dimension")
    if dim is None:
        return None
    rank = len(value.meta.shape)
    if type(dim) is int and -rank <= dim < rank:
        return dim % rank
    # Let torch find the words.
    sample = torch.empty((0,) * rank)
    try:
        sample.size(dim)
    except Exception as error:
        tx.raise_real(error)
    return tx.fail(Reason.UNSUPPORTED_OPERATION, f"dimension {dim!r} of a tensor")


@_method("size")
def _size(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    dim = _dimension(tx, value, args, kwargs)
    return shape_of(tx, value) if dim is None else size_of(tx, value, dim)


@_method("stride")
def _stride(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    dim = _dimension(tx, value, args, kwargs)
    if dim is not None:
        return stride_of(tx, value, dim)
    return tx.make.tuple([stride_of(tx, value, dim) for dim in range(len(value.meta.shape))])


def _asks(function: Callable[[Tx, GraphValue], Var]) -> Method:
    """A method without arguments that only asks."""

    def call(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
        if args or kwargs:
            tx.fail(Reason.UNSUPPORTED_OPERATION, "a question to a tensor with arguments it does not take")
        return function(tx, value)

    return call


METHODS["dim"] = METHODS["ndimension"] = _asks(ATTRIBUTES["ndim"])
METHODS["element_size"] = _asks(ATTRIBUTES["itemsize"])
METHODS["numel"] = METHODS["nelement"] = _asks(numel_of)
METHODS["is_floating_point"] = _asks(lambda tx, value: tx.make.constant(value.meta.dtype.is_floating_point))
METHODS["is_complex"] = _asks(lambda tx, value: tx.make.constant(value.meta.dtype.is_complex))
METHODS["is_signed"] = _asks(lambda tx, value: tx.make.constant(value.meta.dtype.is_signed))
METHODS["is_coalesced"] = _asks(lambda tx, value: tx.make.constant(False))
METHODS["is_distributed"] = _asks(lambda tx, value: tx.make.constant(False))


@_method("storage_offset")
def _storage_offset(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    offset = value.meta.storage_offset
    if type(offset) is not int:
        return record(tx, "storage_offset", (value,), method=True)
    if value.source is not None:
        tx.guard(TENSOR_FIELD, value.source, "storage_offset", offset)
    return tx.make.constant(offset)


@_method("get_device")
def _get_device(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    index = value.meta.device.index
    return tx.make.constant(-1 if index is None else index)


@_method("is_same_size")
def _is_same_size(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    other = as_graph_argument(tx, args[0]) if len(args) == 1 and not kwargs else None
    if not isinstance(other, GraphValue) or not (is_static(value) and is_static(other)):
        tx.fail(Reason.UNSUPPORTED_OPERATION, "Tensor.is_same_size() of symbolic sizes")
    return tx.make.constant(value.meta.shape == other.meta.shape)


def sample_of(value: GraphValue) -> torch.Tensor:
    """A tensor without memory that has the sizes, strides and dtype of a value of fixed size."""
    meta = value.meta
    return torch.empty_strided(meta.shape, meta.stride, dtype=meta.dtype, device="meta")


@_method("is_contiguous")
def _is_contiguous(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    if not is_static(value):
        return as_node(tx, "is_contiguous", value, args, kwargs)
    plain = [as_host(tx, arg, "is_contiguous()") for arg in args]
    named = {name: as_host(tx, arg, "is_contiguous()") for name, arg in kwargs.items()}
    try:
        return tx.make.constant(sample_of(value).is_contiguous(*plain, **named))
    except Exception as error:
        tx.raise_real(error)


@_method("_is_view")
def _is_view(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    tx.fail(Reason.UNSUPPORTED_OPERATION, "Tensor._is_view(), which metadata do not tell")


@_method("is_inference")
def _is_inference(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    if value.real is None:
        tx.fail(Reason.UNSUPPORTED_OPERATION, "Tensor.is_inference() of a result")
    return tx.make.constant(value.real.is_inference())


def _has_key(key: torch._C.DispatchKey) -> Method:
    bit = torch._C.DispatchKeySet(key).raw_repr()
    return _asks(lambda tx, value: tx.make.constant(bool(value.meta.key_set & bit)))


METHODS["is_conj"] = _has_key(torch._C.DispatchKey.Conjugate)
METHODS["is_neg"] = _has_key(torch._C.DispatchKey.Negative)


@_method("type")
def _type(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    if args or kwargs:
        return as_node(tx, "type", value, args, kwargs)
    if value.meta.device.type != "cpu":
        tx.fail(Reason.UNSUPPORTED_OPERATION, "Tensor.type() of a tensor that is not on the CPU")
    return tx.make.constant(torch.empty(0, dtype=value.meta.dtype).type())


@_method("requires_grad_")
def _requires_grad(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    given = [*args, *kwargs.values()]
    wanted = as_host(tx, given[0], "requires_grad_()") if given else True
    if len(given) > 1 or wanted is not value.meta.requires_grad:
        refuse(tx, "requires_grad_")
    return graph_result(tx, value)


@_method("cuda")
def _cuda(tx: Tx, value: GraphValue, args: Sequence[Var], kwargs: Mapping[str, Var]) -> Var:
    return as_node(tx, "cuda", value, args, kwargs)
