"""What every test shares: one thread, options that choose the slow ones, devices that are there."""

from __future__ import annotations

import os
from pathlib import Path

# Programs that tests start run this checkout, whatever the environment knows of another.
os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent / "src")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow, too")


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
