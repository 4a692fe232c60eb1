"""The verb of the tests: does the compiled program do what plain Python does?

`check` runs a function plainly and compiled, on equal copies of the inputs, and compares everything that a
program could see: results, mutations, aliasing, identity, printed output, warnings, exceptions with their
lines, random state and global torch state afterwards. A failure shows what was captured and emitted.
"""

from __future__ import annotations

import contextlib
import copy
import dis
import io
import os
import random
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import torch

import graphlift
from graphlift import events
from graphlift.comparison import Comparison, short
from graphlift.verification.surroundings import Surroundings, same_state

#: Frames of these directories are not the user's; tracebacks and warnings are compared without them.
_OURS = str(Path(__file__).resolve().parent.parent)
_TORCH = str(Path(torch.__file__).resolve().parent)

Made = tuple[Callable[..., Any], Sequence[Any]]


@dataclass
class Outcome:
    """What one call let the program see.

    Attributes:
        result: what it returned, or None.
        error: what it raised, or None.
        frames: the error's traceback as (file, line, function), outermost first, user's frames only.
        printed: what it wrote to stdout and stderr.
        warned: its warnings as (category, text, file, line).
        state: random and global torch state afterwards, by name.
    """

    result: Any = None
    error: BaseException | None = None
    frames: list[tuple[str, int, str]] = field(default_factory=list)
    printed: str = ""
    warned: list[tuple[str, str, str, int]] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)


@dataclass
class Captured:
    """What graphlift did meanwhile, from its events.

    Attributes:
        graphs: texts of the graphs, in order.
        breaks: messages of the breaks.
        recompiles: why an entry would not do, a text for each recompile.
        bytecode: (original, modified) code objects.
        failures: graphlift's own errors.
        captures: captures begun.
    """

    graphs: list[str] = field(default_factory=list)
    breaks: list[str] = field(default_factory=list)
    recompiles: list[str] = field(default_factory=list)
    bytecode: list[tuple[CodeType, CodeType]] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    captures: int = 0

    def note(self, event: Any) -> None:
        """Take an event in."""
        match event:
            case events.GraphFinished():
                self.graphs.append(event.graph.readable())
            case events.GraphBroken():
                self.breaks.append(event.message())
            case events.Recompiling():
                self.recompiles.append("; ".join(event.failures))
            case events.BytecodeMade():
                self.bytecode.append((event.original, event.modified))
            case events.InternalFailure():
                self.failures.append(event.error)
            case events.CaptureStarted():
                self.captures += 1


_NOTED = (
    events.GraphFinished,
    events.GraphBroken,
    events.Recompiling,
    events.BytecodeMade,
    events.InternalFailure,
    events.CaptureStarted,
)


@dataclass
class Checked:
    """What `check` hands back when all is well: the compiled side, for further questions.

    Attributes:
        outcomes: the compiled calls.
        captured: what graphlift did in all of them.
        compiled: the compiled object.
    """

    outcomes: list[Outcome]
    captured: Captured
    compiled: Callable[..., Any]

    @property
    def result(self) -> Any:
        """What the first call returned."""
        return self.outcomes[0].result


def check(
    fn: Callable[..., Any],
    *inputs: Any,
    then: Sequence[Sequence[Any]] = (),
    warm: bool = True,
    graphs: int | None = 1,
    breaks: int | None = 0,
    recompiles: int | None = 0,
    tolerance: float = 0.0,
    engine: Callable[..., Any] | None = None,
    **options: Any,
) -> Checked:
    """Compare `fn` plain and compiled on deep copies of `inputs` (one copy of the tuple: aliasing is kept).

    A module as `fn` is copied along with its inputs. What `fn` reaches by itself (globals, closures) is
    shared by both runs: where it writes to them, use `check_fresh`.

    Arguments:
        then: arguments of further calls of the same compiled object, each compared too.
        warm: call a second time with equal inputs before `then`; it must not capture again.
        graphs, breaks: how many graphs and breaks the *first* call makes; None: any number.
        recompiles: how many recompiles there are in all calls; None: any number.
        tolerance: relative and absolute, for floating tensors.
        engine: what compiles, if not ``graphlift.compile``.
        options: handed to the engine (``backend="eager"`` unless given).

    Raises:
        AssertionError: something differs; the message shows what, and how it came about.
    """

    def make(arguments: Sequence[Any]) -> Callable[[], Made]:
        def made() -> Made:
            if isinstance(fn, torch.nn.Module):
                module, copied = copy.deepcopy((fn, tuple(arguments)))
                return module, copied
            return fn, copy.deepcopy(tuple(arguments))

        return made

    first = make(inputs)
    calls = [inputs, *([inputs] if warm else []), *then]
    further = [make(arguments) for arguments in calls[1:]]
    return _check_program(
        Program(first, further, tolerance, engine or graphlift.compile, options),
        _Expected(graphs, breaks, recompiles),
        quiet_from=1 if warm and recompiles == 0 else None,
    )


def check_fresh(
    make: Callable[[], Made],
    *,
    then: Sequence[Sequence[Any]] = (),
    graphs: int | None = 1,
    breaks: int | None = 0,
    recompiles: int | None = 0,
    tolerance: float = 0.0,
    engine: Callable[..., Any] | None = None,
    **options: Any,
) -> Checked:
    """`check` for programs with state of their own: ``make()`` gives a new (function, inputs) each time.

    Called once for the plain and once for the compiled run; for `then`, only the arguments are copied.
    Return whatever state is to be compared among the inputs, or let the function return it.
    """

    def further(arguments: Sequence[Any]) -> Callable[[], Made]:
        return lambda: (make, copy.deepcopy(tuple(arguments)))

    return _check_program(
        Program(
            make, [further(arguments) for arguments in then], tolerance, engine or graphlift.compile, options
        ),
        _Expected(graphs, breaks, recompiles),
        quiet_from=None,
    )


@dataclass
class _Expected:
    graphs: int | None
    breaks: int | None
    recompiles: int | None


@dataclass
class Program:
    """What a check runs, plainly and compiled, as often as it is asked.

    Attributes:
        first: makes function and arguments of the first call.
        further: make those of further calls, of which only the arguments count.
        tolerance: relative and absolute, for floating tensors.
        engine: what compiles.
        options: handed to the engine.
    """

    first: Callable[[], Made]
    further: Sequence[Callable[[], Made]]
    tolerance: float
    engine: Callable[..., Any]
    options: dict[str, Any]


@dataclass
class _Runs:
    """A program's two runs, and what is different.

    Attributes:
        stages: after each compiled call the numbers of graphs, breaks and captures so far.
    """

    plain_fn: Callable[..., Any]
    outcomes: list[Outcome]
    captured: Captured
    compiled: Callable[..., Any]
    comparison: Comparison
    stages: list[tuple[int, int, int]]

    def check(self) -> Checked:
        """The compiled side; AssertionError if anything differs."""
        if self.comparison.differences:
            raise AssertionError(_explain(self.comparison.differences, self.plain_fn, self.captured))
        return Checked(self.outcomes, self.captured, self.compiled)


#: Called beside each check with its program; while there is one, graphs and breaks are not counted.
companions: list[Callable[[Program], None]] = []


def _check_program(program: Program, expected: _Expected, quiet_from: int | None) -> Checked:
    """Run plainly, then compiled, and compare call by call."""
    for companion in companions:
        companion(program)
    runs = run_both(program)
    if not companions:
        _compare_counts(runs, expected, quiet_from)
    return runs.check()


def run_both(program: Program) -> _Runs:
    """Run plainly, then compiled, and compare call by call all but the counts."""
    plain_fn, plain_inputs = program.first()
    compiled_fn, compiled_inputs = program.first()
    plain_calls = [plain_inputs, *(make()[1] for make in program.further)]
    compiled_calls = [compiled_inputs, *(make()[1] for make in program.further)]

    plain = [observed(plain_fn, arguments) for arguments in plain_calls]
    compiled = program.engine(compiled_fn, **{"backend": "eager", **program.options})
    captured, stages, outcomes = Captured(), [], []
    with events.subscribed(captured.note, *_NOTED, this_thread=True):
        for arguments in compiled_calls:
            outcomes.append(observed(compiled, arguments))
            stages.append((len(captured.graphs), len(captured.breaks), captured.captures))

    comparison = Comparison(program.tolerance)
    for number, (left, right) in enumerate(zip(plain, outcomes, strict=True)):
        prefix = "" if len(plain) == 1 else f"call {number + 1}: "
        compare_outcomes(comparison, left, right, prefix)
        comparison.compare(tuple(plain_calls[number]), tuple(compiled_calls[number]), f"{prefix}inputs")
    if isinstance(plain_fn, torch.nn.Module):
        comparison.compare(plain_fn, compiled_fn, "self")
    for failure in captured.failures:
        comparison.differ("internal failure", "".join(traceback.format_exception(failure)))
    return _Runs(plain_fn, outcomes, captured, compiled, comparison, stages)


def observed(fn: Callable[..., Any], arguments: Sequence[Any]) -> Outcome:
    """Call and take down all that can be seen."""
    outcome = Outcome()
    printed = io.StringIO()
    seed_all(0)
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        try:
            outcome.result = fn(*arguments)
        except Exception as error:
            outcome.error = error
            outcome.frames = _user_frames(error)
    outcome.printed = printed.getvalue()
    outcome.warned = [
        (item.category.__name__, str(item.message), item.filename, item.lineno)
        for item in warned
        if not _lies_in(item.filename, _TORCH)
    ]
    outcome.state = _global_state()
    return outcome


def seed_all(number: int) -> None:
    """Begin all generators of random numbers anew.

    `torch.manual_seed` notes, with a stack trace, what is to be done for devices that were never used.
    """
    random.seed(number)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.manual_seed(number)
    else:
        torch.default_generator.manual_seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number)


def _user_frames(error: BaseException) -> list[tuple[str, int, str]]:
    """The traceback's entries that are the program's own."""
    return [
        (entry.filename, entry.lineno or 0, entry.name)
        for entry in traceback.extract_tb(error.__traceback__)
        if not _lies_in(entry.filename, _OURS, _TORCH)
    ]


def _lies_in(filename: str, *folders: str) -> bool:
    """Whether a file lies in one of some folders; an environment may be reached through links."""
    return os.path.realpath(filename).startswith(folders)


def _global_state() -> dict[str, Any]:
    """State of the process that a captured program may change."""
    now = Surroundings()
    return {**now.random, **now.settings, "inference mode": torch.is_inference_mode_enabled()}


def compare_outcomes(comparison: Comparison, plain: Outcome, compiled: Outcome, prefix: str) -> None:
    """Note in what two calls differ, arguments aside.

    Arguments:
        prefix: of the paths.
    """
    if (plain.error is None) != (compiled.error is None):
        text = "".join(traceback.format_exception(compiled.error)) if compiled.error else "no error"
        comparison.differ(f"{prefix}error", f"expected {plain.error!r}, got {text}")
    elif plain.error is not None:
        comparison.compare(plain.error, compiled.error, f"{prefix}error")
        if plain.frames != compiled.frames:
            text = f"expected frames {plain.frames}, got {compiled.frames}"
            comparison.differ(f"{prefix}traceback", text)
    else:
        comparison.compare(plain.result, compiled.result, f"{prefix}result")
    for name in ("printed", "warned"):
        left, right = getattr(plain, name), getattr(compiled, name)
        if left != right:
            comparison.differ(f"{prefix}{name}", f"expected {left!r}, got {right!r}")
    for name, value in plain.state.items():
        if value is not None and not same_state(compiled.state[name], value):
            text = f"expected {short(value)}, got {short(compiled.state[name])}"
            comparison.differ(f"{prefix}{name}", text)


def _compare_counts(runs: _Runs, expected: _Expected, quiet_from: int | None) -> None:
    comparison = runs.comparison
    graphs, breaks, captures = runs.stages[0]
    for name, wanted, got in (
        ("graphs", expected.graphs, graphs),
        ("breaks", expected.breaks, breaks),
        ("recompiles", expected.recompiles, len(runs.captured.recompiles)),
    ):
        if wanted is not None and wanted != got:
            comparison.differ(name, f"expected {wanted}, got {got}")
    if quiet_from is not None and runs.stages[quiet_from][2] != captures:
        comparison.differ("second call", "captured again although the inputs are equal")


def _explain(differences: Sequence[str], fn: Callable[..., Any], captured: Captured) -> str:
    """The message of a failed check: the differences, then how it came about."""
    parts = ["compiled and plain Python differ:", *(f"  {text}" for text in differences[:12])]
    if len(differences) > 12:
        parts.append(f"  ... and {len(differences) - 12} more")
    for name, texts in (
        ("break", captured.breaks),
        ("recompile", captured.recompiles),
        ("graph", captured.graphs),
    ):
        parts += [f"--- {name} {number + 1}\n{text}" for number, text in enumerate(texts)]
    if not captured.bytecode:
        parts.append(f"--- code of {short(fn)}\n{disassembly(getattr(fn, '__code__', fn))}")
    for original, modified in captured.bytecode:
        parts.append(f"--- original code of {original.co_qualname}\n{disassembly(original)}")
        parts.append(f"--- emitted code\n{disassembly(modified)}")
    return "\n".join(parts)


def disassembly(code: Any) -> str:
    """Text of a code object's instructions, or a word on why there is none."""
    text = io.StringIO()
    try:
        dis.dis(code, file=text, depth=0)
    except TypeError:
        return f"({type(code).__qualname__} has no bytecode)"
    return text.getvalue()
