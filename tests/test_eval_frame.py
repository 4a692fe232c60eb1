"""Frame evaluators in Python: what they see, what they can run instead, and what they leave alone."""

import gc
import resource
import subprocess
import sys
import threading
import traceback
import weakref
from pathlib import Path

import pytest

from graphlift import _C
from graphlift.eval_frame import frame_callback, set_eval_frame


class Replacing:
    """A callback that runs one code object in place of another."""

    def __init__(self, old, new):
        self.old, self.new, self.seen = getattr(old, "__code__", old), getattr(new, "__code__", new), 0

    def __call__(self, code, function, arguments):
        if code is self.old:
            self.seen += 1
            return self.new
        return None


def replaced(old, new, *args, **kwargs):
    with frame_callback(Replacing(old, new)):
        return old(*args, **kwargs)


# --- what a callback sees -------------------------------------------------------------------------


def test_sees_code_function_and_arguments():
    seen = []

    def function(a, b=2, *c, d=4, **e):
        local = 1
        return local

    with frame_callback(lambda *what: seen.append(what)):
        function(1)
        function(1, 5, 6, d=7, g=8)
    arguments = {"a": 1, "b": 2, "c": (), "d": 4, "e": {}}
    assert seen[0] == (function.__code__, function, arguments)
    assert seen[1][2] == {"a": 1, "b": 5, "c": (6,), "d": 7, "e": {"g": 8}}
    assert len(seen) == 2 and not _C.hook_installed()


def test_returns_the_former_callback():
    first, second = (lambda *what: None), (lambda *what: None)
    assert set_eval_frame(first) is None
    assert set_eval_frame(second) is first
    assert set_eval_frame(None) is second
    assert set_eval_frame(None) is None
    assert not _C.hook_installed() and _C.hook_depth() == 0


def test_blocks_nest():
    outer, inner = [], []

    def function():
        pass

    with frame_callback(lambda code, *_: outer.append(code.co_name)):
        with frame_callback(lambda code, *_: inner.append(code.co_name)):
            function()
        function()
    assert outer == inner == ["function"]


def test_is_off_inside_itself():
    depth = 0

    def helper():
        return None

    def callback(code, function, arguments):
        nonlocal depth
        depth += 1
        helper()
        return helper()

    with frame_callback(callback):
        helper()
    assert depth == 1


def test_passes_generators_class_and_module_bodies_through():
    seen = []

    def generator():
        yield called()

    def called():
        return 1

    async def coroutine():
        return called()

    with frame_callback(lambda code, *_: seen.append(code.co_name)):
        list(generator())
        gen = generator()
        next(gen)
        try:
            gen.throw(KeyError)
        except KeyError:
            pass
        try:
            coroutine().send(None)
        except StopIteration:
            pass
        exec("x = 1")

        class Body:
            y = called()

    assert seen == ["called"] * 4


def test_skipped_code_is_not_asked_about():
    seen = []

    def function():
        pass

    _C.mark_skip(function.__code__)
    with frame_callback(lambda code, *_: seen.append(code)):
        function()
        _C.mark_skip(function.__code__, False)
        function()
    assert seen == [function.__code__]


@pytest.mark.parametrize("wrong", [1, "callback"])
def test_callback_must_be_callable(wrong):
    with pytest.raises(TypeError, match="callable or None"):
        set_eval_frame(wrong)
    assert not _C.hook_installed()


# --- replacement code -----------------------------------------------------------------------------


def test_more_locals_and_a_larger_stack():
    def old(a):
        return a

    def new(a):
        b, c, d, e = a + 1, a + 2, a + 3, a + 4
        return [a, b, c, d, e, (a, (b, (c, (d, (e, (a, (b, (c, (d, e)))))))))]

    assert replaced(old, new, 1) == new(1)


def test_fewer_locals():
    def old(a):
        b = c = d = e = f = a
        return b, c, d, e, f

    assert replaced(old, lambda a: a, 3) == 3


def test_larger_than_a_chunk_of_the_data_stack():
    names = [f"v{i}" for i in range(20_000)]
    body = "".join(f"  {name} = a\n" for name in names)
    source = f"def new(a, *, b):\n{body}  return {names[-1]} + b\n"
    namespace = {}
    exec(source, namespace)

    def old(a, *, b):
        raise AssertionError

    callback = Replacing(old, namespace["new"])
    with frame_callback(callback):
        assert [old(1, b=2) for _ in range(3)] == [3] * 3
    assert callback.seen == 3


def test_growing_in_deep_recursion():
    def old(n):
        return 0 if n == 0 else 1 + old(n - 1)

    def new(n):
        a, b, c, d, e, f, g, h = range(8)
        return 0 if n == 0 else 1 + old(n - 1)

    new = new.__code__.replace(co_freevars=old.__code__.co_freevars)
    callback = Replacing(old, new)
    with frame_callback(callback):
        assert old(700) == 700
    assert callback.seen == 701


def test_argument_cells_new_cells_and_lost_cells():
    def cells(a, b):
        def inner():
            nonlocal a
            a += b
            return a

        return inner() + inner()

    def none(a, b):
        return a * b

    assert replaced(none, cells, 1, 10) == 32
    assert replaced(cells, none, 2, 10) == 20
    assert replaced(cells, cells.__code__.replace(co_name="again"), 1, 10) == 32


def test_closures_of_two_instances():
    def make(value):
        def old():
            return value

        def new():
            return [value]

        return old, new

    (one, new), (two, _) = make(1), make(2)
    with frame_callback(Replacing(one, new)):
        assert (one(), two()) == ([1], [2])


@pytest.mark.parametrize("size", [0, 3000])
def test_closures_where_the_frame_cannot_grow(size):
    pad = "".join(f"    v{i} = x\n" for i in range(size))
    namespace = {}
    source = f"""
def make(y):
  def old(x, *a, k=1, **z):
    return y
  def new(x, *a, k=1, **z):
{pad}    return x, y, a, k, z
  return old, new
"""
    exec(source, namespace)
    (one, new), (two, _) = namespace["make"](10), namespace["make"](20)
    with frame_callback(Replacing(one, new)):
        assert one(1, 2, k=3, q=4) == (1, 10, (2,), 3, {"q": 4})
        assert two(1) == (1, 20, (), 1, {})


def test_varargs_keywords_and_defaults():
    def old(a, b=2, *c, d=4, **e):
        return None

    def new(a, b=None, *c, d=None, **e):
        return (a, b, c, d, e)

    assert replaced(old, new, 1) == (1, 2, (), 4, {})
    assert replaced(old, new, 1, 5, 6, 7, d=8, f=9) == (1, 5, (6, 7), 8, {"f": 9})


def test_zero_argument_super():
    class Base:
        def m(self):
            return "base"

    class Derived(Base):
        def m(self):
            return super().m()

        def n(self):
            return super().m() + "!"

    with frame_callback(Replacing(Derived.m, Derived.n)):
        assert Derived().m() == "base!"


def test_returning_the_same_code_runs_the_frame_as_it_is():
    def function():
        return sys._getframe().f_code

    assert replaced(function, function) is function.__code__


def global_inner():
    return 1


def test_frames_below_a_replaced_one_are_asked_about():
    seen = []

    def old():
        return 0

    def new():
        return global_inner()

    def callback(code, function, arguments):
        seen.append(code.co_name)
        return new.__code__ if code is old.__code__ else None

    with frame_callback(callback):
        assert old() == 1
    assert seen == ["old", "global_inner"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: 0,
        lambda a, b: 0,
        lambda a, *b: 0,
        lambda a, **b: 0,
        lambda *, a: 0,
        lambda a: (yield),
        compile("1", "<module>", "eval"),
    ],
)
def test_replacement_with_another_layout_is_refused(wrong):
    released = []

    class Argument:
        def __del__(self):
            released.append(1)

    def old(a):
        return a

    with pytest.raises(ValueError, match="the replacement code"):
        replaced(old, wrong, Argument())
    gc.collect()
    assert released == [1]


def test_replacement_with_other_free_variables_is_refused():
    x = y = 1

    with pytest.raises(ValueError, match="free variables"):
        replaced(lambda: x, lambda: y)
    with pytest.raises(ValueError, match="free variables"):
        replaced(lambda: 0, lambda: y)


def test_an_answer_that_is_no_code_is_refused():
    def function():
        pass

    with pytest.raises(TypeError, match="code object or None, not str"):
        with frame_callback(lambda code, *_: code.co_name):
            function()


# --- errors, tracebacks, frames -------------------------------------------------------------------


def test_error_in_the_callback_reaches_the_frames_caller():
    class Argument:
        pass

    def function(argument):
        raise AssertionError("must not run")

    def callback(code, function_, arguments):
        if code is function.__code__:
            raise LookupError("from the callback")

    def caller():
        argument = Argument()
        try:
            function(argument)
        except LookupError as error:
            return weakref.ref(argument), traceback.extract_tb(error.__traceback__)

    with frame_callback(callback):
        reference, entries = caller()
    gc.collect()
    assert reference() is None
    assert [entry.name for entry in entries] == ["caller", "callback"]


def test_errors_show_the_replacement():
    def old(a):
        pass

    def new(a):
        raise ValueError(a)

    with pytest.raises(ValueError) as info:
        replaced(old, new, 1)
    last = traceback.extract_tb(info.tb)[-1]
    assert last.name == "new" and last.lineno == new.__code__.co_firstlineno + 1


def test_frame_object_outlives_the_call():
    def old(a):
        pass

    def new(a):
        b = a + 1
        return sys._getframe()

    frame = replaced(old, new, 1)
    assert frame.f_locals == {"a": 1, "b": 2} and frame.f_code is new.__code__
    assert frame.f_back.f_code is replaced.__code__  # as for any function that returns its frame


def test_outer_frames_are_in_place():
    def old():
        pass

    def new():
        return sys._getframe(1).f_code.co_name, sys._getframe(2).f_code.co_name, sys.exc_info()[0]

    def caller():
        try:
            raise KeyError
        except KeyError:
            return old()

    with frame_callback(Replacing(old, new)):
        result = caller()
    assert result == ("caller", "test_outer_frames_are_in_place", KeyError)


def events_of(run):
    events = []

    def tracer(frame, event, arg):
        if frame.f_code.co_filename == __file__ and not frame.f_code.co_name.startswith("__"):
            events.append((event, frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno))
        return tracer

    former = sys.gettrace()
    sys.settrace(tracer)
    try:
        run()
    finally:
        sys.settrace(former)
    return [event for event in events if event[1] in ("new", "old")]


def test_trace_functions_see_the_replacement():
    def old(a):
        return 0

    def new(a):
        b = a
        return b

    with frame_callback(Replacing(old, new)):
        events = events_of(lambda: old(1))
    assert events == [("call", "new", 0), ("line", "new", 1), ("line", "new", 2), ("return", "new", 2)]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
def test_monitoring_sees_the_replacement_only():
    def old(a):
        return 0

    def new(a):
        return a

    events, monitoring = [], sys.monitoring

    def note(name, code):
        if code in (old.__code__, new.__code__):
            events.append((name, code.co_name))

    monitoring.use_tool_id(3, "test")
    try:
        for name in ("PY_START", "PY_RETURN", "PY_UNWIND"):
            event = getattr(monitoring.events, name)
            monitoring.register_callback(3, event, lambda code, *_, name=name: note(name, code))
        with frame_callback(Replacing(old, new)):
            monitoring.set_events(3, monitoring.events.PY_START | monitoring.events.PY_RETURN)
            old(1)
            monitoring.set_events(3, 0)
    finally:
        monitoring.free_tool_id(3)
    assert events == [("PY_START", "new"), ("PY_RETURN", "new")]


# --- recursion ------------------------------------------------------------------------------------

DEPTH = """
import sys
from graphlift.eval_frame import set_eval_frame
deepest = 0
def r(n):
    global deepest
    deepest = n
    r(n + 1)
def measure():
    try:
        r(1)
    except RecursionError:
        pass
    return deepest
plain = measure()
set_eval_frame(lambda *what: None)
hooked = measure()
set_eval_frame(None)
print(plain, hooked)
"""


def run_python(source):
    result = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout.split()


def test_recursion_is_as_deep_as_without_hook():
    plain, hooked = run_python(DEPTH)
    assert int(plain) == int(hooked) > 900


def test_a_raised_recursion_limit_ends_in_an_error_not_a_crash():
    plain, hooked = run_python("import sys\nsys.setrecursionlimit(200_000)\n" + DEPTH)
    assert int(plain) > 190_000 and int(hooked) > 5_000


def test_recovers_from_recursion_error():
    def old(n):
        return old(n + 1)

    def new(n):
        extra = n
        return old(extra + 1)

    for _ in range(3):
        with frame_callback(Replacing(old, new)), pytest.raises(RecursionError):
            old(0)
    assert not _C.hook_installed()


# --- threads, memory, processes -------------------------------------------------------------------


def test_a_callback_is_its_threads():
    seen, own = [], []

    def function():
        pass

    with frame_callback(lambda code, *_: seen.append(code.co_name)):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()
        function()
    assert seen.count("function") == 1

    def in_thread():
        set_eval_frame(lambda code, *_: own.append(code.co_name))
        function()  # and never taken off

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    function()
    assert own.count("function") == 1
    assert _C.hook_depth() == 0 and not _C.hook_installed()


def test_callback_of_an_ended_thread_is_released():
    class Callback:
        def __call__(self, *what):
            return None

    references = []

    def in_thread():
        callback = Callback()
        references.append(weakref.ref(callback))
        set_eval_frame(callback)

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    gc.collect()
    assert references[0]() is None


def test_references_are_balanced():
    value, answer = object(), object()

    def old(a, *b, **c):
        return None

    def new(a, *b, **c):
        local = a
        return answer

    def failing(a, *b, **c):
        raise ValueError

    def broken(*what):
        raise KeyError

    def run():
        for replacement in (new, failing):
            with frame_callback(Replacing(old, replacement)):
                try:
                    old(value, value, z=value)
                except ValueError:
                    pass
        try:
            with frame_callback(broken):
                old(value, value, z=value)
        except KeyError:
            pass

    run()
    gc.collect()
    counted = (value, answer, new.__code__, old)
    before = [sys.getrefcount(item) for item in counted]
    for _ in range(100):
        run()
    gc.collect()
    assert [sys.getrefcount(item) for item in counted] == before


def test_memory_stays_flat():
    def old(a):
        return None

    def new(a):
        b = c = d = [a]
        return b

    def loop(count):
        for _ in range(count):
            old(1)

    with frame_callback(Replacing(old, new)):
        loop(20_000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        loop(300_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1024


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork")
def test_a_forked_child_counts_anew():
    source = """
import os, threading
from graphlift import _C
from graphlift.eval_frame import set_eval_frame
ready, stop = threading.Event(), threading.Event()
def other():
    set_eval_frame(lambda *what: None)
    ready.set(); stop.wait(); set_eval_frame(None)
thread = threading.Thread(target=other); thread.start(); ready.wait()
if os.fork() == 0:
    print(_C.hook_depth(), _C.hook_installed(), flush=True); os._exit(0)
os.wait(); stop.set(); thread.join()
print(_C.hook_depth(), _C.hook_installed())
"""
    assert run_python(source) == ["0", "False", "0", "False"]


def test_the_example_counts_calls():
    example = Path(__file__).parent.parent / "examples" / "count_calls.py"
    result = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    counts = {name: int(count) for count, name in map(str.split, result.stdout.splitlines())}
    assert counts == {"fibonacci": 276, "Stack.push": 10, "Stack.__init__": 1, "work": 1}


def test_needs_no_torch():
    source = f"""
import sys, types
package = sys.modules["graphlift"] = types.ModuleType("graphlift")
package.__path__ = {[*sys.modules["graphlift"].__path__]!r}
import graphlift.eval_frame
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("torch", "graphlift")))
"""
    assert "".join(run_python(source)) == "['graphlift','graphlift._C','graphlift.eval_frame']"
