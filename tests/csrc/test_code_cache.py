"""Caches on code objects, and their entries."""

import gc
import sys
import threading

import pytest

from graphlift import _C

ALWAYS = _C.GuardProgram([])


def fresh_code():
    return compile("lambda x: x", "<code>", "eval").co_consts[0]


def test_one_cache_per_code_and_settings():
    code, other, first, second = fresh_code(), fresh_code(), object(), object()
    assert _C.cache_of(code, first) is _C.cache_of(code, first)
    assert len({_C.cache_of(c, s) for c in (code, other) for s in (first, second)}) == 4
    assert _C.cache_of(code, first).settings is first


def test_settings_are_compared_by_identity():
    code = fresh_code()
    assert _C.cache_of(code, []) is not _C.cache_of(code, [])


def test_code_that_only_compares_equal_has_its_own():
    code, settings = fresh_code(), object()
    assert code == code.replace() and _C.cache_of(code, settings) is not _C.cache_of(code.replace(), settings)


def test_add_remove_and_clear():
    cache = _C.cache_of(fresh_code(), object())
    entries = [_C.Entry(ALWAYS, None) for _ in range(3)]
    assert cache.entries == () and cache.skip is False
    for entry in entries:
        cache.add(entry)
    assert cache.entries == tuple(reversed(entries))
    cache.add(entries[0])
    assert cache.entries == (entries[0], entries[2], entries[1])
    cache.remove(entries[2])
    cache.remove(entries[2])
    assert cache.entries == (entries[0], entries[1])
    entries[0].invalidate()
    cache.remove(entries[2])
    assert cache.entries == (entries[1],)
    cache.skip = True
    cache.clear()
    assert cache.entries == () and cache.skip is False


def test_a_snapshot_of_the_entries_stays_as_it_is():
    cache = _C.cache_of(fresh_code(), object())
    first, second = _C.Entry(ALWAYS, None), _C.Entry(ALWAYS, None)
    cache.add(first)
    snapshot = cache.entries
    cache.add(second)
    assert snapshot == (first,)


def test_dropping_gives_new_caches():
    code, settings = fresh_code(), object()
    cache = _C.cache_of(code, settings)
    _C.drop_caches(code)
    assert _C.cache_of(code, settings) is not cache
    _C.drop_caches(fresh_code())


def test_entry_fields():
    def function(x):
        return x

    code, owner, data = fresh_code(), object(), object()
    entry = _C.Entry(guards=ALWAYS, function=function, swap_code=code, owner=owner, data=data)
    assert (entry.guards, entry.function, entry.swap_code) == (ALWAYS, function, code)
    assert (entry.owner, entry.data, entry.hits, entry.valid) == (owner, data, 0, True)
    entry.owner, entry.data, entry.hits = 1, 2, 3
    assert (entry.owner, entry.data, entry.hits) == (1, 2, 3)
    entry.invalidate()
    assert entry.valid is False
    assert _C.Entry(ALWAYS, None).function is None
    for name in ("guards", "function", "swap_code", "valid"):
        with pytest.raises(AttributeError):
            setattr(entry, name, None)


@pytest.mark.parametrize(
    "args, error",
    [
        ((), TypeError),
        ((None, None), TypeError),
        ((ALWAYS, len), TypeError),
        ((ALWAYS, None, 1), TypeError),
        ((ALWAYS, None, fresh_code()), ValueError),
    ],
)
def test_entries_are_checked(args, error):
    with pytest.raises(error):
        _C.Entry(*args)


def test_wrong_types():
    cache = _C.cache_of(fresh_code(), object())
    for call in [
        lambda: _C.cache_of(1, object()),
        lambda: _C.drop_caches(1),
        lambda: _C.mark_skip(1),
        lambda: cache.add(1),
        lambda: cache.remove(1),
        lambda: _C.Cache(),
    ]:
        with pytest.raises(TypeError):
            call()


def test_cycles_through_an_entry_are_collected():
    cache = _C.cache_of(fresh_code(), object())  # its code is gone at once
    died = []

    class Data:
        def __del__(self):
            died.append(1)

    entry = _C.Entry(ALWAYS, None, data=Data())
    entry.data.back = cache
    cache.add(entry)
    del cache, entry
    gc.collect()
    assert died == [1]


def test_threads_that_read_while_others_write():
    code, settings = (lambda x: x).__code__, object()
    cache = _C.cache_of(code, settings)
    programs = [_C.GuardProgram([("param", -1, 0), ("type_is", 0, cls)]) for cls in (int, str, float, bytes)]
    stop, failures = threading.Event(), []

    def write():
        while not stop.is_set():
            for program in programs:
                cache.add(_C.Entry(program, lambda x: ("entry", x)))
            for entry in cache.entries[:5]:
                cache.remove(entry)
            gc.collect(0)

    def read():
        compiled = _C.CompiledFunction(lambda x: x, settings, lambda c, p: NotImplemented)
        compiled.__code__ = code
        for _ in range(3000):
            for value in (1, "a", 1.0, b"b", None):
                if compiled(value) not in (value, ("entry", value)):
                    failures.append(value)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    writer = threading.Thread(target=write)
    readers = [threading.Thread(target=read) for _ in range(3)]
    try:
        for thread in [writer, *readers]:
            thread.start()
        for thread in readers:
            thread.join()
    finally:
        stop.set()
        writer.join()
        sys.setswitchinterval(interval)
    assert not failures
