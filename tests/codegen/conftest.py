"""Runs a function as a chain of segments: no capture, no graph, only the code that goes on behind a cut.

Every step of the function is cut: it runs in a segment of its own, which jumps to the segment of the step
that follows. A table of global names says what stands at each place, so a part of the chain can be put in
another form: `resume` lets the rest run in one piece, `calls` enters called functions through call code.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType
from typing import Any

import pytest

from graphlift import _C
from graphlift.bytecode.decode import decode
from graphlift.bytecode.verify import verify_code
from graphlift.codegen.originals import original
from graphlift.codegen.resume import (
    Shape,
    call_code,
    exits_of,
    operands_of,
    resume_code,
    segment_function,
    step_code,
)

SETTINGS = object()
numbers = itertools.count()


def compiled(function: FunctionType) -> _C.CompiledFunction:
    return _C.CompiledFunction(function, SETTINGS, lambda compiled, params: None)


def slots_at_start(function: FunctionType, args: Any, kwargs: Any) -> dict[str, Any]:
    """What the slots of a function hold behind its prologue."""
    code = function.__code__
    slots = bind(function, args, kwargs)
    for name in code.co_cellvars:
        slots[name] = CellType(slots[name]) if name in slots else CellType()
    free = decode(code).slots[len(decode(code).slots) - len(code.co_freevars) :]
    slots.update(zip(free, function.__closure__ or (), strict=True))
    return slots


def bind(function: FunctionType, args: Any, kwargs: Any) -> dict[str, Any]:
    """Arguments by name; CPython does it."""
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
    names = code.co_varnames[:count]
    values = ", ".join(f"'{name}': {name}" for name in names)
    text = "{" + values + "}"
    scope: dict[str, Any] = {}
    positional = list(names[: code.co_argcount])
    rest = list(names[code.co_argcount :])
    only = rest[: code.co_kwonlyargcount]
    stars = rest[code.co_kwonlyargcount :]
    parts = positional[:]
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    if code.co_flags & 4:
        parts.append("*" + stars.pop(0))
    elif only:
        parts.append("*")
    parts += only
    if code.co_flags & 8:
        parts.append("**" + stars.pop(0))
    exec(f"def binder({', '.join(parts)}): return {text}", scope)
    binder = scope["binder"]
    binder.__defaults__, binder.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return binder(*args, **kwargs)


class Chain:
    """The segments of one code object in one namespace, all steps that can be reached from its start."""

    def __init__(self, host: Host, function: FunctionType) -> None:
        self.host = host
        self.code: CodeType = function.__code__
        self.namespace = function.__globals__
        self.names: dict[Shape, str] = {}
        self.steps: dict[Shape, _C.CompiledFunction] = {}
        self.rests: dict[Shape, _C.CompiledFunction] = {}
        self.first = original(self.code).first
        self.missing: list[Shape] = []

    def start(self, bound: set[str]) -> str:
        """The name of the segment at the function's start."""
        alive = original(self.code).alive.before(self.first)
        name = self.name(Shape(self.first, tuple(slot for slot in alive if slot in bound), ()))
        while self.missing:
            self.make(self.missing.pop())
        return name

    def name(self, shape: Shape) -> str:
        if shape not in self.names:
            self.names[shape] = f"__segment_{next(numbers)}"
            self.missing.append(shape)
        return self.names[shape]

    def make(self, shape: Shape) -> None:
        exits = exits_of(self.code, shape)
        step = step_code(self.code, shape, exits, [self.name(leave.shape) for leave in exits])
        rest = resume_code(self.code, shape)
        for code in (step, rest):
            verify_code(code)
            assert code.co_argcount == len(shape.parameters)
        self.steps[shape] = compiled(segment_function(step, self.namespace))
        self.rests[shape] = compiled(segment_function(rest, self.namespace))
        bridge = self.bridge(shape) if decode(self.code).op(shape.index).startswith("CALL") else None
        self.namespace[self.names[shape]] = self.steps[shape] if bridge is None else bridge
        if bridge is not None:
            self.host.bridges.append((self.namespace, self.names[shape], self.steps[shape], bridge))

    @contextmanager
    def resumed_at(self, index: int) -> Iterator[int]:
        """Let the rest from a step on run in one piece; gives the number of shapes there."""
        shapes = [shape for shape in self.names if shape.index == index]
        before = {name: self.namespace[name] for name in map(self.names.__getitem__, shapes)}
        for shape in shapes:
            self.namespace[self.names[shape]] = self.rests[shape]
        yield len(shapes)
        self.namespace.update(before)

    def bridge(self, shape: Shape) -> _C.CompiledFunction | None:
        """What stands at a call: enters the called function's chain through call code, if it has one."""
        decoded = decode(self.code)
        op, index = decoded.op(shape.index), shape.index
        if op not in ("CALL", "CALL_KW"):
            return None
        operands = operands_of(decoded, index)
        below = Shape(index, shape.live, shape.stack[: len(shape.stack) - operands])
        exits = exits_of(self.code, below, operands)
        names = [self.name(leave.shape) for leave in exits]
        code = call_code(self.code, below, operands, exits, names)
        verify_code(code)
        call = compiled(segment_function(code, self.namespace))
        step = self.steps[shape]

        def act(*values: Any) -> _C.Jump:
            kept, (callee, args, kwargs) = self.operands(shape, operands, values)
            chain = self.host.started(callee, args, kwargs)
            if chain is None:
                return _C.Jump(step, values)
            return _C.Jump(call, (*kept, _C.Jump(*chain)))

        params = ", ".join(f"p{at}" for at in range(len(shape.parameters)))
        scope: dict[str, Any] = {"act": act}
        exec(f"def bridge({params}): return act({params})", scope)
        return compiled(scope["bridge"])

    def operands(self, shape: Shape, count: int, values: tuple[Any, ...]) -> tuple[Any, Any]:
        """The values below a call's operands, and (callee, args, kwargs)."""
        kinds = shape.stack[len(shape.stack) - count :]
        passed = sum(kind == "value" for kind in kinds)
        kept, taken = values[: len(values) - passed], list(values[len(values) - passed :])
        keywords: tuple[str, ...] = ()
        decoded = decode(self.code)
        if decoded.op(shape.index) == "CALL_KW":
            keywords = taken.pop()
        elif decoded.op(shape.index - 1) == "KW_NAMES":
            keywords = decoded.operands[shape.index - 1]
        callee, *args = taken
        positional = args[: len(args) - len(keywords)]
        return kept, (callee, positional, dict(zip(keywords, args[len(positional) :], strict=True)))


class Host:
    """Cuts functions; `cut` can be used as a decorator inside programs."""

    def __init__(self) -> None:
        self.chains: dict[CodeType, Chain] = {}
        self.cut_functions: dict[int, FunctionType] = {}
        self.bridges: list[tuple[dict[str, Any], str, Any, Any]] = []
        self.entered = 0

    def cut(self, function: FunctionType) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            segment, values = self.start(function, args, kwargs)
            return segment(*values)

        run.__wrapped_by_host__ = function  # type: ignore[attr-defined]
        return run

    def chain(self, function: FunctionType) -> Chain:
        for code, chain in self.chains.items():
            if code is function.__code__:
                return chain
        chain = self.chains[function.__code__] = Chain(self, function)
        return chain

    def start(self, function: FunctionType, args: Any, kwargs: Any) -> tuple[_C.CompiledFunction, tuple]:
        chain = self.chain(function)
        slots = slots_at_start(function, args, kwargs)
        name = chain.start(set(slots))
        shape = next(shape for shape, known in chain.names.items() if known == name)
        return chain.namespace[name], tuple(slots[slot] for slot in shape.live)

    def started(self, callee: Any, args: Any, kwargs: Any) -> tuple[Any, tuple] | None:
        """The first segment of a callee that is cut, and what it takes."""
        args = list(args)
        if hasattr(callee, "__self__") and hasattr(callee, "__func__"):
            args.insert(0, callee.__self__)
            callee = callee.__func__
        function = getattr(callee, "__wrapped_by_host__", None)
        if function is None:
            return None
        self.entered += 1
        return self.start(function, args, kwargs)

    @contextmanager
    def without_calls(self) -> Iterator[None]:
        """Let calls be run for real, not entered."""
        for namespace, name, step, _ in self.bridges:
            namespace[name] = step
        yield
        for namespace, name, _, bridge in self.bridges:
            namespace[name] = bridge


@pytest.fixture
def host() -> Host:
    return Host()
