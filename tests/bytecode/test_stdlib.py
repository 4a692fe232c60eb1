"""The standard library as test data: everything in it is read, written again, compared, and run.

`make test` takes a sample; with ``--slow`` it is all of it, and ``-s`` shows the counts.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from graphlift.bytecode.decode import Decoded
from graphlift.bytecode.listing import listing
from graphlift.bytecode.liveness import Liveness
from graphlift.bytecode.reassemble import reassemble
from graphlift.bytecode.verify import verify, verify_code

LIBRARY = Path(sysconfig.get_path("stdlib"))
SOURCE = Path(__file__).resolve().parents[2] / "src"
RUNNER = Path(__file__).with_name("rewritten_stdlib.py")
FILES = sorted(path for path in LIBRARY.rglob("*.py") if "site-packages" not in path.parts)
HAS_TESTS = importlib.util.find_spec("test.test_grammar") is not None


def code_objects(path: Path) -> Iterator[CodeType]:
    """Every code object of a source file; none if it is not meant to compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pending = [compile(path.read_bytes(), str(path), "exec", dont_inherit=True)]
        except (SyntaxError, ValueError):
            return
    while pending:
        code = pending.pop()
        yield code
        pending.extend(item for item in code.co_consts if isinstance(item, CodeType))


def round_trip(code: CodeType) -> int:
    """One code object through everything; gives the number of its steps."""
    verify_code(code)
    made = reassemble(code)
    verify(code, made)
    verify_code(made)
    if len(made.co_code) == len(code.co_code):
        # The pools keep their order, so even the bytes agree.
        assert made.co_code == code.co_code
        assert made.co_exceptiontable == code.co_exceptiontable
        assert list(made.co_positions()) == list(code.co_positions())
    else:
        # CPython may give a jump a prefix that it needs only because of the prefix itself.
        assert len(made.co_code) < len(code.co_code)
    decoded = Decoded(code)
    Liveness(decoded, code)
    return len(decoded)


def test_sample_goes_round() -> None:
    sample = [code for path in FILES[7::60] for code in code_objects(path)]
    assert len(sample) > 300
    for code in sample:
        round_trip(code)


@pytest.mark.slow
def test_whole_library_goes_round() -> None:
    began, codes, steps = time.perf_counter(), 0, 0
    for path in FILES:
        for code in code_objects(path):
            codes += 1
            steps += round_trip(code)
    took = time.perf_counter() - began
    print(f"\n{len(FILES)} files, {codes} code objects, {steps} steps, {took:.0f} s")
    assert codes > 50_000


@pytest.mark.slow
def test_whole_library_can_be_listed() -> None:
    for path in FILES[::5]:
        for code in code_objects(path):
            assert listing(code).count("\n") >= len(Decoded(code))


#: CPython's own test files, chosen for what they exercise and because each takes a second or three.
QUICK = ["test_generators", "test_patma", "test_with"]
MORE = """
    test_argparse test_ast test_asyncgen test_configparser test_contextlib test_contextlib_async test_copy
    test_coroutines test_dataclasses test_difflib test_dis test_enum test_except_star test_exceptions
    test_fnmatch test_fractions test_fstring test_functools test_grammar test_graphlib test_heapq test_json
    test_listcomps test_named_expressions test_pprint test_raise test_scope test_shlex test_string test_super
    test_sys_settrace test_textwrap test_type_params test_typing test_unpack_ex
    """.split()


@pytest.mark.skipif(not HAS_TESTS, reason="this Python comes without its tests")
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_cpythons_own_tests_pass_on_rewritten_code(name: str) -> None:
    if importlib.util.find_spec(f"test.{name}") is None:
        pytest.skip(f"there is no {name} in this Python")
    done = subprocess.run(
        [sys.executable, str(RUNNER), name],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-8000:]
    print(done.stdout.strip().splitlines()[-1])
