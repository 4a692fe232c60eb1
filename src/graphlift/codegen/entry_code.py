"""The code objects of an entry: the graph call in front of the body, in two layouts.

Called by the C core, the binding comes as a hidden first argument and the parameters as plain positional
ones; swapped into a hooked frame, the parameters keep the original's layout and the binding is the first
local behind them (csrc/eval_frame.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from inspect import CO_NEWLOCALS, CO_OPTIMIZED, CO_VARARGS, CO_VARKEYWORDS
from types import CodeType

from graphlift.bytecode.emit import Emitter, Header, assemble
from graphlift.bytecode.instruction import Item, Label, Position, TryBegin, TryEnd
from graphlift.bytecode.verbs import Verbs
from graphlift.codegen.load_source import BINDING, load_source
from graphlift.codegen.pycodegen import GRAPH_OUT, PyCodegen
from graphlift.codegen.rerun import emit_handler, emit_save
from graphlift.codegen.segment_frame import say_taken
from graphlift.sources import ParamSource, Source


def parameters(code: CodeType) -> tuple[str, ...]:
    """Names of a code object's parameters, ``*args`` and ``**kwargs`` included, in the order of slots."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return code.co_varnames[:count]


class EntryCode:
    """Body and graph call of one entry, ready to be assembled.

    Arguments:
        code: the user's code.
        body: what was emitted for results and side effects.
        product: global name of the backend's product, or None when there is no graph to call.
        inputs: where the graph's inputs come from, in order.
        position: the user's place that the graph call is shown at.
        function: where the function is found whose frame it is.
        failure: global name of what is asked when the graph fails; None: it cannot.
        saves: whether the state of generators is kept for it.
        segment: whether jumps lead to it.

    Attributes:
        bound: the sources that the binding must hold, in order.
    """

    def __init__(
        self,
        code: CodeType,
        body: PyCodegen,
        product: str | None,
        inputs: Sequence[Source],
        position: Position,
        function: Source | None = None,
        failure: str | None = None,
        saves: bool = False,
        segment: bool = False,
    ) -> None:
        self._code = code
        self._segment = segment
        self._body = body
        self._failed: list[Item] = []
        emitter = Emitter()
        emitter.position = position
        begin = None
        if failure is not None and function is not None:
            begin = self._expect_failure(emitter, failure, saves, function)
        bound = list(body.slots.sources())
        if product is not None:
            bound += self._call_graph(emitter, product, inputs, len(bound))
        if begin is not None:
            emitter.items.append(TryEnd(begin))
        self._call = emitter.items
        self.bound: tuple[Source, ...] = tuple(bound)

    def _expect_failure(self, emitter: Verbs, failure: str, saves: bool, function: Source) -> TryBegin:
        """Begin the range in which an error of the graph is looked at, and make what looks at it."""
        slots = self._body.slots
        slots.slot(function)
        if saves:
            emitter.items.extend(emit_save(failure).items)
        failed = Label("failed")
        handler = emit_handler(
            failed, failure, saves, lambda verbs: load_source(verbs, function, slots), parameters(self._code)
        )
        self._failed = handler.items
        begin = TryBegin(failed)
        emitter.items.append(begin)
        return begin

    def _call_graph(
        self, emitter: Verbs, product: str, inputs: Sequence[Source], start: int
    ) -> Sequence[Source]:
        """Emit the call of the product; gives the inputs that it expects in the binding from `start` on."""
        emitter.prepare_call()
        emitter.load_global(product)
        emitter.callable_ready()
        from_locals = all(type(source) is ParamSource for source in inputs)
        if from_locals:
            for source in inputs:
                emitter.load_fast(source.name())
            emitter.call(len(inputs))
        else:
            self._load_bound(emitter, start)
            emitter.call_ex()
        if self._body.outputs:
            emitter.store_fast(GRAPH_OUT)
        else:
            emitter.pop()
        return () if from_locals else inputs

    @staticmethod
    def _load_bound(emitter: Verbs, start: int) -> None:
        """Push the part of the binding that holds the graph's inputs."""
        emitter.load_fast(BINDING)
        if start:
            emitter.load_const(start)
            emitter.load_const(None)
            emitter.build_slice(2)
            emitter.subscr()

    def _items(self, free: Sequence[str] = ()) -> list[Item]:
        start = Emitter()
        start.prologue(free=free)
        if self._segment:
            say_taken(start)
        return [*start.items, *self._call, *self._body.emitter.items, *self._failed]

    def as_function(self) -> CodeType:
        """The layout for a call from C: binding first, every parameter positional, no free variables."""
        names = parameters(self._code)
        if self.bound:
            names = (BINDING, *names)
        header = replace(
            Header.of(self._code),
            flags=CO_OPTIMIZED | CO_NEWLOCALS,
            argcount=len(names),
            posonlyargcount=0,
            kwonlyargcount=0,
            varnames=names,
            cellvars=(),
            freevars=(),
        )
        return assemble(self._items(), header)

    def as_swap(self, function: CodeType) -> CodeType | None:
        """The layout for a hooked frame: the original's parameters, then the binding.

        Arguments:
            function: what `as_function` gave.

        Returns:
            None for a segment, whose frames are never hooked.
        """
        if self._segment:
            return None
        code = self._code
        if not self.bound and not code.co_freevars:  # the slots are the same
            return function.replace(
                co_flags=code.co_flags,
                co_argcount=code.co_argcount,
                co_posonlyargcount=code.co_posonlyargcount,
                co_kwonlyargcount=code.co_kwonlyargcount,
            )
        header = replace(
            Header.of(self._code),
            varnames=(*parameters(self._code), BINDING),
            cellvars=(),
        )
        return assemble(self._items(self._code.co_freevars), header)
