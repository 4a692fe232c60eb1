"""A tensor operation on either side of a body, so that the body is part of a frame that matters."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

INPUT = torch.arange(3.0)
EXPECTED = (INPUT + 1) * 2


def _body(body: Callable[[], Any], x: torch.Tensor) -> tuple[torch.Tensor, Any]:
    before = x + 1
    result = body()
    return before * 2, result


def _guarded_body(body: Callable[[], Any], x: torch.Tensor) -> tuple[torch.Tensor, Any]:
    before = x + 1
    try:
        result = body()
    except BaseException as error:
        result = error
    return before * 2, result


def surrounded(name: str, *, keeps_errors: bool = False) -> types.FunctionType:
    """A function with a code object of its own, of a body and `INPUT`, that gives `EXPECTED` and the body's
    result.

    Arguments:
        name: the function's name.
        keeps_errors: what the body raises is its result.
    """
    model = _guarded_body if keeps_errors else _body
    code = model.__code__.replace(co_name=name, co_qualname=name)
    return types.FunctionType(code, model.__globals__, name)


def judged(outcome: tuple[torch.Tensor, Any]) -> Any:
    """The body's result, when the tensor beside it is right."""
    value, result = outcome
    if not torch.equal(value, EXPECTED):
        raise AssertionError(f"the operations around the body gave {value}")
    return result
