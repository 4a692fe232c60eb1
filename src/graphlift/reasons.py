"""The one table of reasons for which a graph is cut: what is said, why, and what to do instead."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphlift.user_frames import Place, UserFrame, listing, pointed_at


@dataclass(frozen=True, slots=True)
class ReasonText:
    """What a user is told about one cause of a graph break.

    Attributes:
        title: the reason in a few words.
        explanation: one or two sentences: what happened and why no graph can hold it.
        hints: what the user can do, most useful first.
        example: a smallest module whose function `program`, called with a vector, meets it; it may use
            `torch` and `graphlift`.
        unreached: why no program meets it, where there is no example.
    """

    title: str
    explanation: str
    hints: tuple[str, ...] = ()
    example: str = field(default="", repr=False)
    unreached: str = field(default="", repr=False)


class Reason(enum.Enum):
    """Every known cause of a break. A new refusal is one row here and one test."""

    DATA_DEPENDENT_BRANCH = ReasonText(
        "Data-dependent branching",
        "The program takes a different path according to a tensor's value, "
        "which is not known while the graph is made.",
        (
            "Use `torch.cond` to keep both branches in the graph.",
            "Use `torch.where` if both results can be computed.",
        ),
        example="""
def program(x):
    if x.sum() > 0:
        return x * 2
    return x + 1
""",
    )
    DATA_DEPENDENT_VALUE = ReasonText(
        "Data-dependent value",
        "A Python value is taken out of a tensor (`.item()`, `.tolist()`, `int(t)`, ...), "
        "which only the running graph knows.",
        ("Keep the value in a tensor, or take it out after the compiled region.",),
        example="""
def program(x):
    return x * x.sum().item()
""",
    )
    DATA_DEPENDENT_SHAPE = ReasonText(
        "Data-dependent output shape",
        "The shape of this operation's result depends on the values of its inputs.",
        ("Use an operation whose result shape is known, e.g. `torch.where` with three arguments.",),
        example="""
def program(x):
    return x[x > 0] + 1
""",
    )
    NO_TENSOR_MODEL = ReasonText(
        "Operation without a symbolic model",
        "graphlift cannot tell shape and type of this tensor operation's result without running it.",
        ("Register a fake implementation with `torch.library` if it is your own operator.",),
        example="""
@torch.library.custom_op("graphlift_example::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

def program(x):
    return twice(x) + 1
""",
    )
    WARNING = ReasonText(
        "Operation that warns",
        "torch warns of how this operation is called, each time; a graph would warn from a place of its own.",
        ("Do what the warning says.", "Call the operation outside the compiled function."),
        example="""
def program(x):
    return torch.nn.functional.softmax(x) + 1
""",
    )
    UNKNOWN_CALLABLE = ReasonText(
        "Call of a function that cannot be looked into",
        "The function is written in C (or wraps one) and has no symbolic model here.",
        (
            "Move the call out of the compiled function.",
            "If it only works on tensors, mark it with `graphlift.allow_in_graph`.",
        ),
        example="""
import socket

def program(x):
    return x * len(socket.gethostname())
""",
    )
    UNSUPPORTED_BUILTIN = ReasonText(
        "Unsupported builtin",
        "This builtin is not modelled for these arguments.",
        ("Move the call out of the compiled function or write it in plain Python.",),
        example="""
def program(x):
    return x * len(locals())
""",
    )
    UNSUPPORTED_OPERATION = ReasonText(
        "Unsupported operation",
        "This kind of value does not support the operation while a graph is captured.",
        ("Move the operation out of the compiled function.",),
        example="""
def program(x):
    return x * x.data_ptr()
""",
    )
    UNSUPPORTED_VALUE = ReasonText(
        "Unsupported value",
        "A value of this kind cannot be followed while a graph is captured.",
        ("Move its use out of the compiled function.",),
        example="""
import functools

def program(x):
    return x + 1, functools.cmp_to_key(lambda a, b: 0)(x)
""",
    )
    UNSUPPORTED_CONTEXT_MANAGER = ReasonText(
        "Unsupported context manager",
        "Entering or leaving this context manager has effects that a graph cannot hold.",
        ("Move the `with` statement out of the compiled function.",),
        example="""
def program(x):
    with torch.inference_mode():
        return x + 1
""",
    )
    INPUT_OUTPUT = ReasonText(
        "Input or output",
        "The call talks to the outside world, so it must happen at its place in the program. "
        "Only what is known without a tensor's data can be printed or logged behind the graph.",
        (
            "Print what is known without the data: shapes, numbers, strings.",
            "Move it out of the compiled function.",
            "Leave it out during capture: `if not graphlift.is_compiling(): ...`.",
        ),
        example="""
def program(x):
    print(x)
    return x + 1
""",
    )
    SIDE_EFFECT = ReasonText(
        "Side effect that cannot be put off",
        "The change is visible outside at once, so it cannot wait until the graph has run.",
        ("Move the change out of the compiled function.",),
        example="""
def program(x):
    import this
    return x + 1
""",
    )
    DEBUGGER = ReasonText(
        "Debugger started",
        "A debugger shows the frame that starts it and those above, so all of these run plainly.",
        ("Take the call out when you are done.",),
        example="""
import sys

def program(x):
    hook, sys.breakpointhook = sys.breakpointhook, lambda: None
    breakpoint()
    sys.breakpointhook = hook
    return x + 1
""",
    )
    SKIPPED_CALLABLE = ReasonText(
        "Call of a function on the skip list",
        "The function was marked `disable`d or lives in a module that is never looked into.",
        ("Remove the mark, or move the call out of the compiled function.",),
        example="""
@graphlift.disable
def helper(x):
    return x + 1

def program(x):
    return helper(x) * 2
""",
    )
    USER_BREAK = ReasonText(
        "Break asked for",
        "The program called `graphlift.graph_break()`.",
        ("Remove the call if one whole graph is wanted.",),
        example="""
def program(x):
    y = x + 1
    graphlift.graph_break()
    return y * 2
""",
    )
    MISSING_HANDLER = ReasonText(
        "Missing bytecode handler",
        "graphlift has no handler for this instruction.",
        ("Please report the instruction and the Python version.",),
        unreached="every opcode of the supported Pythons has a handler; a new Python may bring others",
    )
    LATE_FAILURE = ReasonText(
        "Operation that can fail behind a write",
        "Values can make this operation fail when an input was written to already, and the program would "
        "see it: it handles errors here, or has made changes that wait until the graph has run.",
        ("Move the operation out of the `try`, or before the write.",),
        example="""
def program(x):
    x.add_(1)
    try:
        return x[torch.tensor([0, 1])]
    except IndexError:
        return x
""",
    )
    GENERATOR = ReasonText(
        "Generator used in a way that cannot be followed",
        "A generator is a suspended frame; this use of it needs the real one.",
        ("Build a list first.",),
        example="""
numbers = (n for n in range(3))

def program(x):
    return x * next(numbers)
""",
    )
    ITERATOR = ReasonText(
        "Step of an iterator that cannot be looked into",
        "The iterator was made elsewhere and stands at another item each time.",
        ("Nothing need be done: the code between two such steps is captured once.",),
        example="""
import itertools

numbers = itertools.count(1)

def program(x):
    return x * next(numbers)
""",
    )
    EXCEPTION = ReasonText(
        "Exception that cannot be followed",
        "The exception leaves the captured code or is of a kind that is not modelled.",
        ("Catch it inside the compiled function or move it outside.",),
        example="""
def program(x):
    error = BlockingIOError(11, "busy", 3)
    return x * error.characters_written
""",
    )
    CLASS_DEFINITION = ReasonText(
        "Class defined inside the captured code",
        "Class statements are followed, but for what only CPython can do with a class: a metaclass's own "
        "`mro`, a descriptor that came with the making as a value.",
        ("Define the class at module level.",),
        example="""
class Meta(type):
    def mro(cls):
        return super().mro()


def program(x):
    class Scale(metaclass=Meta):
        factor = 2

    return x * Scale.factor
""",
    )
    IDENTITY = ReasonText(
        "Identity of a value that has none here",
        "`is`, `id()` or `hash()` was asked of a value whose identity is not settled before the graph runs.",
        ("Compare with `==`.",),
        example="""
def program(x):
    return x * len(repr(object()))
""",
    )
    IMPURE_READ = ReasonText(
        "Read of something that changes by itself",
        "Time, environment, random state or the like was read; "
        "a graph would keep the value of the first call.",
        ("Read it outside and pass it as an argument.",),
        example="""
import time

def program(x):
    return x * time.time()
""",
    )
    TOO_LONG = ReasonText(
        "Loop too long to follow",
        "A loop is unrolled into the graph, and this one has more turns than one graph should hold.",
        ("Work on whole tensors instead.", "Raise `graphlift.config.turn_limit`."),
        example="""
def program(x):
    for _ in range(10**6):
        x = x + 1
    return x
""",
    )
    RECURSION = ReasonText(
        "Inlining too deep",
        "Calls are nested deeper than the interpreter follows.",
        ("Turn deep recursion into a loop.",),
        example="""
def down(x, n):
    return x if n == 0 else down(x + 1, n - 1)

def program(x):
    return down(x, 300)
""",
    )

    def describe(
        self, context: str, stack: Sequence[UserFrame], place: Place | None = None, count: int = 1
    ) -> str:
        """The message of one break, as shown in logs and raised under ``fullgraph=True``.

        Arguments:
            context: what exactly was met.
            stack: the user's frames, outermost first.
            place: what to point at; None: the innermost frame.
            count: how often it was met; said when it is more than once.
        """
        row = self.value
        lines = [row.title]
        if place is None and stack:
            place = Place(stack[-1])
        if place is not None:
            lines[0] += f" at {place.frame.file}:{place.frame.line}"
            lines.extend(f"    {line}" for line in pointed_at(place))
        lines.append(f"  Explanation: {row.explanation}")
        lines.extend(f"  Hint: {hint}" for hint in row.hints)
        if context:
            lines.append(f"  Debug context: {context}")
        if count > 1:
            lines.append(f"  Met {count} times.")
        if stack:
            lines.append("  Your program's stack, innermost last:")
            lines.extend(f"    {line}" for line in listing(stack))
        return "\n".join(lines)
