"""The runner of CPython's own tests, on its smallest parts: its counts, its failures, its exit status."""

import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "conformance"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(FOLDER), *arguments], capture_output=True, text=True, timeout=240, check=False
    )


def test_a_small_file_passes_compiled():
    done = run("test_augassign")
    counts = next(line.split() for line in done.stdout.splitlines() if line.startswith("all"))
    assert done.returncode == 0, done.stdout + done.stderr
    tests, plain, compiled, excluded, whole = map(int, counts[1:6])
    assert tests == plain == compiled + excluded == 7
    assert whole > 0


@pytest.fixture
def worker(monkeypatch):
    """The runner's module, with a file of tests of its own: `tests` is run as if it were CPython's."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import worker

    return worker


def test_names_of_an_example_are_global(worker):
    import examples

    def ran(source: str, namespace: dict) -> object:
        return types.FunctionType(examples.as_function(source, "<example>", 0), namespace)()

    namespace: dict = {}
    assert ran("a = [(b := i) for i in range(3)]", namespace) is None
    assert ran("a, b", namespace) == ([0, 1, 2], 2)
    ran("class C:\n    def f(self): return a\n", namespace)
    assert namespace["C"].f.__qualname__ == "C.f"
    assert ran("C().f()", namespace) == [0, 1, 2]
    assert ran("(lambda: 0).__qualname__", namespace) == "<lambda>"
    ran("for k, in zip('xy'):\n    import os.path as found\n", namespace)
    assert namespace["k"] == "y" and "found" in namespace and "os" not in namespace
    with pytest.raises(SyntaxError):
        examples.as_function("a +", "<example>", 0)
    assert examples.as_function("from os import *", "<example>", 0) is None


def test_values_inside_a_statement_are_shown(worker, capsys):
    import examples

    examples.run_examples_with(lambda name, function: function())
    exec_example = __import__("doctest").exec
    compile_example = __import__("doctest").compile
    exec_example(compile_example("for i in range(2):\n    i * 5\n", "<example>", "single", 0, True), {})
    assert capsys.readouterr().out == "0\n5\n"


def test_what_passes_plain_and_fails_compiled_is_wrong(worker):
    from supervisor import Run
    from verdict import judge

    def report(test, outcome, whole=False, internal=()):
        return dict(test=test, outcome=outcome, text="", whole=whole, breaks=[], internal=list(internal))

    plain = Run({n: report(f"C.t{n}", "passed") for n in range(3)})
    compiled = Run({0: report("C.t0", "passed", whole=True), 1: report("C.t1", "failed")})
    verdict = judge("test_list", plain, compiled)
    assert (verdict.tests, verdict.plain, verdict.passed, verdict.whole) == (3, 3, 1, 1)
    assert [text.split(":")[0] for text in verdict.wrong] == ["test_list C.t1", "test_list C.t2"]


def test_a_crash_and_a_hang_cost_one_test(worker, monkeypatch):
    import supervisor

    def work(file, compiled, only, first, channel):
        with os.fdopen(channel, "w") as out:
            for number in range(first, 4):
                print(json.dumps({"begin": number, "test": f"t{number}"}), file=out, flush=True)
                if number == 1:
                    os.kill(os.getpid(), signal.SIGSEGV)
                if number == 2:
                    time.sleep(60)
                done = {"number": number, "test": f"t{number}", "outcome": "passed"}
                print(json.dumps(done), file=out, flush=True)

    monkeypatch.setattr(supervisor.worker, "work", work)
    run = supervisor.Supervisor("test_none", compiled=False, only="", patience=0.3).run()
    assert [run.reports[number]["outcome"] for number in range(4)] == ["passed", "failed", "failed", "passed"]
    assert run.reports[1]["text"].startswith("crash: SIGSEGV")
    assert run.reports[2]["text"].startswith("hang")
