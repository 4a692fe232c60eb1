"""CPython's evaluator is its own except while frames may have to be caught; functions are not touched."""

from __future__ import annotations

import os
import pathlib
import py_compile
import random
import subprocess
import sys
import threading

import pytest
import torch

import graphlift
from graphlift import _C
from graphlift.eval_frame import set_eval_frame
from graphlift.testing import CompileCounter

X = torch.ones(3)


@pytest.fixture(autouse=True)
def _default_before_and_after():
    graphlift.reset()
    assert not _C.hook_installed()
    yield
    assert not _C.hook_installed() and _C.hook_depth() == 0


def looking(seen):
    seen.append(_C.hook_installed())


def test_a_whole_graph_runs_without_the_hook():
    seen = []

    def backend(module, inputs):
        looking(seen)
        return lambda *flat: (looking(seen), module(*flat))[1]

    compiled = graphlift.compile(lambda x: x + 1, backend=backend)
    assert not _C.hook_installed()
    for _ in range(3):
        assert torch.equal(compiled(X), X + 1)
        assert not _C.hook_installed()
    assert seen == [False] * 4  # while the backend compiles, and in each run of its product


def test_it_is_in_place_while_plain_code_may_call_what_matters():
    counter, seen = CompileCounter(), []

    def inner(x):
        return x * 2

    def program(x):
        graphlift.graph_break()
        return Meeting(seen, inner).reduce(x)

    assert torch.equal(graphlift.compile(program, backend=counter)(X), X * 2)
    assert seen == [True] and counter.frame_count == 1


class Meeting:
    """Calls back from C code that no capture looks into."""

    def __init__(self, seen, inner):
        self.seen, self.inner = seen, inner

    def reduce(self, x):
        note = disabled_note if isinstance(self.seen, list) else None
        return [*sorted([(1, self)], key=lambda pair: note(self.seen, x))][0][1].inner(x)


def disabled_note(seen, x):
    seen.append(_C.hook_installed())
    return 0


@pytest.mark.parametrize("cut", [False, True])
def test_it_goes_when_an_exception_leaves(cut):
    def program(x):
        if cut:
            graphlift.graph_break()
        raise KeyError(x.shape[0])

    compiled = graphlift.compile(program, backend="eager")
    for _ in range(3):
        with pytest.raises(KeyError):
            compiled(X)
        assert not _C.hook_installed() and _C.hook_depth() == 0


def test_eight_threads_that_enter_and_leave_at_random():
    def program(x, n):
        y = x * n
        if n % 3 == 0:
            graphlift.graph_break()
        if n % 5 == 0:
            raise KeyError(n)
        return y + 1

    compiled, failures = graphlift.compile(program, backend="eager"), []

    def run(seed):
        choose = random.Random(seed)
        for _ in range(30):
            n = choose.randrange(1, 7)
            try:
                if not torch.equal(compiled(X, n), X * n + 1):
                    failures.append(n)
            except KeyError:
                if n % 5:
                    failures.append(n)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_code_object_is_the_functions_own():
    def program(x):
        graphlift.graph_break()
        return x + 1

    code, fields = program.__code__, code_fields(program.__code__)
    compiled = graphlift.compile(program, backend="eager")
    compiled(X)
    compiled(X)
    assert program.__code__ is code and compiled.__code__ is code and code_fields(code) == fields


def code_fields(code):
    return {name: getattr(code, name) for name in dir(code) if name.startswith("co_") and name != "co_lines"
            and not callable(getattr(code, name))}  # fmt: skip


def test_code_that_exists_as_bytecode_only(tmp_path: pathlib.Path):
    source = tmp_path / "only_compiled.py"
    source.write_text("def made(x):\n    y = x * 2\n    print(end='')\n    return y + 1\n", encoding="utf-8")
    py_compile.compile(str(source), cfile=str(tmp_path / "only_compiled.pyc"))
    source.unlink()
    program = (
        "import torch, graphlift, only_compiled\n"
        "from graphlift.testing import CompileCounter\n"
        "c = CompileCounter(); x = torch.ones(2)\n"
        "assert torch.equal(graphlift.compile(only_compiled.made, backend=c)(x), x * 3)\n"
        "assert c.op_count == 2\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_anyones_evaluator_beside_compiled_calls():
    counter, seen = CompileCounter(), []
    compiled = graphlift.compile(lambda x: x + 1, backend=counter)

    def original(a):
        return a

    def other(a):
        return a * 10

    def callback(code, function, arguments):
        if code is original.__code__:
            seen.append((function, arguments))
            return other.__code__
        return None

    former = set_eval_frame(callback)
    try:
        assert original(4) == 40 and torch.equal(compiled(X), X + 1)
        assert _C.hook_installed()
    finally:
        set_eval_frame(former)
    assert original(4) == 4 and len(seen) == 1 and seen[0][0] is original
