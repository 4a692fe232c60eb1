"""Calls of C functions in every form: by position, by name, wrong ones with CPython's error."""

from __future__ import annotations

import math

import pytest
import torch

from graphlift.testing.check import check

CALLS = [
    lambda x, n: sum([x, x], start=x),
    lambda x, n: sum([n, n], start=n) + x,
    lambda x, n: (round(number=2.5, ndigits=None), x),
    lambda x, n: (round(number=n, ndigits=1), x),
    lambda x, n: (pow(base=n, exp=2), pow(base=n, exp=2, mod=5), x),
    lambda x, n: (list(enumerate([x], start=n)), list(enumerate(iterable=[x], start=3))),
    lambda x, n: (sorted([n, 2], key=None, reverse=True), x),
    lambda x, n: ([n, 1].sort(key=lambda v: -v, reverse=False), x),
    lambda x, n: ("a,b".split(sep=",", maxsplit=1), "a b".split(maxsplit=1), x),
    lambda x, n: ("abc".encode(encoding="utf-8", errors="strict"), b"a".decode(encoding="utf8"), x),
    lambda x, n: ((5).to_bytes(length=2, byteorder="big", signed=True), x),
    lambda x, n: (int.from_bytes(bytes=b"ab", byteorder="big"), x),
    lambda x, n: (n.to_bytes(length=2, byteorder="big"), x),
    lambda x, n: (int("12", base=3), x),
    lambda x, n: (complex(real=n, imag=2), x),
    lambda x, n: (str(object=n), x),
    lambda x, n: (math.prod([n, 2], start=n), x),
    lambda x, n: (math.isclose(a=n, b=2, rel_tol=1e-3), x),
    lambda x, n: (zip([n], [x], strict=True), x),
    lambda x, n: ([n, x].index(n, 0, 5), x),
    lambda x, n: dict.fromkeys([n], x),
    lambda x, n: (len(obj=[n]), x),
    lambda x, n: (len(), x),
    lambda x, n: (len(1, 2), x),
    lambda x, n: (sum(), x),
    lambda x, n: (sum([n], 1, 2), x),
    lambda x, n: (sum([n], stop=2), x),
    lambda x, n: (sorted([n], lambda v: v), x),
    lambda x, n: ([n].append(), x),
    lambda x, n: ([n].append(1, 2), x),
    lambda x, n: ([n].append(object=1), x),
    lambda x, n: ({}.get(), x),
    lambda x, n: ({}.get(key=n), x),
    lambda x, n: ([n].index(), x),
    lambda x, n: ([n].sort(n), x),
    lambda x, n: (isinstance(n), x),
    lambda x, n: (getattr(n), x),
    lambda x, n: (setattr(n, "a"), x),
    lambda x, n: ({1}.add(), x),
    lambda x, n: ({1}.union(1), x),
    lambda x, n: (divmod(n), x),
    lambda x, n: (iter(), x),
    lambda x, n: (next(), x),
    lambda x, n: (map(), x),
    lambda x, n: (enumerate(), x),
    lambda x, n: (enumerate([n], begin=2), x),
    lambda x, n: (reversed(), x),
    lambda x, n: (range(), x),
    lambda x, n: (range(1, 2, 3, 4), x),
    lambda x, n: (range(stop=3), x),
    lambda x, n: (min(), x),
    lambda x, n: (min(n), x),
    lambda x, n: (min([n], fallback=2), x),
    lambda x, n: (all(n), x),
    lambda x, n: (any(), x),
    lambda x, n: (hash(), x),
    lambda x, n: (abs(), x),
    lambda x, n: (round(), x),
    lambda x, n: (chr(), x),
    lambda x, n: (repr(), x),
    lambda x, n: (type(), x),
    lambda x, n: (bool(n, 1), x),
    lambda x, n: (int(n, 3), x),
    lambda x, n: (float(n, 1), x),
    lambda x, n: (list(n), x),
    lambda x, n: (list([1], 2), x),
    lambda x, n: (tuple(sequence=[n]), x),
    lambda x, n: (dict(n), x),
    lambda x, n: (set(n), x),
    lambda x, n: (set([1], 2), x),
    lambda x, n: (frozenset(n), x),
    lambda x, n: (callable(), x),
    lambda x, n: (id(), x),
    lambda x, n: (issubclass(n, int), x),
    lambda x, n: (slice(), x),
    lambda x, n: (format(), x),
    lambda x, n: (filter(n), x),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_a_call(number):
    call = CALLS[number]

    def program(x, n):
        y = x + 1
        try:
            return call(y, n)
        except Exception as error:
            return y, type(error), str(error)

    first, *others = [(torch.ones(2), n) for n in (2, 3, 4)]
    check(program, first[0], first[1], then=others, graphs=None, breaks=None, recompiles=None)
