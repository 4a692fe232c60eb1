"""Where both runs do the same, nothing is said, and the compiled run's effects are the only ones."""

from __future__ import annotations

import collections
import contextvars
import copy
import dataclasses
import enum
import functools
import gc
import io
import logging
import pickle
import random
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
import torch

import graphlift
from graphlift import _C
from graphlift.testing import CompileCounter
from graphlift.verification import shared

BACKENDS = ("eager", "aot_eager")

log = logging.getLogger(__name__)
counter = 0
history: list[int] = []


def verified(fn: Any, **options: Any) -> Any:
    options.setdefault("backend", "eager")
    return graphlift.compile(fn, verify=True, **options)


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    told: set[str] = set()
    monkeypatch.setattr(shared, "_told", told)
    return told


class Point:
    __slots__ = ("tags", "x")

    def __init__(self, x: Any) -> None:
        self.x, self.tags = x, set()


class Bag(dict):  # type: ignore[type-arg]
    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("not by hand")


@dataclasses.dataclass
class Config:
    scale: float = 2.0
    names: list[str] = dataclasses.field(default_factory=list)


class Color(enum.Enum):
    RED = 1


class Tagged(torch.Tensor):
    pass


Pair = collections.namedtuple("Pair", "left right")


class Missing:
    def __deepcopy__(self, memo: Any) -> Any:
        return self


MISSING = Missing()


def writes_containers(x, items, by_name, seen):
    items.append(x + 1)
    by_name["new"] = items[0]
    seen.add(len(items))
    items[0].mul_(2)
    return items, by_name


def uses_objects(x, point, config, pair, bag):
    point.x = x * config.scale
    point.tags.add("t")
    config.names.append("n")
    pair.left.append(pair.right)
    return point, bag["k"] + x


def makes_closures(x):
    n = 0

    def step(y):
        nonlocal n
        n += 1
        return y * n

    return step(x) + step(x), step


def breaks_the_graph(x):
    y = x + 1
    if y.sum() > 0:
        y = y * 2
    return y, y.sum().item()


def uses_random(x):
    return torch.nn.functional.dropout(x, 0.5) + torch.rand(()) + random.random() + np.random.rand()


def views(x, y):
    x[0] += 1
    return x + 1, y * 2, x.sum()


def writes_state(x):
    global counter
    counter += 1
    history.append(counter)
    return x * counter


def uses_marks(x, which, color):
    if which is MISSING and color is Color.RED:
        return x + 1
    return x - 1


def handles(x, d):
    try:
        return x * d["missing"]
    except KeyError as error:
        d["error"] = str(error)
        return x


def seeded():
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


PROGRAMS = {
    "containers": lambda: (writes_containers, (torch.ones(2), [torch.ones(2)], {"a": 1}, {1})),
    "objects": lambda: (
        uses_objects,
        (torch.ones(2), Point(1), Config(), Pair([1], [2]), Bag(k=torch.ones(2))),
    ),
    "closures": lambda: (makes_closures, (torch.ones(2),)),
    "breaks": lambda: (breaks_the_graph, (torch.ones(2),)),
    "random": lambda: (uses_random, (torch.ones(8),)),
    "views": lambda: (views, aliased()),
    "globals": lambda: (writes_state, (torch.ones(2),)),
    "marks": lambda: (uses_marks, (torch.ones(2), MISSING, Color.RED)),
    "handlers": lambda: (handles, (torch.ones(2), {})),
    "subclass": lambda: (lambda x: (x + 1, x), (torch.ones(2).as_subclass(Tagged),)),
    "integers": lambda: (lambda x, n: (x // n, x % n, n * 2), (torch.arange(5), 3)),
    "complex": lambda: (lambda x: x.conj() * x, (torch.ones(2, dtype=torch.complex64) * 1j,)),
    "nan and zero": lambda: (lambda x: (x / x, -x, x * 0), (torch.tensor([0.0, -1.0]),)),
    "numpy": lambda: (lambda x, a: x + float(a.sum()), (torch.ones(2), np.ones(3))),
    "iterators": lambda: (lambda x, i: x * next(i), (torch.ones(2), iter([1, 2, 3]))),
    "generator objects": lambda: (lambda x: (x + 1, (n for n in range(3))), (torch.ones(2),)),
    "dictionary views": lambda: (
        lambda x, d: (x + len(d.keys()), d.values(), {"k": x}.items()),
        (torch.ones(2), {"a": torch.ones(1)}),
    ),
    "bound slots": lambda: (lambda x, f: (f(0, x), x + 1), (torch.ones(2), [0].__setitem__)),
    "methods": lambda: (lambda x, f: f(x), (torch.ones(2), torch.nn.Linear(2, 2).forward)),
    "append": lambda: (lambda x, f: f(x), (torch.ones(2), [].append)),
    "empty": lambda: (lambda x: x.sum() + x.mean(), (torch.ones(0),)),
    "nothing": lambda: (lambda: None, ()),
    "optimizer": lambda: (train, trained()),
    "generator": lambda: (
        lambda x, g: x + torch.rand(2, generator=g),
        (torch.ones(2), torch.Generator().manual_seed(3)),
    ),
}


def aliased():
    base = torch.arange(9.0).view(3, 3)
    return base, base[1]


def train(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).square().sum()
    loss.backward()
    optimizer.step()
    return loss.detach()


def trained():
    model = torch.nn.Linear(2, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), torch.ones(1, 2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree(name, backend, nothing_told):
    """Three verified calls say nothing, and do what three plain calls do."""
    global counter
    outcomes = []
    for run in (lambda fn: fn, lambda fn: verified(fn, backend=backend)):
        counter = 0
        history.clear()
        seeded()
        fn, args = PROGRAMS[name]()
        fn = run(fn)
        results = [fn(*args) for _ in range(3)]
        outcomes.append((results, args, counter, list(history), torch.rand(1), random.random()))
    comparison = graphlift.testing.Comparison(0.0 if backend == "eager" else 1e-6)
    comparison.compare(outcomes[0], outcomes[1], "outcome")
    assert not comparison.differences
    assert not nothing_told


def test_every_kind_of_callable():
    x = torch.ones(2)

    class Owner:
        n = 0

        def method(self, x):
            self.n += 1
            return x + self.n

        @classmethod
        def of_class(cls, x):
            cls.n += 1
            return x + cls.n

        def __call__(self, x):
            return self.method(x)

    owner = Owner()
    assert verified(owner.method)(x)[0] == 2 and owner.n == 1
    assert verified(Owner.of_class)(x)[0] == 2 and Owner.n == 1
    assert verified(owner)(x)[0] == 3 and owner.n == 2
    assert verified(functools.partial(lambda a, b: a + b, x))(b=1)[0] == 2
    assert verified(lambda x: x + 1, fullgraph=True)(x)[0] == 2

    class Decorated:
        @graphlift.compile(backend="eager", verify=True)
        def method(self, x):
            """A text."""
            return x * 3

    assert Decorated().method(x)[0] == 3
    assert Decorated.method.__doc__ == "A text." and Decorated.method.__module__ == __name__
    assert Decorated.method.__name__ == "method"


def test_modules_with_backward():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5))
    plain = copy.deepcopy(model)
    compiled = verified(model)
    x = torch.rand(4, 3)
    for _ in range(2):
        for one in (plain, compiled):
            torch.manual_seed(1)
            one(x).square().sum().backward()
    for left, right in zip(plain.parameters(), model.parameters(), strict=True):
        assert torch.equal(left.grad, right.grad)
    assert torch.equal(plain[1].running_mean, model[1].running_mean)
    assert int(model[1].num_batches_tracked) == 2
    again = pickle.loads(pickle.dumps(compiled))
    assert (
        type(again._graphlift_twin._forward or again._graphlift_twin._call_whole()).__name__
        == "VerifiedFunction"
    )
    hooked = torch.nn.Linear(2, 2)
    calls = []
    hooked.register_forward_hook(lambda module, args, result: calls.append(1))
    verified(hooked)(torch.ones(2))
    assert calls == [1]
    with torch.no_grad():
        assert not compiled(x).requires_grad


def test_histories_of_arguments_end_in_the_copies():
    w = torch.ones(2, requires_grad=True)
    h = w * 2

    def program(h, v):
        v.mul_(3)
        return h.sin() + v.sum()

    base = torch.ones(4, requires_grad=True) * 1
    compiled = verified(program)
    compiled(h, base[:2]).sum().backward()
    assert torch.allclose(w.grad, 2 * torch.cos(torch.tensor(2.0)).expand(2))

    leaf = torch.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="view of a leaf"):
        verified(lambda v: v.add_(1))(leaf[:2])

    def inner_backward(p):
        p.square().sum().backward()
        return p.grad

    p = torch.ones(2, requires_grad=True)
    assert torch.equal(verified(inner_backward)(p), torch.full((2,), 2.0))
    assert torch.equal(p.grad, torch.full((2,), 2.0))


def test_output_is_seen_once(capsys, caplog):
    def program(x):
        print("printed", x.shape)
        log.warning("logged")
        warnings.warn("warned", stacklevel=1)
        return x + 1

    with warnings.catch_warnings(record=True) as seen, caplog.at_level(logging.WARNING, logger=__name__):
        warnings.simplefilter("always")
        verified(program)(torch.ones(2))
    assert capsys.readouterr().out.count("printed") == 1
    assert [record.message for record in caplog.records] == ["logged"]
    assert [str(one.message) for one in seen] == ["warned"]
    assert not log.filters and warnings.showwarning is not None


def test_context_variables_and_settings_change_once():
    number = contextvars.ContextVar("number", default=0)

    def program(x):
        number.set(number.get() + 1)
        torch.set_grad_enabled(False)
        return x * number.get()

    with torch.enable_grad():
        assert verified(program)(torch.ones(1)) == 1
        assert number.get() == 1 and not torch.is_grad_enabled()


def test_what_cannot_be_copied_is_shared_and_told_once(caplog, nothing_told):
    class Holder:
        def __init__(self):
            self.lock, self.x = threading.Lock(), torch.ones(2)

        def __call__(self, x):
            with self.lock:
                self.x += x
            return self.x

    class Refuses:
        def __deepcopy__(self, memo):
            raise RuntimeError("no")

    with caplog.at_level(logging.WARNING, logger="graphlift"):
        holder = Holder()
        compiled = verified(lambda h, x, r: h(x))
        for _ in range(2):
            compiled(holder, torch.ones(2), Refuses())
    assert torch.equal(holder.x, torch.full((2,), 3.0))
    texts = [record.getMessage() for record in caplog.records if "verify" in record.getMessage()]
    assert len(texts) == 2
    assert "_thread.lock (in args[0]) cannot be copied" in texts[0] and "Refuses (in args[2])" in texts[1]


def test_what_moves_and_is_shared_ends_the_comparison(caplog):
    def numbers():
        yield from range(5)

    @functools.lru_cache
    def cached(n):
        history.append(n)
        return n

    history.clear()
    source, text = numbers(), io.TextIOWrapper(io.BytesIO(b"12"))
    with caplog.at_level(logging.WARNING, logger="graphlift"):
        assert verified(lambda x, g: x + next(g))(torch.zeros(1), source) == 0
        assert next(source) == 1
        assert verified(lambda x, f: x + int(f.read(1)))(torch.zeros(1), text) == 1
        assert text.read(1) == "2"
        compiled = verified(lambda x: x + cached(3))
        assert compiled(torch.zeros(1)) == 3 and compiled(torch.zeros(1)) == 3
    assert history == [3]
    assert sum("was moved on" in record.getMessage() for record in caplog.records) == 1


def test_nested_verified_calls_and_other_switches():
    calls = []
    inner = verified(lambda x: (calls.append(1), x + 1)[1])
    outer = verified(lambda x: inner(x) * 2)
    assert outer(torch.ones(1)) == 4
    assert calls == [1]
    whole = verified(lambda x: verified_inner(x) * 2, fullgraph=True)
    verified_inner = verified(lambda x: x + 1)
    assert whole(torch.ones(1)) == 4
    with graphlift.set_stance("force_eager"):
        assert outer(torch.ones(1)) == 4
    assert calls == [1, 1]
    assert torch.equal(torch.vmap(verified(lambda x: x + 1))(torch.ones(2)), torch.full((2,), 2.0))


def test_refusals_are_no_differences():
    with pytest.raises(graphlift.exc.Unsupported):
        verified(lambda x: print(x.sum().item()), fullgraph=True)(torch.ones(2))


def test_threads_do_not_disturb_each_other():
    results, barrier = [], threading.Barrier(4)
    total = [0]

    def program(x):
        total[0] += 0
        return x + 1

    compiled = verified(program)

    def work():
        barrier.wait()
        for _ in range(10):
            results.append(float(compiled(torch.ones(1))))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [2.0] * 40 and total == [0]

    def spawns(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(compiled(x)))
        thread.start()
        thread.join(20)
        return found[0]

    assert verified(spawns)(torch.ones(1)) == 2


def test_nothing_is_kept_alive():
    class Held:
        pass

    held, x = Held(), torch.ones(2)
    held.x = x
    references = [weakref.ref(held), weakref.ref(x)]
    result = verified(lambda h: h.x + 1)(held)
    references.append(weakref.ref(result))
    del held, x, result
    gc.collect()
    assert [reference() for reference in references] == [None] * 3


def test_weak_references_lead_to_copies():
    class Node:
        def __init__(self, parent):
            self.parent, self.count = parent and weakref.ref(parent), 0

    def program(child, x):
        child.parent().count += 1
        return x * child.parent().count

    parent = Node(None)
    child = Node(parent)
    assert verified(program)(child, torch.ones(1)) == 1
    assert parent.count == 1


def test_copies_do_not_end_what_they_stand_for():
    ended = []

    class Resource:
        def __del__(self):
            ended.append(1)

    resource = Resource()
    verified(lambda x, r: x + 1)(torch.ones(1), resource)
    gc.collect()
    assert not ended
    del resource


def test_state_nested_too_deeply_is_left_alone(nothing_told):
    nested = []
    for _ in range(3000):
        nested = [nested]

    def program(x, items):
        items.append(1)
        return x + 1

    assert verified(program)(torch.ones(1), nested) == 2
    assert len(nested) == 2 and nothing_told == {"recursion"}


def test_a_failure_of_verification_is_not_the_programs(monkeypatch, caplog):
    def fail(*args):
        raise ZeroDivisionError("inside")

    monkeypatch.setattr("graphlift.verification.trial.World", fail)
    with caplog.at_level(logging.WARNING, logger="graphlift"):
        assert verified(lambda x: x + 1)(torch.ones(1)) == 2
    assert "could not be verified" in caplog.text and "inside" in caplog.text
    with graphlift.config.patch(suppress_errors=False), pytest.raises(ZeroDivisionError):
        verified(lambda x: x + 1)(torch.ones(1))


def test_lent_names_cause_no_recompiles():
    def program(x, n, acc=[]):  # noqa: B006
        history.append(n)
        acc.append(n)
        Counted.n += 1
        return x * len(history[:1]) * Counted.scale[0]

    class Counted:
        n = 0
        scale = [2]

    for _ in range(3):
        history.clear()
    counter = CompileCounter()
    plain, checked = graphlift.compile(program, backend=counter), verified(program, backend=counter)
    counts = []
    for compiled in (plain, checked):
        counter.frame_count, before = 0, len(compiled.report())
        for _ in range(4):
            history.clear()
            program.__defaults__[0].clear()
            Counted.n = 5
            compiled(torch.ones(1), 1)
        counts.append((counter.frame_count, len(compiled.report()) - before))
    assert counts[0] == counts[1]


def test_off_costs_nothing():
    assert type(graphlift.compile(lambda x: x, backend="eager")) is _C.CompiledFunction
    counter = CompileCounter()
    compiled = graphlift.compile(lambda x: x + 1, backend=counter, verify=True)
    for _ in range(3):
        compiled(torch.ones(2))
    assert counter.frame_count == 1
    assert type(graphlift.compile(compiled, backend="eager")) is _C.CompiledFunction
