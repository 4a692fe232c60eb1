"""Random programs over a list, a dictionary and a set do what plain Python does, with breaks and without."""

from __future__ import annotations

import collections
import itertools
import random
import re

import pytest
import torch

import graphlift
from graphlift.testing.check import check

#: Statements; V stands for a value, I for an index, T for a step, N for a small positive number.
STATEMENTS = """
l.append(V)
l.extend([V, V])
l.insert(I, V)
l.pop() if l else 0
l[I] = V
l[I:I] = [V] * N
r.append(l[I:I:T])
del l[I:I]
del l[I::T]
l.reverse()
l.sort(key=str)
l.sort(key=lambda q: -hash(q) % 7, reverse=True)
l += [V]
l *= 2
l = l[:12]
l.remove(V)
r.append((l.index(V), l.count(V), V in l))
r.append((l[I], l[I:I]))
r.append((sorted(l, key=repr), max(l, key=str), min(l, key=repr)))
r.append((list(reversed(l)), l == l[::-1], l < [V]))
d[V] = V
d.pop(V, None)
del d[V]
r.append((d.get(V, V), V in d))
d.setdefault(V, []).append(V) if isinstance(d.get(V, []), list) else 0
d.update({V: V, V: V})
d = dict(sorted(d.items(), key=repr))
r.append((list(d), list(d.items())[I]))
r.append(d.popitem())
d |= {V: 1}
r.append(d == {V: V})
for k in list(d): d[k] = k
s.add(V)
s.discard(V)
s.remove(V)
s |= {V, V}
s &= {V, V, V, V}
s -= {V}
s ^= {V, V}
s.update([V, V], {V: 0})
s.intersection_update([V, V, V])
r.append((len(s), V in s, s <= {V, V}, s | {V}, s & {V, V}))
r.append(tuple(l) + (V,))
a, *b = l; r.append(b)
a, b = l[:2]; r.append((a, b))
it = iter(l); r.append(next(it)); r.append(list(it))
r.append((list(zip(l, range(N))), dict(enumerate(l))))
r.append(([q for q in l if q == V], {repr(q): q for q in l}))
r.append(sum(q for q in l if isinstance(q, (int, float))))
r.append((f"{l} {d} {V}", "%s|%r" % (l, d)))
q = collections.deque(l, N); q.append(V); q.rotate(I); r.append(q)
c = collections.Counter(map(str, l)); r.append(c.most_common(N))
o = collections.OrderedDict(d); r.append(o); o and o.move_to_end(next(iter(o))); r.append(list(o))
g = collections.defaultdict(list); g[V].append(V); r.append(g)
r.append((list(itertools.islice(l, N, None)), list(itertools.chain(l, d))))
r.append([list(w) for _, w in itertools.groupby(l, key=str)])
x = x + len(l)
x = x * (1 if l else 2); r.append(x)
while len(l) > N: l.pop()
m = map(str, l); r.append(list(m)); r.append(list(m))
r.append((any(l), all(d), bool(s), not l))
l = [l, l] if len(l) < 3 else l[1:]
r.append(((lambda *a, **k: (a, sorted(k)))(*l, z=1), [*l, *d]))
""".strip().split("\n")

VALUES = ("0", "1", "2", "-1", "True", "1.0", "'a'", "'bc'", "None", "(1, 't')", "2.5", "7", "'a' * 2")


def program(seed: int, breaks: bool) -> str:
    """The source of a function of a tensor, a list, a dictionary and a set."""
    pick = random.Random(seed)
    lines = ["def fn(x, l, d, s):", "    r = []"]
    for _ in range(pick.randrange(4, 14)):
        statement = re.sub(r"\bV\b", lambda match: pick.choice(VALUES), pick.choice(STATEMENTS))
        statement = re.sub(r"\bI\b", lambda match: str(pick.randrange(-3, 4)), statement)
        statement = re.sub(r"\bT\b", lambda match: pick.choice(("1", "2", "-1", "-2")), statement)
        statement = re.sub(r"\bN\b", lambda match: str(pick.randrange(1, 6)), statement)
        if breaks and pick.random() < 0.3:
            lines.append("    graphlift.graph_break()")
        lines += ["    try:", f"        {statement}", "    except Exception as e:"]
        lines.append("        r.append((type(e).__name__, str(e)))")
    return "\n".join([*lines, "    return x + 1, r, l, d, s"])


def run(seed: int, breaks: bool) -> None:
    names = {"collections": collections, "itertools": itertools, "graphlift": graphlift}
    source = program(seed, breaks)
    exec(source, names)
    values = [1, "a", 2.5, 1], {1: "x", "k": [1]}, {1, 2, "a"}
    try:
        done = check(names["fn"], torch.ones(2), *values, graphs=None, breaks=None, recompiles=None)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}\n{source}\n{error}") from None
    assert not done.captured.failures


@pytest.mark.parametrize("breaks", [False, True])
def test_random_programs(breaks):
    for seed in range(40):
        run(seed, breaks)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 4000, 100))
def test_many_random_programs(first):
    for seed in range(first, first + 100):
        run(seed, breaks=seed % 3 == 0)
