"""Runs one of CPython's own test files with every module taken apart and put together again on import.

Usage: python rewritten_stdlib.py NAME, e.g. test_textwrap; run by test_stdlib.py in a process of its own.
"""

from __future__ import annotations

import importlib
import signal
import sys
from importlib.machinery import SourceFileLoader
from types import CodeType

from graphlift.bytecode.reassemble import reassemble
from graphlift.bytecode.verify import verify_code

KEPT = ("encodings", "graphlift", "importlib", "__main__")


def count(code: CodeType) -> int:
    """How many code objects there are in one, itself included; each is checked."""
    verify_code(code)
    return 1 + sum(count(item) for item in code.co_consts if isinstance(item, CodeType))


def is_rewritable(name: str, module: object) -> bool:
    """Whether an imported module came from source and can be imported once more."""
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    return isinstance(loader, SourceFileLoader) and name.partition(".")[0] not in KEPT


def rewrite_imports() -> dict[str, int]:
    """From now on modules run rewritten code, those imported already as well; gives counts by module."""
    counts: dict[str, int] = {}
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType:
        code = reassemble(original(loader, name), nested=True)
        counts[name] = count(code)
        return code

    SourceFileLoader.get_code = get_code
    dropped = {name for name, module in sys.modules.items() if is_rewritable(name, module)}
    for name in list(sys.modules):
        if name in dropped or name.rpartition(".")[0] in dropped:
            del sys.modules[name]
    return counts


def main(name: str) -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    counts = rewrite_imports()
    unittest = importlib.import_module("unittest")
    module = importlib.import_module(f"test.{name}")
    suite = unittest.TestLoader().loadTestsFromModule(module)
    outcome = unittest.TextTestRunner(verbosity=0).run(suite)
    print(
        f"{name}: {outcome.testsRun} tests, {len(counts)} modules and {sum(counts.values())} codes rewritten"
    )
    return 0 if outcome.wasSuccessful() and f"test.{name}" in counts else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
