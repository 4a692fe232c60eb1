"""Which of the program's objects a capture took to be different ones, as guards.

Two places that held *one* object were guarded when the second was met (`variables/builder.py`). That two
places held *different* objects matters only where something was written: a write through one name is then
taken to leave the other alone. Tensors matter by their memory, other objects by their identity.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence

from graphlift import _C
from graphlift.graph_value import GraphValue
from graphlift.guards.holding import NotGuardableError
from graphlift.guards.kinds.aliases import lies_outside, storage_pattern
from graphlift.heap import Handle, Heap
from graphlift.interpreter.capture import Assumptions
from graphlift.output_graph import CapturedGraph
from graphlift.protocol import Tx
from graphlift.reasons import Reason
from graphlift.sources import Source
from graphlift.variables.tensor import TENSOR_KEYS


def assume_distinct(heap: Heap, assumptions: Assumptions, tx: Tx) -> None:
    """Guard that objects of kinds written to, and tensors that were keys, are as distinct as they were.

    Objects of different classes cannot become one, for their classes are guarded.
    """
    written = {type(handle.real) for handle in heap.written if handle.source is not None}
    groups: defaultdict[type, list[Handle]] = defaultdict(list)
    for handle in heap.existing():
        if handle.source is not None and type(handle.real) in written and _was_used(handle):
            groups[type(handle.real)].append(handle)
    for handles in groups.values():
        first, *others = (handle.source for handle in handles)
        if others:
            assumptions.add("distinct", first, tuple(others), tx)
    keys: list[Source] = list(tx.reads.get(TENSOR_KEYS, ()))
    if len(keys) > 1:
        assumptions.add("distinct", keys[0], tuple(keys[1:]), tx)


def _was_used(handle: Handle) -> bool:
    """Whether the capture looked into the object or wrote to it."""
    looked_into = handle.table is not None or handle.items is not None or handle.slots is not None
    looked_into = looked_into or (handle.value is not None and type(handle.real) in (bytearray, array))
    return bool(handle.dirty or looked_into or handle.absent or handle.complete)


def assume_storages(graph: CapturedGraph, assumptions: Assumptions, tx: Tx) -> None:
    """Guard how the graph's input tensors share memory, if the graph writes to one of them, and that
    autograd lets them be written to.

    Breaks the graph for tensors whose memory cannot be compared.
    """
    inputs = [value for value in graph.inputs if type(value) is GraphValue and value.real is not None]
    _assume_outside(graph, inputs, assumptions, tx)
    if not graph.writes_inputs:
        return
    written = Counter(_storage(value) for value in tx.graph.required)
    for value in inputs if written else ():
        is_followed = value in tx.graph.followed
        if is_followed or written[_storage(value)] > (value in tx.graph.required):  # or another on its memory
            view = "writable_view" if is_followed else "ordinary_view"
            is_view = value.real is not None and value.real._is_view()
            kind, payload = (view, ()) if is_view else ("tensor_field", ("_base", None))
            assumptions.add(kind, value.source, payload, tx)
    if len(inputs) < 2:
        return
    places: list[Source] = [value.source for value in inputs]
    try:
        pattern = storage_pattern([value.real for value in inputs if value.real is not None])
    except NotGuardableError as error:
        tx.fail(Reason.UNSUPPORTED_OPERATION, f"a write to a tensor: {error}")
    assumptions.add("overlap", None, (pattern, *places), tx)


def _storage(value: GraphValue) -> int:
    assert value.real is not None
    return int(value.real.untyped_storage()._cdata)


def _assume_outside(
    graph: CapturedGraph, inputs: Sequence[GraphValue], assumptions: Assumptions, tx: Tx
) -> None:
    """Guard that tensors do not show the memory of a bytearray or array, if either is written to."""
    for handle in tx.heap.existing() if inputs else ():
        if type(handle.real) not in (bytearray, array) or not (
            handle.dirty or (handle.value is not None and graph.writes_inputs)
        ):
            continue
        tensors = [value.real for value in inputs if value.real is not None]
        if None in map(_C.tensor_place, tensors) or not lies_outside(handle.real, tensors):
            tx.fail(Reason.UNSUPPORTED_OPERATION, f"a tensor in the memory of a {type(handle.real).__name__}")
        assert handle.source is not None
        assumptions.add("outside", handle.source, tuple(value.source for value in inputs), tx)
