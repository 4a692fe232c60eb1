"""Jumps between segments: values, errors, depth and memory."""

import gc
import sys
import traceback
import weakref

import pytest

from graphlift import _C

SETTINGS = object()
ALWAYS = _C.GuardProgram([])


def segment(function, settings=SETTINGS, context=None):
    """A compiled function whose entry is `function` itself."""
    compiled = _C.CompiledFunction(function, settings, refuse, context)
    _C.cache_of(function.__code__, settings).add(_C.Entry(ALWAYS, function))
    return compiled


def refuse(compiled, params):
    raise AssertionError("nothing is captured here")


def depth():
    frame, count = sys._getframe(1), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


def test_a_jump_goes_on_in_the_target():
    last = segment(lambda a, b: a + b)
    first = segment(lambda x: _C.Jump(last, (x, 10)))
    assert first(1) == 11 and first(2) == 12


def test_values_are_flat_parameters():
    def target(a, /, b, *c, d, **e):
        return (a, b, c, d, e)

    original = _C.CompiledFunction(target, SETTINGS, lambda c, p: None)
    values = (1, 2, 5, (3, 4), {"f": 6})
    assert segment(lambda: _C.Jump(original, values))() == (1, 2, (3, 4), 5, {"f": 6})
    assert segment(lambda: _C.Jump(original, (1, 2, 5, (), {})))() == (1, 2, (), 5, {})
    with pytest.raises(TypeError, match="is a tuple"):
        segment(lambda: _C.Jump(original, (1, 2, (), 5, {})))()


def test_a_target_without_entry_is_captured():
    asked = []

    def capture(compiled, params):
        asked.append(params)
        entry = _C.Entry(ALWAYS, lambda x: ("entry", x))
        _C.cache_of(compiled.__code__, SETTINGS).add(entry)
        return entry

    target = _C.CompiledFunction(lambda x: x, SETTINGS, capture)
    first = segment(lambda x: _C.Jump(target, (x,)))
    assert first(1) == ("entry", 1) and first(2) == ("entry", 2) and asked == [(1,)]


def test_100_000_jumps_at_constant_depth_and_memory():
    depths, alive = set(), weakref.WeakSet()

    class Value:
        pass

    def step(count, value):
        depths.add(depth())
        alive.add(value)
        if count == 0:
            return len(alive)
        return _C.Jump(loop, (count - 1, Value()))

    loop = segment(step)
    assert loop(100_000, Value()) <= 3
    assert len(depths) == 1


def there(count):
    return (depth(), 0) if count <= 0 else _C.Jump(AGAIN, (count - 1,))


def here(count):
    return _C.Jump(AGAIN, (count,))


def hooked(count):
    return depth(), "original"


AGAIN = segment(there)


@pytest.mark.parametrize("swap_code", [None, here.__code__])
def test_jumps_from_a_hooked_frame(swap_code):
    settings = object()
    compiled = _C.CompiledFunction(lambda count: (hooked(count), depth()), settings, lambda c, p: None)
    (plain_depth, what), outer_depth = compiled(1000)
    assert what == "original" and plain_depth == outer_depth + 1
    cache = _C.cache_of(hooked.__code__, settings)
    cache.add(_C.Entry(ALWAYS, here, swap_code))
    assert compiled(1000) == ((plain_depth, 0), outer_depth)
    assert cache.entries[0].hits == 1


def test_errors_after_a_jump_show_one_frame():
    def failing(x):
        raise ValueError(x)

    last = segment(failing)
    first = segment(lambda x: _C.Jump(last, (x,)))

    def caller():
        first(7)

    with pytest.raises(ValueError) as info:
        caller()
    names = [frame.name for frame in traceback.extract_tb(info.tb)]
    assert names[-2:] == ["caller", "failing"]


def test_jumps_inside_exception_handlers():
    def failing():
        raise KeyError("inner")

    raising = segment(lambda: _C.Jump(segment(failing), ()))

    def outer():
        try:
            raising()
        except KeyError:
            return _C.Jump(segment(lambda: sys.exc_info()[0]), ())

    assert segment(outer)() is None  # a handler does not outlive its frame
    try:
        raise IndexError
    except IndexError:
        assert segment(outer)() is IndexError


def test_wrong_number_of_values():
    target = segment(lambda a, b: 0)
    with pytest.raises(TypeError, match="brings 1 values, its code takes 2"):
        segment(lambda: _C.Jump(target, (1,)))()


def test_a_jump_is_made_of_a_target_and_a_tuple():
    target = segment(lambda: 0)
    jump = _C.Jump(target, (1,))
    assert jump.target is target and jump.values == (1,)
    for args in [(), (target,), (target, [1]), (len, (1,)), (target, (1,), 2)]:
        with pytest.raises(TypeError):
            _C.Jump(*args)
    with pytest.raises(TypeError):
        _C.Jump(target=target, values=())


def test_the_region_is_the_targets_and_then_the_callers():
    contexts = []
    _C.set_frame_handler(lambda context, function, params: contexts.append(context))
    try:
        last = _C.CompiledFunction(lambda: (lambda: 1)(), object(), lambda c, p: None, "target")
        first = segment(lambda: _C.Jump(last, ()), context="first")
        assert first() == 1 and contexts == ["target"]
        assert not _C.hook_installed()
    finally:
        _C.set_frame_handler(None)


def test_values_are_released():
    class Value:
        pass

    value = Value()
    reference = weakref.ref(value)
    last = segment(lambda v: None)
    segment(lambda v: _C.Jump(last, (v,)))(value)
    del value
    gc.collect()
    assert reference() is None


def test_values_that_were_taken_live_as_long_as_the_program_holds_them():
    class Value:
        pass

    alive = []

    def last(value):
        _C.taken()
        alive.append(refs() is None)
        del value
        alive.append(refs() is None)

    target = segment(last)

    def first():
        nonlocal refs
        value = Value()
        refs = weakref.ref(value)
        return _C.Jump(target, (value,))

    refs = None
    segment(first)()
    assert alive == [False, True]


def test_entering_gives_the_last_result_and_a_jump_serves_once():
    last = segment(lambda x: x + 1)
    first = segment(lambda x: _C.Jump(last, (x * 2,)))
    jump = _C.Jump(first, (20,))
    assert _C.enter(jump) == 41
    assert jump.target is None and jump.values is None
    with pytest.raises(RuntimeError, match="followed once"):
        _C.enter(jump)
    with pytest.raises(TypeError, match="takes a Jump"):
        _C.enter(last)
