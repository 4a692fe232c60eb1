"""Each version's table of opcodes: complete, in agreement with CPython, and derived step by step."""

from __future__ import annotations

import dis
import opcode

import pytest

from graphlift.bytecode import versions
from graphlift.bytecode.opcodes import UNEXPECTED, Row, by_number, derive
from graphlift.bytecode.operands import BINARY_OPERATORS, COMPARISONS, Compare, Jump, JumpBack
from graphlift.bytecode.versions import LAYOUT, OPCODES, ROWS, py311, py312, py313

REAL = {name: number for name, number in opcode.opmap.items() if number < 256}
NEVER_IN_CODE = {
    "CACHE",
    "EXTENDED_ARG",
    "RESERVED",
    "INTERPRETER_EXIT",
    "ENTER_EXECUTOR",
    "EXIT_INIT_CHECK",
    "INSTRUMENTED_LINE",
    "INSTRUMENTED_INSTRUCTION",
}


def test_every_real_opcode_has_a_row() -> None:
    assert len(REAL) == {(3, 11): 110, (3, 12): 129, (3, 13): 138}[versions.VERSION]
    assert [name for name, number in REAL.items() if ROWS[number] is None] == []
    assert [number for number in range(256) if ROWS[number] and number not in REAL.values()] == []


def test_no_row_without_an_opcode() -> None:
    assert set(OPCODES) - set(REAL) == set()


def test_only_what_cannot_occur_is_unexpected() -> None:
    unexpected = {name for name, number in REAL.items() if UNEXPECTED in ROWS[number].handlers}
    assert unexpected == NEVER_IN_CODE & set(REAL)


def test_instrumented_opcodes_share_the_plain_row() -> None:
    for name, number in REAL.items():
        if name.startswith("INSTRUMENTED_") and name not in NEVER_IN_CODE:
            assert ROWS[number] is ROWS[REAL[name.removeprefix("INSTRUMENTED_")]], name


@pytest.mark.skipif(versions.VERSION < (3, 12), reason="3.11 has no instrumented opcodes")
def test_there_are_instrumented_opcodes() -> None:
    assert sum(name.startswith("INSTRUMENTED_") for name in REAL) == {12: 18, 13: 19}[versions.VERSION[1]]


def test_caches_are_cpythons() -> None:
    counts = opcode._inline_cache_entries
    if isinstance(counts, list):
        counts = {opcode.opname[number]: count for number, count in enumerate(counts) if count}
    assert {name: count for name, count in counts.items() if name in OPCODES} == dict(LAYOUT.caches)


def test_jumps_are_cpythons() -> None:
    jumps = {name for name, number in REAL.items() if isinstance(ROWS[number].operand, Jump)}
    assert jumps >= {opcode.opname[number] for number in dis.hasjrel if number < 256}
    backward = {name for name, number in REAL.items() if isinstance(ROWS[number].operand, JumpBack)}
    assert backward == {name for name in jumps if "BACKWARD" in name}


def test_operators_are_cpythons() -> None:
    assert COMPARISONS == dis.cmp_op
    symbols = [symbol for _, symbol in opcode._nb_ops[: 2 * len(BINARY_OPERATORS)]]
    assert symbols == [*BINARY_OPERATORS, *(symbol + "=" for symbol in BINARY_OPERATORS)]


@pytest.mark.skipif(versions.VERSION < (3, 12), reason="3.11 has no intrinsics")
@pytest.mark.parametrize("arity", [1, 2])
def test_intrinsics_are_cpythons(arity: int) -> None:
    kind = OPCODES[f"CALL_INTRINSIC_{arity}"].operand
    if versions.VERSION == (3, 12):
        names = {1: py312.INTRINSICS_1, 2: py312.INTRINSICS_2}[arity].split()
    else:
        described = getattr(opcode, f"_intrinsic_{arity}_descs")
        names = [
            text.removeprefix(f"INTRINSIC_{arity}_").removeprefix("INTRINSIC_") for text in described[1:]
        ]
    assert kind.words == names


def test_derivation_refuses_what_was_not_there() -> None:
    with pytest.raises(KeyError):
        derive(py311.OPCODES, without="NO_SUCH_OPCODE", adding={})


def test_versions_are_small_deltas() -> None:
    """What the design says of the versions: 20 opcodes come and 19 go in 3.12, 11 come and 3 go in 3.13."""
    assert len(set(py312.OPCODES) - set(py311.OPCODES)) == 20
    assert len(set(py311.OPCODES) - set(py312.OPCODES)) == 19
    assert len(set(py313.OPCODES) - set(py312.OPCODES)) == 11
    assert len(set(py312.OPCODES) - set(py313.OPCODES)) == 3


def test_numbering_leaves_unknown_opcodes_out() -> None:
    table = by_number(
        {"A": Row(("A",))}, {"A": 1, "INSTRUMENTED_A": 2, "INSTRUMENTED_B": 3, "B": 4, "P": 300}
    )
    assert table[1] is table[2] is not None
    assert table[3] is not None and table[3].handlers == (UNEXPECTED,)
    assert table[4] is None


@pytest.mark.parametrize("symbol", COMPARISONS)
def test_comparison_argument_is_the_compilers(symbol: str) -> None:
    """The low bits feed CPython's specialisation: a wrong mask gives wrong results after warm-up."""
    code = compile(f"a {symbol} b", "", "eval")
    (arg,) = [item.arg for item in dis.get_instructions(code) if item.opname == "COMPARE_OP"]
    kind = OPCODES["COMPARE_OP"].operand
    assert isinstance(kind, Compare)
    assert kind.decode(arg, None) == (symbol, False)
    assert kind.encode((symbol, False), None) == arg


@pytest.mark.parametrize("module", [py311, py312, py313])
def test_all_versions_load_on_this_one(module: object) -> None:
    assert module.OPCODES["RESUME"].handlers == ("RESUME",)
    assert module.LAYOUT.caches["LOAD_GLOBAL"] > 0
