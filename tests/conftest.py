"""What every test shares: one thread, options that choose the slow ones, devices that are there; and the mode
in which all that the tests check is checked with forced breaks, too."""

from __future__ import annotations

import os
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

# Programs that tests start run this checkout, whatever the environment knows of another.
os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent / "src")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow, too")
    parser.addoption(
        "--forced-breaks",
        default="sample",
        metavar="all|none|sample",
        help="what `check` runs is run again with the graph cut before each instruction: in all tests, in"
        " none, or at a few places of a few tests",
    )


def pytest_configure(config: pytest.Config) -> None:
    try:
        import torch
    except ModuleNotFoundError:  # the lowest layers need no torch and are tested without it
        return
    torch.set_num_threads(1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = pytest.mark.skip(reason="slow: give --slow to run it")
    cuda = pytest.mark.skip(reason="no CUDA device")
    for item in items:
        if "slow" in item.keywords and not config.getoption("--slow"):
            item.add_marker(slow)
        if "cuda" in item.keywords and not cuda_is_there():
            item.add_marker(cuda)


#: What was run with forced breaks in this session.
FORCED = pytest.StashKey[Any]()

#: A sample is one test in so many, and so many places of a program.
SAMPLE_TESTS, SAMPLE_PLACES = 8, 8


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run the test; then, for forced breaks, run it once more for nothing but what it checks."""
    result = yield
    mode = item.config.getoption("--forced-breaks")
    number = zlib.crc32(item.nodeid.encode())
    verbs = {"check", "check_fresh"} & set(vars(getattr(item, "module", None) or object))
    if verbs and (mode == "all" or (mode == "sample" and number % SAMPLE_TESTS == 0)):
        run_with_forced_breaks(item, None if mode == "all" else SAMPLE_PLACES)
    return result


def run_with_forced_breaks(item: pytest.Item, places: int | None) -> None:
    """Run a test with its checks tried at `places` places (None: all); fails if anything was different."""
    try:
        from graphlift.testing.forced_suite import ForcedBreaks
    except ModuleNotFoundError:
        return
    forced = item.config.stash.setdefault(FORCED, ForcedBreaks(places))
    before = len(forced.differences)
    with forced.beside_checks():
        try:
            item.runtest()
        except (
            Exception,
            pytest.skip.Exception,
            pytest.fail.Exception,
        ):  # it may count calls; it passed when run as it is meant
            forced.cut_short += 1
    found = forced.differences[before:]
    if found:
        pytest.fail("forced breaks change what the program does:\n" + "\n".join(found), pytrace=False)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    forced = config.stash.get(FORCED, None)
    if forced is not None and forced.places:
        terminalreporter.write_line(forced.summary())
        if config.getoption("--forced-breaks") == "all":
            for place in forced.whole:
                terminalreporter.write_line(f"  ran plainly as a whole: {place}")


def cuda_is_there() -> bool:
    """Whether this machine has a CUDA device that torch can use."""
    try:
        import torch
    except ModuleNotFoundError:
        return False
    return torch.cuda.is_available()


@pytest.fixture
def seeded() -> None:
    """Random tensors that are the same in every run."""
    import torch

    torch.manual_seed(0)
