"""torch's functions as values: a call is a node of the graph, or answered by a model.

Owns the tracker, the registry of models (`torch_model`) and the rule by which `rules.classify` is applied to
existing functions. The models themselves are in `torch_answers.py` and `torch_contexts.py`. Namespaces that
make their members on demand (`torch.ops`, `torch._VF`) are here too.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, TypeVar

import torch
from torch._library.custom_ops import CustomOpDef

from graphlift import rules
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import Source
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import maker, pinned, wraps, wraps_if
from graphlift.variables.folding import as_host, fold
from graphlift.variables.graph_calls import graph_call

Model = Callable[[Tx, Sequence[VariableTracker], Mapping[str, VariableTracker]], Any]
M = TypeVar("M", bound=Model)

_MODELS: Final[dict[Any, Model]] = {}


def torch_model(*functions: Any) -> Callable[[M], M]:
    """Register what is done for a call of these functions instead of a node or of looking into them."""

    def register(model: M) -> M:
        for function in functions:
            _MODELS[function] = model
            rules.model(function)
        return model

    return register


class TorchFunctionVariable(VariableTracker):
    """A function of torch, an operator, or a callable that the user wants kept whole.

    Attributes:
        value: the callable.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.source = source
        self.value: Final = value

    def python_type(self, tx: Tx) -> type:
        return type(self.value)

    def hash_key(self, tx: Tx) -> Hashable:
        key: Hashable = self.value
        return key

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        model = _MODELS.get(self.value)
        if model is not None:
            result = model(tx, args, kwargs)
            assert isinstance(result, VariableTracker)
            return result
        if _is_tensor_method(self.value):
            return self._call_on_tensor(tx, args, kwargs)
        return graph_call(tx, self.value, args, kwargs)

    def _call_on_tensor(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        name = self.value.__name__
        owner = args[0].realize(tx) if args else None
        if owner is None or not issubclass(owner.python_type(tx), torch.Tensor):
            tx.fail(Reason.UNSUPPORTED_OPERATION, f"torch.Tensor.{name} of {owner!r}")
        result = owner.call_method(tx, name, args[1:], kwargs)
        assert isinstance(result, VariableTracker)
        return result

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        try:
            value = getattr(self.value, name)
        except AttributeError as error:
            tx.raise_real(error)
        if value is None or isinstance(value, (str, int, torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            return _from_process(tx, value)
        return self.refuse(tx, f"attribute {name!r}")

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_object(self.value)

    def __repr__(self) -> str:
        return f"TorchFunctionVariable({getattr(self.value, '__name__', self.value)})"


class TorchNamespaceVariable(VariableTracker):
    """An object that hands out torch's functions by name and makes them on demand.

    Attributes:
        value: the object.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.source = source
        self.value: Final = value

    def python_type(self, tx: Tx) -> type:
        return type(self.value)

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        try:
            value = getattr(self.value, name)
        except AttributeError as error:
            tx.raise_real(error)
        return _from_process(tx, value)

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_object(self.value)


def _from_process(tx: Tx, value: Any) -> VariableTracker:
    var = tx.make.from_value(value, None)
    assert isinstance(var, VariableTracker)
    return var


# --- from values -----------------------------------------------------------------------------------

_FUNCTION_TYPES: Final = frozenset(
    {types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType}
)


def _is_tensor_method(value: Any) -> bool:
    owner = getattr(value, "__objclass__", None)
    if owner is not None:
        return owner is torch.Tensor or owner is torch._C.TensorBase
    return type(value) is types.FunctionType and vars(torch.Tensor).get(value.__name__) is value


def is_torch_function(value: Any) -> bool:
    """Whether a call of `value` is a node of the graph or has a model."""
    kind = type(value)
    if kind not in _FUNCTION_TYPES and rules.mark_of(value) is None:
        return False
    return rules.classify(value) in ("graph", "model")


def wrap_torch_function(tx: Tx, value: Any, source: Source | None) -> Var:
    """The rule for torch's functions: pinned down by identity."""
    if source is not None:
        tx.guard("is", source, value)
    return TorchFunctionVariable(value, source)


wraps_if(is_torch_function, 10)(wrap_torch_function)
wraps(torch._ops.OpOverload, torch._ops.OpOverloadPacket)(wrap_torch_function)


@wraps(CustomOpDef)
def _wrap_custom_op(tx: Tx, value: CustomOpDef, source: Source | None) -> Var:
    if source is not None:
        tx.guard("is", source, value)
    return TorchFunctionVariable(value._opoverload, source)


wraps(torch._ops._Ops, torch._ops._OpNamespace, type(torch._VF), type(torch._C._VariableFunctions))(
    pinned(TorchNamespaceVariable)
)


@maker
def torch_function(tx: Tx, value: Any, source: Source | None = None) -> Var:
    """The tracker of a function of torch's."""
    return wrap_torch_function(tx, value, source)


def fold_call(function: Any) -> Model:
    """A model: the real function, called now on constants."""

    def model(
        tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        what = getattr(function, "__name__", str(function))
        values = [as_host(tx, arg, what) for arg in args]
        named = {name: as_host(tx, arg, what) for name, arg in kwargs.items()}
        return fold(tx, function, *values, **named)

    return model
