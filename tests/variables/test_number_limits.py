"""Numbers that change from call to call, at the limits of what operations take.

Each program is called with one number after the other, so that the number becomes symbolic. Results and
errors are those of plain Python; an error comes from the user's line and is caught by the user's handler.
"""

from __future__ import annotations

import copy
import json
import operator
import sys
import traceback
import warnings

import pytest
import torch

import graphlift
from graphlift.testing.check import check

INTS = [2, 3, 5, -3, 2**40, 2**62, 2**63 - 1, 2**63, 2**65, -(2**63), -(2**70), 7, 0, 1, True, -1]
FLOATS = [2.5, 3.5, -1.5, 1e200, float("inf"), float("nan"), -0.0, 0.0, 1e-320, 2.0, 7, 1e39, 7e4]

EXPRESSIONS = """
x + n
x * (n * 2**40)
x + n**3
x + n**-1
x + n**0.5
x + 1.5**n
x + 3 / n
x + 7 // n
x + 7 % n
x + n / 3 + n // 2
x + (-n) + abs(n)
torch.full((2,), n)
torch.clamp(x, max=n)
x.add(x, alpha=n)
x.masked_fill(x > 0, n)
torch.where(x > 0, x, n)
x.roll(n)
x.sub(n)
n - x
x.lerp(x * 2, n)
x + (n == 2.5)
x + n * n * n * n
x.clone().mul_(n)
x + float(n)
x, n**2, n / 7, divmod(n, 3), round(n / 7, 2)
""".strip().splitlines()


def program_of(expression):
    body = (
        "def program(x, n):\n  try:\n    return {}\n  except ZeroDivisionError as error:\n    return error\n"
    )
    namespace = {"torch": torch}
    exec(compile(body.format(expression), f"<{expression}>", "exec"), namespace)
    return namespace["program"]


def outcome(fn, x, n):
    try:
        return repr(fn(x, n))
    except Exception as error:
        frames = [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)[1:]]
        return type(error), str(error), frames


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        *((expression, torch.float32) for expression in EXPRESSIONS),
        *((expression, torch.float16) for expression in EXPRESSIONS[11:16]),
        *((expression, torch.bool) for expression in EXPRESSIONS[13:20:2]),
    ],
)
def test_numbers_at_the_limits(expression, dtype):
    program = program_of(expression)
    for numbers in (INTS, FLOATS):
        graphlift.reset()
        compiled = graphlift.compile(program, backend="eager")
        for n in numbers:
            x = torch.ones(3, dtype=dtype)
            assert outcome(compiled, x, n) == outcome(program, x, n), n
        assert any(record.node_counts for record in compiled.report())


def test_addresses_as_keys_are_not_captured_at_each_call():
    compiled = graphlift.compile(lambda x: copy.deepcopy(x) * 2, backend="eager")
    given = [torch.ones(3) + number for number in range(6)]  # alive, so each has an address of its own
    counts = []
    for x in given:
        assert torch.equal(compiled(x), x * 2)
        counts.append(len(compiled.report()))
    assert len(set(counts[1:])) == 1


def test_an_index_of_a_derived_class_is_warned_of():
    class Index:
        def __index__(self):
            return True

    def program(x):
        return x + 1, [1, 2, 3][Index()], operator.index(Index()), range(Index())

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        check(program, torch.ones(2), graphs=None, breaks=None, recompiles=None)


BIG = 10**5000


def writes_digits(x):
    try:
        return len(str(BIG)), x * 2
    except ValueError as error:
        return str(error), x * 2


def reads_digits(x):
    try:
        return int("7" * 5000) % 97, x * 2
    except ValueError as error:
        return str(error), x * 2


def writes_digits_inside(x):
    try:
        return len(repr([BIG])) + len(f"{BIG}") + len("%d" % BIG), x * 2
    except ValueError as error:
        return str(error), x * 2


def writes_digits_elsewhere(x):
    try:
        return len(json.dumps({"a": [BIG]})), json.loads("[" + "7" * 5000 + "]")[0] % 97, x * 2
    except ValueError as error:
        return str(error), x * 2


PROGRAMS = [writes_digits, reads_digits, writes_digits_inside, writes_digits_elsewhere]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_limit_of_digits_may_change(program):
    limit, x = sys.get_int_max_str_digits(), torch.ones(2)
    whole = program is not writes_digits_elsewhere  # what fails there is left to Python
    compiled = graphlift.compile(program, backend="eager", fullgraph=whole)
    try:
        for now in (6000, 4300, 6000, 0, 640):
            sys.set_int_max_str_digits(now)
            assert compiled(x)[0] == program(x)[0]
    finally:
        sys.set_int_max_str_digits(limit)
