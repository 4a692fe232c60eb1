"""Calls that lead to nothing go without the hook; entries that hold too little are asked about."""

from __future__ import annotations

import gc
import weakref

import pytest

from graphlift import _C

ALWAYS = _C.GuardProgram([])
STRINGS = _C.GuardProgram([("param", -1, 0), ("type_is", 0, str)])


def decline(compiled, params):
    return None


@pytest.fixture
def handler():
    """Sets a frame handler for the test."""
    yield _C.set_frame_handler
    _C.set_frame_handler(None)
    assert _C.hook_depth() == 0 and not _C.hook_installed()


@pytest.fixture
def reviewer():
    """Sets a review handler for the test, and puts back the one that was there."""
    former = _C.set_review_handler(None)
    yield _C.set_review_handler
    _C.set_review_handler(former)


def test_calls_that_lead_to_nothing_go_without_the_hook(handler):
    handler(lambda *_: None)
    looks = []
    compiled = _C.CompiledFunction(lambda: looks.append(_C.hook_installed()), object(), decline)
    for _ in range(24):
        compiled()
    expected = [True] * 4 + [False] + [True] + [False] * 2 + [True] + [False] * 4 + [True] + [False] * 8
    assert looks == [*expected, True, False]


def entry_for(function, settings, **fields):
    entry = _C.Entry(ALWAYS, function)
    for name, value in fields.items():
        setattr(entry, name, value)
    _C.cache_of(function.__code__, settings).add(entry)
    return entry


@pytest.mark.parametrize("worthwhile", [True, False])
def test_only_what_is_worth_it_keeps_the_hook(handler, worthwhile):
    handler(lambda *_: None)
    settings, looks = object(), []

    def inside():
        return 1

    def outer():
        looks.append(_C.hook_installed())
        return inside()

    entry = entry_for(inside, settings, worthwhile=worthwhile)
    compiled = _C.CompiledFunction(outer, settings, decline)
    for _ in range(8):
        assert compiled() == 1
    assert looks == [True] * 8 if worthwhile else looks[:6] == [True] * 4 + [False, True]
    assert entry.hits == sum(looks)


def test_an_entry_without_function_leads_to_nothing(handler):
    handler(lambda *_: None)
    settings, looks = object(), []

    def outer():
        looks.append(_C.hook_installed())
        inside()

    def inside():
        return 1

    _C.cache_of(inside.__code__, settings).add(_C.Entry(ALWAYS, None))
    compiled = _C.CompiledFunction(outer, settings, decline)
    for _ in range(5):
        compiled()
    assert looks == [True] * 4 + [False]


def test_a_step_that_calls_something_else_has_the_hook_again(handler):
    handler(lambda *_: None)
    looks = []

    def one():
        looks.append(_C.hook_installed())

    def other():
        looks.append(_C.hook_installed())

    step = _C.CompiledFunction(lambda value, called: called(), object(), decline, None, 1)
    for called in (*[one] * 5, other, one, *[one] * 4):
        step(0, called)
    assert looks == [True] * 4 + [False] + [True] * 5 + [False]


def test_a_callee_s_place_is_checked():
    with pytest.raises(ValueError, match="callee_at"):
        _C.CompiledFunction(lambda a, *, b: a, object(), decline, None, 1)


def test_plain_originals_never_have_the_hook(handler):
    handler(lambda *_: None)
    settings, looks = object(), []

    def original():
        looks.append(_C.hook_installed())

    cache = _C.cache_of(original.__code__, settings)
    cache.skip = cache.plain = True
    _C.CompiledFunction(original, settings, decline)()
    assert looks == [False]


# --- entries that never fit ------------------------------------------------------------------------


def test_entries_that_never_fit_are_let_go_where_nothing_is_captured():
    asked = []

    def capture(compiled, params):
        asked.append(params)

    def original(x):
        return x

    settings = object()
    _C.cache_of(original.__code__, settings).add(_C.Entry(STRINGS, lambda x: None))
    compiled = _C.CompiledFunction(original, settings, capture)
    assert [compiled(n) for n in range(100)] == list(range(100))
    assert len(asked) == 64
    _C.drop_caches(original.__code__)  # what `reset` does
    assert compiled(1) == 1 and len(asked) == 65


def test_entries_that_fit_as_often_as_not_are_kept():
    asked = []

    def capture(compiled, params):
        asked.append(params)

    def original(x):
        return x

    settings = object()
    _C.cache_of(original.__code__, settings).add(_C.Entry(STRINGS, lambda x: "entry"))
    compiled = _C.CompiledFunction(original, settings, capture)
    for n in range(200):
        assert compiled(n) == n
        assert compiled("x") == "entry"
    assert len(asked) == 200


# --- reviews --------------------------------------------------------------------------------------


def test_an_entry_is_asked_about_when_it_was_hit_often_enough(reviewer):
    asked, context, settings = [], object(), object()

    def review(*args):
        asked.append((*args, args[2].hits, _C.hook_installed()))

    reviewer(review)

    def function(x):
        return x

    entry = entry_for(function, settings, review_at=3)
    compiled = _C.CompiledFunction(function, settings, decline, context)
    for n in range(6):
        assert compiled(n) == n
    assert asked == [(context, function, entry, 3, False)]
    entry.review_at = 8
    compiled(1), compiled(1), compiled(1)
    assert [row[3] for row in asked] == [3, 8]


def test_hooked_frames_and_segments_are_asked_about(handler, reviewer):
    handler(lambda *_: None)
    asked, settings = [], object()
    reviewer(lambda context, function, entry: asked.append(function.__name__))

    def inside():
        return 1

    def last():
        return inside()

    entry_for(inside, settings, review_at=2)
    entry_for(last, settings, review_at=2)
    target = _C.CompiledFunction(last, settings, decline)
    first = _C.CompiledFunction(lambda: (inside(), _C.Jump(target, ()))[1], settings, decline)
    for _ in range(3):
        first()
    assert asked == ["inside", "last"]


def test_giving_up_during_a_review_lets_the_entry_run_once_more(reviewer):
    settings = object()
    reviewer(lambda context, function, entry: _C.cache_of(function.__code__, settings).give_up())

    def function(x):
        return "original"

    def captured(x):
        return "entry"

    entry = _C.Entry(ALWAYS, captured)
    entry.review_at = 2
    gone = weakref.ref(captured)
    _C.cache_of(function.__code__, settings).add(entry)
    compiled = _C.CompiledFunction(function, settings, decline)
    del entry, captured
    assert [compiled(0) for _ in range(4)] == ["entry", "entry", "original", "original"]
    gc.collect()
    assert gone() is None and _C.cache_of(function.__code__, settings).skip


def test_a_review_that_fails_is_reported_and_changes_nothing(reviewer, monkeypatch):
    import sys

    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: reported.append(args.exc_type))
    reviewer(lambda *_: 1 / 0)
    settings = object()

    def function(x):
        return x

    entry_for(function, settings, review_at=1)
    assert _C.CompiledFunction(function, settings, decline)(7) == 7
    assert reported == [ZeroDivisionError]
