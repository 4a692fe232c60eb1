"""Errors that only the running graph can raise: at the user's line, with the user's handlers active."""

from __future__ import annotations

import gc
import traceback
import weakref
from typing import Any

import pytest
import torch

import graphlift
from graphlift.testing import Comparison, check


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


def appends(x, index, log):
    log.append(1)
    x.add_(1)
    y = x[index]
    log.append(2)
    return y


def handles(x, index, log):
    x.add_(1)
    try:
        return x[index]
    except IndexError:
        return x


def draws(x, index, log):
    y = torch.nn.functional.dropout(x, 0.5)
    log.append(y.sum())
    return y[index] * 2


def looks_in_vain(x, index, log):
    x[index]
    return x + 1


def left_by(function, index):
    torch.manual_seed(1)
    x, log = torch.arange(1.0, 5.0), []
    try:
        result = function(x, torch.tensor(index), log)
    except IndexError as error:
        frames = traceback.extract_tb(error.__traceback__)[1:]
        result = str(error), [(frame.name, frame.lineno) for frame in frames]
    return result, x, log, torch.get_rng_state()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [appends, handles, draws, looks_in_vain], ids=lambda p: p.__name__)
def test_behind_writes_and_draws(program, backend):
    compiled = graphlift.compile(program, backend=backend)
    for index in ([0, 1], [0, 9], [2, 3]):
        comparison = Comparison(0)
        comparison.compare(left_by(program, index), left_by(compiled, index), str(index))
        assert not comparison.differences


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(5, 4)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, index, classes):
        with torch.autocast("cpu", enabled=False):
            x = torch.nn.functional.dropout(self.table(index), 0.1)
            return torch.nn.functional.cross_entropy(self.norm(x), classes)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_model_in_training_is_one_graph(backend):
    model = Model()
    index, classes = torch.tensor([0, 1, 4]), torch.tensor([0, 3, 1])
    compiled = graphlift.compile(model, backend=backend)
    compiled(index, classes).backward()
    (entry,) = compiled.report()
    assert entry
    before = model.norm.running_mean.clone()
    with pytest.raises(IndexError):
        compiled(index, torch.tensor([0, 9, 1]))
    assert not torch.equal(model.norm.running_mean, before)
    assert not torch.is_autocast_enabled("cpu")


def test_one_graph_that_is_asked_for_is_not_cut():
    compiled = graphlift.compile(handles, backend="eager", fullgraph=True)
    compiled(torch.ones(4), torch.tensor([1]), [])
    with pytest.raises(IndexError) as caught:
        compiled(torch.ones(4), torch.tensor([9]), [])
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert last.name == "handles" and last.line == "return x[index]"


class Attached:
    pass


def test_an_error_that_left_a_graph_dies_when_nobody_has_it():
    def writes_first(x, index):
        x.add_(1)
        return x[index] * 2

    compiled = graphlift.compile(writes_first, backend="eager", fullgraph=True)
    for _ in range(2):
        gc.disable()
        try:
            compiled(torch.ones(3), torch.tensor([7]))
        except IndexError as error:
            error.attached = Attached()
            gone = weakref.ref(error.attached)
        finally:
            gc.enable()
        assert gone() is None


def test_what_fakes_let_pass_and_kernels_refuse_fails_at_its_line():
    """With a symbolic size, metadata come from fakes, which know nothing of casts."""

    def program(x, log):
        log.append(1)
        y = x.shape[0] * 2
        try:
            x *= 0.5
        except RuntimeError:
            log.append(2)
        x.mul_(2.5)
        return y

    def numbers(n):
        return torch.arange(n)

    check(
        program,
        torch.ones(3),
        [],
        then=[(torch.ones(4), []), (numbers(5), []), (numbers(6), [])],
        breaks=None,
        graphs=None,
        recompiles=None,
    )


def test_an_item_of_symbolic_place_is_set_to_a_view_of_the_same_tensor():
    def program(x, n):
        x[n] = x[0]
        x[..., n] = x[..., 0]
        return x + 1

    x = torch.arange(16.0).view(4, 4)
    check(program, x, 1, then=[(x, 2), (x, 3)], graphs=None, breaks=None, recompiles=None)


def test_what_is_drawn_before_a_call_fails_is_drawn() -> None:
    def program(x):
        y = x + 1
        try:
            y = torch.nn.functional.dropout(y, 0.5)  # draws, then fails to scale integers
        except RuntimeError:
            y = y * 2
        return y, torch.rand(2)

    check(program, torch.ones(3, dtype=torch.int64), graphs=None, breaks=None)


def test_what_is_written_before_a_call_fails_is_written() -> None:
    def program(x, y):
        try:
            torch._foreach_add_([x, y], [1, 0.5])  # an integer tensor does not take the second
        except RuntimeError:
            x = x * 2
        return x, y

    check(program, torch.ones(3), torch.ones(3, dtype=torch.int64), graphs=None, breaks=None)


def test_a_view_made_before_a_cut_is_not_written_to_by_a_graph() -> None:
    def program(x: Any) -> Any:
        view = x[None]
        graphlift.graph_break()
        return view.add_(1)

    check(program, torch.nn.Parameter(torch.ones(3)), graphs=None, breaks=None)


def test_that_what_a_graph_writes_to_is_no_view_is_guarded() -> None:
    def double(x: Any) -> Any:
        x.mul_(2)
        return x + 1

    leaf, compiled = torch.nn.Parameter(torch.ones(3)), graphlift.compile(double, backend="eager")
    assert compiled(leaf * 1).tolist() == [3.0, 3.0, 3.0]
    assert compiled((leaf * 1)[None][0]).tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(RuntimeError, match="view of a leaf") as caught:
        compiled(leaf[None][0])
    line = double.__code__.co_firstlineno + 1
    assert [(entry.name, entry.lineno) for entry in caught.traceback[1:]] == [("double", line - 1)]
