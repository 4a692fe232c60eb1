"""What is looked up on tensors' classes is guarded by one number."""

from __future__ import annotations

import pytest
import torch

import graphlift
from graphlift import _C
from graphlift.guards.compile import compile_guards
from graphlift.guards.guard import Guard


def test_a_version_changes_with_attributes_of_class_and_bases():
    class Base:
        pass

    class Derived(Base):
        pass

    seen = [_C.class_version(Derived)]
    assert _C.class_version(Derived) == seen[0] != 0
    for change in (
        lambda: setattr(Derived, "a", 1),
        lambda: setattr(Base, "a", 2),
        lambda: delattr(Derived, "a"),
        lambda: delattr(Base, "a"),
    ):
        compiled = compile_guards([Guard("class_version", None, (Derived, seen[-1]))], check=True)
        assert compiled.program.check(f, (1,)) == -1
        change()
        assert compiled.program.check(f, (1,)) >= 0
        seen.append(_C.class_version(Derived))
    assert len(set(seen)) == len(seen)
    with pytest.raises(TypeError, match="a class is needed, not int"):
        _C.class_version(1)


def f(x):
    return x


REPLACED = {
    "relu": (lambda x: x.relu() + 1, lambda self: self * 100),
    "__add__": (lambda x: x + 1, lambda self, other: self * 100),
    "__rsub__": (lambda x: 1 - x, lambda self, other: self * 3),
    "__getitem__": (lambda x: x[0] * 2, lambda self, index: torch.ones(1)),
    "__len__": (lambda x: x.sin() + len(x), lambda self: 9),
    "__iadd__": (lambda x: x.clone().__iadd__(1), lambda self, other: self * 50),
    "shape": (lambda x: x.sin() + x.shape[0], property(lambda self: (7,))),
    "dtype": (lambda x: x * (2 if x.dtype is torch.float32 else 3), property(lambda self: torch.int32)),
    "__bool__": (lambda x: x * 3 if x.sum() else x * 2, lambda self: False),
    "added": (lambda x: x * (2 if hasattr(x, "added") else 3), 1),
}


@pytest.mark.parametrize("name", REPLACED)
def test_a_replaced_member_of_the_tensor_class_is_seen_by_the_next_call(name, monkeypatch):
    program, new = REPLACED[name]
    compiled = graphlift.compile(program, backend="eager")
    x = torch.tensor([-1.0, 2.0])
    assert torch.equal(compiled(x), program(x))
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, name, new, raising=False)
        assert torch.equal(compiled(x), program(x))
    assert torch.equal(compiled(x), program(x))
