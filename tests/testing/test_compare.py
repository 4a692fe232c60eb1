"""The comparison itself: it must see every kind of difference, and none where there is none."""

from __future__ import annotations

import collections
import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import graphlift
from graphlift.testing import Comparison


def differences(expected: Any, actual: Any) -> list[str]:
    comparison = Comparison()
    comparison.compare(expected, actual, "it")
    return comparison.differences


class Plain:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a: Any) -> None:
        self.a = a


class Listlike(list):  # type: ignore[type-arg]
    pass


Point = collections.namedtuple("Point", "x y")


def closure(n: Any) -> Callable[[], Any]:
    return lambda: n


def local_class(n: int) -> Any:
    class Local:
        def __init__(self) -> None:
            self.n = n

    return Local()


def shared_pair() -> list[Any]:
    inner = [1]
    return [inner, inner]


def cycle() -> list[Any]:
    items: list[Any] = [1]
    items.append(items)
    return items


def views(shared: bool) -> tuple[torch.Tensor, torch.Tensor]:
    base = torch.zeros(4)
    return (base[:2], base[2:]) if shared else (base[:2].clone(), base[2:].clone())


def with_attribute(value: int) -> torch.Tensor:
    tensor = torch.ones(2)
    tensor.note = value  # type: ignore[attr-defined]
    return tensor


def with_grad(value: float) -> torch.Tensor:
    tensor = torch.ones(2, requires_grad=True)
    tensor.grad = torch.full((2,), value)
    return tensor


SAME: list[Callable[[], Any]] = [
    lambda: [1, 1.0, True, None, "a", b"b", 1j, float("nan"), -0.0],
    lambda: {"a": [1], 2: (3, {4})},
    lambda: Plain(a=1, b=[Plain(c=2)]),
    lambda: Slots(3),
    lambda: Listlike([1]),
    lambda: Point(1, torch.ones(2)),
    lambda: collections.OrderedDict(a=1),
    lambda: collections.deque([1], maxlen=3),
    lambda: closure([1]),
    lambda: local_class(2),
    lambda: iter([1, 2]),
    lambda: (i for i in range(3)),
    lambda: functools.partial(max, 1, key=abs),
    lambda: [1].append,
    shared_pair,
    cycle,
    lambda: torch.tensor([1.0, float("nan")]),
    lambda: torch.ones(2, requires_grad=True) * 2,
    lambda: views(True),
    lambda: with_attribute(1),
    lambda: with_grad(1.0),
    lambda: torch.ones(2, device="meta"),
    lambda: torch.eye(2).to_sparse(),
    lambda: [torch.nn.Linear, torch.float32, torch.Size([1]), slice(1, 2)],
    lambda: ValueError("a", [1]),
    lambda: object(),
    lambda: {1, "a", (2, 3)},
]


@pytest.mark.parametrize("make", SAME)
def test_equal_objects_have_no_differences(make: Callable[[], Any]) -> None:
    torch.manual_seed(0)
    assert differences(make(), make()) == []


def test_a_deep_copied_module_is_equal() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    assert differences(module, copy.deepcopy(module)) == []


DIFFERENT: list[tuple[Any, Any]] = [
    (1, True),
    (1, 1.0),
    (0.0, -0.0),
    ("a", "b"),
    ([1], (1,)),
    ([1, 2], [1]),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": 1}, {"a": 2}),
    (Plain(a=1), Plain(a=2)),
    (Plain(a=1), Plain(a=1, b=2)),
    (Slots(1), Slots(2)),
    (Listlike([1]), [1]),
    (Point(1, 2), (1, 2)),
    ({1, 2}, {1, 3}),
    (closure(1), closure(2)),
    (closure(1), len),
    (local_class(1), local_class(2)),
    (iter([1, 2]), iter([1])),
    (shared_pair(), [[1], [1]]),
    ([[1], [1]], shared_pair()),
    (cycle(), [1, [1, 1]]),
    (ValueError("a"), ValueError("b")),
    (ValueError("a"), TypeError("a")),
    (torch.ones(2), torch.zeros(2)),
    (torch.ones(2), torch.ones(2, dtype=torch.float64)),
    (torch.ones(2), torch.ones(1, 2)),
    (torch.ones(2, 3), torch.ones(3, 2).t()),
    (torch.ones(2), torch.ones(2, requires_grad=True)),
    (torch.ones(2), torch.nn.Parameter(torch.ones(2), requires_grad=False)),
    (torch.ones(2, requires_grad=True) * 1, torch.ones(2, requires_grad=True)),
    (torch.ones(4)[2:], torch.ones(4)[:2]),
    (views(True), views(False)),
    (views(False), views(True)),
    (with_attribute(1), with_attribute(2)),
    (with_attribute(1), torch.ones(2)),
    (with_grad(1.0), with_grad(2.0)),
    (torch.float32, torch.float64),
    (torch.nn.Linear, torch.nn.Bilinear),
    (slice(1, 2), slice(1, 3)),
]


@pytest.mark.parametrize(("expected", "actual"), DIFFERENT)
def test_different_objects_are_told_apart(expected: Any, actual: Any) -> None:
    assert differences(expected, actual)


def test_same_tensor_twice_is_not_two_tensors() -> None:
    one, two = torch.ones(2), torch.ones(2)
    assert differences([one, one], [two, two]) == []
    assert differences([one, one], [two, two.clone()])
    assert differences([one, one], [two, two.detach()])


def test_tolerance() -> None:
    comparison = Comparison(tolerance=1e-3)
    comparison.compare(torch.ones(2), torch.ones(2) + 1e-5, "it")
    assert comparison.differences == []
    assert differences(torch.ones(2), torch.ones(2) + 1e-5)


def test_an_iterator_whose_dict_has_changed_size_stands_nowhere() -> None:
    def stale() -> Any:
        items = {"a": 1}
        iterator = iter(items)
        items["b"] = 2
        return iterator

    comparison = Comparison(consume=False)
    comparison.compare([stale()], [stale()], "it")
    assert not comparison.differences
    comparison.compare([stale()], [iter({"a": 1})], "it")
    assert comparison.differences


def test_members_of_sets_are_not_asked_whether_they_are_equal() -> None:
    def group(last: int) -> Any:
        return {torch.ones(2), 3, "a", (1, "b"), last}

    assert differences(group(4), group(4)) == []
    assert differences(group(4), group(5))


def suspended(between: bool = False) -> Any:
    def numbers(a: int) -> Any:
        b = a + 1
        yield b
        yield b + 1

    made = numbers(1)
    next(made)
    if between:
        next(made)
    return made


def test_a_generator_made_real_stands_where_the_users_does() -> None:
    def stand(expected: Any, actual: Any) -> list[str]:
        comparison = Comparison(consume=False)
        comparison.compare(expected, actual, "it")
        return comparison.differences

    compiled = graphlift.compile(lambda x: (x + 1, suspended()), backend="eager")
    made = compiled(torch.ones(2))[1]
    assert made.gi_code != suspended().gi_code  # it does not pass for being plain
    assert stand(suspended(), made) == []
    assert stand(suspended(between=True), made)
    assert stand((item for item in [1]), made)


def test_members_of_sets_that_are_found_by_identity_have_no_order() -> None:
    for _ in range(20):  # addresses decide
        kept = [torch.tensor(value) for value in (4, -4, 2, 7)]
        others = [torch.tensor(value) for value in (7, 2, 4, -4)]
        assert not differences(set(kept), set(others))
    assert differences({torch.tensor(1), torch.tensor(2)}, {torch.tensor(1), torch.tensor(3)})
