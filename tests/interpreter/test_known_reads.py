"""Attributes that a `__getattribute__` of the program's looks up are looked up once a capture, where nothing
that the look-up rests on is written to."""

from __future__ import annotations

import types
import warnings

import pytest
import torch

import graphlift
from graphlift.interpreter.inline import InliningInstructionTranslator
from graphlift.testing import check_fresh


def make_config():
    """A configuration as libraries have them, with everything that it reads within reach."""
    state = {"scale": 1, "names": {"width": "hidden"}}

    class Base:
        def __getattribute__(self, key):
            own = super().__getattribute__("__dict__")
            if own.get("spec") is not None:
                if key in own.get("spec"):
                    return "by the spec"
            return super().__getattribute__(key)

    class Config(Base):
        aliases = {"width": "hidden", "heads": "head_count"}  # noqa: RUF012
        shared = "of the class"

        def __init__(self):
            self.hidden = 4
            self.head_count = 2
            self.sub = types.SimpleNamespace(x=1)
            self.items = [1, 2]

        def __getattribute__(self, key):
            if key != "aliases" and key in super().__getattribute__("aliases"):
                key = super().__getattribute__("aliases")[key]
            return super().__getattribute__(key)

        @property
        def double(self):
            return self.hidden * 2

        @property
        def chosen(self):
            if self.hidden:
                return self.sub
            return None

    return Config(), Config, Base, state


def frames_followed(monkeypatch, run, *args):
    """How often a frame of a `__getattribute__` was followed in a first call."""
    followed = []
    real = InliningInstructionTranslator.run

    def count(self):
        followed.append(self.code.co_name)
        return real(self)

    monkeypatch.setattr(InliningInstructionTranslator, "run", count)
    graphlift.compile(run, backend="eager")(*args)
    monkeypatch.undo()
    return followed.count("__getattribute__")


def test_each_attribute_is_looked_up_once(monkeypatch):
    config = make_config()[0]

    def once(x):
        return x * config.width + config.hidden

    def often(x):
        for _ in range(5):
            x = x * config.width + config.hidden
        return x

    x = torch.ones(2)
    assert frames_followed(monkeypatch, often, x) == frames_followed(monkeypatch, once, x) > 0
    assert torch.equal(graphlift.compile(often, backend="eager")(x), often(x))


def test_what_is_made_anew_is_made_anew():
    def make():
        config = make_config()[0]

        def run(x):
            found = [config.double, config.double, config.sub is config.sub, config.chosen is config.chosen]
            return x + 1, found, config.items is config.items, config.__init__ is config.__init__

        return run, (torch.ones(1),)

    check_fresh(make, recompiles=None)


#: What the program does between two reads, inside.
INSIDE = {
    "attribute set": lambda config, cls, base: setattr(config, "hidden", 7),
    "attribute set past the class": lambda config, cls, base: object.__setattr__(config, "hidden", 7),
    "dictionary written": lambda config, cls, base: config.__dict__.__setitem__("hidden", 7),
    "vars written": lambda config, cls, base: vars(config).update(hidden=7),
    "attribute deleted and set": lambda config, cls, base: (
        delattr(config, "hidden"), setattr(config, "hidden", 8),
    ),
    "spec appears": lambda config, cls, base: setattr(config, "spec", {"hidden": 1}),
    "alias changed": lambda config, cls, base: cls.aliases.__setitem__("width", "head_count"),
    "alias removed": lambda config, cls, base: (cls.aliases.pop("width"), setattr(config, "width", 9)),
    "aliases replaced": lambda config, cls, base: setattr(cls, "aliases", {"width": "head_count"}),
    "own aliases": lambda config, cls, base: setattr(config, "aliases", {"width": "head_count"}),
    "class attribute": lambda config, cls, base: setattr(cls, "shared", "changed"),
    "own in place of the class's": lambda config, cls, base: setattr(config, "shared", "own"),
    "property replaced": lambda config, cls, base: setattr(cls, "double", property(lambda self: 5)),
    "look-up replaced": lambda config, cls, base: setattr(
        cls, "__getattribute__", lambda self, key: object.__getattribute__(self, "hidden")
    ),
    "look-up of the base replaced": lambda config, cls, base: setattr(
        base, "__getattribute__", lambda self, key: object.__getattribute__(self, key)
    ),
    "base's deleted": lambda config, cls, base: delattr(base, "__getattribute__"),
    "contents changed": lambda config, cls, base: (
        config.items.append(3), setattr(config.sub, "x", 5),
    ),
    "dictionary replaced": lambda config, cls, base: setattr(
        config, "__dict__", {**config.__dict__, "hidden": 7}
    ),
    "dictionary of another": lambda config, cls, base: setattr(
        config, "__dict__", dict(hidden=7, head_count=3, items=[], sub=config.sub)
    ),
    "class replaced": lambda config, cls, base: setattr(
        config, "__class__", type("Other", (cls,), {"shared": "other"})
    ),
    "nothing": lambda config, cls, base: None,
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_what_is_written_between_two_reads_is_seen(name):
    change = INSIDE[name]

    def make():
        config, cls, base, _ = make_config()

        def read():
            return [config.width, config.hidden, config.shared, config.double, [*config.items], config.sub.x]

        def run(x):
            before = read() + read()
            change(config, cls, base)
            after = read() + read()
            return x * config.hidden, before, after, read()

        return run, (torch.ones(2),)

    check_fresh(make, graphs=None, breaks=None, recompiles=None)


@pytest.mark.parametrize("name", INSIDE)
def test_what_is_written_between_two_calls_is_seen(name):
    config, cls, base, _ = make_config()
    other, other_cls, other_base, _ = make_config()

    def reader(config):
        def run(x):
            found = [config.width, config.hidden, config.shared, config.double, [*config.items], config.sub.x]
            return x * found[0], found, config.width

        return run

    def outcome(function):
        try:
            return str(function(torch.ones(2)))
        except TypeError as error:  # where all attributes are a number
            return repr(error)

    compiled, plain = graphlift.compile(reader(config), backend="eager"), reader(other)
    for _ in range(2):
        assert outcome(compiled) == outcome(plain)
    INSIDE[name](config, cls, base)
    INSIDE[name](other, other_cls, other_base)
    for _ in range(2):
        assert outcome(compiled) == outcome(plain)


def objects_that_do_more_than_read():
    """Makers of an object with an attribute `a`, whose look-up does something besides."""
    log = []

    class Counts:
        a = 1

        def __getattribute__(self, key):
            log.append(key)
            return super().__getattribute__(key)

    class CountsInItself:
        def __init__(self):
            self.reads = 0
            self.a = 5

        def __getattribute__(self, key):
            own = super().__getattribute__("__dict__")
            own["reads"] = own["reads"] + 1
            return own["reads"] if key == "a" else super().__getattribute__(key)

    box = {"n": 0}

    class CountsInADictionary:
        def __getattribute__(self, key):
            box["n"] = box["n"] + 1
            return box["n"]

    class Makes:
        a = 3

        def __getattribute__(self, key):
            return [super().__getattribute__(key)]

    class Prints:
        a = 4

        def __getattribute__(self, key):
            print("read", key)
            return super().__getattribute__(key)

    class Steps:
        def __init__(self):
            self.it = iter(range(100))

        def __getattribute__(self, key):
            return next(super().__getattribute__("it"))

    class Fails:
        def __getattribute__(self, key):
            log.append(key)
            raise AttributeError(key)

        def __getattr__(self, key):
            log.append("fallback")
            return len(log)

    class Computes:
        def __init__(self):
            self.t = torch.ones(2)

        def __getattribute__(self, key):
            return super().__getattribute__("t") + 1

    class Defaults:
        def __getattribute__(self, key, seen=[0]):  # noqa: B006
            seen[0] += 1
            return seen[0]

    class Words(dict):
        def __missing__(self, key):
            self[key] = len(self)
            return self[key]

    words = Words()

    class Missing:
        def __getattribute__(self, key):
            return words[key + str(len(words))]

    made = [
        Counts,
        CountsInItself,
        CountsInADictionary,
        Makes,
        Prints,
        Steps,
        Fails,
        Computes,
        Defaults,
        Missing,
    ]
    return {cls.__name__: (cls, log, box) for cls in made}


@pytest.mark.parametrize("name", objects_that_do_more_than_read())
def test_look_ups_that_do_more_are_done_each_time(name, capsys):
    def make():
        cls, log, box = objects_that_do_more_than_read()[name]
        held = cls()

        def run(x):
            found = [held.a, held.a]
            found.append(held.a)
            first = found[0] is found[1] if name == "Makes" else None
            return x + 1, found, first, list(log), dict(box)

        return run, (torch.ones(2),)

    check_fresh(make, graphs=None, breaks=None, recompiles=None)


def test_what_else_a_look_up_may_read():
    def program():
        names, switch, flag = {"v": 1}, [0], 1

        class Reads:
            __slots__ = ("kept", "kind")

            def __getattribute__(self, key):
                if key == "cell":
                    return flag
                if key == "global":
                    return GLOBAL
                if key == "listed":
                    return switch[0]
                if key == "mapped":
                    return names["v"]
                return super().__getattribute__(key)

        held = Reads()
        held.kept, held.kind = 1, "k"
        globals()["GLOBAL"] = 1

        def read():
            return [held.kept, held.kind, held.cell, getattr(held, "global"), held.listed, held.mapped]

        def run(x):
            nonlocal flag
            global GLOBAL
            found = [read(), read()]
            held.kept = 2
            found.append(read())
            flag = 3
            found.append(read())
            GLOBAL = 4
            found.append(read())
            switch[0] = 5
            found.append(read())
            names["v"] = 6
            found.append(read())
            held.kind = held.kind + "k"
            return x + 1, found, read()

        return run

    x = torch.ones(2)
    plain = program()
    expected = [plain(x), plain(x)]
    plain = program()
    compiled = graphlift.compile(plain, backend="eager", fullgraph=True)
    assert str([compiled(x), compiled(x)]) == str(expected)
    assert GLOBAL == 4


GLOBAL = 1


def test_objects_that_the_program_made():
    class Config:
        def __init__(self):
            self.a = 1

        def __getattribute__(self, key):
            return super().__getattribute__(key)

    holder = types.SimpleNamespace(config=None)

    def make():
        holder.config = None

        def run(x):
            config = Config()
            found = [config.a, config.a]
            config.a = 2
            found.append(config.a)
            holder.config = config
            found.append(holder.config.a)
            config.a = 3
            return x + 1, found, holder.config.a, config.a

        return run, (torch.ones(2),)

    check_fresh(make, recompiles=None)


def test_cuts_inside_and_between():
    def make():
        config = make_config()[0]

        def run(x):
            found = [config.width, config.width]
            graphlift.graph_break()
            found.append(config.width)
            config.hidden = 9
            graphlift.graph_break()
            return x * config.width, found, config.width

        return run, (torch.ones(2),)

    check_fresh(make, graphs=None, breaks=None, recompiles=None)


def test_a_look_up_that_rests_on_another_one():
    def program():
        aliases = {"width": "hidden"}

        class Inner:
            def __init__(self):
                self.hidden, self.heads = 4, 2

            def __getattribute__(self, key):
                if key in aliases:
                    key = aliases[key]
                return super().__getattribute__(key)

        class Outer:
            def __init__(self, inner):
                self.inner = inner

            def __getattribute__(self, key):
                return super().__getattribute__("inner").width

        inner = Inner()
        outer = Outer(inner)

        def run(x):
            found = [inner.width, outer.a, outer.a]
            aliases["width"] = "heads"
            return x + 1, found, [inner.width, outer.a, outer.a]

        return run

    x = torch.ones(2)
    assert str(graphlift.compile(program(), backend="eager", fullgraph=True)(x)) == str(program()(x))


def test_a_look_up_that_calls_what_has_a_model():
    class Reads:
        a = 1

        def __getattribute__(self, key):
            return warnings.warn("read") or super().__getattribute__(key)

    class Grad:
        a, b = 1, 2

        def __getattribute__(self, key):
            return super().__getattribute__("a" if torch.is_grad_enabled() else "b")

    held, grad = Reads(), Grad()

    def run(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = [held.a, held.a, grad.x]
        with torch.no_grad():
            found += [grad.x, grad.x]
        return x + 1, found, len(caught), grad.x

    def warned(x):
        return x + 1, held.a, held.a

    x = torch.ones(2)
    assert str(graphlift.compile(run, backend="eager")(x)) == str(run(x))
    compiled = graphlift.compile(warned, backend="eager")
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compiled(x)
        assert len(caught) == 2


def test_super_in_a_function_without_arguments():
    class Config:
        def of_nothing():
            return super().__getattribute__("a")

        def __getattribute__(self, key):
            return of_nothing()

    of_nothing = vars(Config)["of_nothing"]
    held = Config()

    def run(x):
        y = x + 1
        try:
            return y, held.a
        except RuntimeError as error:
            return y, str(error)

    check_fresh(lambda: (run, (torch.ones(1),)))
