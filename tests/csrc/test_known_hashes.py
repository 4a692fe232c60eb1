"""Storing keys without running their methods, and reading what tables keep."""

import gc

import pytest

from graphlift import _C


class Loud:
    def __hash__(self):
        raise AssertionError("hashed")

    def __eq__(self, other):
        raise AssertionError("compared")


def test_keys_are_stored_under_their_known_hashes():
    first, second, table = Loud(), Loud(), {}
    for key in (first, second, first):
        _C.call_hashed(dict.__setitem__, (table, key, 1), (first, second), (5, 5))
    assert _C.stored_hashes(table) == [(first, 5), (second, 5)]
    assert _C.call_hashed(dict.get, (table, second), (second,), (5,)) == 1


def test_tuples_and_frozensets_of_keys():
    key = Loud()
    made = _C.call_hashed(set, ([(key, 1), 3],), (key,), (7,))
    assert sorted(value for _, value in _C.stored_hashes(made)) == sorted([hash((7, 1)), 3])
    assert len(_C.call_hashed(frozenset, ([key, key],), (key,), (7,))) == 1


def test_the_class_is_as_before_also_behind_an_error():
    key = Loud()
    with pytest.raises(KeyError):
        _C.call_hashed(dict.__delitem__, ({}, key), (key,), (1,))
    with pytest.raises(AssertionError, match="hashed"):
        hash(key)
    with pytest.raises(AssertionError, match="compared"):
        key == key.__class__()  # noqa: B015
    assert gc.isenabled()


def test_arguments():
    with pytest.raises(ValueError, match="a hash is needed"):
        _C.call_hashed(dict.get, ({}, 1), (Loud(),), ())
    with pytest.raises(TypeError, match="written in Python"):
        _C.call_hashed(dict.get, ({}, 1), ("text",), (1,))
    with pytest.raises(TypeError, match="only dictionaries and sets"):
        _C.stored_hashes([])
