"""Segments: the functions by which a program goes on behind a graph break, made once and shared.

Owns their names in the users' namespaces and their lifetime. A segment is kept by the entries and the
segments that may jump to it; when the last of them goes, its names go too.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

from graphlift import _C
from graphlift.codegen.continuations import PUSH
from graphlift.codegen.resume import (
    Shape,
    call_code,
    callee_at,
    exits_of,
    resume_code,
    segment_function,
    step_code,
)
from graphlift.interpreter.graph_break import Cut
from graphlift.interpreter.resumed import register
from graphlift.sources import SEGMENT_PREFIX

_numbers = itertools.count()


class Segment:
    """One segment and its names.

    Attributes:
        compiled: the callable that jumps go to.
        exits: the segments that it may jump to.
        code: the user's code, held weakly.
    """

    def __init__(self, compiled: _C.CompiledFunction, exits: list[Segment], code: CodeType) -> None:
        self.compiled = compiled
        self.code = weakref.ref(code)
        self.exits = exits
        self._names: list[tuple[dict[str, Any], str]] = []

    def name_in(self, namespace: dict[str, Any]) -> str:
        """The global name of the segment in a namespace."""
        for known, name in self._names:
            if known is namespace:
                return name
        name = f"{SEGMENT_PREFIX}{next(_numbers)}_{self.compiled.__name__}"
        namespace[name] = self.compiled
        self._names.append((namespace, name))
        return name

    def __del__(self) -> None:
        for namespace, name in self._names:
            namespace.pop(name, None)


class Segments:
    """The segments of one compiled object.

    Arguments:
        settings: capture settings of resume functions.
        capture: captures a resume function; see `_C.CompiledFunction`.
        context: for frames that run inside.
    """

    def __init__(
        self,
        settings: Any,
        capture: Callable[[_C.CompiledFunction, tuple[Any, ...]], Any],
        context: object,
    ) -> None:
        self._settings = settings
        self._capture = capture
        self._context = context
        self._known: weakref.WeakValueDictionary[tuple[Any, ...], Segment] = weakref.WeakValueDictionary()

    def at(self, cut: Cut) -> Segment:
        """The segment that runs a cut's instruction (or calls the inner frame's segment) and goes on."""
        key = (id(cut.code), cut.shape, cut.keyword_names, cut.operands, cut.finish, id(cut.module_globals))
        segment = self._known.get(key)
        if segment is None or segment.code() is not cut.code:
            segment = self._known[key] = self._make_step(cut)
        return segment

    def _make_step(self, cut: Cut) -> Segment:
        exits = exits_of(cut.code, cut.shape, cut.operands, cut.finish or PUSH)
        segments = [self._resume(cut.code, leave.shape, cut.module_globals) for leave in exits]
        targets = [segment.name_in(cut.module_globals) for segment in segments]
        if cut.operands is None:
            code = step_code(cut.code, cut.shape, exits, targets, cut.keyword_names)
        else:
            code = call_code(cut.code, cut.shape, cut.operands, exits, targets, cut.finish or PUSH)
        _C.mark_skip(code)
        compiled = self._compiled(code, cut.module_globals, _leave_alone, _callee_at(cut))
        self._leave_to_python(code, plain=cut.operands is not None and cut.finish in (None, PUSH))
        return Segment(compiled, segments, cut.code)

    def _leave_to_python(self, code: CodeType, plain: bool) -> None:
        """Let the C core run a step's code without asking; `plain`: all it does is call a segment."""
        cache = _C.cache_of(code, self._settings)
        cache.skip, cache.plain = True, plain

    def _resume(self, code: CodeType, shape: Shape, namespace: dict[str, Any]) -> Segment:
        key = (id(code), shape, None, -1, None, id(namespace))
        segment = self._known.get(key)
        if segment is None or segment.code() is not code:
            made = resume_code(code, shape)
            register(made, code, shape)
            segment = self._known[key] = Segment(self._compiled(made, namespace, self._capture), [], code)
        return segment

    def _compiled(
        self, code: CodeType, namespace: dict[str, Any], capture: Any, callee_at: int = -1
    ) -> _C.CompiledFunction:
        function = segment_function(code, namespace)
        return _C.CompiledFunction(function, self._settings, capture, self._context, callee_at)


def _callee_at(cut: Cut) -> int:
    """Which parameter of a step's code it calls; -1 if it is no call, or not known."""
    return -1 if cut.operands is not None else callee_at(cut.code, cut.shape)


def _leave_alone(compiled: _C.CompiledFunction, params: tuple[Any, ...]) -> None:
    """A step is CPython's to run, hook on."""
