"""Frames that run under a compiled call: who is asked, what runs in them, and what is left behind."""

import gc
import os
import random
import subprocess
import sys
import threading
import weakref

import pytest

from graphlift import _C

ALWAYS = _C.GuardProgram([])


def decline(compiled, params):
    return None


def hooked(function, settings=None, context="context"):
    """A compiled function that always runs its original, with the hook on."""
    return _C.CompiledFunction(function, object() if settings is None else settings, decline, context)


@pytest.fixture
def handler():
    """Sets a frame handler for the test; the hook must be gone afterwards."""
    yield _C.set_frame_handler
    _C.set_frame_handler(None)
    assert _C.hook_depth() == 0 and not _C.hook_installed() and not _C.capturing()


class Asked:
    """A frame handler that declines and remembers what it was asked, for functions of this file."""

    def __init__(self, answer=None):
        self.calls, self.answer = [], answer

    def __call__(self, context, function, params):
        if function.__code__.co_filename != __file__:
            return None
        self.calls.append((context, function.__name__, params))
        return self.answer(function, params) if self.answer else None


def leaf(x):
    return x + 1


def twice(x):
    return leaf(leaf(x))


# --- who is asked ---------------------------------------------------------------------------------


def test_frames_inside_are_asked_about_once(handler):
    handler(asked := Asked())
    compiled = hooked(lambda x: twice(x), context=(context := object()))
    for _ in range(3):
        assert compiled(1) == 3
    assert asked.calls == [(context, "twice", (1,)), (context, "leaf", (1,))]


def test_the_original_itself_is_not_asked_about_but_its_recursion_is(handler):
    handler(asked := Asked())

    def recursive(n):
        return n if n == 0 else recursive(n - 1)

    assert hooked(recursive)(3) == 0
    assert asked.calls == [("context", "recursive", (2,))]


def test_not_implemented_leaves_the_frame_this_once(handler):
    handler(asked := Asked(lambda function, params: NotImplemented))
    compiled = hooked(lambda x: leaf(x))
    assert compiled(1) == compiled(1) == 2
    assert len(asked.calls) == 2


def test_not_implemented_leaves_what_runs_in_the_frame_too(handler):
    handler(asked := Asked(lambda function, params: NotImplemented if function is twice else None))
    compiled = hooked(lambda x: (twice(x), leaf(x)))
    assert compiled(1) == compiled(1) == (3, 2)
    assert [name for _, name, _ in asked.calls] == ["twice", "leaf", "twice"]


def test_settings_have_caches_of_their_own(handler):
    handler(asked := Asked())
    first, second = hooked(leaf_caller := lambda x: leaf(x)), hooked(leaf_caller)
    assert first(1) == second(1) == 2 == first(1)
    assert len(asked.calls) == 2


def test_passed_through(handler):
    handler(asked := Asked())

    def generator():
        yield inside()

    def inside():
        return 1

    async def coroutine():
        return 1

    def skipped():
        return 1

    class Finalized:
        def __del__(self):
            pass

    _C.mark_skip(skipped.__code__)

    def body():
        next(generator())
        for _ in generator():
            pass
        try:
            coroutine().send(None)
        except StopIteration:
            pass
        exec("x = 1")
        skipped()
        Finalized()

        class Body:
            pass

    hooked(body)()
    assert [name for _, name, _ in asked.calls] == ["inside"]


def test_other_threads_are_passed_through(handler):
    handler(asked := Asked())

    def other():
        leaf(1)

    def body():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    hooked(body)()
    assert asked.calls == []


def test_nothing_is_asked_while_tracing_bypassed_or_capturing(handler):
    handler(asked := Asked())

    def body():
        former = sys.gettrace()
        sys.settrace(lambda *what: None)
        leaf(1)
        sys.settrace(former)
        _C.enter_capture()
        leaf(1)
        _C.leave_capture()
        _C.plain_call(leaf, 1)
        _C.set_bypass(True)
        leaf(1)
        _C.set_bypass(False)

    hooked(body)()
    assert asked.calls == []


def test_the_handler_runs_with_the_hook_off(handler):
    states = []

    def answer(function, params):
        states.append((_C.hook_installed(), leaf(1)))

    handler(Asked(answer))
    assert hooked(lambda: leaf(1))() == 2
    assert states == [(False, 2)]


def test_errors_of_the_handler_reach_the_frames_caller(handler):
    class Argument:
        pass

    def failing(context, function, params):
        _C.enter_capture()
        raise LookupError("handler")

    def body():
        argument = Argument()
        try:
            leaf(argument)
        except LookupError as error:
            return str(error), weakref.ref(argument), _C.capturing()

    handler(failing)
    message, reference, capturing = hooked(body)()
    gc.collect()
    assert message == "handler" and reference() is None and not capturing


def test_wrong_answers_are_errors(handler):
    handler(Asked(lambda function, params: 1))
    with pytest.raises(TypeError, match="must return an Entry"):
        hooked(lambda: leaf(1))()


def test_handler_must_be_callable():
    with pytest.raises(TypeError, match="callable or None"):
        _C.set_frame_handler(1)


# --- what runs ------------------------------------------------------------------------------------


def replacement(x):
    return ("entry", x)


def bound_replacement(binding, x):
    return (binding, x)


def reading_first_local(x):
    if x is None:
        binding = None
    return (binding, x)


@pytest.mark.parametrize("swap", [True, False])
def test_an_entry_runs_in_the_frame(handler, swap):
    def answer(function, params):
        if function is not leaf:
            return None
        entry = _C.Entry(ALWAYS, replacement, replacement.__code__ if swap else None)
        _C.cache_of(function.__code__, settings).add(entry)
        return entry

    settings = object()
    handler(asked := Asked(answer))
    compiled = hooked(lambda x: leaf(x), settings)
    assert [compiled(1), compiled(2)] == [("entry", 1), ("entry", 2)]
    assert asked.calls == [("context", "leaf", (1,))]
    assert _C.cache_of(leaf.__code__, settings).entries[0].hits == 1


@pytest.mark.parametrize("swap", [True, False])
def test_the_binding_is_the_first_local_after_the_parameters(handler, swap):
    settings = object()
    program = _C.GuardProgram([("param", -1, 0)], [0])
    entry = _C.Entry(program, bound_replacement, reading_first_local.__code__ if swap else None)
    _C.cache_of(leaf.__code__, settings).add(entry)
    compiled = hooked(lambda x: leaf(x), settings)
    value = object()
    before = sys.getrefcount(value)
    for _ in range(3):
        assert compiled(value) == ((value,), value)
    assert entry.hits == 3 and sys.getrefcount(value) == before


def test_plain_entries_run_the_frame_with_the_hook_on(handler):
    settings = object()
    handler(asked := Asked())
    _C.cache_of(twice.__code__, settings).add(_C.Entry(ALWAYS, None))
    compiled = hooked(lambda x: twice(x), settings)
    assert compiled(1) == 3
    assert [name for _, name, _ in asked.calls] == ["leaf"]


def test_an_entry_whose_guards_fail_at_once_runs_the_frame(handler):
    program = _C.GuardProgram([("param", -1, 0), ("type_is", 0, str)])
    handler(Asked(lambda function, params: _C.Entry(program, replacement)))
    assert hooked(lambda x: leaf(x))(1) == 2


def test_swap_code_of_another_layout_is_left_aside(handler):
    settings = object()
    _C.cache_of(leaf.__code__, settings).add(_C.Entry(ALWAYS, replacement, (lambda a, b: 0).__code__))
    assert hooked(lambda x: leaf(x), settings)(1) == ("entry", 1)


def test_the_hook_is_off_while_an_entry_runs(handler):
    settings, states = object(), []

    def entry_function(x):
        states.append(_C.hook_installed())
        return x

    _C.cache_of(leaf.__code__, settings).add(_C.Entry(ALWAYS, entry_function))
    hooked(lambda x: (leaf(x), states.append(_C.hook_installed())), settings)(1)
    assert states == [False, True]


def test_errors_in_an_entry_restore_the_hook(handler):
    settings = object()

    def failing(x):
        raise KeyError(x)

    _C.cache_of(leaf.__code__, settings).add(_C.Entry(ALWAYS, failing, failing.__code__))

    def body():
        try:
            leaf(1)
        except KeyError:
            return _C.hook_installed(), sys.exc_info()[0]

    assert hooked(body, settings)() == (True, KeyError)
    with pytest.raises(KeyError):
        hooked(lambda: leaf(1), settings)()


# --- calls with the hook on -----------------------------------------------------------------------


def entry_of(function):
    settings = object()
    compiled = _C.CompiledFunction(function, settings, decline, "context")
    _C.cache_of(function.__code__, settings).add(_C.Entry(ALWAYS, function))
    return compiled


def test_call_hooked_turns_the_hook_on_and_off(handler):
    handler(asked := Asked())
    states = []

    def entry(x):
        states.append(_C.hook_installed())
        result = _C.call_hooked(twice, x=x)
        states.append(_C.hook_installed())
        return result

    assert entry_of(entry)(1) == 3
    assert states == [False, False] and [name for _, name, _ in asked.calls] == ["twice", "leaf"]


def test_call_hooked_restores_after_errors(handler):
    def failing():
        raise KeyError

    def entry():
        try:
            _C.call_hooked(failing)
        except KeyError:
            return _C.hook_installed()

    assert entry_of(entry)() is False


def test_call_hooked_outside_a_compiled_call_is_plain():
    assert _C.call_hooked(lambda a, *, b: (a, b, _C.hook_installed()), 1, b=2) == (1, 2, False)
    for args in [(), (1,)]:
        with pytest.raises(TypeError):
            _C.call_hooked(*args)


def test_call_hooked_takes_any_callable(handler):
    handler(asked := Asked())

    def entry():
        return _C.call_hooked(sorted, [3, 1, 2], key=leaf), _C.call_hooked(len, "ab")

    assert entry_of(entry)() == ([1, 2, 3], 2)
    assert [name for _, name, _ in asked.calls] == ["leaf"]


def test_calls_that_lead_to_nothing_become_quiet(handler):
    states = []

    def quiet():
        states.append(_C.hook_installed())

    def entry():
        _C.call_hooked(quiet)

    compiled = entry_of(entry)
    for _ in range(20):
        compiled()
    # Four under the hook, then one in 2, 3, 5, 9, …
    assert "".join("x."[not state] for state in states) == "xxxx.x..x....x......"
    _C.forget_quiet_counts(quiet.__code__)
    compiled()
    assert states[-1] is True


# --- threads and depth ----------------------------------------------------------------------------


def test_eight_threads_leave_nothing_behind(handler):
    handler(Asked())
    failures = []

    def work(choose):
        if choose.random() < 0.3:
            raise KeyError
        return twice(choose.randrange(10))

    def run(seed):
        choose = random.Random(seed)
        functions = [hooked(work), entry_of(work), entry_of(lambda c: _C.call_hooked(work, c)), work]
        for _ in range(300):
            try:
                choose.choice(functions)(choose)
            except KeyError:
                pass
            except BaseException as error:
                failures.append(error)
                raise

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures and _C.hook_depth() == 0 and not _C.hook_installed()


DEPTH = """
import sys
from graphlift import _C
deepest = 0
def r(n):
    global deepest
    deepest = n
    step(n + 1)
def measure(function):
    global step
    step = function
    try:
        function(1)
    except RecursionError:
        pass
    return deepest
settings = object()
compiled = _C.CompiledFunction(r, settings, lambda c, p: None)
print(measure(r), measure(compiled))
_C.set_bypass(True)
print(measure(compiled))
_C.set_bypass(False)
step = r
def outer():
    return measure(r)
print(_C.CompiledFunction(outer, object(), lambda c, p: None)())
_C.cache_of(r.__code__, settings).add(_C.Entry(_C.GuardProgram([]), r))
print(measure(compiled))
"""


def test_recursion_is_as_deep_as_plain():
    result = subprocess.run([sys.executable, "-c", DEPTH], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    plain, through_original, bypassed, under_hook, entry = map(int, result.stdout.split())
    # Frames between the module and the recursion: measure() in the third case runs below outer().
    assert plain == through_original == bypassed == under_hook + 1 == entry > 900


def test_a_raised_recursion_limit_ends_in_an_error():
    source = "import sys\nsys.setrecursionlimit(1_000_000)\n" + DEPTH
    result = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert min(map(int, result.stdout.split())) > 5_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork_inside_a_hooked_call(handler):
    def body():
        child = os.fork()
        if child == 0:
            os._exit(0 if _C.hook_installed() and _C.hook_depth() == 1 else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert hooked(body)() == 0


# --- lifetime -------------------------------------------------------------------------------------


def test_arguments_die_with_the_frame(handler):
    class Value:
        pass

    settings, states = object(), []

    def entry_function(x):
        return None

    _C.cache_of(leaf.__code__, settings).add(_C.Entry(ALWAYS, entry_function, entry_function.__code__))

    def body():
        value = Value()
        reference = weakref.ref(value)
        leaf(value)
        del value
        states.append(reference())

    hooked(body, settings)()
    assert states == [None]


def test_handlers_and_contexts_are_not_kept():
    class Handler:
        def __call__(self, *what):
            return None

    frame_handler, context = Handler(), Handler()
    references = weakref.ref(frame_handler), weakref.ref(context)
    _C.set_frame_handler(frame_handler)
    hooked(lambda: leaf(1), context=context)()
    _C.set_frame_handler(None)
    del frame_handler, context
    gc.collect()
    assert [reference() for reference in references] == [None, None]
