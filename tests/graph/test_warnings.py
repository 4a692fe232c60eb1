"""Operations that warn do so from within a captured graph as they do from plain code."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F

import graphlift


def resized(x, out):
    torch.add(x, 1, out=out)
    return out * 2


@pytest.mark.parametrize("action", ["default", "always", "error"])
def test_a_warning_inside_the_graph(action):
    def run(fn):
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            try:
                return fn(torch.ones(2, 3), torch.ones(5))
            except Warning as warning:
                return type(warning)

    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else torch says it once a process, and plain code would have said it
    try:
        actual, expected = run(graphlift.compile(resized, backend="eager")), run(resized)
    finally:
        torch.set_warn_always(always)
    if isinstance(expected, type):
        assert actual is expected
    else:
        assert torch.equal(actual, expected)


OPERATIONS = {
    "a loss of two shapes": lambda x: F.mse_loss(x, torch.ones(1, 2)),
    "an implicit dimension": lambda x: F.softmax(x),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_functions_of_torch_warn_at_their_own_place(name):
    operation = OPERATIONS[name]

    def program(x):
        warnings.warn("first", UserWarning, stacklevel=1)
        y = operation(x * 2)
        return y + 1

    def caught(x):
        try:
            return operation(x)
        except UserWarning:
            return "caught"

    def told(function):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            result = function(torch.ones(2))
        return str(result), [(str(each.message), each.filename, each.lineno) for each in found]

    def failing(x):
        try:
            return F.mse_loss(x, torch.ones(3))  # warns first
        except RuntimeError as error:
            return type(error)

    compiled, fails = (graphlift.compile(function, backend="eager") for function in (program, failing))
    for _ in range(2):
        assert told(compiled) == told(program)
        assert told(fails) == told(failing)
    assert len(told(failing)[1]) == 1
    assert len(told(program)[1]) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert graphlift.compile(caught, backend="eager")(torch.ones(2)) == "caught"
