"""Frames of called Python functions, and suspended frames of generators."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from types import CodeType
from typing import Any

from graphlift import config
from graphlift.bytecode.decode import decode
from graphlift.errors import ObservedException
from graphlift.heap import Handle
from graphlift.interpreter.base import InstructionTranslatorBase
from graphlift.interpreter.dispatch import YIELDED
from graphlift.interpreter.frame_state import FrameState
from graphlift.protocol import Var
from graphlift.reasons import Reason
from graphlift.variables import generators
from graphlift.variables.slots import attributes


class InliningInstructionTranslator(InstructionTranslatorBase):
    """The frame of a function called by captured code; its value goes on the caller's stack."""


def inline(
    tx: InstructionTranslatorBase,
    function: Var,
    code: CodeType,
    bound: dict[str, Var],
    closure: Sequence[Handle],
    module_globals: Handle,
) -> Var:
    """See `protocol.Tx.inline`."""
    if code.co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR):
        tx.fail(Reason.GENERATOR, f"a call of the coroutine function {code.co_qualname}")
    if tx.depth >= config.inline_depth:
        tx.fail(Reason.RECURSION, f"{code.co_qualname} is {tx.depth} calls deep")
    tx.capture.calls += 1
    frame = FrameState(code, decode(code), bound, closure, module_globals)
    callee = InliningInstructionTranslator(tx.capture, frame, tx)
    callee.function = function
    callee.last = tx.begin_call(function)
    clock = tx.capture.clock
    callee.run() if clock is None else clock.run(code, callee.run)
    result: Var = callee.result
    return result


def run_body(
    tx: InstructionTranslatorBase,
    code: CodeType,
    names: Var,
    closure: Sequence[Handle],
    module_globals: Handle,
) -> Var:
    """See `protocol.Tx.run_body`."""
    frame = FrameState(code, decode(code), {}, closure, module_globals)
    frame.names = names
    callee = InliningInstructionTranslator(tx.capture, frame, tx)
    tx.operation = None
    callee.run()
    result: Var = callee.result
    return result


def resume(
    tx: InstructionTranslatorBase, frame: FrameState, sent: Var | None, error: Var | None = None
) -> tuple[bool, Var]:
    """See `protocol.Tx.resume_generator`."""
    before = frame.copy()
    tx.heap.on_undo(frame.restore, before)
    callee = InliningInstructionTranslator(tx.capture, frame, tx)
    tx.operation = None
    if error is not None:
        if not _throw(callee, error):
            return True, callee.result
    else:
        frame.stack.append(tx.make.constant(None) if sent is None else sent)
    clock = tx.capture.clock
    word = callee.run() if clock is None else clock.run(callee.code, callee.run)
    return word == YIELDED, callee.result


def _throw(callee: InstructionTranslatorBase, error: Var) -> bool:
    """Throw into a suspended frame; False when a sub-iterator took it and yielded (into `result`).

    Mirrors _gen_throw of Objects/genobject.c.
    """
    waiting = _yield_from(callee.frame)
    receiver = None if waiting is None else waiting.realize(callee)
    if receiver is not None and issubclass(error.realize(callee).python_type(callee), GeneratorExit):
        try:
            generators.close_receiver(callee, receiver)
        except ObservedException as failed:
            error = failed.value
    elif isinstance(receiver, generators.GeneratorVariable):
        return _delegate(callee, receiver, error)
    elif receiver is not None and attributes.hasattr_(callee, receiver, "throw"):
        callee.fail(Reason.GENERATOR, "throw() into an iterator that has a `throw` of its own")
    _raise_at(callee, error)
    return True


def _delegate(callee: InstructionTranslatorBase, receiver: generators.GeneratorVariable, error: Var) -> bool:
    frame = callee.frame
    try:
        yielded, value = receiver.resume(callee, None, error)
    except ObservedException as failed:
        _raise_at(callee, failed.value)
        return True
    if yielded:
        callee.result = value
        return False
    # The receiver is finished: go on where its SEND jumps to.
    send = frame.ip - 1
    while frame.decoded.op(send) != "SEND":
        send -= 1
    if not callee.send_keeps_receiver:
        frame.stack.pop()
    frame.stack.append(value)
    frame.ip = frame.decoded.operands[send]
    return True


def _raise_at(callee: InstructionTranslatorBase, error: Var) -> None:
    """Make the frame go on at the handler of its present instruction, or raise through it."""
    callee.frame.ip = callee.enter_handler(ObservedException(error))


def _yield_from(frame: FrameState) -> Any | None:
    """What a frame suspended in ``yield from`` delegates to, or None."""
    decoded = frame.decoded
    ip = frame.ip
    if ip < len(decoded) and decoded.op(ip) == "RESUME" and decoded.args[ip] & 3 >= 2 and frame.stack:
        return frame.stack[-1]
    return None
