"""One verified call: the compiled run, which counts, and a plain one on copies, which it must equal."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from graphlift import _C, config
from graphlift.comparison import Comparison
from graphlift.errors import GraphliftError, VerificationError
from graphlift.verification.shared import tell_once
from graphlift.verification.surroundings import Surroundings, apart, same_state, silence
from graphlift.verification.turns import turns
from graphlift.verification.world import World

Backend = str | Callable[..., Any]

#: Backends that run the graph's own operations in order: random numbers and messages are plain Python's.
_FAITHFUL = ("eager", "aot_eager")


class _Here(threading.local):
    """Whether a verified call runs on this thread."""

    active = False


_here = _Here()
_paused = False


def pause(paused: bool) -> None:
    """Say whether verified calls are just calls for now, because nothing compiled is used."""
    global _paused
    _paused = paused


def run(
    compiled: Callable[..., Any],
    function: FunctionType,
    backend: Backend,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call `compiled` and give back what it returns or raises, if `function` does the same on copies.

    Inside another verified call (which verifies this one along) and during captures it is just called.

    Raises:
        VerificationError: it does not do the same.
    """
    if _here.active or _paused or _C.capturing():
        return compiled(*args, **kwargs)
    if torch._C._functorch.peek_interpreter_stack() is not None:
        tell_once("transforms", "calls under a function transform are not verified")
        return compiled(*args, **kwargs)
    with turns.running() as admitted:
        if not admitted:
            return compiled(*args, **kwargs)
        _here.active = True
        try:
            return _verified(compiled, function, backend, args, kwargs)
        finally:
            _here.active = False


def _verified(
    compiled: Callable[..., Any],
    function: FunctionType,
    backend: Backend,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    trial = _C.plain_call(_begun, function, backend, args, kwargs)
    if trial is None:
        return compiled(*args, **kwargs)
    result, error = None, None
    try:
        result = compiled(*args, **kwargs)
    except (GraphliftError, KeyboardInterrupt):
        raise  # no outcome of the program's
    except BaseException as raised:
        error = raised
    _C.plain_call(_checked, trial, result, error)
    if error is None:
        return result
    context = error.__context__
    try:
        raise error
    finally:
        error.__context__ = context
        del error, trial


def _begun(*call: Any) -> Trial | None:
    """The trial of a call, or None where there can be none."""
    try:
        return Trial(*call)
    except Exception as error:
        _failed(error)
        return None


def _checked(trial: Trial, result: Any, error: BaseException | None) -> None:
    try:
        trial.check(result, error)
    except VerificationError:
        raise
    except Exception as failure:
        _failed(failure)


def _failed(error: Exception) -> None:
    """What goes wrong in here is not the program's affair."""
    if not config.suppress_errors:
        raise error
    if isinstance(error, RecursionError):
        tell_once("recursion", "a call whose state is nested too deeply to be copied is not verified")
    else:
        tell_once(f"failure: {error!r}", "a call could not be verified", error)


class Trial:
    """The state before a call, and the plain run that starts from it."""

    def __init__(
        self, function: FunctionType, backend: Backend, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._function = function
        self._backend = backend
        self._faithful = not isinstance(backend, str) or backend in _FAITHFUL
        self._before = Surroundings()
        self._context = contextvars.copy_context()
        self._inputs = list(_named(function, args, kwargs))
        with apart():
            self._world = World(function)
            copies = [self._world.copy(value, path) for path, value in self._inputs]
            self._world.copy_places()
        self._copies = copies
        self._args = copies[: len(args)]
        self._kwargs = dict(zip(kwargs, copies[len(args) :], strict=True))

    def check(self, result: Any, error: BaseException | None) -> None:
        """Run plainly and compare, having got `result` or `error` from the compiled run.

        Raises:
            VerificationError: something differs.
        """
        moved = self._world.shared.moved()
        if moved is not None:
            tell_once("moved", f"{moved} was moved on by the call and cannot be moved twice: not verified")
            return
        if not turns.alone():
            tell_once("threads", "calls during which other threads run verified calls are not verified")
            return
        after = Surroundings()
        try:
            with self._world.borrowed(), silence():
                self._before.restore()
                plain, plain_error = self._context.run(self._run)
            left = Surroundings()
        finally:
            after.restore()
            turns.not_alone()
        with apart():
            comparison = self._compared(left)
            self._outcomes(comparison, plain, plain_error, result, error)
            self._surroundings(comparison, left, after)
        self._told(comparison, error)

    def _run(self) -> tuple[Any, BaseException | None]:
        try:
            return self._function(*self._args, **self._kwargs), None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return None, error

    def _compared(self, left: Surroundings) -> Comparison:
        """State in which the two runs found their arguments and names."""
        drawn = not same_state(left.random, self._before.random)
        comparison = Comparison(
            0.0 if self._backend == "eager" else None,
            consume=False,
            layout=self._faithful,
            values=self._faithful or not drawn,
        )
        if not comparison.values:
            text = "draws its own random numbers: values are not compared where a program draws any"
            tell_once("random", f"backend {self._backend!r} {text}")
        self._world.expect_pairs(comparison)
        for (path, original), copied in zip(self._inputs, self._copies, strict=True):
            comparison.compare(copied, original, path)
        self._world.compare_places(comparison)
        return comparison

    def _outcomes(
        self,
        comparison: Comparison,
        plain: Any,
        plain_error: BaseException | None,
        result: Any,
        error: BaseException | None,
    ) -> None:
        if plain_error is None and error is None:
            comparison.compare(plain, result, "result")
        elif plain_error is None or error is None:
            comparison.differ("error", f"expected {_raised(plain_error)}, got {_raised(error)}")
        elif self._faithful:
            comparison.compare(plain_error, error, "error")
        elif type(plain_error) is not type(error):
            comparison.differ("error", f"expected {plain_error!r}, got {error!r}")

    def _surroundings(self, comparison: Comparison, plain: Surroundings, compiled: Surroundings) -> None:
        for name, state in plain.settings.items():
            if not same_state(state, compiled.settings[name]):
                comparison.differ(name, f"expected {state}, got {compiled.settings[name]}")
        for name, state in plain.random.items() if self._faithful else ():
            if not same_state(state, compiled.random[name]):
                comparison.differ(name, "other random numbers were drawn than expected")

    def _told(self, comparison: Comparison, error: BaseException | None) -> None:
        for text in comparison.uncompared:
            tell_once("values", f"values of a tensor cannot be compared: {text}")
        if comparison.differences:
            raise VerificationError(self._function.__code__, comparison.differences) from error


def _raised(error: BaseException | None) -> str:
    return "no error" if error is None else f"{error!r} to be raised"


def _named(function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Arguments with the paths by which messages call them."""
    code = function.__code__
    is_method = code.co_argcount > 0 and bool(args)
    is_method = is_method and (code.co_varnames[0] == "self" or isinstance(args[0], torch.nn.Module))
    for index, value in enumerate(args):
        yield "self" if is_method and index == 0 else f"args[{index - is_method}]", value
    for name, value in kwargs.items():
        yield f"kwargs[{name!r}]", value
