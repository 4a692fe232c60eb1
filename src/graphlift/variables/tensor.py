"""Tensors: a tracker over the graph's value; everything asked of it is a node or read off its metadata.

Owns the slots of tensors (operators, items, iteration, attributes) and the rule by which existing tensors
become inputs of the graph. Metadata questions are in `tensor_attributes.py`, methods in `tensor_methods.py`.
Mirrors `torch.Tensor` (torch/_tensor.py and its C base).
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import torch

from graphlift.graph_value import CannotPropagate, GraphValue
from graphlift.heap import Handle
from graphlift.metadata import PLAIN_CLASSES
from graphlift.operators import (
    BINARY,
    BINARY_METHODS,
    COMPARE,
    COMPARE_METHODS,
    INPLACE,
    INPLACE_METHODS,
    REFLECTED_METHODS,
    UNARY,
)
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.rules.tensor_members import replaced_member
from graphlift.sources import Source
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker
from graphlift.variables.builder import wraps, wraps_if
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.graph_calls import OVERLOADS, as_graph_argument, graph_argument, record, result_of
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import type_lookup
from graphlift.variables.symbolic import SymNodeVariable
from graphlift.variables.tensor_attributes import ATTRIBUTES, size_of
from graphlift.variables.tensor_fields import lookup_field, store_field, write_back_fields
from graphlift.variables.tensor_indices import pick_symbolic
from graphlift.variables.tensor_methods import call_tensor_method, has_method

#: Guard kind of a tensor; payload: its `MetaRecord`.
TENSOR: Final = "tensor"

#: Methods by which operators work; called by name they give NotImplemented for what they do not work on.
_OPERATORS: Final = frozenset(
    {
        *BINARY_METHODS.values(),
        *REFLECTED_METHODS.values(),
        *COMPARE_METHODS.values(),
        *INPLACE_METHODS.values(),
    }
)
_NUMBERS: Final = frozenset({int, float, bool, complex})


#: Where `tx.reads` keeps the sources of tensors that served as keys, which the capture takes to be different.
TENSOR_KEYS: Final = (0, "tensors that are keys")


class TensorVariable(VariableTracker):
    """A tensor of the graph; one tracker per tensor (``value.var``).

    Attributes:
        value: what the graph knows it by.
    """

    __slots__ = ("value",)
    leaf = True

    def __init__(self, value: GraphValue, source: Source | None = None) -> None:
        self.source = source
        self.value: Final = value
        value.var = self

    def python_type(self, tx: Tx) -> type:
        cls: type = self.value.meta.type
        return cls

    def name_hint(self, tx: Tx, name: str) -> None:
        """The program stored the tensor under `name`."""
        tx.graph.name_hint(self.value, name)

    def hash_key(self, tx: Tx) -> Hashable:
        # Tensors hash by identity, which is the identity of the graph's value.
        if self.source is not None:
            tx.reads.setdefault(TENSOR_KEYS, {})[self.source] = None
        return self.value

    def truth(self, tx: Tx) -> VariableTracker | bool:
        shape = self.value.meta.shape
        if all(type(size) is int for size in shape) and self.value.meta.numel() != 1:
            try:
                bool(torch.zeros(min(self.value.meta.numel(), 2)))
            except RuntimeError as error:
                tx.raise_real(error)
        return self

    # --- operators -------------------------------------------------------------------------

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        operand = _operand(tx, other)
        if operand is None:
            return NOT_IMPLEMENTED
        return record(tx, BINARY[op], (self.value, operand))

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        operand = _operand(tx, other)
        if operand is None:
            return NOT_IMPLEMENTED
        return record(tx, BINARY[op], (operand, self.value))

    def inplace(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        operand = _operand(tx, other)
        if op == "@" or operand is None:  # tensors have no ``@=``: Python falls back to ``@``
            return NOT_IMPLEMENTED
        return record(tx, INPLACE[op], (self.value, operand))

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        operand = _operand(tx, other)
        if operand is None:
            return NOT_IMPLEMENTED
        return record(tx, COMPARE[op], (self.value, operand))

    def unary(self, tx: Tx, op: str) -> VariableTracker:
        return record(tx, UNARY[op], (self.value,))

    # --- items -----------------------------------------------------------------------------

    def length(self, tx: Tx) -> VariableTracker:
        if not self.value.meta.shape:
            tx.raise_(TypeError, "len() of a 0-d tensor")
        size = size_of(tx, self.value, 0)
        assert isinstance(size, VariableTracker)
        return size

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        value, place = pick_symbolic(tx, self.value, as_graph_argument(tx, key))
        if place == () and value is not self.value:
            return _result(tx, value)  # type: ignore[return-value]
        return record(tx, operator.getitem, (value, place))

    def setitem(self, tx: Tx, key: VariableTracker, value: VariableTracker) -> None:
        place, stored = as_graph_argument(tx, key), as_graph_argument(tx, value)
        if type(stored) is GraphValue and stored.root is self.value.root:
            # ``x[i] += 1`` stores a view of x where it is already. As a copy between two views of equal
            # metadata the graph can tell that nothing overlaps in part.
            view = record(tx, operator.getitem, (self.value, place))
            if type(view) is TensorVariable and view.value.meta is stored.meta:
                record(tx, "copy_", (view.value, stored), method=True)
                return
        record(tx, operator.setitem, (self.value, place, stored))

    def delitem(self, tx: Tx, key: VariableTracker) -> None:
        tx.fail(Reason.UNSUPPORTED_OPERATION, "deleting items of a tensor")

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        tx.fail(Reason.DATA_DEPENDENT_VALUE, "whether a tensor contains a value")

    def iter_(self, tx: Tx) -> VariableTracker:
        items = tx.make.tuple(self.unpack(tx)).realize(tx)  # as `unbind` gives them
        assert isinstance(items, VariableTracker)
        return items.iter_(tx)

    def unpack(self, tx: Tx) -> list[VariableTracker]:
        shape = self.value.meta.shape
        if not shape:
            tx.raise_(TypeError, "iteration over a 0-d tensor")
        if type(shape[0]) is not int:
            tx.fail(Reason.UNSUPPORTED_OPERATION, "iteration over a dimension of symbolic size")
        if shape[0] == 0:
            return []
        items = record(tx, "unbind", (self.value, 0), method=True).unpack(tx)
        assert items is not None
        return items

    # --- attributes ------------------------------------------------------------------------

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        attribute = ATTRIBUTES.get(name)
        if attribute is not None:
            var = attribute(tx, self.value)
        else:
            var = self._other_attribute(tx, name)
        assert isinstance(var, VariableTracker)
        return var

    def _other_attribute(self, tx: Tx, name: str) -> Var:
        field = lookup_field(tx, self.value, name)
        if field is not None:
            return field
        if has_method(name):
            return tx.make.builtin_method(name, self)
        if name == "__class__":
            return tx.make.from_value(self.python_type(tx), None)
        if hasattr(self.python_type(tx), name):
            tx.fail(Reason.UNSUPPORTED_OPERATION, f"attribute {name!r} of a tensor")
        return attributes.raise_no_attribute(tx, self.python_type(tx), name)

    def setattr_(self, tx: Tx, name: str, value: VariableTracker) -> None:
        store_field(tx, self.value, name, value)

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name == "__len__":
            return self.length(tx)
        if name == "__iter__":
            return self.iter_(tx)
        if name == "__contains__":
            tx.fail(Reason.DATA_DEPENDENT_VALUE, "whether a tensor contains a value")
        if name in _OPERATORS and not all(_is_operand(tx, arg) for arg in args):
            self.refuse(tx, f"method {name!r} of what it does not work on")
        var = call_tensor_method(tx, self.value, name, args, kwargs)
        assert isinstance(var, VariableTracker)
        return var

    def invoke(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if has_method(name) and lookup_field(tx, self.value, name) is None:
            return self.call_method(tx, name, args, kwargs)
        return super().invoke(tx, name, args, kwargs)

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Emit the writes to attributes that an input keeps in C."""
        write_back_fields(codegen, self, handle)

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_graph_output(self.value)

    def __repr__(self) -> str:
        return "TensorVariable()"


def _operand(tx: Tx, other: VariableTracker) -> Any:
    """The graph's form of the other operand; None where a tensor's own method gives NotImplemented."""
    cls = type(other)
    if cls is TensorVariable:
        return other.value  # type: ignore[attr-defined]
    if cls is ConstantVariable:
        value = other.as_constant()
        return value if type(value) in _NUMBERS else None
    if cls is SymNodeVariable:
        return as_graph_argument(tx, other)
    beneath = getattr(other, "storage", None)
    if type(beneath) is ConstantVariable:  # a number of a derived class, e.g. a member of an `enum.IntEnum`
        return _operand(tx, beneath)
    kind = other.python_type(tx)
    # Torch asks the object, so `__getattr__` may answer, too.
    if hasattr(kind, "__array_priority__") or any(type_lookup(tx, kind, name) for name in OVERLOADS):
        tx.fail(Reason.UNSUPPORTED_VALUE, f"a tensor and an object of {kind.__name__}")
    return None


@graph_argument(TensorVariable)
def _argument(tx: Tx, var: TensorVariable) -> GraphValue:
    return var.value


@result_of(GraphValue)
def _result(tx: Tx, value: GraphValue) -> Var:
    known: Var | None = value.var
    if known is not None:
        return known
    _check_members(tx)
    return TensorVariable(value)


def _check_members(tx: Tx) -> None:
    name = replaced_member()
    if name is not None:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"a tensor, while `torch.Tensor.{name}` is not torch's own")


def _is_operand(tx: Tx, arg: VariableTracker) -> bool:
    kind = arg.realize(tx).python_type(tx)
    return kind in _NUMBERS or issubclass(kind, torch.Tensor)


# --- inputs ----------------------------------------------------------------------------------------


@wraps(*PLAIN_CLASSES)
def wrap_tensor(tx: Tx, value: torch.Tensor, source: Source | None) -> Var:
    """The rule for tensors without a class of the user's: an input of the graph, guarded by its metadata."""
    if source is None:
        tx.fail(Reason.UNSUPPORTED_VALUE, "a tensor that cannot be found again at the next call")
    _check_members(tx)
    if value.layout is not torch.strided:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"a tensor of layout {value.layout}")
    try:
        made: GraphValue = tx.graph.add_tensor_input(value, source, tx.capture.symbolic_sizes(source, value))
    except CannotPropagate as error:
        tx.fail(Reason.UNSUPPORTED_VALUE, error.reason)
    tx.guard(TENSOR, source, made.meta)
    return TensorVariable(made, source)


@wraps_if(lambda value: issubclass(type(value), torch.Tensor), 10)
def wrap_subclass(tx: Tx, value: torch.Tensor, source: Source | None) -> Var:
    """The rule for all other tensors: their methods are the user's (or a mode's), so no node is certain."""
    tx.fail(Reason.UNSUPPORTED_VALUE, f"a tensor of class {type(value).__qualname__}")
