"""Jumps, and the one place that decides a branch (SPEC 15)."""

from __future__ import annotations

from collections.abc import Callable

from graphlift.interpreter.dispatch import Handler, Translator, family, handler
from graphlift.protocol import Var
from graphlift.reasons import Reason
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.slots import operators


@family("JUMP_FORWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(name: str) -> Handler:
    def run(tx: Translator, target: int) -> int:
        return target

    return run


@handler
def JUMP_BACKWARD(tx: Translator, target: int) -> int:
    tx.turn()
    return target


def generic_jump(tx: Translator, value: Var) -> bool:
    """The truth of what is branched on; a break when only the running graph could tell."""
    if type(value) is ConstantVariable:
        plain = value.value
        if plain is True or plain is False or plain is None:
            return plain is True
    truth = operators.truth(tx, value)
    if isinstance(truth, bool):
        return truth
    tx.fail(Reason.DATA_DEPENDENT_BRANCH, f"attempted to jump with {truth!r}")


def _is_none(tx: Translator, value: Var) -> bool:
    return bool(operators.is_(tx, value, tx.make.constant(None)).as_constant())


_TESTS: dict[str, tuple[Callable[[Translator, Var], bool], bool]] = {
    "POP_JUMP_IF_TRUE": (generic_jump, True),
    "POP_JUMP_IF_FALSE": (generic_jump, False),
    "POP_JUMP_IF_NONE": (_is_none, True),
    "POP_JUMP_IF_NOT_NONE": (_is_none, False),
}


@family(*_TESTS)
def _pop_jump(name: str) -> Handler:
    test, wanted = _TESTS[name]

    def run(tx: Translator, target: int) -> int | None:
        return target if test(tx, tx.stack.pop()) is wanted else None

    return run


@family("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(name: str) -> Handler:
    wanted = name == "JUMP_IF_TRUE_OR_POP"

    def run(tx: Translator, target: int) -> int | None:
        if generic_jump(tx, tx.stack[-1]) is wanted:
            return target
        tx.stack.pop()
        return None

    return run
