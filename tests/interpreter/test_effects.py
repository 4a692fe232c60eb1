"""Effects of a captured program: all of them, in program order, once, however the frame ends."""

from __future__ import annotations

import pytest
import torch

import graphlift
from graphlift.testing import check_fresh

X = torch.ones(3)


class Journal(list):
    """Notes what is done to it, in order."""

    def append(self, item):
        super().append(("append", item))


class Box:
    pass


def endings(end):
    if end == "break":
        graphlift.graph_break()
    if end == "raise":
        raise KeyError("the program's own")


COUNT = 0


@pytest.mark.parametrize("end", ["return", "break", "raise"])
def test_every_kind_of_effect(end):
    def make():
        total = 0

        def program(x, items, table, members, box, buffer):
            nonlocal total
            items.append(x * 2)
            table["k"] = items
            members.add(3)
            box.value = x + 1
            box.twin = items
            buffer.add_(1)
            total += 1
            endings(end)
            items[0] = None
            del table["old"]
            box.seen = total
            return items, table

        return program, (X, [], {"old": 1}, {1}, Box(), torch.zeros(3))

    check_fresh(make, graphs=None, breaks=None, recompiles=None)


@pytest.mark.parametrize("end", ["return", "break", "raise"])
def test_a_global_is_written_once(end):
    def program(x):
        global COUNT
        COUNT += 1
        y = x + 1
        endings(end)
        COUNT += 10
        return y

    compiled = graphlift.compile(program, backend="eager")
    for _ in range(2):
        before = COUNT
        if end == "raise":
            with pytest.raises(KeyError):
                compiled(X)
        else:
            assert torch.equal(compiled(X), X + 1)
        assert COUNT - before == (1 if end == "raise" else 11)


@pytest.mark.parametrize("end", ["return", "break", "raise"])
def test_program_order_on_one_journal(end):
    def make():
        def program(x, journal, other):
            journal.append(1)
            other.append(len(journal))
            journal.append(x.shape[0])
            endings(end)
            journal.append(x + 1)
            return journal

        return program, (X, Journal(), [])

    check_fresh(make, graphs=None, breaks=None, recompiles=None)


def test_identity_and_aliasing():
    def make():
        def program(x, items):
            made = [x + 1]
            items.append(made)
            items.append(made)
            view = x.view(3, 1)
            items.append(view)
            return made, view, items[0], x

        return program, (X.clone(), [])

    check_fresh(make)


def test_an_error_that_only_the_graph_can_raise():
    """It comes at the user's line, with the effects before it done and the user's handlers active."""

    def make():
        def program(x, index, items):
            items.append("before")
            try:
                y = torch.ones(2)[index]
                items.append("not reached")
            except IndexError as error:
                items.append(type(error).__name__)
                y = x
            items.append("after")
            return y + 1

        return program, (X, torch.tensor([7]), [])

    check_fresh(make, graphs=None, breaks=None, recompiles=None)
