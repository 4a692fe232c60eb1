"""Which calls count as able to fail by the values of tensors."""

from __future__ import annotations

import operator

import pytest
import torch
import torch.nn.functional as F

X = torch.rand(4, 3)
INDEX = torch.tensor([0, 2])
MASK = torch.tensor([True, False, True, False])
WHOLE = torch.tensor([[4, 2, 1]] * 4)

SURE = [
    ("add_", "x", 1),
    ("relu_", "x"),
    ("copy_", "x", "y"),
    ("normal_", "x", 0.0, 1.0),
    (operator.iadd, "x", "y"),
    (F.dropout, "x", 0.5),
    (torch.rand_like, "x"),
    (operator.getitem, "x", (slice(1, 3), 0)),
    (operator.setitem, "x", 0, "y_row"),
    (operator.setitem, "x", "mask", 0.0),
    (operator.floordiv, "x", "y"),
]
NOT_SURE = [
    (torch.bernoulli, "x"),
    (F.binary_cross_entropy, "x", "y"),
    (F.embedding, "index", "x"),
    (operator.getitem, "x", "index"),
    (operator.getitem, "x", (slice(None), "index")),
    (operator.setitem, "x", "index", 0.0),
    (operator.setitem, "x", "mask", "y_row"),
    ("index_add_", "x", 0, "index", "two_rows"),
    (operator.ifloordiv, "whole", "whole"),
    (torch.linalg.cholesky, "square"),
]


def inputs():
    return {
        "x": X.clone(),
        "y": X.clone(),
        "y_row": X[0].clone(),
        "two_rows": X[:2].clone(),
        "index": INDEX,
        "mask": MASK,
        "whole": WHOLE.clone(),
        "square": torch.eye(3),
    }


def named(call):
    target, *args = call
    return f"{target if isinstance(target, str) else target.__name__}-{len(args)}"


def record(recorder, call):
    rows = recorder(**inputs())

    def put(arg):
        if isinstance(arg, tuple):
            return tuple(map(put, arg))
        return rows[arg] if isinstance(arg, str) else arg

    target, *args = call
    rows(target, *map(put, args))
    return rows.graph


@pytest.mark.parametrize("call", SURE, ids=named)
def test_calls_that_only_metadata_can_fail(recorder, call):
    assert not record(recorder, call).may_raise


@pytest.mark.parametrize("call", NOT_SURE, ids=named)
def test_calls_that_values_can_fail(recorder, call):
    assert record(recorder, call).may_raise
