"""Statements that have blocks: branches, loops, handlers, `with`, `match`, functions inside functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuzz.writing import Make, Scope, Writer

#: Kinds of new variables, by how often there are any.
KINDS = [
    *[
        ("T", 8),
        ("I", 5),
        ("F", 2),
        ("B", 1),
        ("S", 2),
        ("LT", 3),
        ("LI", 3),
        ("DT", 2),
        ("DI", 2),
        ("SI", 1),
    ],
    *[("P", 1), ("G", 1), ("FN", 1)],
]


def block(w: Writer, scope: Scope, size: int, depth: int) -> None:
    """Write a function's or a part's statements; there is at least one."""
    for _ in range(max(1, size)):
        statement(w, scope, depth)


Names = Sequence[tuple[str, str]]


def part(w: Writer, scope: Scope, size: int, depth: int, names: Names = (), **changes: Any) -> None:
    """Write an indented block; names made in it are, as a rule, not used behind it.

    Arguments:
        names: kinds and names that its head binds.
        changes: what is different in the scope.
    """
    saved = {name: getattr(scope, name) for name in changes}
    readable = {kind: list(names) for kind, names in scope.readable.items()}
    own = {kind: list(names) for kind, names in scope.own.items()}
    vars(scope).update(changes)
    for kind, name in names:
        scope.add(kind, name)
    with w.indented():
        block(w, scope, size, depth)
    vars(scope).update(saved)
    if not w.happens(0.01):  # else they may be unbound
        scope.readable, scope.own = readable, own


def statement(w: Writer, scope: Scope, depth: int) -> None:
    """Write one statement, with blocks if `depth` allows."""
    if w.happens(0.35):
        assign(w, scope, depth)
    elif depth <= 0 or w.happens(0.5):
        w.statement(scope)
    else:
        make: Make = w.weighted(COMPOUND)
        make(w, scope, depth - 1)


def assign(w: Writer, scope: Scope, depth: int) -> None:
    """A variable of some kind, new or not, is given a value."""
    kind = w.weighted([*KINDS, *((one, 2) for one in w.expressions if one.startswith("O"))])
    text = w.expression(kind, scope)
    if kind != "FN" and w.happens(0.3) and scope.own.get(kind):
        w.line(f"{w.pick(scope.own[kind])} = {text}")
    else:
        w.line(f"{w.new(scope, kind)} = {text}")


def branch(w: Writer, scope: Scope, depth: int) -> None:
    w.line(f"if {condition(w, scope)}:")
    part(w, scope, w.pick((1, 2)), depth)
    while w.happens(0.2):
        w.line(f"elif {condition(w, scope)}:")
        part(w, scope, 1, depth)
    if w.happens(0.5):
        w.line("else:")
        part(w, scope, w.pick((1, 2)), depth)


def condition(w: Writer, scope: Scope) -> str:
    """What a branch asks: a truth value, or something that has one."""
    kind = w.weighted([("B", 6), ("I", 1), ("LT", 1), ("S", 1), ("DI", 1), ("SI", 0.5)])
    if w.happens(0.2 * w.breaking):
        return w.fill("<T>.sum() > <F>", scope, 1)
    text = w.expression(kind, scope)
    name = w.new(scope, kind) if w.happens(0.06) else ""
    return f"({name} := {text})" if name else text


#: What is gone through in a loop: the targets with their kinds, and the iterable.
LOOPS = [
    ((("I",), "range(<n>)"), 5),
    ((("I",), "range(<I> % 4)"), 1),
    ((("I",), "<LI>[:4]"), 3),
    ((("T",), "<LT>[:3]"), 3),
    ((("I",), "itertools.islice(<G>, 4)"), 1),
    ((("I",), "range(2) and (<@v> for <@v> in <LI>[:4])"), 1),
    ((("I", "T"), "enumerate(<LT>[:3])"), 2),
    ((("I", "I"), "zip(<LI>, range(3))"), 1),
    ((("T", "I"), "zip(<LT>[:3], <G>)"), 1),
    ((("S", "T"), "<DT>.items()"), 2),
    ((("S", "T"), "list(<DT>.items())"), 1),
    ((("S",), "list(<DI>)"), 1),
    ((("I",), "<DI>.values()"), 1),
    ((("S",), "<S>[:3]"), 1),
    ((("I",), "sorted(<SI>)"), 1),
    ((("I",), "reversed(<LI>[:3])"), 1),
    ((("T",), "<T>[None]"), 1),
    ((("I", "I"), "itertools.product(range(2), <LI>[:2])"), 0.5),
    ((("P",), "[<P>, <P>]"), 0.5),
]


def for_loop(w: Writer, scope: Scope, depth: int) -> None:
    kinds, iterable = w.weighted(LOOPS)
    iterable = w.fill(iterable, scope)
    names = [(kind, w.fresh(kind)) for kind in kinds]
    w.line(f"for {', '.join(name for _, name in names)} in {iterable}:")
    loop_parts(w, scope, depth, names)


def growing_loop(w: Writer, scope: Scope, depth: int) -> None:
    """A list that is changed while it is gone through."""
    if not scope.own.get("LI"):
        for_loop(w, scope, depth)
        return
    name = w.pick(scope.own["LI"])
    item, count = w.fresh("i"), w.fresh("w")
    w.line(f"{count} = 0")
    w.line(f"for {item} in {name}:")
    with w.indented():
        w.line(f"if len({name}) > 5 or ({count} := {count} + 1) > 6:")
        w.line("    break")
        w.line(w.fill(w.pick((f"{name}.append(<I>)", f"{name}.pop()", f"{name}[-1:] = []")), scope))
    loop_parts(w, scope, depth, [("I", item)])


def while_loop(w: Writer, scope: Scope, depth: int) -> None:
    """A loop that a counter ends, whatever its condition says."""
    count = w.fresh("w")
    w.line(f"{count} = 0")
    w.line(w.fill(w.pick((f"while {count} < <n>:", f"while {count} < 3 and <B>:")), scope))
    with w.indented():
        w.line(f"{count} += 1")
    loop_parts(w, scope, depth)


def loop_parts(w: Writer, scope: Scope, depth: int, names: Names = ()) -> None:
    part(w, scope, w.pick((1, 2, 3)), depth, names, loop=True)
    if w.happens(0.2):
        w.line("else:")
        part(w, scope, 1, depth)


def leave(w: Writer, scope: Scope, depth: int) -> None:
    """Out of the loop or the function, or on with the next turn, if something holds."""
    ways = ["break", "continue"] if scope.loop else []
    if scope.returns is not None:
        ways.append(f"return {w.expression(scope.returns, scope)}" if scope.returns else "return")
    if scope.generator:
        ways = [way for way in ways if not way.startswith("return")]
    if not ways:
        w.statement(scope)
        return
    w.line(f"if {condition(w, scope)}:")
    with w.indented():
        if w.happens(0.3):
            w.statement(scope)
        w.line(w.pick(ways))


RAISES = [
    *["raise <e>(<S>)", "raise <e>(<I>, <w>)", "raise E0(<S>)", "raise E1(<I>) from ValueError(<w>)"],
    *["raise KeyError(<k>) from None", "raise E0", "<I!> = 1 // 0", "<I!> = <LI>[9]", "<T!> = <DT>['zz']"],
    *["<T!> = <T>.nothing", "<T!> = torch.ones(4) + torch.ones(3)", "<I!> = int('x')", "<S!> = <S> + 1"],
    *["<I!> = <LI>.index(77)", "<T!> = <T>.view(7)", "assert <B>", "<I!>, <I!> = <LI>"],
    *["raise ExceptionGroup('many', [E0(<I>), KeyError(<k>)])", "<T!> = None + <T>"],
]


def failure(w: Writer, scope: Scope, depth: int) -> None:
    """Something is raised; seldom without a condition."""
    ways = [text for text in RAISES if all(f"<{kind}!>" not in text or scope.own.get(kind) for kind in "ITS")]
    if scope.handler:
        ways += ["raise"] * 4
    text = w.fill(w.pick(ways), scope, 1)
    if w.happens(0.9):
        w.line(f"if {condition(w, scope)}:")
        with w.indented():
            w.line(text)
    else:
        w.line(text)


HANDLERS = ["<e>", "(<e>, <e>)", "Exception", "LookupError", "ArithmeticError", "E0", "AttributeError"]

#: What a handler may do with the exception.
USES = [
    *["str(<@x>)", "type(<@x>).__name__", "repr(<@x>.args)", "str(<@x>.__context__)", "str(<@x>.__cause__)"],
    *["str(<@x>.__traceback__.tb_lineno)", "str(sys.exc_info()[0].__name__)", "str(isinstance(<@x>, E0))"],
    *["str(sys.exception() is <@x>)", "str(<@x>.__suppress_context__)"],
]


def handlers(w: Writer, scope: Scope, depth: int) -> None:
    w.line("try:")
    part(w, scope, w.pick((1, 2, 3)), depth)
    if w.happens(0.6):
        with w.indented():
            failure(w, scope, depth)
    finally_only = w.happens(0.15)
    group = not finally_only and w.happens(0.07)
    while not finally_only:
        _handler(w, scope, depth, "except*" if group else "except")
        finally_only = w.happens(0.7)
        if finally_only and w.happens(0.25):
            w.line("else:")
            part(w, scope, 1, depth)
        if finally_only and w.happens(0.7):
            return
    w.line("finally:")
    part(w, scope, 1, depth, loop=False)


def _handler(w: Writer, scope: Scope, depth: int, word: str) -> None:
    name = w.fresh("x") if w.happens(0.6) else ""
    w.line(f"{word} {w.fill(w.pick(HANDLERS), scope)}{f' as {name}' if name else ''}:")
    names = [("S", w.fresh("s"))] if name and w.happens(0.7) else []
    for _, use in names:
        with w.indented():
            w.line(f"{use} = {w.pick(USES).replace('<@x>', name)}")
    changes = {"loop": False, "returns": None} if word == "except*" else {}
    part(w, scope, w.pick((1, 2)), depth, names, handler=True, **changes)


MANAGERS = [
    *[
        "torch.no_grad()",
        "contextlib.nullcontext()",
        "contextlib.suppress(<e>)",
        "contextlib.suppress(E0, LookupError)",
    ],
    *["managed(<I>)", "managed(<I>)", "torch.enable_grad()", "Manager(<I>)", "Manager(<I>)", "Swallow(<e>)"],
]


def with_block(w: Writer, scope: Scope, depth: int) -> None:
    items = [w.fill(w.pick(MANAGERS), scope, 1) for _ in range(w.pick((1, 1, 1, 2)))]
    names = []
    for at, item in enumerate(items):
        if item.startswith(("managed", "Manager")) and w.happens(0.5):
            names.append(("I", w.fresh("i")))
            items[at] = f"{item} as {names[-1][1]}"
    w.line(f"with {', '.join(items)}:")
    part(w, scope, w.pick((1, 2)), depth, names)
    if w.happens(0.15):
        with w.indented():
            failure(w, scope, depth)


def stack_block(w: Writer, scope: Scope, depth: int) -> None:
    name = w.fresh("stack")
    w.line(f"with contextlib.ExitStack() as {name}:")
    entered = w.fresh("i")
    with w.indented():
        w.line(w.fill(f"{entered} = {name}.enter_context(managed(<I>))", scope))
        if scope.own.get("LI"):
            w.line(w.fill(f"{name}.callback(<LI!>.append, <I>)", scope))
    part(w, scope, w.pick((1, 2)), depth, [("I", entered)])


#: Subjects of `match`, and patterns with the kinds that they bind.
PATTERNS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "I": [("1 | 2", ()), ("0", ()), ("int() as {}", ("I",)), ("{} if {} > 2", ("I",)), ("-1", ())],
    "S": [("'a'", ()), ("'' | 'b'", ()), ("str({})", ("S",))],
    "LI": [
        ("[]", ()),
        ("[{}]", ("I",)),
        ("[{}, *{}]", ("I", "LI")),
        ("[1, *_, {}]", ("I",)),
        ("[_, {}, _]", ("I",)),
    ],
    "DI": [("{{'a': {}}}", ("I",)), ("{{'b': 1 | 2, **{}}}", ("DI",)), ("{{'zz': _}}", ())],
    "P": [("({}, {})", ("I", "T")), ("(1, _)", ()), ("Pair(first={})", ("I",)), ("Pair({}, {})", ("I", "T"))],
    "LT": [("[{}, {}]", ("T", "T")), ("[torch.Tensor() as {}, *_]", ("T",))],
    "T": [("torch.Tensor(shape=(3,)) as {}", ("T",)), ("None", ())],
}


def match_block(w: Writer, scope: Scope, depth: int) -> None:
    kind = w.pick(sorted(PATTERNS))
    w.line(f"match {w.expression(kind, scope)}:")
    with w.indented():
        for pattern, kinds in PATTERNS[kind]:
            if w.happens(0.6):
                names = [(one, w.fresh(one)) for one in kinds]
                bound = [name for _, name in names]
                w.line(f"case {pattern.format(*bound, *bound[:1])}:")  # a guard uses the first
                part(w, scope, 1, depth, names)
        w.line("case _:")
        part(w, scope, 1, depth)


def inner_function(w: Writer, scope: Scope, depth: int) -> None:
    """A function made here, with what it sees of this one; it is called, or handed on."""
    name, left, right = w.fresh("fn"), w.fresh("a"), w.fresh("b")
    inside = scope.inner(returns="T")
    defaults = w.pick(("", "", f"={w.leaf('I', scope)}"))
    outer = [one for names in scope.own.values() for one in names] if not scope.driver else []
    w.line(f"def {name}({left}, {right}{defaults}):")
    inside.add("T", left)
    inside.add("I", right)
    with w.indented():
        if outer and w.happens(0.4):
            chosen = w.pick(outer)
            w.line(f"{'global' if chosen.startswith('g_') else 'nonlocal'} {chosen}")
            for kind, names in scope.own.items():
                if chosen in names:
                    inside.own.setdefault(kind, []).append(chosen)
        block(w, inside, w.pick((1, 2, 3)), min(depth, 1))
        w.line(f"return {w.expression('T', inside)}")
    scope.readable.setdefault("FN", []).append(name)
    w.bind(scope, "T", f"{name}(<T>{', <I>' if not defaults or w.happens(0.5) else ''})")


def inner_generator(w: Writer, scope: Scope, depth: int) -> None:
    name, parameter = w.fresh("gen"), w.fresh("a")
    inside = scope.inner(generator=True)
    inside.add("I", parameter)
    w.line(f"def {name}({parameter}):")
    with w.indented():
        generator_body(w, inside, min(depth, 1))
    w.bind(scope, "G", f"{name}(<I>)")
    w.bind(scope, "LI", f"list({name}(<I>))")


def generator_body(w: Writer, scope: Scope, depth: int) -> None:
    """Statements with a `yield` among them."""
    block(w, scope, w.pick((0, 1)), depth)
    w.line(w.fill("yield <I>", scope))
    block(w, scope, w.pick((1, 2)), depth)


def give(w: Writer, scope: Scope, depth: int) -> None:
    """What only a generator does; elsewhere a generator is used."""
    if not scope.generator:
        w.line(w.fill(w.pick(("<G>", f"{w.fresh('i')}, *{w.fresh('li')} = <G>", "next(<G>, None)")), scope))
    elif w.happens(0.3):
        w.line("try:")
        w.line(w.fill("    yield <I>", scope))
        w.line("finally:")
        part(w, scope, 1, 0)
    else:
        w.line(w.fill(w.pick(("yield <I>", "yield from <LI>[:3]", f"{w.fresh('y')} = yield <I>")), scope))


def unbind(w: Writer, scope: Scope, depth: int) -> None:
    """A variable goes; it is not used behind, as a rule."""
    options = [
        (kind, name) for kind, names in scope.own.items() for name in names[1:] if not name.startswith("g_")
    ]
    if not options:
        w.statement(scope)
        return
    kind, name = w.pick(options)
    w.line(f"del {name}")
    if not w.happens(0.05):
        scope.own[kind] = [one for one in scope.own[kind] if one != name]
        scope.readable[kind] = [one for one in scope.readable[kind] if one != name]


def inner_class(w: Writer, scope: Scope, depth: int) -> None:
    """A class made here, with a method that sees what is around it."""
    name = w.fresh("cls")
    w.line(f"class {name}:")
    with w.indented():
        w.line(w.fill("k = <I>", scope, 1))
        w.line("def __init__(self, n):")
        w.line("    self.n = n")
        w.line("def get(self):")
        w.line(w.fill("    return self.n * <T> + self.k", scope, 1))
    w.bind(scope, "T", f"{name}(<I>).get()")


COMPOUND: list[tuple[Make, float]] = [
    (branch, 5),
    (for_loop, 5),
    (growing_loop, 0.7),
    (while_loop, 2),
    (leave, 2.5),
    (failure, 1),
    (handlers, 4),
    (with_block, 2.5),
    (stack_block, 0.5),
    (match_block, 1.2),
    (inner_function, 2.5),
    (inner_generator, 1),
    (give, 1.5),
    (unbind, 0.5),
    (inner_class, 0.3),
]
