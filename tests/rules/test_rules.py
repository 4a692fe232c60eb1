"""What becomes of callables: by table, by mark, by file."""

import contextlib
import functools
import gc
import importlib
import logging
import math
import random
import unittest
import weakref

import numpy as np
import pytest
import test.support
import torch
import torch.nn.functional as F

import graphlift
from graphlift import rules
from graphlift.rules import files


def plain(x):
    return x


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (plain, "inline"),
        (lambda x: x, "inline"),
        (torch.add, "graph"),
        (torch.cat, "graph"),
        (torch.einsum, "graph"),
        (torch.tensor, "graph"),
        (torch.linalg.norm, "graph"),
        (torch.fft.fft, "graph"),
        (torch.special.erf, "graph"),
        (torch._C._nn.gelu, "graph"),
        (F.relu, "graph"),
        (F.max_pool2d, "graph"),
        (F.scaled_dot_product_attention, "graph"),
        (torch.ops.aten.add, "graph"),
        (torch.ops.aten.add.Tensor, "graph"),
        (torch.Tensor.add, "model"),
        (torch.Tensor.norm, "model"),
        (torch.is_grad_enabled, "model"),
        (torch.get_default_dtype, "model"),
        (rules.is_compiling, "model"),
        (rules.graph_break, "model"),
        (torch.nn.Linear.forward, "inline"),
        (F._in_projection_packed, "inline"),
        (functools.wraps, "inline"),
        (contextlib.contextmanager, "inline"),
        (unittest.TestCase.assertEqual, "inline"),
        (test.support.check_syntax_error, "inline"),
        (torch.save, "skip"),
        (torch.manual_seed, "skip"),
        (torch.from_numpy, "skip"),
        (torch.compile, "skip"),
        (logging.warning, "skip"),
        (random.Random.shuffle, "skip"),
        (len, "unknown"),
        (math.sin, "unknown"),
        (str.upper, "unknown"),
        (3, "unknown"),
    ],
    ids=str,
)
def test_classify(function, expected):
    assert rules.classify(function) == expected


@pytest.mark.parametrize(("mark", "expected"), [("skip", "skip"), ("refuse", "skip"), ("graph", "graph")])
def test_marks_come_first(mark, expected):
    def marked(x):
        return x

    rules.mark(marked, mark)
    assert rules.classify(marked) == expected
    rules.unmark(marked)
    assert rules.classify(marked) == "inline"


def test_marks_hold_nothing_alive():
    class Layer:
        def __call__(self, x):
            return x

    layer = Layer()
    rules.mark(layer, "graph")
    gone = weakref.ref(layer)
    del layer
    gc.collect()
    assert gone() is None


def test_marks_need_something_that_can_die():
    with pytest.raises(TypeError):
        rules.mark(3, "graph")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (plain, True),
        (functools.wraps, False),
        (unittest.TestCase.assertEqual, False),
        (test.support.check_syntax_error, True),
        (logging.warning, False),
        (torch.einsum, False),
        (torch.nn.Linear.forward, True),
        (rules.classify, False),
        (graphlift.compile, False),
        (torch.save, False),
        (np.linalg.norm.__wrapped__, False),
        (pytest.raises, False),
    ],
)
def test_root_candidates(function, expected):
    assert rules.is_root_candidate(function.__code__) is expected


def test_code_without_a_file_is_the_users():
    namespace = {}
    exec(compile("def made(x): return x", "<string>", "exec"), namespace)
    assert rules.is_root_candidate(namespace["made"].__code__)
    assert rules.classify(namespace["made"]) == "inline"


def test_outside_captured_code_nothing_is_compiling():
    assert rules.is_compiling() is False
    assert rules.graph_break() is None


def test_torchs_own_markers():
    @torch.compiler.disable
    def disabled(x):
        return x

    def allowed(x):
        return x

    def refused(x):
        return x

    torch.compiler.allow_in_graph(allowed)
    torch.compiler.allow_in_graph(refused)
    importlib.import_module("torch." + "_dynamo").disallow_in_graph(refused)
    assert [rules.classify(f) for f in (disabled, allowed, refused)] == ["skip", "graph", "skip"]


def test_whose_code_is_in_a_file():
    assert files.is_users(__file__) and files.is_users("<string>")
    for of_others in (graphlift, torch, functools, pytest):
        assert not files.is_users(of_others.__file__), of_others
