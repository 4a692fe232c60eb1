"""What is known of code objects: by identity, as long as they live."""

from __future__ import annotations

import gc

from graphlift.bytecode.by_code import ByCode


def made():
    return compile("x + 1", "same", "eval")


def test_equal_codes_are_two():
    first, second = made(), made()
    assert first == second
    known: ByCode[str] = ByCode()
    known[first] = "first"
    assert known.get(second) is None and second not in known
    known[second] = "second"
    assert (known.get(first), known.get(second)) == ("first", "second")
    del first
    gc.collect()
    assert list(known) == [second] and known.get(second) == "second"


def test_rows_go_with_their_codes():
    known: ByCode[int] = ByCode()
    for number in range(100):
        known[made()] = number
    assert len(known) == 0


def test_clear():
    known: ByCode[int] = ByCode()
    code = made()
    known[code] = 1
    known.clear()
    assert code not in known and len(known) == 0
