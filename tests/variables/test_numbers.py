"""Arithmetic of numbers that change from call to call: results, errors and types are Python's own."""

import array
import math
from decimal import Decimal

import pytest
import torch

import graphlift
from graphlift import config
from graphlift.testing import check

INTS = [1, 2, 3, 5, 0, -1, True, 2**70, 1.5, math.nan, math.inf, -0.0, -7]
FLOATS = [1.5, 2.5, 3.25, 0.0, -0.0, -1.5, 1e308, math.nan, math.inf, -math.inf, 5e-324, 3]
PAIRS = [(1, 2), (2, 3), (3, 3), (5, 0), (0, 5), (-1, 2), (7, -2), (2**70, 3), (1.5, 2), (3, math.inf)]
FLOAT_PAIRS = [(1.5, 2.5), (2.5, 1.5), (3.5, 3.5), (2.0, 0.0), (1e308, 1e308), (math.nan, 2.5), (-0.0, -1.5)]
MIXED = [(5, 2.5), (7, 3.5), (-9, 0.5), (0, 0.0), (2**53 + 1, 2.0**53), (10, math.nan), (3, -0.0)]


@pytest.fixture(autouse=True)
def _all_are_captured(monkeypatch):
    graphlift.reset()
    monkeypatch.setattr(config, "recompile_limit", 64)


def program(expression, parameters="a"):
    """A function that computes `expression` between two tensor operations and tells its error, if any."""
    lines = [
        f"def program(x, {parameters}):",
        "    y = x + 1",
        "    try:",
        f"        r = {expression}",
        "    except Exception as error:",
        "        r = type(error), str(error)",
        "    return y * 2, r, type(r)",
    ]
    names = {"math": math, "torch": torch}
    exec("\n".join(lines), names)
    return names["program"]


def compare(function, calls):
    first, *others = [call if isinstance(call, tuple) else (call,) for call in calls]
    x = torch.arange(3.0)
    check(function, x, *first, then=[(x, *call) for call in others], recompiles=None, graphs=None)


@pytest.mark.parametrize("calls", [INTS, FLOATS], ids=["ints", "floats"])
@pytest.mark.parametrize(
    "expression",
    [
        "(-a, +a, abs(a), not a, bool(a), a - a, a * 0, a + 0.0, a // 1, a % 2.5)",
        "~a",
        "complex(a), a * 1j, 1j - a, a ** 1j",
        "divmod(7, a)",
        "divmod(a, a)",
        "7 // a",
        "7.5 % a",
        "a ** 2, a ** 3",
        "a ** -2",
        "a ** 0.5, (a * a) ** 0.5",
        "0.0 ** a",
        "a.__floor__(), math.ceil(a), round(a), int(a)",
        "a < math.inf, a == 1.0, a < 10**400, a == a",
        "f'{a} {a!r:>8} {a:.2e} {a=}', '%s %5.1f' % (a, a), '{0} {0:08}'.format(a)",
        "(1, 2, 3)[a]",
        "[*a]",
        "{**a}",
        "max(*a)",
        "1 in a",
        "vars(a)",
        "list(range(a))[:4]",
        "x * a",
        "x.new_full((2,), a)",
        "torch.add(x, x, alpha=a)",
        "torch.clamp(x, min=a)",
        "(a * 1e200) * 1e200 - a",
    ],
)
def test_one_number(expression, calls):
    compare(program(expression), calls)


@pytest.mark.parametrize("calls", [PAIRS, FLOAT_PAIRS, MIXED], ids=["ints", "floats", "mixed"])
@pytest.mark.parametrize(
    "expression",
    [
        "a + b, a - b, a * b, (a + b) - b, a - a + b",
        "a / b",
        "a // b, a % b",
        "divmod(a, b)",
        "a * b / b == a, a * 0.1 * 3 > 0.3 * b",
        "a < b, a <= b, a == b, a != b, a > b, a >= b, a < b < 10",
        "int(a / b), math.floor(a / 3) * b",
        "[1, 2, 3][a > b]",
        "x * (a + b * 0.5)",
        "a * a * a * a * a * a * a / (b * b + 1)",
        "x * (a * a * a * a * b)",
        "f'{a:{4}}|{b!r:>10}|{a + b:.2e}'",
    ],
)
def test_two_numbers(expression, calls):
    compare(program(expression, "a, b"), calls)


def test_arithmetic_of_floats_is_followed_without_fixing_them():
    def program(x, rate, momentum):
        step = (rate * 0.1 + momentum) / (1 - momentum * rate) - abs(rate) ** 2
        return x * step if step > -10 else x

    calls = [(torch.ones(2), 0.1 * i, 0.5 + 0.01 * i) for i in range(2, 9)]
    check(program, torch.ones(2), 0.1, 0.5, then=calls, recompiles=1)


def test_sizes_made_through_floats_stay_open():
    def program(x):
        n = x.size(0)
        return x[: int(n * 0.5)].sum() + math.ceil(n / 3) + x.new_zeros(math.floor(n * 0.25)).sum()

    check(program, torch.ones(8), then=[(torch.ones(n),) for n in (12, 16, 20, 24)], recompiles=1)


def test_the_root_of_a_size():
    def program(x):
        return x / x.size(-1) ** 0.5

    calls = [(torch.ones(2, n),) for n in (5, 6, 7, 9)]
    check(program, torch.ones(2, 4), then=calls, recompiles=1)


class Text(str):
    pass


class Bytes(bytes):
    pass


class Array(bytearray):
    pass


class Truncated:
    def __trunc__(self):
        return 5


@pytest.mark.parametrize("made_by", [int, float, complex])
@pytest.mark.parametrize(
    "value",
    [
        Text("12"),
        Bytes(b"13"),
        Array(b"14"),
        bytearray(b"7"),
        array.array("b", b"5"),
        Truncated(),
        [],
        {},
        None,
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore:The delegation of int")
def test_numbers_made_of_objects(made_by, value):
    def program(x):
        y = x + 1
        try:
            number = made_by(value)
        except TypeError as error:
            number = str(error)
        return y * 2, number

    check(program, torch.ones(2), graphs=None, breaks=None)


class Pair:
    def __init__(self, log):
        self.log = log

    def __divmod__(self, other):
        self.log.append(("divmod", type(self).__name__, other))
        return NotImplemented if other == 3 else ("left", other)

    def __rdivmod__(self, other):
        self.log.append(("rdivmod", type(self).__name__, other))
        return NotImplemented if other == 4 else ("right", other)


class BelowPair(Pair):
    def __rdivmod__(self, other):
        self.log.append("below")
        return super().__rdivmod__(5)


class SamePair(Pair):
    pass


DIVIDING = """
def program(x):
    y, log = x + 1, []
    try:
        r = {}
    except TypeError as error:
        r = str(error)
    return y * 2, r, len(log)
"""


@pytest.mark.parametrize(
    "expression",
    [
        "divmod(Pair(log), 7), divmod(7, Pair(log))",
        "divmod(Pair(log), 3)",
        "divmod(4, Pair(log))",
        "divmod(Pair(log), BelowPair(log))[0], divmod(Pair(log), SamePair(log))[0]",
        "divmod('x', Pair(log)), divmod(Decimal(7), 2), divmod(7, Decimal(2))",
        "divmod(Decimal(7), 'x')",
        "divmod([], 2)",
    ],
)
def test_divmod_asks_the_methods_of_its_operands(expression):
    names = {"Pair": Pair, "BelowPair": BelowPair, "SamePair": SamePair, "Decimal": Decimal}
    exec(DIVIDING.format(expression), names)
    check(names["program"], torch.ones(2), breaks=0)


class OwnInt(int):
    pass


class OwnFloat(float):
    pass


class OwnComplex(complex):
    pass


@pytest.mark.parametrize(
    "made", [OwnInt(3), OwnFloat(2.5), OwnComplex(1, 2)], ids=lambda made: type(made).__name__
)
def test_fields_of_objects_of_derived_numbers(made):
    cls, beneath = type(made), type(made).__mro__[1](made)

    def read(x):
        value = cls(beneath)
        value.own = 4
        try:
            return x * 2, value.real, value.imag, value.own, vars(cls.__mro__[1])["real"].__get__(value)
        except AttributeError as error:
            return x, str(error)

    def written(x):
        value, told = cls(beneath), []
        for change in (lambda: setattr(value, "real", 3), lambda: delattr(value, "real")):
            try:
                change()
            except (AttributeError, TypeError) as error:
                told.append(str(error))
        return x * 2, told, value.real

    def handed_in(x, value):
        try:
            value.real = 3
        except AttributeError as error:
            return x * 2, str(error)

    check(read, torch.ones(2), graphs=1, breaks=0, recompiles=None)
    check(written, torch.ones(2), graphs=None, breaks=None, recompiles=None)
    check(handed_in, torch.ones(2), made, graphs=None, breaks=None, recompiles=None)


def test_the_hash_of_what_is_not_a_number_is_the_objects_own():
    def program(x, cls):
        value = cls("nan")
        known = hash(value)
        return x * 2, known == object.__hash__(value), known == hash(value), value in {value}

    for cls in (float, OwnFloat):
        check(program, torch.ones(2), cls, graphs=None, breaks=None, recompiles=None)


class Reflects(int):
    def __radd__(self, other):
        return "added"

    def __rmul__(self, other):
        return "multiplied"

    def __rmatmul__(self, other):
        return "matrix"

    def __ror__(self, other):
        return "or"

    def __rmod__(self, other):
        return "rest"


class Row(tuple):
    pass


def test_what_the_left_operand_takes_is_its_own():
    """A class that is not below the left operand's is asked second, and a number in C takes derived ones."""

    def program(x, value):
        made = Reflects(7)
        numbers = [2.5 + made, True + made, 1j * made, 3 + made, 3 * value, 2.5 * value, made + 2.5]
        numbers += [3 @ made, 2.5 | made, 1j % made, 7.5 % made]  # the first three no left operand has
        return x * 2, numbers, "b%s" % Row((1,)), b"b%d" % Row((1,)), "%s %s" % Row((1, 2))

    check(program, torch.ones(2), Reflects(3), graphs=1, breaks=0)


def test_slots_of_classes_derived_from_numbers_inside():
    def program(x):
        class Slotted(float):
            __slots__ = ("unit",)

        class Empty(complex):
            __slots__ = ("unit",)

        value = Slotted(2.5)
        value.unit = "m"
        try:
            told = Empty(1, 2).unit
        except AttributeError as error:
            told = str(error)
        return x * 2, value.unit, value.real, told, Empty(1, 2).imag

    check(program, torch.ones(2), graphs=1, breaks=0)


def test_numbers_of_numpy_that_derive_from_floats_stay_what_they_are():
    numpy = pytest.importorskip("numpy")

    def program(x, value):
        made = numpy.float64(2.5)
        found = [made * 3, made.real, value + 1, 2 * value, round(numpy.floor(1.6))]
        return x * 2, found, [type(each).__name__ for each in found]

    compiled = graphlift.compile(program, backend="eager")
    for _ in range(2):
        assert str(compiled(torch.ones(2), numpy.float64(1.5))) == str(
            program(torch.ones(2), numpy.float64(1.5))
        )
