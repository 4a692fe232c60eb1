"""Errors that only the running graph can raise: at the user's line, with the user's handlers active."""

from __future__ import annotations

import traceback

import pytest
import torch

import graphlift


def look_up(index, table, log):
    log.append("before")
    try:
        rows = torch.nn.functional.embedding(index, table)
    except IndexError:
        log.append("caught")
        return table.sum()
    finally:
        log.append("finally")
    return rows * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_users_handler_sees_it(backend):
    compiled = graphlift.compile(look_up, backend=backend, fullgraph=True)
    table = torch.randn(4, 3)
    for index in ([0, 1], [7, 0], [1, 2]):
        expected_log, log = [], []
        expected = look_up(torch.tensor(index), table, expected_log)
        assert torch.equal(compiled(torch.tensor(index), table, log), expected)
        assert log == expected_log
    assert len(compiled.report()) == 1


def divide(a, b):
    with torch.no_grad():
        c = a // b
    return c + 1


def outer(a, b):
    x = a + 1
    return divide(x, b)


def places(fn):
    with pytest.raises(RuntimeError) as caught:
        fn(torch.tensor([4]), torch.tensor([0]))
    frames = traceback.extract_tb(caught.value.__traceback__)
    return str(caught.value), [(frame.name, frame.lineno) for frame in frames[1:]]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_traceback_and_grad_mode_are_as_in_plain_python(backend):
    compiled = graphlift.compile(outer, backend=backend, fullgraph=True)
    compiled(torch.tensor([4]), torch.tensor([2]))
    assert places(compiled) == places(outer)
    assert torch.is_grad_enabled()


def counted(x, index, log):
    log.append(float(0))
    noise = torch.rand(2)
    return x[index] + noise


def test_a_graph_that_drew_random_numbers_is_not_run_again():
    compiled = graphlift.compile(counted, backend="eager", fullgraph=True)
    x = torch.arange(4.0)
    compiled(x, torch.tensor([1, 2]), [])
    torch.manual_seed(0)
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([9, 2]), [])
    after = torch.rand(1)
    torch.manual_seed(0)
    with pytest.raises(IndexError):
        counted(x, torch.tensor([9, 2]), [])
    assert torch.equal(torch.rand(1), after)


def inner_with_output(x):
    print("inner", x)
    return x + 1


def raises_before(x, fail):
    if fail:
        raise KeyError(inner_with_output(x).shape[0])
    return x * 2


def test_an_exception_under_fullgraph_is_the_users_own():
    compiled = graphlift.compile(raises_before, backend="eager", fullgraph=True)
    with pytest.raises(graphlift.exc.Unsupported):
        compiled(torch.ones(3), True)  # the print is a break of its own

    def quiet(x):
        y = x + 1
        raise KeyError(y.shape[0])

    with pytest.raises(KeyError, match="3"):
        graphlift.compile(quiet, backend="eager", fullgraph=True)(torch.ones(3))
