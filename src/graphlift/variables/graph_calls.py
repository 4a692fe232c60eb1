"""The way from trackers into the tensor graph and back.

Owns the conversion of trackers to graph arguments, of results to trackers, and of the graph's refusals to
breaks or to the user's own exceptions. Knows nothing of single operations. Classes that stand for values of
the graph enter their conversions by decorator (`graph_argument`, `result_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import torch

from graphlift.graph_value import CannotPropagate, DataDependent, MetaError, StructResult, Warns
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import maker
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.lazy import LazyVariableTracker
from graphlift.variables.slots import attributes, calls, iteration
from graphlift.variables.slots.type_lookup import Binding, type_lookup

F = TypeVar("F", bound=Callable[..., Any])

_TO_GRAPH: Final[dict[type, Callable[[Tx, Any], Any]]] = {}
_FROM_GRAPH: Final[dict[type, Callable[[Tx, Any], Var]]] = {}

#: Constants that a graph may hold as they are.
PLAIN_TYPES: Final[frozenset[type]] = frozenset(
    {
        int,
        float,
        bool,
        complex,
        str,
        type(None),
        type(Ellipsis),
        torch.dtype,
        torch.device,
        torch.layout,
        torch.memory_format,
        torch.Size,
    }
)

#: Classes that torch takes in the place of a dtype.
_NUMBER_CLASSES: Final = frozenset({int, float, bool, complex})


def graph_argument(cls: type) -> Callable[[F], F]:
    """Register how trackers of exactly this class become arguments of the graph."""

    def register(function: F) -> F:
        _TO_GRAPH[cls] = function
        return function

    return register


def result_of(cls: type) -> Callable[[F], F]:
    """Register how results of exactly this class become trackers."""

    def register(function: F) -> F:
        _FROM_GRAPH[cls] = function
        return function

    return register


# --- arguments -------------------------------------------------------------------------------------


def as_graph_argument(tx: Tx, var: Var) -> Any:
    """The graph's form of a value: graph values and constants, nested in tuples, lists, dicts, slices.

    Breaks the graph for a value that no graph can hold.
    """
    if type(var) is LazyVariableTracker:
        var = var.realize(tx)
    convert = _TO_GRAPH.get(type(var))
    if convert is not None:
        return convert(tx, var)
    assert isinstance(var, VariableTracker)
    cls = var.python_type(tx)
    if issubclass(cls, (tuple, list)):
        refuse_overloads(tx, cls)
        return _sequence(tx, var, cls)
    if cls is slice:
        return slice(*(_attribute(tx, var, name) for name in ("start", "stop", "step")))
    if cls is range:
        return [as_graph_argument(tx, item) for item in iteration.unpack(tx, var)]
    if cls is dict:
        return _dictionary(tx, var)
    if var.is_constant():
        return _constant(tx, var.as_constant())
    return _not_for_graphs(tx, cls)


#: Classes that torch does not ask whether they take an operation over.
_UNASKED: Final = frozenset({tuple, list, torch.Size})

#: A class with one of these may take over an operation that one of its objects is handed to.
OVERLOADS: Final = ("__torch_function__", "__getattr__")


#: What torch may ask an argument of, past what is beneath it, where the class has its own.
_CONVERSIONS: Final = (
    "__index__", "__int__", "__float__", "__complex__", "__bool__", "__len__", "__getitem__", "__iter__",
)  # fmt: skip


def refuse_overloads(tx: Tx, cls: type) -> None:
    """Break the graph for a value of a derived class that is more to torch than what is beneath it."""
    if cls in _UNASKED:
        return
    if any(type_lookup(tx, cls, name) for name in OVERLOADS):
        _not_for_graphs(tx, cls)
    for name in _CONVERSIONS:
        attr = type_lookup(tx, cls, name)
        if attr is not None and attr.binding is not Binding.C_METHOD:
            _not_for_graphs(tx, cls)
    tx.graph.took_derived = True


@graph_argument(ConstantVariable)
def _plain(tx: Tx, var: ConstantVariable) -> Any:
    value = var.value
    return value if type(value) in PLAIN_TYPES else _constant(tx, value)


def _constant(tx: Tx, value: Any) -> Any:
    if type(value) in PLAIN_TYPES or (isinstance(value, type) and value in _NUMBER_CLASSES):
        return value
    return _not_for_graphs(tx, type(value))


def _sequence(tx: Tx, var: VariableTracker, cls: type) -> Any:
    items = [as_graph_argument(tx, item) for item in iteration.unpack(tx, var)]
    if cls is list or issubclass(cls, list):
        return items
    if cls is torch.Size and all(type(item) is int for item in items):
        return torch.Size(items)
    return tuple(items)


def _dictionary(tx: Tx, var: VariableTracker) -> dict[Any, Any]:
    entries = iteration.unpack(tx, calls.call_method(tx, var, "items", [], {}))
    pairs = [iteration.unpack_exactly(tx, entry, 2) for entry in entries]
    return {as_graph_argument(tx, key): as_graph_argument(tx, value) for key, value in pairs}


def _attribute(tx: Tx, var: VariableTracker, name: str) -> Any:
    return as_graph_argument(tx, attributes.getattr_(tx, var, name))


def _not_for_graphs(tx: Tx, cls: type) -> Any:
    tx.fail(
        Reason.UNSUPPORTED_VALUE,
        f"an object of class {cls.__qualname__} as an argument of a tensor operation",
    )


# --- results ---------------------------------------------------------------------------------------


@maker
def graph_result(tx: Tx, result: object) -> Var:
    """See `protocol.Make.graph_result`."""
    convert = _FROM_GRAPH.get(type(result))
    if convert is not None:
        return convert(tx, result)
    return tx.make.constant(result)


@result_of(tuple)
def _tuple(tx: Tx, result: tuple[Any, ...]) -> Var:
    return tx.make.tuple([graph_result(tx, item) for item in result])


@result_of(list)
def _list(tx: Tx, result: list[Any]) -> Var:
    return tx.make.list([graph_result(tx, item) for item in result])


@result_of(torch.Size)
def _size(tx: Tx, result: torch.Size) -> Var:
    return tx.make.tuple([tx.make.constant(size) for size in result], torch.Size)


@result_of(StructResult)
def _struct(tx: Tx, result: StructResult) -> Var:
    return tx.make.tuple([graph_result(tx, item) for item in result.items], result.cls)


# --- calls -----------------------------------------------------------------------------------------


def graph_call(
    tx: Tx, target: Any, args: Sequence[Var], kwargs: Mapping[str, Var], *, method: bool = False
) -> VariableTracker:
    """Record ``target(*args, **kwargs)`` (a method by its name) and give the trackers of what it returns."""
    plain_args = tuple([as_graph_argument(tx, arg) for arg in args])
    plain_kwargs = {name: as_graph_argument(tx, arg) for name, arg in kwargs.items()} if kwargs else {}
    return record(tx, target, plain_args, plain_kwargs, method=method)


def _fix_leaves(tx: Tx, values: Any) -> None:
    """Guard which inputs behind these values are leaves: a write to a leaf that requires grad fails."""
    for source, is_leaf in tx.graph.leaves_behind(values):
        tx.guard("tensor_field", source, "is_leaf", is_leaf)


def record(
    tx: Tx, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, method: bool = False
) -> VariableTracker:
    """`graph_call` on arguments that are in the graph's form already."""
    graph = tx.graph
    length = len(graph.operations)
    try:
        result = graph.call(target, args, kwargs or {}, method=method, where=tx.where())
    except MetaError as error:
        if graph.took_derived:
            tx.fail(Reason.NO_TENSOR_MODEL, "a failing call, whose error may name a derived class")
        if graph.grad_enabled:
            _fix_leaves(tx, (args, kwargs or {}))
        tx.raise_real(error.error)
    except DataDependent as error:
        tx.fail(Reason.DATA_DEPENDENT_SHAPE, error.operation)
    except CannotPropagate as error:
        reason = Reason.WARNING if isinstance(error, Warns) else Reason.NO_TENSOR_MODEL
        tx.fail(reason, f"{getattr(target, '__name__', target)}: {error.reason}")
    if graph.notable >= length:
        if graph.grad_enabled:
            _fix_leaves(tx, graph.operations[length].written)
        tx.recorded(length)
    made = graph_result(tx, result)
    assert isinstance(made, VariableTracker)
    return made
