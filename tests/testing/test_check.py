"""`check` must let a faithful engine pass and catch an unfaithful one, whatever it gets wrong."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from graphlift import events
from graphlift.reasons import Reason
from graphlift.testing import check, check_fresh

Function = Callable[..., Any]


def faithful(fn: Function, **options: Any) -> Function:
    """An engine that captures nothing."""
    return fn


def checked(fn: Function, *inputs: Any, engine: Function = faithful, **options: Any) -> Any:
    return check(fn, *inputs, graphs=0, engine=engine, **options)


def test_a_faithful_engine_passes() -> None:
    def program(x: torch.Tensor, items: list[Any]) -> Any:
        print("hello")
        warnings.warn("careful", stacklevel=1)
        items.append(x)
        x.add_(1)
        return x, items, torch.rand(2), random.random()

    result = checked(program, torch.ones(2), []).result
    assert result[1][0] is result[0]


def test_inputs_keep_their_aliasing() -> None:
    base = torch.zeros(4)

    def program(x: torch.Tensor, y: torch.Tensor, a: list[int], b: list[int]) -> bool:
        return x is y and a is b

    items = [1]
    assert checked(program, base, base, items, items).result is True


def test_modules_are_copied_with_their_inputs() -> None:
    module = torch.nn.BatchNorm1d(3)
    checked(module, torch.rand(4, 3))
    assert module.num_batches_tracked == 0


def test_errors_are_results_too() -> None:
    def program(x: torch.Tensor) -> None:
        raise ValueError("no")

    outcome = checked(program, torch.ones(1)).outcomes[0]
    assert isinstance(outcome.error, ValueError)
    assert [name for _, _, name in outcome.frames] == ["program"]


def wrong_result(fn: Function, **options: Any) -> Function:
    return lambda *args: fn(*args) + 1


def copies_inputs(fn: Function, **options: Any) -> Function:
    return lambda *args: fn(*(arg.clone() for arg in args))


def prints(fn: Function, **options: Any) -> Function:
    def run(*args: Any) -> Any:
        print("extra")
        return fn(*args)

    return run


def warns(fn: Function, **options: Any) -> Function:
    def run(*args: Any) -> Any:
        warnings.warn("extra", stacklevel=2)
        return fn(*args)

    return run


def leaves_grad_mode_off(fn: Function, **options: Any) -> Function:
    def run(*args: Any) -> Any:
        result = fn(*args)
        torch._C._set_grad_enabled(False)
        return result

    return run


def draws_random_numbers(fn: Function, **options: Any) -> Function:
    def run(*args: Any) -> Any:
        torch.rand(1)
        return fn(*args)

    return run


def raises(fn: Function, **options: Any) -> Function:
    def run(*args: Any) -> Any:
        raise RuntimeError("extra")

    return run


def adds_a_frame(fn: Function, **options: Any) -> Function:
    return lambda *args: fn(*args)


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (wrong_result, "tensor's values differ"),
        (copies_inputs, "another object|values differ"),
        (prints, "printed"),
        (warns, "warned"),
        (leaves_grad_mode_off, "grad mode"),
        (draws_random_numbers, "state of torch's random generator"),
        (raises, "RuntimeError: extra"),
    ],
)
def test_an_unfaithful_engine_is_caught(engine: Function, said: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1)

    with torch.enable_grad(), pytest.raises(AssertionError, match=said):
        checked(program, torch.ones(2), engine=engine)
    torch.set_grad_enabled(True)


def test_a_traceback_with_a_frame_too_many_is_caught() -> None:
    def program(x: torch.Tensor) -> None:
        raise ValueError

    with pytest.raises(AssertionError, match="traceback"):
        checked(program, torch.ones(2), engine=adds_a_frame)


def pretends(*made: events.Event, on_call: int = 1) -> Function:
    """An engine that emits events on one of its calls."""

    def engine(fn: Function, **options: Any) -> Function:
        calls = 0

        def run(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == on_call:
                for event in made:
                    events.emit(event)
            return fn(*args)

        return run

    return engine


CODE = sys._getframe().f_code
BREAK = events.GraphBroken(
    1, Reason.DATA_DEPENDENT_BRANCH, "context", [(CODE, 3)], lambda: "the whole message of the break"
)
FAILURE = events.InternalFailure(1, CODE, KeyError("ours"))
STARTED = events.CaptureStarted(1, CODE)
AGAIN = events.Recompiling(1, CODE, ["n was 3, now 4"])
MADE = events.BytecodeMade(1, CODE, CODE)


def identity(x: torch.Tensor) -> torch.Tensor:
    return x


def test_counts_are_compared_and_the_message_explains() -> None:
    engine = pretends(BREAK, MADE)
    assert checked(identity, torch.ones(1), engine=engine, breaks=1).captured.breaks
    with pytest.raises(AssertionError, match=r"(?s)breaks: expected 0, got 1.*whole message.*emitted code"):
        checked(identity, torch.ones(1), engine=pretends(BREAK, MADE))
    with pytest.raises(AssertionError, match="graphs: expected 1, got 0"):
        check(identity, torch.ones(1), engine=faithful)


def test_an_internal_failure_fails_the_check() -> None:
    with pytest.raises(AssertionError, match="KeyError: 'ours'"):
        checked(identity, torch.ones(1), engine=pretends(FAILURE))


def test_capturing_again_for_equal_inputs_fails_the_check() -> None:
    with pytest.raises(AssertionError, match="captured again"):
        checked(identity, torch.ones(1), engine=pretends(STARTED, on_call=2))


def test_recompiles_are_counted_over_all_calls() -> None:
    engine = pretends(STARTED, AGAIN, on_call=3)
    found = checked(identity, torch.ones(1), then=[(torch.ones(2),)], engine=engine, recompiles=1)
    assert found.captured.recompiles == ["n was 3, now 4"]
    assert len(found.outcomes) == 3
    with pytest.raises(AssertionError, match="recompiles: expected 0, got 1"):
        engine = pretends(AGAIN, on_call=3)
        checked(identity, torch.ones(1), then=[(torch.ones(2),)], engine=engine)


def test_fresh_state_for_each_side() -> None:
    def make() -> Any:
        seen: list[int] = []

        def program(x: torch.Tensor, state: list[int]) -> int:
            seen.append(1)
            return len(seen)

        return program, (torch.ones(1), seen)

    found = check_fresh(make, then=[(torch.ones(1), [])], graphs=0, engine=faithful)
    assert [outcome.result for outcome in found.outcomes] == [1, 2]
