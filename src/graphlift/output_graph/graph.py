"""The tensor part of a capture: inputs, operations, and what is known of their values.

`OutputGraph.call` is the one door for tensor operations. It asks `meta_propagation` what a call gives,
writes it down, and hands back values that trackers hold. Everything it changes can be taken back: the
record by `rollback`, slots of values and global state through the heap.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import torch

from graphlift.graph_value import (
    CannotPropagate,
    GraphContainer,
    GraphError,
    GraphValue,
    MetaError,
    StructResult,
    SymValue,
)
from graphlift.heap import Heap
from graphlift.meta_propagation import Const, Items, Propagator, Same, Template, View
from graphlift.meta_propagation.policy import TOTAL
from graphlift.meta_propagation.state import (
    COUNTERS,
    SETTERS,
    WITHOUT_TRACE,
    change,
    changes_state,
    moved_counters,
)
from graphlift.metadata import PLAIN_CLASSES, MetaRecord, record_of
from graphlift.output_graph.aliasing import (
    apply_write,
    check_read,
    check_readable,
    check_write,
    family,
    is_protected,
    is_view,
    join,
    may_be_refused,
    required_inputs,
    same_storage,
    share_memory,
)
from graphlift.output_graph.captured import CapturedGraph
from graphlift.output_graph.drawing import devices_of, generators_of, unused_results
from graphlift.output_graph.dynamic import DynamicCalls, Fake, Number, input_meta, is_dynamic, present
from graphlift.output_graph.exact import ExactNumbers
from graphlift.output_graph.record import VALUES, Operation, operands, values_in, writes_input
from graphlift.output_graph.symbols import Symbols
from graphlift.sources import Source

_SETITEMS: Final = frozenset({operator.setitem, "__setitem__", torch.Tensor.__setitem__})
_new = tuple.__new__
_NOTHING: Final[Mapping[str, Any]] = {}


class OutputGraph:
    """The graph of one capture.

    Args:
        heap: where changes to values and global state are logged for a roll-back.
    """

    def __init__(self, heap: Heap) -> None:
        self.heap: Final = heap
        self.operations: list[Operation] = []
        self.inputs: list[GraphValue | SymValue] = []
        self._by_id: dict[int, GraphValue] = {}
        self._symbols: Symbols | None = None
        self._dynamic: DynamicCalls | None = None
        self._exact: ExactNumbers | None = None
        #: Calls that take back what `set_state` did, latest last.
        self._changes: list[tuple[Any, tuple[Any, ...]]] = []
        self._propagator: Final = Propagator()
        self._first_state: Final = self._propagator.state.key
        #: Index of the latest operation that writes or can fail; may be past the end after a roll-back.
        self.notable = -1
        #: Indices of operations whose failure the program could tell from one of plain Python.
        self.exposed: list[int] = []
        #: Inputs that were written to as some views may not be.
        self.followed: dict[GraphValue, None] = {}
        #: Inputs that are views which autograd protects.
        self.protected: list[GraphValue] = []
        #: Inputs that were written to and that require grad.
        self.required: dict[GraphValue, None] = {}
        #: Whether an argument was of a class derived from a builtin one, as which the graph has it.
        self.took_derived = False
        self._writes: list[int] = []
        self._draws: list[int] = []

    # --- inputs ------------------------------------------------------------------------------

    def add_tensor_input(
        self, tensor: torch.Tensor, source: Source | None, dynamic: Sequence[bool] | None = None
    ) -> GraphValue:
        """The graph input that is this tensor; the same value for the same tensor.

        It becomes a placeholder only if an operation or an output uses it.

        Args:
            dynamic: for each dimension whether its size is symbolic; None for none.

        Raises:
            CannotPropagate: for tensor classes and layouts that graphs do not take.
        """
        known = self._by_id.get(id(tensor))
        if known is not None:
            return known
        if type(tensor) not in PLAIN_CLASSES:
            raise CannotPropagate(f"a tensor of class {type(tensor).__name__}")
        if tensor.layout is not torch.strided:
            raise CannotPropagate(f"a tensor of layout {tensor.layout}")
        value = GraphValue(record_of(tensor))
        if dynamic is not None and any(dynamic) and source is not None:
            value.fake = self._symbolic().tensor(tensor, source, dynamic)
            value.meta = input_meta(value.fake, value.meta)
        value.real = tensor
        value.source = source
        if is_protected(value):
            check_readable(value)
            check_read(value, self.required)
            self.protected.append(value)
        self._by_id[id(tensor)] = value
        self.inputs.append(value)
        return value

    def add_symbol_input(self, number: float, source: Source) -> SymValue:
        """A graph input that is an int or float of the program, not fixed by this capture.

        Its present value is only a hint; what the capture assumes of it is in `shape_guards`.
        """
        value = SymValue(self._symbolic().number(number, source))
        value.source = source
        if type(number) is float:
            value.exact, value.hint = (("float", source),), number
        self.inputs.append(value)
        return value

    def _symbolic(self) -> Symbols:
        if self._symbols is None:
            self._symbols = Symbols()
            self._dynamic = DynamicCalls(self._symbols)
            self._exact = ExactNumbers(self._symbols)
        return self._symbols

    @property
    def exact(self) -> ExactNumbers:
        """What is known of the capture's symbolic numbers; there is at least one."""
        assert self._exact is not None
        return self._exact

    def shape_guards(self) -> list[tuple[Any, ...]]:
        """What was assumed of symbolic sizes and numbers, as payloads of ``expression`` guards."""
        return [] if self._symbols is None else self._symbols.guards()

    # --- calls -------------------------------------------------------------------------------

    def call(
        self,
        target: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any] = _NOTHING,
        *,
        method: bool = False,
        where: Any = None,
    ) -> Any:
        """Make a call part of the graph.

        Args:
            target: a function, or with `method` the name of a method of the first argument.
            args, kwargs: values of the graph and constants, in tuples, lists, dicts and slices. The
                containers must not be changed afterwards.
            where: the place in the user's program.

        Returns:
            `GraphValue`, `SymValue`, a constant, or a tuple, list or `StructResult` of these.

        Raises:
            MetaError, CannotPropagate, DataDependent: see there; the graph is unchanged then.
        """
        if self._dynamic is not None and is_dynamic(args, kwargs):
            return self._call_dynamic(Operation(target, method, args, kwargs, None, where, False, False))
        try:
            found, tensors = self._propagator.find(target, method, args, kwargs)
        except MetaError as error:
            raise self._surely(target, args, kwargs, error) from None
        operations = self.operations
        if isinstance(found, MetaRecord):
            index = len(operations)
            value = GraphValue(found, index)
            raises = bool(self.protected) and self._may_be_refused(tensors)
            # Twice as fast as calling the class; this is the hot line of a capture.
            row = (target, method, args, kwargs, value, where, raises, raises, (), False)
            operations.append(_new(Operation, row))
            if raises:
                self.notable = index
            return value
        call = Operation(target, method, args, kwargs, None, where, False, False)
        return self._take(found, tuple(tensors), call)

    def _surely(self, target: Any, args: Any, kwargs: Any, error: MetaError) -> GraphError:
        """A failure found on stand-ins, or why it may be another one in the program."""
        values = [x for x in values_in((args, dict(kwargs))) if type(x) is GraphValue]
        if target in TOTAL and "out" not in kwargs:
            return error
        graded = self.grad_enabled and any(value.meta.requires_grad for value in values)
        if (graded and any(map(is_view, values))) or share_memory(values):
            # A write may fail for what autograd knows of a view, or for an overlap, before all else.
            return CannotPropagate(str(error.error))
        return error

    def _call_dynamic(self, call: Operation) -> Any:
        assert self._dynamic is not None
        self._check_present(call)
        template, tensors = self._dynamic.find(
            self._propagator.state, call.target, call.method, call.args, call.kwargs
        )
        return self._take(template, tuple(tensors), call, on_fakes=True)

    def _check_present(self, call: Operation) -> None:
        """Refuse a dynamic call that fails with this capture's sizes: fakes do not know all that may fail.

        It is no error of the program as far as the capture is concerned, since other sizes may do.
        """
        if not any(type(x) is GraphValue for x in values_in((call.args, dict(call.kwargs)))):
            return  # numbers raise what they raise
        given = present(call.args, call.kwargs)
        if given is None:
            return
        try:
            self._propagator.find(call.target, call.method, *given)
        except MetaError as error:
            raise CannotPropagate(f"{type(error.error).__name__}: {error.error}") from None
        except GraphError:
            return

    def set_state(self, function: Any, args: tuple[Any, ...], where: Any = None) -> None:
        """Change global state of torch (grad mode, autocast, ...), in the graph and in this process.

        Args:
            function: one of the setters in `meta_propagation.state`.
            args: its arguments; constants.
        """
        if function in SETTERS or function in COUNTERS:
            self._changes.append(change(function, args))
            self.heap.on_undo(self._change_back)
            self._propagator.refresh()
        elif function not in WITHOUT_TRACE:
            raise CannotPropagate(f"{function.__name__} changes state in an unknown way")
        self.operations.append(Operation(function, False, args, _NOTHING, None, where, True, False))

    def _change_back(self) -> None:
        if self._changes:
            function, args = self._changes.pop()
            function(*args)
            self._propagator.refresh()

    def settings_at_first(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """Calls that give each global that `set_state` set so far the value it had at the beginning."""
        first: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] = {}
        for function, args in self._changes:
            if function in SETTERS:
                first.setdefault((function, *args[:-1]), (function, args))
        return list(first.values())

    def balance_counters(self) -> None:
        """Let the graph leave nested regions as it found them, also while a compiler runs it to trace it:
        whoever calls it moves the counters for good."""
        for function in reversed(moved_counters(self.operations)):
            self.operations.append(
                Operation(COUNTERS[function], False, (), _NOTHING, None, None, True, False)
            )

    def restore_state(self) -> None:
        """Put the process's global state back to what it was; to be called when the capture is over."""
        while self._changes:
            self._change_back()

    def _take(
        self,
        template: Template,
        tensors: Sequence[GraphValue],
        call: Operation,
        on_fakes: bool = False,
    ) -> Any:
        grad = self._propagator.state.grad
        if template.writes:
            inputs = (value for value in self.inputs if type(value) is GraphValue)
            check_write(template, tensors, inputs, self.protected, grad, self._region(call))
            for root, follows in required_inputs(template, tensors):
                self.required[root] = None
                if grad and follows:
                    self.followed[root] = None
        if template.pure and _is_constant(template.output):
            return _constant(template.output)
        made = _Results(self, tensors, call.target, grad)
        written = tuple([tensors[write.arg] for write in template.writes]) if template.writes else ()
        raises = template.raises or self._may_be_refused(tensors)
        keep, random = raises or not template.pure, template.random
        row = (*call[:4], None, call.where, keep, raises, written, random)
        index = len(self.operations)
        result = made.record(template.output, row)
        self._note(index, self.operations[index])
        for write in template.writes:
            apply_write(self.heap, write, tensors[write.arg], on_fakes)
        return result

    def _may_be_refused(self, tensors: Iterable[GraphValue]) -> bool:
        return any(may_be_refused(value, self.protected) for value in tensors)

    def _note(self, index: int, call: Operation) -> None:
        """See whether an operation can fail, and whether it leaves something behind beside its result."""
        if call.raises or call.written:
            self.notable = index
        if call.random:
            self._draws.append(index)
        # What is drawn from a generator whose state cannot be kept cannot be taken back either.
        if writes_input(call) or (call.random and generators_of(devices_of(call)) is None):
            self._writes.append(index)

    @property
    def wrote(self) -> bool:
        """Whether an operation so far did what cannot be taken back: it wrote to an input."""
        return bool(self._writes)

    @property
    def drew(self) -> bool:
        """Whether an operation so far drew random numbers."""
        return bool(self._draws)

    def leaves_behind(self, values: Any) -> Iterator[tuple[Source, bool]]:
        """Of the inputs in whose memory `values` (a nest) lie and that require grad when the graph begins:
        where each comes from, and whether it is a leaf."""
        found = [each for each in values_in(values) if type(each) is GraphValue]
        for value in dict.fromkeys(member for each in found for member in family(each)):
            if value.source is not None and value.real is not None:
                meta = record_of(value.real)
                if meta.requires_grad:
                    yield value.source, meta.is_leaf

    @property
    def state_key(self) -> Any:
        """Torch's global state at this point of the captured program, comparable."""
        return self._propagator.state.key

    @property
    def first_state(self) -> Any:
        """The same at its beginning."""
        return self._first_state

    def _region(self, call: Operation) -> Any:
        """For the setting of an item, the metadata of what is set; None where that is no view."""
        if call.target not in _SETITEMS or len(call.args) != 3 or self._shared(call.args) < 2:
            return None
        if is_dynamic(call.args[:2], _NOTHING):
            return None  # where the view lies is not fixed
        try:
            found, _ = self._propagator.find(operator.getitem, False, call.args[:2], _NOTHING)
        except GraphError:
            return None
        view = found.output if isinstance(found, Template) else None
        return view.record if isinstance(view, View) else None

    def _shared(self, args: tuple[Any, ...]) -> int:
        """How many of the arguments live on the memory of the first."""
        return sum(type(x) is GraphValue and same_storage(x, args[0]) for x in args)

    # --- length ------------------------------------------------------------------------------

    def mark(self) -> tuple[int, int]:
        """The present length, for `rollback`."""
        return len(self.operations), len(self.inputs)

    def rollback(self, mark: tuple[int, int]) -> None:
        """Forget operations and inputs added since `mark` (the heap is rolled back by its owner)."""
        length, inputs = mark
        for operation in self.operations[length:]:
            _forget_view(operation.value)
        del self.operations[length:]
        for noted in (self._writes, self._draws, self.exposed):
            while noted and noted[-1] >= length:
                noted.pop()
        for value in self.inputs[inputs:]:
            if isinstance(value, GraphValue):
                del self._by_id[id(value.real)]
                if value in self.protected:
                    self.protected.remove(value)
        del self.inputs[inputs:]

    # --- names and facts ---------------------------------------------------------------------

    def name_hint(self, value: Any, name: str) -> None:
        """The user's program stores `value` under `name`; the first such name becomes the node's."""
        if value.name is None and value.index >= 0:
            value.name = name

    @property
    def may_raise(self) -> bool:
        """Whether an operation so far can fail by the values of its arguments."""
        return any(operation.raises for operation in self.operations)

    @property
    def grad_enabled(self) -> bool:
        """Grad mode at this point of the captured program."""
        return self._propagator.state.grad

    # --- the end -----------------------------------------------------------------------------

    def finish(self, outputs: Sequence[GraphValue | SymValue], for_compiler: bool = False) -> CapturedGraph:
        """The graph that computes `outputs` and does what the operations do besides.

        Operations that nobody needs are left out, and so are inputs; the others keep their order. Changes of
        torch's state alone make no graph.

        Args:
            for_compiler: whether a compiler will leave out what no output needs, though it can fail or draws
                random numbers: the results of such operations become outputs behind the others.
        """
        uses = [*map(operands, self.operations)]
        if for_compiler:
            outputs = [*outputs, *unused_results(self.operations, uses, outputs)]
        live, used = _live(self.operations, uses, outputs)
        if not outputs and all(changes_state(operation) for operation in live):
            live, used = [], []  # what only changes state is done by the code that calls the graph
        return CapturedGraph(_used_inputs(used, outputs), live, tuple(outputs), self._symbols, used)


class _Results:
    """Makes the values of one call and records it."""

    def __init__(self, graph: OutputGraph, tensors: Sequence[GraphValue], target: Any, grad: bool) -> None:
        self._graph = graph
        self._tensors = tensors
        self._target = target
        self._grad = grad
        self._fresh: list[GraphValue] = []

    def record(self, output: Any, call: tuple[Any, ...]) -> Any:
        """Record the call, a row of `Operation` without its value, and the taking apart of its result."""
        operations = self._graph.operations
        if type(output) is Items:
            container = GraphContainer(len(operations))
            operations.append(_new(Operation, (*call[:4], container, *call[5:])))
            return self._items(output, container)
        value = self._single(output)
        kept = value if type(value) in VALUES else None
        operations.append(_new(Operation, (*call[:4], kept, *call[5:])))
        return value

    def _items(self, form: Items, container: GraphContainer) -> Any:
        items = tuple(self._item(x, container, i) for i, x in enumerate(form.items))
        if form.cls is tuple:
            return items
        return list(items) if form.cls is list else StructResult(form.cls, items)

    def _item(self, form: Any, container: GraphContainer, index: int) -> Any:
        if type(form) is Const or type(form) is Same:
            return self._single(form)
        return self.record(
            form, (operator.getitem, False, (container, index), _NOTHING, None, None, False, False, (), False)
        )

    def _single(self, form: Any) -> Any:
        kind = type(form)
        if kind is Const:
            return form.value
        if kind is Same:
            return self._tensors[form.arg] if form.arg >= 0 else self._fresh[-1 - form.arg]
        index = len(self._graph.operations)
        if kind is Number:
            return SymValue(form.sym, index)
        if kind is MetaRecord or kind is Fake:
            value = GraphValue(form if kind is MetaRecord else form.meta, index)
            value.fake = None if kind is MetaRecord else form.fake
            self._fresh.append(value)
            return value
        value = GraphValue(form.record, index)
        value.fake = form.fake
        of = self._tensors[form.arg] if form.arg >= 0 else self._fresh[-1 - form.arg]
        join(value, of, self._target, form.piece or not self._grad)
        return value


def _forget_view(value: Any) -> None:
    if type(value) is GraphValue and value.base is not None:
        views = value.base.views
        if views is not None and value in views:
            views.remove(value)


def _is_constant(output: Any) -> bool:
    if type(output) is Items:
        return all(_is_constant(x) for x in output.items)
    return type(output) is Const


def _constant(output: Any) -> Any:
    if type(output) is Const:
        return output.value
    items = tuple(_constant(x) for x in output.items)
    if output.cls is tuple or output.cls is list:
        return output.cls(items)
    return StructResult(output.cls, items)


def _live(
    operations: Sequence[Operation], uses: Sequence[list[Any]], outputs: Sequence[Any]
) -> tuple[list[Operation], list[list[Any]]]:
    """The operations that an output or an effect needs, in order, and what each of them uses."""
    needed = set(outputs)
    kept, used = [], []
    for operation, values in zip(reversed(operations), reversed(uses), strict=True):
        if operation.keep or operation.value in needed:
            kept.append(operation)
            used.append(values)
            needed.update(values)
    kept.reverse()
    used.reverse()
    return kept, used


def _used_inputs(used: Sequence[Sequence[Any]], outputs: Sequence[Any]) -> list[Any]:
    """Inputs in the order of their first use, operation by operation."""
    inputs: dict[Any, None] = {}
    for values in (*used, outputs):
        for value in values:
            if value.index < 0:
                inputs[value] = None
    return list(inputs)
