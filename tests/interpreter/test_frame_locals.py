"""``exec``, ``eval``, ``locals()`` and frames as objects: what a frame put into its locals is there when it
asks again, and a frame that it asks for is its own."""

from __future__ import annotations

import inspect
import sys

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


def test_a_frame_that_is_kept_is_the_one_that_goes_on():
    def program(x):
        frame = sys._getframe()
        y = x + 1
        graphlift.graph_break()
        late = y * 2
        return (
            late,
            "late" in frame.f_locals,
            frame is inspect.currentframe(),
            frame.f_lineno - frame.f_code.co_firstlineno,
        )

    check(program, X, graphs=None, breaks=None)


def test_locals_of_a_kept_frame():
    def program(x):
        y = x + 1
        inside = [sys._getframe().f_locals for item in (1, 2)]
        return y * 2, "item" in inside[0]

    check(program, X, graphs=None, breaks=None)


def test_a_frame_of_a_traceback_is_the_one_that_goes_on():
    def program(x):
        y = x + 1
        graphlift.graph_break()
        try:
            raise ValueError("no")
        except ValueError as error:
            same = error.__traceback__.tb_frame is sys._getframe()
        return y * 2, same

    check(program, X, graphs=None, breaks=None)


def test_what_all_parts_of_a_frame_have_in_common_does_not_keep_it_whole():
    def program(x):
        y = x + 1
        name = sys._getframe().f_code.co_name
        caller = sys._getframe(1)
        return y * 2, name, caller is None

    check(program, X, graphs=2, breaks=1)  # the callers of what is captured are not known
