"""Views of dictionaries and their iterators. Mirrors the views and iterators of Objects/dictobject.c."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar, Final, NoReturn, cast

from graphlift import _C
from graphlift.errors import Unsupported
from graphlift.heap import Handle, Table
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import IteratorSource, Source
from graphlift.variables import iterator_state, keys, namespace
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker
from graphlift.variables.builder import wraps
from graphlift.variables.builtin_object import BuiltinObjectVariable, constant, make_tuple, method
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.iterator_state import DONE
from graphlift.variables.iterators import IteratorVariable, wrap_opaque_iterator
from graphlift.variables.sequences import storage
from graphlift.variables.slots import calls, items, iteration, operators
from graphlift.variables.slots.type_lookup import mro_of


class Part(Enum):
    """What a view shows of each entry; the value is the method's name."""

    KEYS = "keys"
    VALUES = "values"
    ITEMS = "items"


_VIEW_TYPES: Final = {part: type(getattr({}, part.value)()) for part in Part}
_ORDERED_VIEW_TYPES: Final = {part: type(getattr(OrderedDict(), part.value)()) for part in Part}
_ITERATOR_TYPES: Final = {part: type(iter(getattr({}, part.value)())) for part in Part}
_REVERSE_TYPES: Final = {part: type(reversed(getattr({}, part.value)())) for part in Part}
_ORDERED_ITERATOR: Final[type] = type(iter(OrderedDict()))


def _is_ordered(mapping: Any) -> bool:
    return bool(mapping.models is OrderedDict)


def refuse_open_order(tx: Tx) -> NoReturn:
    """Break where an ordered dictionary would be gone through, which asks each key for its hash once more."""
    tx.fail(
        Reason.UNSUPPORTED_OPERATION, "the order of an OrderedDict with keys whose `__hash__` is the user's"
    )


def _check_order(tx: Tx, dictionary: Any) -> None:
    if _is_ordered(dictionary) and keys.open_parts(dictionary.table(tx)):
        refuse_open_order(tx)


def entry_part(tx: Tx, part: Part, entry: tuple[Any, Any]) -> VariableTracker:
    """What a view shows of an entry."""
    if part is Part.ITEMS:
        return make_tuple(tx, entry)
    return cast(VariableTracker, entry[0 if part is Part.KEYS else 1])


class DictViewVariable(BuiltinObjectVariable):
    """``dict.keys()``, ``dict.values()`` or ``dict.items()``.

    Attributes:
        dictionary: the tracker of the dictionary.
        part: what the view shows.
    """

    __slots__ = ("dictionary", "part")
    models: ClassVar[type] = type({}.items())

    def __init__(self, dictionary: Any, part: Part) -> None:
        self.source = None
        self.dictionary: Final = dictionary
        self.part: Final = part

    def children(self) -> tuple[Var, ...]:
        """What it holds."""
        return (self.dictionary,)

    def python_type(self, tx: Tx) -> type:
        return (_ORDERED_VIEW_TYPES if _is_ordered(self.dictionary) else _VIEW_TYPES)[self.part]

    def truth(self, tx: Tx) -> VariableTracker | bool:
        return bool(self.dictionary.table(tx))

    def length(self, tx: Tx) -> VariableTracker:
        return cast(VariableTracker, self.dictionary.length(tx))

    def unpack(self, tx: Tx) -> list[VariableTracker]:
        _check_order(tx, self.dictionary)
        return [entry_part(tx, self.part, entry) for entry in self.dictionary.table(tx).values()]

    def iter_(self, tx: Tx) -> VariableTracker:
        return DictIteratorVariable(tx, self.dictionary, self.part)

    @method("__reversed__")
    def _reversed(self, tx: Tx) -> VariableTracker:
        return DictIteratorVariable(tx, self.dictionary, self.part, backwards=True)

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        if self.part is Part.KEYS:
            return cast(VariableTracker, self.dictionary.contains(tx, item))
        if self.part is Part.VALUES:
            return NOT_IMPLEMENTED
        if tuple not in mro_of(item.python_type(tx)):
            return constant(tx, False)
        pair = storage(item).unpack(tx)
        if pair is None or len(pair) != 2:
            return constant(tx, False)
        found = self.dictionary.find(tx, pair[0].realize(tx))
        return constant(tx, found is not None and operators.equal(tx, found, pair[1]))

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        return self.refuse(tx, f"attribute {name!r}")

    # --- as a set ------------------------------------------------------------------------------

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if self.part is Part.VALUES or not _is_set_like(tx, other):
            return NOT_IMPLEMENTED
        mine, others = self.unpack(tx), iteration.unpack(tx, other)
        sizes = (len(mine), len(others))
        if op in ("==", "!="):
            same = sizes[0] == sizes[1] and self._all_in(tx, mine, other)
            return constant(tx, same is (op == "=="))
        if op in ("<", "<="):
            return constant(
                tx,
                (sizes[0] < sizes[1] or (op == "<=" and sizes[0] == sizes[1]))
                and self._all_in(tx, mine, other),
            )
        return constant(
            tx,
            (sizes[0] > sizes[1] or (op == ">=" and sizes[0] == sizes[1])) and self._all_in(tx, others, self),
        )

    def _all_in(self, tx: Tx, found: list[VariableTracker], holder: VariableTracker) -> bool:
        return all(operators.is_true(tx, operators.contains(tx, item, holder)) for item in found)

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        name = _SET_OPERATORS.get(op)
        if self.part is Part.VALUES or name is None:
            return NOT_IMPLEMENTED
        if op == "&":
            return self._intersect(tx, other)
        made = tx.make.set(self.unpack(tx))
        assert isinstance(made, VariableTracker)
        calls.call_method(tx, made, name, [other], {})
        return made

    def _intersect(self, tx: Tx, other: VariableTracker) -> VariableTracker:
        """``view & other``, elements put in in the order of `_PyDictView_Intersect`."""
        own, view = _count(self.length(tx)), self
        if other.python_type(tx) is set and own <= _count(items.length(tx, other)):
            return cast(VariableTracker, calls.call_method(tx, other, "intersection", [self], {}))
        if isinstance(other, DictViewVariable) and _count(other.length(tx)) > own:
            view, other = other, self
        made = cast(VariableTracker, tx.make.set([]))
        for item in iteration.unpack(tx, other):
            if operators.is_true(tx, operators.contains(tx, item, view)):
                calls.call_method(tx, made, "add", [item], {})
        return made

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        name = _SET_OPERATORS.get(op)
        if self.part is Part.VALUES or name is None:
            return NOT_IMPLEMENTED
        if op == "&":
            return self._intersect(tx, other)
        made = tx.make.set(iteration.unpack(tx, other))
        assert isinstance(made, VariableTracker)
        calls.call_method(tx, made, name, [self], {})
        return made

    @method()
    def isdisjoint(self, tx: Tx, other: VariableTracker) -> VariableTracker:
        """``isdisjoint`` of a view of keys or items."""
        if self.part is Part.VALUES:
            tx.raise_(AttributeError, "'dict_values' object has no attribute 'isdisjoint'")
        found = iteration.each(tx, other)
        return constant(
            tx, not any(operators.is_true(tx, operators.contains(tx, item, self)) for item in found)
        )

    def reconstruct(self, codegen: Codegen) -> None:
        makers = _ORDERED_VIEW_MAKERS if _is_ordered(self.dictionary) else _VIEW_MAKERS
        codegen.call(makers[self.part], [self.dictionary])


def _count(length: VariableTracker) -> int:
    return int(length.as_constant())


_SET_OPERATORS: Final = {
    "&": "intersection_update",
    "|": "update",
    "-": "difference_update",
    "^": "symmetric_difference_update",
}


def _is_set_like(tx: Tx, var: VariableTracker) -> bool:
    if isinstance(var, DictViewVariable):
        return var.part is not Part.VALUES
    return issubclass(var.python_type(tx), (set, frozenset))


#: How views are made, past what a derived class may override.
_VIEW_MAKERS: Final[dict[Part, Callable[[Any], Any]]] = {part: getattr(dict, part.value) for part in Part}
_ORDERED_VIEW_MAKERS: Final[dict[Part, Callable[[Any], Any]]] = {
    part: getattr(OrderedDict, part.value) for part in Part
}


#: The position of an iterator that has noticed a change of size, which it goes on complaining of.
_SPOILED: Final = -2


class DictIteratorVariable(IteratorVariable):
    """An iterator over a dictionary or a view. The handle's value is how many entries are gone, or DONE.

    It notices changes as CPython does: a changed size is a RuntimeError; keys exchanged behind an unchanged
    size, where CPython's behaviour depends on its memory layout, break the graph.

    Attributes:
        dictionary: what it iterates over.
        part: what it gives of each entry.
    """

    __slots__ = ("_backwards", "_keys", "_table", "dictionary", "part")

    def __init__(
        self,
        tx: Tx,
        dictionary: Any,
        part: Part,
        *,
        backwards: bool = False,
        handle: Handle | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(handle, source)
        self.dictionary: Final = dictionary
        self.part: Final = part
        _check_order(tx, dictionary)
        self._table: Final[Table] = dictionary.table(tx)
        self._keys: Final = list(self._table)
        self._backwards: Final = backwards
        if backwards:
            self._keys.reverse()
        if handle is None:
            self.handle.value = 0

    def children(self) -> tuple[Var, ...]:
        """What it holds."""
        return (self.dictionary,)

    def python_type(self, tx: Tx) -> type:
        if _is_ordered(self.dictionary):
            return _ORDERED_ITERATOR
        return (_REVERSE_TYPES if self._backwards else _ITERATOR_TYPES)[self.part]

    def next_(self, tx: Tx) -> VariableTracker | None:
        gone = self.handle.value
        if gone == DONE:
            return None
        table = self.dictionary.table(tx)
        if gone == _SPOILED or len(table) != len(self._keys):
            if self.source is not None:
                tx.fail(Reason.ITERATOR, "the next item of a dictionary that changed its size")
            tx.heap.set_value(self.handle, _SPOILED)
            word = "OrderedDict" if _is_ordered(self.dictionary) else "dictionary"
            tx.raise_(RuntimeError, f"{word} changed size during iteration")
        if table is not self._table and list(table) != (self._keys[::-1] if self._backwards else self._keys):
            tx.fail(
                Reason.UNSUPPORTED_OPERATION,
                "a dictionary whose keys are exchanged while it is iterated over",
            )
        if gone >= len(self._keys):
            tx.heap.set_value(self.handle, DONE)
            return None
        tx.heap.set_value(self.handle, gone + 1)
        return entry_part(tx, self.part, table[self._keys[gone]])

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Move the existing iterator to where the program left it."""
        if handle.value == DONE:
            codegen.run(iterator_state.skip_all, [self])
        else:
            start = _C.iterator_state(handle.real)
            before = 0 if start is None else start[1]
            codegen.run(iterator_state.skip, [self, ConstantVariable(handle.value - before)])

    def reconstruct(self, codegen: Codegen) -> None:
        if self._changed():
            raise Unsupported(Reason.UNSUPPORTED_VALUE, f"{self!r} over a dictionary that has changed")
        if self.dictionary.source is None:
            codegen.filled(self.dictionary)
        gone = len(self._keys) + 1 if self.handle.value == DONE else self.handle.value
        view = DictViewVariable(self.dictionary, self.part)
        codegen.call(_iterator_at, [view, ConstantVariable(self._backwards), ConstantVariable(gone)])

    def _changed(self) -> bool:
        """Whether an iterator made now, before what the capture wrote is written, would notice a change."""
        own = self.dictionary.handle
        keys = self._keys[::-1] if self._backwards else self._keys
        if self.handle.value == _SPOILED or (self.handle.value != DONE and list(own.table) != keys):
            return True
        if own.real is None or not own.dirty:
            return False
        return list(own.first_table if own.by_place else namespace.keys_of(own.real)) != list(own.table)


def _iterator_at(view: Any, backwards: bool, gone: int) -> Any:
    return iterator_state.skip(reversed(view) if backwards else iter(view), gone)


@wraps(*_ITERATOR_TYPES.values())
def wrap_dict_iterator(tx: Tx, value: Any, source: Source | None) -> Var:
    """Position and dictionary are read without moving the iterator, and guarded."""
    state = _C.iterator_state(value)
    if state is None or source is None or state[1] < 0:
        return wrap_opaque_iterator(tx, value, source)
    if tx.capture.moves(source, state[1]):
        return wrap_opaque_iterator(tx, value, source)
    known = tx.heap.known(state[0])
    if known is not None and known.dirty:  # whether it changed its size since it was made is CPython's to say
        return wrap_opaque_iterator(tx, value, source)
    tx.guard("type", source, type(value))
    tx.guard("iterator", source, state[1])
    part = next(part for part, cls in _ITERATOR_TYPES.items() if cls is type(value))
    handle = tx.heap.handle_of(value, source)
    handle.value = state[1]
    found: Any = tx.make.from_value(state[0], source.child(IteratorSource, type(value).__name__))
    dictionary: Any = storage(found)
    return DictIteratorVariable(tx, dictionary, part, handle=handle, source=source)


@wraps(*_VIEW_TYPES.values())
def wrap_dict_view(tx: Tx, value: Any, source: Source | None) -> Var:
    """A view from outside: its dictionary cannot be named by a source."""
    tx.fail(Reason.UNSUPPORTED_VALUE, "a dictionary view made outside the captured code")


class MappingProxyVariable(BuiltinObjectVariable):
    """``types.MappingProxyType(mapping)`` made by the program: asks its mapping.

    Attributes:
        mapping: what it shows.
    """

    __slots__ = ("mapping",)
    models = type(type.__dict__)

    def __init__(self, mapping: VariableTracker, source: Source | None = None) -> None:
        self.source = source
        self.mapping: Final = mapping

    def children(self) -> tuple[Var, ...]:
        """What it holds."""
        return (self.mapping,)

    def python_type(self, tx: Tx) -> type:
        return self.models

    def length(self, tx: Tx) -> VariableTracker:
        return items.length(tx, self.mapping)

    def truth(self, tx: Tx) -> VariableTracker | bool:
        return operators.truth(tx, items.length(tx, self.mapping))

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        return items.getitem(tx, self.mapping, key)

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        return operators.contains(tx, item, self.mapping)

    def iter_(self, tx: Tx) -> VariableTracker:
        return iteration.iter_(tx, self.mapping)

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        right = other.mapping if isinstance(other, MappingProxyVariable) else other
        return operators.compare(tx, op, self.mapping, right)

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        right = other.mapping if isinstance(other, MappingProxyVariable) else other
        return operators.binary(tx, op, self.mapping, right) if op == "|" else NOT_IMPLEMENTED

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        return operators.binary(tx, op, other, self.mapping) if op == "|" else NOT_IMPLEMENTED

    def inplace(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if op == "|":
            tx.raise_(TypeError, "'|=' is not supported by mappingproxy; use '|' instead")
        return NOT_IMPLEMENTED

    def call_method(self, tx: Tx, name: str, args: Any, kwargs: Any) -> VariableTracker:
        if name in ("get", "keys", "values", "items", "copy", "__reversed__"):
            return cast(VariableTracker, calls.call_method(tx, self.mapping, name, args, kwargs))
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(self.models, [self.mapping])
