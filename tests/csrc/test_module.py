"""Where the core refuses to work, and that its memory stays flat."""

import resource
import subprocess
import sys

import pytest

from graphlift import _C


def run_python(source):
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)


def test_subinterpreters_are_refused_in_one_sentence():
    interpreters = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    source = f"""
import {interpreters} as interpreters, sys
from graphlift import _C
script = '''
import sys, types
package = sys.modules["graphlift"] = types.ModuleType("graphlift")
package.__path__ = {[*sys.modules["graphlift"].__path__]!r}
try:
    import graphlift._C
except ImportError as error:
    print(error)
'''
for isolated in (False, True):
    if sys.version_info >= (3, 13):
        identity = interpreters.create("isolated" if isolated else "legacy")
    else:
        identity = interpreters.create(isolated=isolated)
    failed = interpreters.run_string(identity, script)
    assert failed is None, failed
    interpreters.destroy(identity)
"""
    result = run_python(source)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert lines[0] == "graphlift._C works in the main interpreter only, not in subinterpreters."
    assert "subinterpreters" in lines[1]  # isolated ones are refused by CPython itself from 3.12 on


def test_can_be_imported_again():
    source = """
import sys
from graphlift import _C
first = _C.CompiledFunction(lambda: 1, object(), lambda c, p: None)
del sys.modules["graphlift._C"]
import graphlift._C as again
assert again.CompiledFunction is _C.CompiledFunction
assert first() == 1 and again.hook_depth() == 0
"""
    result = run_python(source)
    assert result.returncode == 0, result.stderr


def test_goes_down_quietly_with_live_caches():
    source = """
import atexit, sys
from graphlift import _C
settings = object()
def f(x): return x
compiled = _C.CompiledFunction(f, settings, lambda c, p: None)
_C.cache_of(f.__code__, settings).add(_C.Entry(_C.GuardProgram([]), lambda x: x, data=compiled))
_C.set_frame_handler(lambda *what: None)
_C.set_frame_callback(lambda *what: None)
class Late:
    def __del__(self): compiled(1); f(1)
sys.late = late = Late()
assert compiled(1) == 1
"""
    result = run_python(source)
    assert result.returncode == 0 and result.stderr == ""


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


SETTINGS = object()


def original(x, y=2, *a, **k):
    return None


def make(bound, fails):
    def entry(*flat):
        if fails:
            raise KeyError
        return flat

    program = _C.GuardProgram([("param", -1, 0)], [0]) if bound else _C.GuardProgram([])
    settings = object()
    _C.cache_of(original.__code__, settings).add(_C.Entry(program, entry))
    return _C.CompiledFunction(original, settings, lambda c, p: None)


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_memory_stays_flat_over_calls(bound, fails):
    compiled = make(bound, fails)

    def loop(count):
        for number in range(count):
            try:
                compiled(number, z=1)
            except KeyError:
                pass

    loop(10_000)
    before = peak()
    loop(250_000)
    assert peak() - before < 1024


def test_memory_stays_flat_over_misses_and_jumps():
    settings = object()
    target = _C.CompiledFunction(original, settings, lambda c, p: NotImplemented)

    def first(x):
        return _C.Jump(target, (x, 1, (), {}))

    starter = _C.CompiledFunction(first, settings, lambda c, p: None)
    _C.cache_of(first.__code__, settings).add(_C.Entry(_C.GuardProgram([]), first))

    def loop(count):
        for number in range(count):
            starter(number)

    loop(10_000)
    before = peak()
    loop(250_000)
    assert peak() - before < 1024
