"""``exec``, ``eval`` and ``locals()``: what a frame put into its locals is there when it asks again."""

from __future__ import annotations

import torch

import graphlift
from graphlift.testing.check import check

X = torch.arange(3.0)


def test_names_that_exec_made():
    def program(x):
        y = x + 1
        exec("c = 5")
        return y * 2, "c" in locals(), sorted(locals())

    check(program, X, graphs=None, breaks=None)


def test_entries_put_into_locals():
    def program(x):
        found = locals()
        found["made"] = 3
        y = x + 1
        graphlift.graph_break()
        again = locals()
        return y, again.get("made"), again is found, sorted(again)

    check(program, X, graphs=None, breaks=None)


def test_exec_in_a_loop_and_in_a_called_function():
    def inner(y):
        seen = []
        for i in range(3):
            exec(f"name_{i} = {i}")
            seen.append(len(dir()))
        return y * 2, seen

    def program(x):
        y = x + 1
        z = inner(y)
        return z, y + 3

    check(program, X, graphs=None, breaks=None, recompiles=None, warm=False, then=[(X,)])


def test_one_exec_cuts_once():
    def program(x):
        space = {"x": x}
        exec("y = x + 1", space)
        return space["y"] * 2, eval("1 + 1")

    check(program, X, graphs=None, breaks=None)
