"""Other frame evaluators beside ours: beneath, and set on top while ours is in place."""

import ctypes
import shutil
import subprocess
import sysconfig

import pytest

from graphlift import _C
from graphlift.eval_frame import set_eval_frame

SOURCE = """
#include <Python.h>
static _PyFrameEvalFunction beneath;
static long frames;
static PyObject *evaluate(PyThreadState *tstate, struct _PyInterpreterFrame *frame, int throwflag)
{
    frames++;
    return beneath(tstate, frame, throwflag);
}
void foreign_set(void)
{
    beneath = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate);
}
void foreign_unset(void) { _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), beneath); }
int foreign_is_set(void)
{
    return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == evaluate;
}
long foreign_frames(void) { return frames; }
"""


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "foreign.c").write_text(SOURCE)
    include = sysconfig.get_paths()["include"]
    command = [compiler, "-shared", "-fPIC", "-I", include, "foreign.c", "-o", "foreign.so"]
    if subprocess.run(command, cwd=folder, capture_output=True).returncode:
        pytest.skip("no headers of CPython")
    return ctypes.PyDLL(str(folder / "foreign.so"))


@pytest.fixture(autouse=True)
def left_clean(foreign):
    yield
    assert not foreign.foreign_is_set() and not _C.hook_installed() and _C.hook_depth() == 0


def function():
    return 1


class Seen(list):
    def __call__(self, code, function_, arguments):
        if code is function.__code__:
            self.append(code)


def test_a_foreign_evaluator_beneath_is_put_back(foreign):
    foreign.foreign_set()
    set_eval_frame(seen := Seen())
    assert _C.hook_installed()
    before = foreign.foreign_frames()
    function()
    assert foreign.foreign_frames() > before and len(seen) == 1
    set_eval_frame(None)
    assert foreign.foreign_is_set()
    foreign.foreign_unset()


def test_a_foreign_evaluator_on_top_stays(foreign):
    set_eval_frame(seen := Seen())
    foreign.foreign_set()
    function()
    set_eval_frame(None)
    assert foreign.foreign_is_set()  # ours is left beneath it and passes frames through
    function()
    assert len(seen) == 1
    set_eval_frame(seen)  # still asked from above: not installed a second time
    assert foreign.foreign_is_set()
    function()
    assert len(seen) == 2
    set_eval_frame(None)
    foreign.foreign_unset()  # it puts back what it found: ours
    assert _C.hook_installed() and function() == 1
    set_eval_frame(seen)
    function()
    assert len(seen) == 3
    set_eval_frame(None)


def test_compiled_calls_under_a_foreign_evaluator(foreign):
    compiled = _C.CompiledFunction(function, object(), lambda c, p: None)
    foreign.foreign_set()
    try:
        assert [compiled() for _ in range(3)] == [1] * 3
        assert foreign.foreign_is_set()
    finally:
        foreign.foreign_unset()
