"""``warnings.warn`` in captured code, shown behind the graph. (PYTEST_DONT_REWRITE)"""

from __future__ import annotations

import contextlib
import io
import warnings

import pytest
import torch

import graphlift
from graphlift.testing.check import check

X = torch.arange(3.0)

#: What shows a warning where nobody records it.
OWN_IMPL = vars(warnings)["_showwarnmsg_impl"]


class Own(UserWarning):
    pass


def plainly(x):
    warnings.warn("plainly")
    return x + 1


def of_a_class(x):
    warnings.warn("of a class", Own)
    warnings.warn("of another", category=DeprecationWarning, stacklevel=1)
    return x + 1


def helper(x):
    warnings.warn("of the caller", RuntimeWarning, stacklevel=2)
    warnings.warn("of the helper", RuntimeWarning)
    return x * 2


def in_a_helper(x):
    y = helper(x)
    return helper(y) + 1


def in_a_comprehension(x):
    return [helper(x * n) for n in range(2)]


@pytest.mark.parametrize("program", [plainly, of_a_class, in_a_helper, in_a_comprehension])
def test_shown_behind_the_graph(program):
    check(program, X, graphs=1)


def of_the_caller_outside(x):
    warnings.warn("of whoever calls", stacklevel=2)
    return x + 1


def an_instance(x):
    warnings.warn(Own("an instance"))
    return x + 1


def where_it_is_handled(x):
    try:
        warnings.warn("handled")
    except UserWarning:
        return x
    return x + 1


def filtered_by_itself(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("not shown")
    return x + 1


@pytest.mark.parametrize(
    "program", [of_the_caller_outside, an_instance, where_it_is_handled, filtered_by_itself]
)
def test_shown_at_their_place(program):
    check(program, X, graphs=None, breaks=None)


def shown(fn, *args):
    """What a call writes to stderr, with the registries of warnings empty before."""
    globals().pop("__warningregistry__", None)
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            result = fn(*args)
        except Warning as error:
            result = repr(error)
    return said.getvalue(), result


def append_and_warn(x, log):
    log.append("before")
    warnings.warn("in between")
    log.append("behind")
    return x + 1


@pytest.mark.parametrize("action", ["default", "always", "ignore", "error", "once", "module"])
def test_filters(action):
    compiled = graphlift.compile(append_and_warn, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = warnings._showwarning_orig
        warnings._showwarnmsg_impl = OWN_IMPL
        for chosen in ("always", action, "always"):
            warnings.simplefilter(chosen)
            for _ in range(2):
                logs = [], []
                plain, found = shown(append_and_warn, X, logs[0]), shown(compiled, X, logs[1])
                assert str(plain) == str(found)
                assert logs[0] == logs[1]


def test_a_hook_of_the_programs_sees_the_state_of_the_moment():
    compiled = graphlift.compile(append_and_warn, backend="eager")
    for fn in (append_and_warn, compiled, compiled):
        log = []
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda *what, log=log: log.append(len(log))
            fn(X, log)
        assert log == ["before", 1, "behind"]
