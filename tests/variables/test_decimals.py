"""Decimal numbers: results, errors, the context they read and the flags they set."""

import decimal
import enum
import math
from decimal import Decimal

import pytest
import torch

import graphlift
from graphlift.testing import check

NAMES = {"decimal": decimal, "Decimal": Decimal, "math": math}

TEMPLATE = """
def program(x, n):
    y = x + 1
    try:
        r = {}
    except Exception as error:
        r = type(error), str(error), error.args
    return y * 2, r
"""


@pytest.fixture(autouse=True)
def _own_context():
    graphlift.reset()
    with decimal.localcontext(decimal.Context()):
        yield


@pytest.mark.parametrize(
    "expression",
    [
        "Decimal('1.1') + n, n - Decimal('1.10'), Decimal(7) // n, Decimal('7.5') % n, n ** Decimal(3)",
        (
            "Decimal(1) / 3, Decimal(2).sqrt(), Decimal(2) ** Decimal('0.5'), "
            "-Decimal(n), +Decimal('0.10'), abs(-Decimal(n))"
        ),
        "Decimal(1) / 0",
        "Decimal('x')",
        "Decimal(10) ** 1000000000",
        "Decimal('sNaN') + 1",
        "Decimal(1) + 1.5",
        "Decimal(1) < '1'",
        "Decimal(3) >> 1",
        "Decimal(1).nothing",
        "Decimal(0.5), Decimal.from_float(0.25), Decimal((0, (1, 2), -1)), Decimal(' 1_0 ')",
        (
            "str(Decimal('1E+5')), repr(Decimal(n)), '{:>5}'.format(n * Decimal(1)), "
            "f'{Decimal(n) / 3:.3f}', format(Decimal('1234.5'), ',')"
        ),
        (
            "float(Decimal('1.5')), int(Decimal('1.5')), bool(Decimal(0)), "
            "round(Decimal('2.675'), n), round(Decimal('2.5'))"
        ),
        "Decimal('2.345').quantize(Decimal('0.01'), rounding=decimal.ROUND_HALF_UP), pow(Decimal(n), 3)",
        "Decimal(1) == 1, Decimal(1) == 1.0, Decimal('0.1') < 0.1, Decimal(1) == '1', Decimal('NaN') == n",
        "sum([Decimal(1), Decimal(n)]), max(Decimal(1), Decimal(n)), sorted([Decimal(3), Decimal(1)])",
        (
            "Decimal('1.20').as_tuple(), Decimal('1.20').normalize(), "
            "Decimal('7').as_integer_ratio(), Decimal(2).imag"
        ),
        "Decimal(12345678901234567890123456789) * 10 + n",
    ],
)
def test_operations(expression):
    names = dict(NAMES)
    exec(TEMPLATE.format(expression), names)
    program = names["program"]
    check(program, torch.ones(2), 2, breaks=0)
    flags = []
    for run in (program, graphlift.compile(program, backend="eager")):
        for _ in range(2):
            decimal.getcontext().clear_flags()
            run(torch.ones(2), 2)
            flags.append(dict(decimal.getcontext().flags))
    assert flags[1:] == flags[:-1]


def test_the_context_is_guarded():
    def program(x):
        return x * 2, Decimal(1) / 3

    compiled = graphlift.compile(program, backend="eager")
    for precision in (28, 5, 28, 9):
        decimal.getcontext().prec = precision
        assert compiled(torch.ones(2))[1] == Decimal(1) / 3
    decimal.getcontext().traps[decimal.Inexact] = True
    with pytest.raises(decimal.Inexact):
        compiled(torch.ones(2))


def test_who_asks_for_the_context_sees_the_flags():
    def program(x):
        third = Decimal(1) / 3
        return x * 2, third, decimal.getcontext().flags[decimal.Inexact]

    assert graphlift.compile(program, backend="eager")(torch.ones(2))[2] is True


def test_a_context_that_the_program_changes():
    def program(x):
        with decimal.localcontext() as context:
            context.prec = 4
            short = Decimal(1) / 3
        return x * 2, short, Decimal(1) / 3

    check(program, torch.ones(2), graphs=None, breaks=None)


def test_numbers_that_are_handed_in_are_guarded_by_their_digits():
    def program(x, number):
        return x * float(number), number + 1, number

    first = (torch.ones(2), Decimal("1.10"))
    check(program, *first, then=[first], breaks=0, recompiles=0)
    others = [(torch.ones(2), number) for number in (Decimal("1.1"), Decimal("-Infinity"), 1, Decimal(3))]
    check(program, *first, then=others, graphs=None, breaks=None, recompiles=None)


class Level(enum.IntEnum):
    LOW = 2


class Price(Decimal):
    pass


def test_numbers_of_derived_classes():
    def program(x, level, price):
        return x * 2, Decimal(1) + level, price * Decimal(2), Decimal(2) < price, Decimal(2) == level

    check(program, torch.ones(2), Level.LOW, Price("1.5"), graphs=None, breaks=None)
