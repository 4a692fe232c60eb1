"""Whether the program could tell that an operation failed inside a graph and not at its own place.

It can where it handles exceptions, or has done something that waits until the graph has run. The answer
matters for operations behind a write to an input or a random draw, for these cannot be run again as if
nothing had been; the graph is cut there. See docs/design/failures.md.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final

import torch

from graphlift.bytecode.decode import Decoded
from graphlift.interpreter.unwind import handled_inside
from graphlift.output_graph.record import writes_input
from graphlift.reasons import Reason
from graphlift.variables.methods import BoundMethodVariable

#: Context managers that do nothing on the way out but put torch's global state back.
_QUIET_MANAGERS: Final = frozenset(
    {
        nullcontext,
        torch.no_grad,
        torch.enable_grad,
        torch.set_grad_enabled,
        torch.autocast,
        torch.amp.autocast_mode.autocast,
    }
)
#: What handlers consist of that only put stack and locals in order and let the exception go on.
_QUIET_STEPS: Final = frozenset(
    {
        "CALL_INTRINSIC_1",
        "COPY",
        "DELETE_FAST",
        "NOP",
        "POP_EXCEPT",
        "POP_TOP",
        "PUSH_EXC_INFO",
        "STORE_FAST",
        "STORE_FAST_MAYBE_NULL",
        "STORE_FAST_STORE_FAST",
        "SWAP",
        "TO_BOOL",
    }
)
_WITH: Final = "WITH_EXCEPT_START"


def recorded(tx: Any, index: int) -> None:
    """See `protocol.Tx.recorded`."""
    graph = tx.graph
    operation = graph.operations[index]
    kind = tx.capture.writes
    if operation.raises:
        if (graph.wrote or graph.drew or kind != "in order") and _is_exposed(tx):
            if graph.wrote and kind != "last":
                _cut(tx, operation)
            graph.exposed.append(index)
    elif kind == "unknown" and graph.exposed and writes_input(operation):
        # The product may write before the operation fails that stands before the write.
        _cut(tx, operation)


def is_watched(tx: Any) -> bool:
    """See `protocol.Tx.is_watched`."""
    frame = tx
    while frame is not None:
        if _leaves(frame) is None:
            return True
        frame = frame.parent
    return False


def _cut(tx: Any, operation: Any) -> None:
    if not tx.capture.settings.fullgraph:
        target = operation.target
        tx.fail(Reason.LATE_FAILURE, getattr(target, "__name__", str(target)))


def _is_exposed(tx: Any) -> bool:
    """Whether a failure at the present step would be seen to come too late."""
    heap = tx.heap
    if any(handle.real is not None and handle.source is not None for handle in heap.written):
        return True
    if handled_inside(tx) is not None or any(generator.must_close() for generator in tx.capture.generators):
        return True
    state = tx.graph.state_key
    frame = tx
    while frame is not None:
        leaves = _leaves(frame)
        if leaves is None:
            return True
        for leave in leaves:
            state = tx.capture.entered.get(leave)
        frame = frame.parent
    return bool(state != tx.graph.first_state)


def _leaves(tx: Any) -> list[Any] | None:
    """What the ``with`` blocks around a frame's present step are left by, the inner ones first.

    None where something is active there that does more than to put torch's state back.
    """
    decoded = tx.frame.decoded
    leaves = []
    region = decoded.region(tx.frame.ip - 1)
    while region is not None:
        end, is_with = _quiet_end(decoded, region.target)
        if end is None:
            return None
        if is_with:
            leave = tx.stack[region.depth - 1]
            if not _is_quiet(tx, leave):
                return None
            leaves.append(leave)
        region = decoded.region(end)
    return leaves


def _quiet_end(decoded: Decoded, step: int) -> tuple[int | None, bool]:
    """The step at which a handler lets the exception go on, or None; and whether it is that of a ``with``."""
    is_with = False
    for at in range(step, min(step + 12, len(decoded))):
        name = decoded.op(at)
        if name == "RERAISE":
            return at, is_with
        if name == _WITH:
            is_with = True
        elif name not in _QUIET_STEPS and not (is_with and name.startswith("POP_JUMP")):
            break
    return None, False


def _is_quiet(tx: Any, leave: Any) -> bool:
    if type(leave) is not BoundMethodVariable:
        return False
    return leave.instance.realize(tx).python_type(tx) in _QUIET_MANAGERS
