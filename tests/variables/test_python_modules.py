"""Modules as values, loggers, functions under lru_cache."""

from __future__ import annotations

import functools
import logging
import math
import sys
import types

import torch

import graphlift
from graphlift.testing.check import check

X = torch.arange(3.0)

module = types.ModuleType("graphlift_test_module")
module.value = 2
module.__getattr__ = lambda name: (
    name.upper() if name != "nope" else (_ for _ in ()).throw(AttributeError("none"))
)
sys.modules["graphlift_test_module"] = module

logger = logging.getLogger("graphlift_test_logger")
logger.setLevel(logging.ERROR)


def modules(x):
    return (
        x * module.value,
        module.other,
        hasattr(module, "nope"),
        module.__name__,
        math.pi,
        torch.nn.functional.relu(x),
    )


def missing(x):
    try:
        math.nothing
    except AttributeError as e:
        return x + 1, str(e)


def writing(x):
    module.written = x.shape[0]
    return x + module.written


def logging_nothing(x):
    logger.info("a %s", x)
    logger.debug("b")
    return x + 1 if not logger.isEnabledFor(10) else x, logger.getEffectiveLevel()


@functools.lru_cache
def doubled(n):
    return n * 2


class WithCache:
    @functools.lru_cache(maxsize=None)
    def three(self):
        return 3


def caches(x):
    @functools.lru_cache
    def squared(n):
        return n * n

    doubled.cache_clear()
    result = x * doubled(4) + doubled(n=2) + doubled(4) * squared(2), WithCache().three()
    return result, doubled.cache_info(), squared.cache_info()


def test_modules():
    check(modules, X)


def test_missing_names():
    check(missing, X)


def test_writing():
    check(writing, X)


def test_loggers():
    check(logging_nothing, X)


def test_caches():
    """What the user's cached functions give depends on earlier calls, so they are left to CPython."""
    check(caches, X, graphs=None, breaks=None, recompiles=None)


def test_names_are_guarded():
    compiled = graphlift.compile(lambda x: x * module.value, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), X * 2)
    module.value = 3
    try:
        assert torch.equal(compiled(X), X * 3)
    finally:
        module.value = 2


def test_the_level_is_guarded():
    compiled = graphlift.compile(logging_nothing, backend="eager")
    assert compiled(X)[1] == logging.ERROR
    logger.setLevel(logging.CRITICAL)
    try:
        assert compiled(X)[1] == logging.CRITICAL
    finally:
        logger.setLevel(logging.ERROR)
