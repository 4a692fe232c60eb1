"""Sequences: what lists and tuples have in common, and tuples (named ones, `torch.Size`, torch's results),
which hold their items themselves. Mirrors Objects/tupleobject.c.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from typing import Any, Final, Generic, NoReturn, cast

import torch

from graphlift.protocol import Codegen, Tx, Var
from graphlift.sources import Source
from graphlift.variables.base import NOT_IMPLEMENTED, UNKNOWN, NotImplementedType, VariableTracker
from graphlift.variables.builder import makes, wraps, wraps_if
from graphlift.variables.builtin_object import (
    HostObjectVariable,
    KnownItemsVariable,
    constant,
    make_tuple,
    method,
)
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.folding import DEPTH_LIMIT, SIZE_LIMIT
from graphlift.variables.iterators import (
    TUPLE_ITERATOR,
    SequenceIteratorVariable,
)
from graphlift.variables.ranges import SliceVariable
from graphlift.variables.slots import iteration, operators, text
from graphlift.variables.slots.numbers import has_index, index_, position, repeat_count
from graphlift.variables.slots.type_lookup import made_tracker


class SequenceVariable(KnownItemsVariable):
    """What lists and tuples have in common."""

    __slots__ = ()

    def snapshot(self, tx: Tx, depth: int = 0) -> Any:
        if depth > DEPTH_LIMIT:
            return UNKNOWN
        values = []
        for item in self.items_now(tx):
            value = item.realize(tx).snapshot(tx, depth + 1)
            if value is UNKNOWN:
                return UNKNOWN
            values.append(value)
        return self._host(values)

    def _host(self, values: list[Any]) -> Any:
        raise NotImplementedError

    def _new(self, tx: Tx, items: Sequence[Var]) -> VariableTracker:
        """A sequence of the class that slicing and repetition give."""
        raise NotImplementedError

    def truth(self, tx: Tx) -> VariableTracker | bool:
        return bool(self.items_now(tx))

    def length(self, tx: Tx) -> VariableTracker:
        return constant(tx, len(self.items_now(tx)))

    def unpack(self, tx: Tx) -> list[VariableTracker]:
        return list(self.items_now(tx))

    def index_of(self, tx: Tx, key: VariableTracker) -> int | None:
        """The position that `key` names, None when it is out of range."""
        if isinstance(key, ConstantVariable) and type(key.value) is int and abs(key.value) < sys.maxsize:
            index = key.value
        else:
            if not has_index(tx, key):
                name = key.python_type(tx).__name__
                tx.raise_(TypeError, f"{self.models.__name__} indices must be integers or slices, not {name}")
            index = position(tx, key)
        length = len(self.items_now(tx))
        if index < 0:
            index += length
        return index if 0 <= index < length else None

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        if isinstance(key, SliceVariable):
            known = self.items_now(tx)
            start, stop, step = key.resolve(tx, len(known))
            return self._new(tx, [known[i] for i in range(start, stop, step)])
        index = self.index_of(tx, key)
        if index is None:
            tx.raise_(IndexError, f"{self.models.__name__} index out of range")
        return cast(VariableTracker, self.items_now(tx)[index])

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        return constant(tx, self._find(tx, item, 0, None) is not None)

    def _find(self, tx: Tx, item: VariableTracker, start: int, stop: int | None) -> int | None:
        """The first position between two at which an equal item is; user code may change a list meanwhile."""
        index = start
        while index < len(self.items_now(tx)) and (stop is None or index < stop):
            if operators.equal(tx, self.items_now(tx)[index], item):
                return index
            index += 1
        return None

    @method()
    def count(self, tx: Tx, item: VariableTracker) -> VariableTracker:
        """``count(item)``."""
        return constant(tx, sum(operators.equal(tx, other, item) for other in self.unpack(tx)))

    @method()
    def index(
        self,
        tx: Tx,
        item: VariableTracker,
        start: VariableTracker | None = None,
        stop: VariableTracker | None = None,
    ) -> VariableTracker:
        """``index(item, start, stop)``."""
        length = len(self.items_now(tx))
        first, last = (
            0 if start is None else index_(tx, start),
            length if stop is None else index_(tx, stop),
        )
        first, last = (max(at + length, 0) if at < 0 else at for at in (first, last))
        found = self._find(tx, item, first, last)
        if found is None:
            self._not_found(tx, item)
        return constant(tx, found)

    def _not_found(self, tx: Tx, item: VariableTracker) -> NoReturn:
        raise NotImplementedError

    def repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        times = repeat_count(tx, count)
        return self._new(tx, list(self._repeated(tx, times)))

    def _repeated(self, tx: Tx, times: int) -> list[Any]:
        known = self.items_now(tx)
        if len(known) * times > SIZE_LIMIT:
            iteration.too_long(tx, self)
        return list(known) * times

    @method("__repr__")
    def _repr(self, tx: Tx) -> VariableTracker:
        again = "(...)" if self.models is tuple else "[...]"
        return self.write(tx, lambda: self._written(text.reprs(tx, self.items_now(tx))), again)

    def _written(self, texts: list[str]) -> str:
        return f"[{', '.join(texts)}]"

    def compare_items(self, tx: Tx, op: str, other: SequenceVariable) -> VariableTracker:
        """Lexicographic comparison: the first pair that differs decides, else the lengths."""
        index = 0
        while index < len(self.items_now(tx)) and index < len(other.items_now(tx)):
            left, right = self.items_now(tx)[index], other.items_now(tx)[index]
            if not operators.equal(tx, left, right):
                if op in ("==", "!="):
                    return constant(tx, op == "!=")
                return operators.compare(tx, op, left, right)
            index += 1
        return operators.compare(tx, op, self.length(tx), other.length(tx))


class TupleVariable(SequenceVariable):
    """A tuple of a class that adds no behaviour but names.

    Attributes:
        items: what it holds.
        cls: its class.
        exact: whether it is a plain tuple, which what leaves it unchanged gives back as it is.
        existing: the constant of the program's code that it is, or None.
    """

    __slots__ = ("cls", "exact", "existing", "items")
    models = tuple

    def __init__(
        self,
        items: Sequence[Any],
        cls: type = tuple,
        source: Source | None = None,
        part: bool = False,
        existing: tuple[Any, ...] | None = None,
    ) -> None:
        """`part`: it is the builtin part of an object of a subclass, no object by itself."""
        self.source = source
        self.items: Final = tuple(items)
        self.cls: Final = cls
        self.exact: Final = cls is tuple and not part
        self.existing: Final = existing

    def python_type(self, tx: Tx) -> type:
        return self.cls

    def items_now(self, tx: Tx) -> tuple[Any, ...]:
        return self.items

    def children(self) -> Sequence[Var]:
        """What it holds."""
        return self.items

    def is_constant(self) -> bool:
        return self.cls in (tuple, torch.Size) and all(item.is_constant() for item in self.items)

    def as_constant(self) -> Any:
        return self._host([item.as_constant() for item in self.items])

    def _host(self, values: list[Any]) -> Any:
        if self.cls is tuple:
            return tuple(values)
        return torch.Size(values) if self.cls is torch.Size else UNKNOWN

    def _new(self, tx: Tx, items: Sequence[Var]) -> VariableTracker:
        return make_tuple(tx, items, self.cls if self.cls is torch.Size else tuple)

    def hash_key(self, tx: Tx) -> Hashable:
        return tuple([item.realize(tx).hash_key(tx) for item in self.items])

    def store_key(self, tx: Tx) -> Hashable:
        return tuple([item.realize(tx).store_key(tx) for item in self.items])

    def iter_(self, tx: Tx) -> VariableTracker:
        return SequenceIteratorVariable(self, TUPLE_ITERATOR)

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        if (
            isinstance(key, SliceVariable)
            and self.exact
            and key.resolve(tx, len(self.items))
            == (
                0,
                len(self.items),
                1,
            )
        ):
            return self
        return super().getitem(tx, key)

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        beneath = storage(other)
        return self.compare_items(tx, op, beneath) if isinstance(beneath, TupleVariable) else NOT_IMPLEMENTED

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if self.cls is torch.Size and op == "+" and isinstance(other, TupleVariable):
            return make_tuple(tx, [*self.items, *other.items], torch.Size)
        return NOT_IMPLEMENTED

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if self.cls is torch.Size and op == "+" and isinstance(other, TupleVariable):
            return make_tuple(tx, [*other.items, *self.items], torch.Size)
        return NOT_IMPLEMENTED

    def concat(self, tx: Tx, other: VariableTracker) -> VariableTracker | NotImplementedType:
        beneath = storage(other)
        if not isinstance(beneath, TupleVariable):
            other.type_error(tx, 'can only concatenate tuple (not "{}") to tuple')
        if self.exact and not beneath.items:
            return self
        if beneath.exact and not self.items:
            return beneath
        return make_tuple(tx, [*self.items, *beneath.items])

    def repeat(self, tx: Tx, count: VariableTracker) -> VariableTracker | NotImplementedType:
        times = repeat_count(tx, count)
        if self.exact and (times == 1 or not self.items):
            return self
        return self._new(tx, list(self._repeated(tx, times)))

    def _not_found(self, tx: Tx, item: VariableTracker) -> NoReturn:
        tx.raise_(ValueError, "tuple.index(x): x not in tuple")

    def _written(self, texts: list[str]) -> str:
        if self.cls is torch.Size:
            return f"torch.Size([{', '.join(texts)}])"
        return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        fields: tuple[str, ...] = getattr(self.cls, "__match_args__", ())
        if self.cls in (tuple, torch.Size) or name not in fields:
            self.refuse(tx, f"attribute {name!r}")
        return cast(VariableTracker, self.items[fields.index(name)])

    @method("__repr__")
    def _repr(self, tx: Tx) -> VariableTracker:
        if hasattr(self.cls, "n_sequence_fields"):
            self.refuse(tx, "repr()")
        return super()._repr(tx)

    @method()
    def numel(self, tx: Tx) -> VariableTracker:
        """``torch.Size.numel``."""
        product: Any = constant(tx, 1)
        for item in self.items:
            product = operators.binary(tx, "*", product, item)
        return cast(VariableTracker, product)

    @method("__getnewargs__")
    def _newargs(self, tx: Tx) -> VariableTracker:
        return make_tuple(tx, [make_tuple(tx, self.items)])

    def reconstruct(self, codegen: Codegen) -> None:
        if self.existing is not None:
            codegen.load_const(self.existing)
            return
        if self.cls is tuple:
            for item in self.items:
                codegen(item)
            codegen.build("tuple", len(self.items))
            return
        build = self.cls if hasattr(self.cls, "n_sequence_fields") or self.cls is torch.Size else None
        plain = TupleVariable(self.items)
        if build is not None:
            codegen.call(build, [plain])
        else:
            cls = made_tracker(self.cls) or HostObjectVariable(self.cls)
            codegen.call(tuple.__new__, [cls, plain])


def storage(var: VariableTracker) -> VariableTracker:
    """The builtin part of an object of a class derived from a builtin container; itself for others."""
    beneath = getattr(var, "storage", None)
    return beneath if isinstance(beneath, VariableTracker) else var


# --- from outside, and made by the program ------------------------------------------------------------


def tuple_items(tx: Tx, value: tuple[Any, ...], source: Source | None) -> list[Var]:
    """The items of an existing tuple, lazily; type and length are guarded."""
    if source is None:
        return [tx.make.from_value(tuple.__getitem__(value, i), None) for i in range(tuple.__len__(value))]
    tx.guard("type", source, type(value))
    tx.guard("length", source, tuple.__len__(value))
    return [tx.make.lazy(tuple.__getitem__(value, i), source.item(i)) for i in range(tuple.__len__(value))]


@wraps(tuple, torch.Size)
def wrap_tuple(tx: Tx, value: tuple[Any, ...], source: Source | None) -> Var:
    """A tuple's items are read when used."""
    return TupleVariable(tuple_items(tx, value, source), type(value), source)


#: Names with underscores on both sides that a class derived from tuple may define and still be one that adds
#: names only: those that named tuples have, and those that every class has.
_NAMED_TUPLE_OWN: Final = frozenset(
    (
        "__annotations__",
        "__class_getitem__",
        "__doc__",
        "__firstlineno__",
        "__getnewargs__",
        "__init_subclass__",
        "__match_args__",
        "__module__",
        "__new__",
        "__orig_bases__",
        "__parameters__",
        "__replace__",
        "__repr__",
        "__slots__",
        "__static_attributes__",
    )
)


def adds_names_only(cls: type) -> bool:
    """Whether a class derived from tuple leaves all behaviour to tuple (named tuples, torch's results)."""
    if cls.__dictoffset__ or type(cls) is not type:
        return False
    if hasattr(cls, "n_sequence_fields"):
        return True
    for base in cls.__mro__:
        if base in (tuple, object, Generic):
            continue
        if any(name[:2] == name[-2:] == "__" and name not in _NAMED_TUPLE_OWN for name in base.__dict__):
            return False
    return hasattr(cls, "_fields")


@wraps_if(lambda value: issubclass(type(value), tuple) and adds_names_only(type(value)), order=50)
def wrap_named_tuple(tx: Tx, value: tuple[Any, ...], source: Source | None) -> Var:
    """A named tuple or a result of a torch function."""
    return wrap_tuple(tx, value, source)


@makes("tuple")
def new_tuple(tx: Tx, items: Sequence[Var], cls: type = tuple) -> Var:
    """See `protocol.Make.tuple`."""
    return TupleVariable(items, cls)
