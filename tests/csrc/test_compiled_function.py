"""The warm call of `CompiledFunction`, what it does on a miss, and how it stands for its function."""

import copy
import functools
import gc
import inspect
import itertools
import pickle
import sys
import typing
import weakref

import pytest

from graphlift import _C


def always(outputs=()):
    return _C.GuardProgram([("param", -1, 0)] if outputs else [], outputs)


def type_guard(cls, at=0):
    return _C.GuardProgram([("param", -1, at), ("type_is", 0, cls)])


def decline(compiled, params):
    return None


class Recorder:
    """A capture that makes an entry with the given function and remembers what it was asked."""

    def __init__(self, function, guards=None, keep=True):
        self.function, self.guards, self.keep, self.asked = function, guards, keep, []

    def __call__(self, compiled, params):
        self.asked.append(params)
        guards = self.guards(params) if self.guards else always()
        entry = _C.Entry(guards, self.function)
        if self.keep:
            _C.cache_of(compiled.__code__, SETTINGS).add(entry)
        return entry


SETTINGS = object()


def compiled_to(function, replacement, **kwargs):
    capture = Recorder(replacement, **kwargs)
    return _C.CompiledFunction(function, SETTINGS, capture), capture


def flat_twin(function):
    """A function that takes the flat parameters of `function` and returns them as a tuple."""
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[:count]
    return eval(f"lambda {', '.join(names)}: ({''.join(name + ', ' for name in names)})")


SIGNATURES = [
    "lambda: 0",
    "lambda a: 0",
    "lambda a, b=2: 0",
    "lambda a=1, b=2: 0",
    "lambda a, /, b: 0",
    "lambda a, b=2, /, c=3, *, d, e=5: 0",
    "lambda *a: 0",
    "lambda a, *b, c=3: 0",
    "lambda **k: 0",
    "lambda a, /, **k: 0",
    "lambda a, b=2, *c, d=4, **k: 0",
    "lambda *, a, b: 0",
    "lambda a,b,c,d,e,f,g,h,i,j,l,m,n,o,p,q,r=1,s=2: 0",
]
CALLS = [
    (args, dict(keywords))
    for args in [(), (1,), (1, 2), (1, 2, 3), tuple(range(17)), tuple(range(19))]
    for count in range(3)
    for keywords in itertools.combinations([("a", 10), ("b", 20), ("d", 40), ("z", 90)], count)
]


def outcome(function, args, kwargs):
    try:
        return function(*args, **kwargs)
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_arguments_are_bound_as_python_binds_them(signature):
    function = eval(signature)
    compiled, _ = compiled_to(function, flat_twin(function))
    for args, kwargs in CALLS:
        expected = outcome(function, args, kwargs)
        if expected == 0:
            bound = inspect.signature(function).bind(*args, **kwargs)
            bound.apply_defaults()
            order = function.__code__.co_varnames
            in_order = sorted(bound.arguments.items(), key=lambda item: order.index(item[0]))
            expected = tuple(value for _, value in in_order)
        assert outcome(compiled, args, kwargs) == expected


def test_keyword_names_that_are_equal_but_not_identical():
    compiled, _ = compiled_to(lambda some_name: 0, lambda some_name: some_name)
    assert compiled(**{"".join(["some", "_", "name"]): 7}) == 7


def test_defaults_are_read_at_each_call():
    def function(a, b=1, *, c=2):
        return (a, b, c)

    compiled, capture = compiled_to(function, lambda a, b, c: (a, b, c, "entry"))
    assert compiled(0) == (0, 1, 2, "entry")
    function.__defaults__ = (10,)
    function.__kwdefaults__["c"] = 20
    assert compiled(0) == (0, 10, 20, "entry")
    assert len(capture.asked) == 1


def test_captures_once_per_guarded_kind():
    by_type = Recorder(lambda x: ("entry", x), guards=lambda params: type_guard(type(params[0])))
    compiled, capture = _C.CompiledFunction(lambda x: x, SETTINGS, by_type), by_type
    for _ in range(3):
        assert compiled(1) == ("entry", 1)
        assert compiled("a") == ("entry", "a")
    assert capture.asked == [(1,), ("a",)]


def test_binding_comes_before_the_parameters():
    for function, args in [(lambda x: 0, (5,)), (lambda x, y=6: 0, (5,)), (lambda x, *y: 0, (5, 6, 7))]:
        compiled, _ = compiled_to(function, lambda *flat: flat, guards=lambda p: always([0]))
        assert compiled(*args)[0] == (5,)
        assert compiled(*args)[1] == 5
        method = type("C", (), {"m": compiled})().m
        assert method(*args[1:])[0] == (method.__self__,)


def test_the_arguments_of_the_caller_stay_as_they_are():
    compiled, _ = compiled_to(lambda x: 0, lambda *flat: flat, guards=lambda p: always([0]))
    bound_method = type("C", (), {"m": compiled})().m
    assert [bound_method()[1] is bound_method.__self__ for _ in range(3)] == [True] * 3
    assert list(map(compiled, [1, 2])) == [((1,), 1), ((2,), 2)]


def test_newest_hit_comes_first():
    compiled, _ = compiled_to(lambda x: x, lambda x: x, guards=lambda p: type_guard(type(p[0])))
    cache = _C.cache_of(compiled.__code__, SETTINGS)
    compiled(1), compiled("a"), compiled(1.0)
    first, second, third = cache.entries
    compiled(1)
    assert cache.entries == (third, first, second)
    compiled(1), compiled(1)
    assert [entry.hits for entry in cache.entries] == [3, 0, 0]  # the first run of each is its capture


def test_invalid_entries_are_passed_over_and_dropped():
    compiled, capture = compiled_to(lambda x: x, lambda x: x)
    cache = _C.cache_of(compiled.__code__, SETTINGS)
    compiled(1)
    (old,) = cache.entries
    old.invalidate()
    assert not old.valid
    compiled(1)
    assert len(capture.asked) == 2 and old not in cache.entries and len(cache.entries) == 1


def test_declined_capture_runs_the_original():
    compiled = _C.CompiledFunction(lambda x, *, y=2: (x, y), SETTINGS, decline)
    assert compiled(1) == (1, 2) and compiled(1, y=3) == (1, 3)


def test_not_implemented_runs_the_original_without_hook():
    states = []
    note = lambda: states.append(_C.hook_installed())
    _C.CompiledFunction(note, SETTINGS, lambda compiled, params: NotImplemented)()
    assert states == [False]


def test_plain_entry_runs_the_original_with_the_hook():
    states = []

    def function(x):
        states.append((x, _C.hook_installed()))

    compiled, _ = compiled_to(function, None)
    compiled(1), compiled(2)
    assert states == [(1, True), (2, True)] and not _C.hook_installed()


def test_entry_whose_guards_do_not_hold_runs_the_original():
    compiled, _ = compiled_to(lambda x: x, lambda x: "entry", guards=lambda p: type_guard(str))
    assert compiled(1) == 1


def test_skipped_cache_is_not_captured_again():
    compiled, capture = compiled_to(lambda x: x, lambda x: "entry")
    _C.cache_of(compiled.__code__, SETTINGS).skip = True
    assert compiled(1) == 1 and capture.asked == []


@pytest.mark.parametrize("answer", [1, "entry", object()])
def test_other_answers_of_a_capture_are_errors(answer):
    compiled = _C.CompiledFunction(lambda: 0, SETTINGS, lambda c, p: answer)
    with pytest.raises(TypeError, match="must return an Entry"):
        compiled()


def test_errors_of_a_capture_reach_the_caller():
    def capture(compiled, params):
        _C.enter_capture()
        raise LookupError("from the capture")

    compiled = _C.CompiledFunction(lambda: 0, SETTINGS, capture)
    with pytest.raises(LookupError, match="from the capture"):
        compiled()
    assert not _C.capturing() and not _C.hook_installed()


def test_calls_during_a_capture_run_plainly():
    inner, inner_capture = compiled_to(lambda: "original", lambda: "entry")
    seen = []

    def capture(compiled, params):
        seen.append(inner())
        return None

    _C.CompiledFunction(lambda: 0, SETTINGS, capture)()
    _C.enter_capture()
    try:
        assert _C.capturing()
        seen.append(inner())
    finally:
        _C.leave_capture()
    assert seen == ["original"] * 2 and not inner_capture.asked and not _C.capturing()
    with pytest.raises(RuntimeError):
        _C.leave_capture()


def test_bypass_and_plain_call():
    compiled, _ = compiled_to(lambda x, y=0: "original", lambda x, y: "entry")
    assert _C.set_bypass(True) is False
    try:
        assert compiled(1) == "original"
    finally:
        assert _C.set_bypass(False) is True
    assert compiled(1) == "entry"
    assert _C.plain_call(compiled, 1, y=2) == "original"
    assert _C.plain_call(lambda: compiled(1)) == "original"
    with pytest.raises(ZeroDivisionError):
        _C.plain_call(lambda: 1 / 0)
    assert compiled(1) == "entry"


def test_a_traced_thread_runs_the_original():
    compiled, _ = compiled_to(lambda: "original", lambda: "entry")
    former = sys.gettrace()
    sys.settrace(lambda *args: None)
    try:
        traced = compiled()
    finally:
        sys.settrace(former)
    assert traced == "original" and compiled() == "entry"


def test_replaced_code_has_entries_of_its_own():
    def function(x):
        return "first"

    def other(x, y=None):
        return "second"

    compiled, capture = compiled_to(function, lambda *flat: flat)
    assert compiled(1) == (1,)
    compiled.__code__ = other.__code__
    assert function.__code__ is other.__code__
    assert compiled(1, 2) == (1, 2)
    assert capture.asked == [(1,), (1, 2)]


def test_dropped_caches_are_asked_no_more():
    compiled, capture = compiled_to(lambda x: x, lambda x: x)
    compiled(1)
    _C.drop_caches(compiled.__code__)
    compiled(1), compiled(1)
    assert len(capture.asked) == 2


def test_exceptions_pass_and_leave_nothing_behind():
    def entry(x):
        raise KeyError(x)

    compiled, _ = compiled_to(lambda x: 0, entry)
    for _ in range(3):
        with pytest.raises(KeyError):
            compiled(1)
    assert not _C.hook_installed() and _C.hook_depth() == 0


# --- standing for the function --------------------------------------------------------------------


def decorated(value: int, scale: "float" = 1.0) -> str:
    """What it says."""
    return str(value * scale)


original = decorated
decorated.mark = "mark"
decorated = _C.CompiledFunction(decorated, SETTINGS, decline)


def test_attributes_are_the_functions():
    for name in "name qualname doc module code defaults kwdefaults annotations".split():
        name = f"__{name}__"
        assert getattr(decorated, name) == getattr(original, name)
    assert decorated.__globals__ is globals() and decorated.__closure__ is None and decorated.mark == "mark"
    assert decorated.__wrapped__ is original and inspect.unwrap(decorated) is original
    assert inspect.signature(decorated) == inspect.signature(original)
    assert typing.get_type_hints(decorated) == {"value": int, "scale": float, "return": str}
    assert repr(decorated).startswith("<compiled function decorated at 0x")
    assert {"mark", "__code__", "__wrapped__"} <= set(dir(decorated))
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        decorated.nothing_of_this_name
    assert callable(decorated) and decorated(2) == "2.0"


def test_kinds_of_functions_are_told_apart():
    async def coroutine():
        return 1

    def generator():
        yield 1

    coroutine, generator = (_C.CompiledFunction(f, SETTINGS, decline) for f in (coroutine, generator))
    assert inspect.iscoroutinefunction(coroutine) and inspect.isgeneratorfunction(generator)
    assert not inspect.iscoroutinefunction(generator) and not inspect.isgeneratorfunction(decorated)
    assert list(generator()) == [1]
    with pytest.raises(StopIteration):
        coroutine().send(None)
    assert inspect.getsource(decorated).startswith("def decorated(")


def test_own_attributes_shadow_and_stay_own():
    def function():
        """Doc."""

    compiled = _C.CompiledFunction(function, SETTINGS, decline)
    compiled.attr = 1
    compiled.__name__ = compiled.__doc__ = "changed"
    assert compiled.attr == 1 and compiled.__name__ == compiled.__doc__ == "changed"
    assert function.__name__ == "function" and function.__doc__ == "Doc." and not hasattr(function, "attr")
    assert compiled.__dict__["attr"] == 1 and "attr" in dir(compiled)
    del compiled.__name__, compiled.attr
    assert compiled.__name__ == "function" and not hasattr(compiled, "attr")
    with pytest.raises(AttributeError):
        del compiled.attr
    with pytest.raises(TypeError):
        compiled.__class__ = int


def test_defaults_are_written_through():
    def function(a=1, *, b=2):
        return (a, b)

    compiled = _C.CompiledFunction(function, SETTINGS, decline)
    compiled.__defaults__, compiled.__kwdefaults__ = (3,), {"b": 4}
    assert compiled() == function() == (3, 4)


def test_works_with_functools():
    @functools.wraps(decorated)
    def wrapper():
        pass

    assert wrapper.__name__ == "decorated" and wrapper.__wrapped__ is decorated
    adorned = functools.update_wrapper(_C.CompiledFunction(lambda: 0, SETTINGS, decline), original)
    assert adorned.__name__ == "decorated" and adorned.mark == "mark" and original.__name__ == "decorated"
    assert functools.partial(decorated, 2)() == "2.0"


def test_pickles_by_name_and_copies_to_itself():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.copy(decorated) is decorated and copy.deepcopy(decorated) is decorated
    hidden = _C.CompiledFunction(original, SETTINGS, decline)
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(hidden)


def test_binds_like_a_function():
    compiled = _C.CompiledFunction(lambda self, x: (self, x), SETTINGS, decline)
    cls = type("C", (), {"m": compiled, "s": staticmethod(compiled), "c": classmethod(compiled)})
    instance = cls()
    assert instance.m(1) == (instance, 1) and cls.m is compiled
    assert instance.m == instance.m and inspect.ismethod(instance.m)
    assert str(inspect.signature(instance.m)) == "(x)"
    assert instance.s(2, 1) == (2, 1) and instance.c(1) == (cls, 1)


def test_bad_arguments_of_the_constructor():
    for args in [(len, SETTINGS, decline), (decline, SETTINGS, 1), (), (decline, SETTINGS)]:
        with pytest.raises(TypeError):
            _C.CompiledFunction(*args)


# --- lifetime -------------------------------------------------------------------------------------


def test_weak_references_and_cycles():
    def make():
        def function():
            return 0

        compiled, _ = compiled_to(function, lambda: 1)
        function.back = compiled
        compiled.itself = compiled
        compiled()
        return weakref.ref(compiled), weakref.ref(function), weakref.ref(function.__code__)

    references = make()
    gc.collect()
    assert [reference() for reference in references[:2]] == [None, None]


def test_entries_die_with_the_code_object():
    settings, died = type("Settings", (), {})(), []
    code = compile("lambda: 0", "<code>", "eval").co_consts[0]
    entry = _C.Entry(always(), None, data=type("Data", (), {"__del__": lambda self: died.append(1)})())
    _C.cache_of(code, settings).add(entry)
    reference = weakref.ref(settings)
    del entry, settings
    assert not died and reference() is not None
    del code
    gc.collect()
    assert died == [1] and reference() is None


def test_references_are_balanced():
    value, result = object(), object()
    compiled, _ = compiled_to(
        lambda x, y=None, *a, **k: result, lambda b, x, y, a, k: result, guards=lambda p: always([0])
    )
    simple, _ = compiled_to(lambda x: result, lambda b, x: result, guards=lambda p: always([0]))

    def failing(x):
        raise ValueError

    raising, _ = compiled_to(lambda x: 0, failing)

    def calls():
        compiled(value), compiled(value, value, value, z=value), simple(value), simple(x=value)
        for wrong in (lambda: simple(), lambda: simple(value, value), lambda: raising(value)):
            with pytest.raises((TypeError, ValueError)):
                wrong()

    calls()
    gc.collect()
    before = sys.getrefcount(value), sys.getrefcount(result)
    for _ in range(100):
        calls()
    gc.collect()
    assert (sys.getrefcount(value), sys.getrefcount(result)) == before


def test_defaults_replaced_during_the_call_stay_alive():
    class Big:
        pass

    def function(x, y=Big()):
        return y

    def entry(x, y):
        function.__defaults__ = (None,)
        gc.collect()
        return type(y)

    compiled, _ = compiled_to(function, entry)
    assert compiled(1) is Big
