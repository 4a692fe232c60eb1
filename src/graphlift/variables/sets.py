"""Sets and frozensets. Mirrors Objects/setobject.c.

A set's elements are the `table` of its handle. The order in which a set gives its elements depends on how it
came to be: the handle's `value` keeps that history for sets of plain constants, so that a real set with the
same history tells the order. Where it cannot be known, everything but iteration in order still works.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar, Final, cast

from graphlift.errors import Unsupported
from graphlift.heap import Handle, Table
from graphlift.operators import COMPARE
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import Source
from graphlift.variables import keys
from graphlift.variables.base import NOT_IMPLEMENTED, UNKNOWN, NotImplementedType, VariableTracker
from graphlift.variables.builder import makes, wraps
from graphlift.variables.builtin_object import (
    BuiltinObjectVariable,
    KnownItemsVariable,
    Method,
    constant,
    make_list,
    make_tuple,
    method,
)
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.dict_views import DictViewVariable
from graphlift.variables.folding import DEPTH_LIMIT, FOLDABLE
from graphlift.variables.mappings import DictVariable
from graphlift.variables.namespace import is_plain_key
from graphlift.variables.sequences import TupleVariable, storage
from graphlift.variables.set_iterators import SetIteratorVariable
from graphlift.variables.set_order import (
    BARE,
    Existing,
    History,
    added_one_by_one,
    is_plain,
    moves_place,
    replay,
)
from graphlift.variables.slots import iteration, text


class SetVariable(BuiltinObjectVariable):
    """A set, or the set beneath an object of a derived class.

    Attributes:
        handle: its elements (`table`). Its `value` is, for a set made by the program, the history (None where
            that is not known), for an existing one what was done to it: (real method, arguments).
        owner: the object of a derived class that this is the set beneath of, or None.
    """

    __slots__ = ("handle", "owner")
    models: ClassVar[type[Any]] = set

    def __init__(
        self, handle: Handle, source: Source | None = None, owner: VariableTracker | None = None
    ) -> None:
        self.source = source
        self.handle: Final = handle
        self.owner: Final = owner

    def whole(self) -> Var:
        return self if self.owner is None else self.owner

    def python_type(self, tx: Tx) -> type:
        return self.models

    def table(self, tx: Tx) -> Table:
        """All elements, in no order that counts; not to be changed by the caller."""
        table = self.handle.table
        return self._load(tx) if table is None else table

    def _load(self, tx: Tx) -> Table:
        """Read an existing set: its elements in their present order are guarded as a whole."""
        handle = self.handle
        elements = list(self.models.__iter__(handle.real))
        if handle.source is not None:
            tx.guard("set_items", handle.source, tuple(elements))
        if all(is_plain_key(element) for element in elements):
            table: Table = {}
            for element in elements:
                var = tx.make.from_value(element, None)
                table[var.realize(tx).hash_key(tx)] = (var, var)
        else:
            table = keys.load_elements(tx, handle, elements, is_plain_key)
        handle.table = table
        handle.complete = True
        return table

    def children(self) -> list[Var]:
        """What it holds."""
        return [entry[0] for entry in (self.handle.table or {}).values()]

    def snapshot(self, tx: Tx, depth: int = 0) -> Any:
        if depth > DEPTH_LIMIT:
            return UNKNOWN
        known = self._in_order(tx)
        if known is None or not all(type(key) in FOLDABLE for key in known):
            return UNKNOWN
        return self._host(known)

    def _host(self, known: set[Any]) -> Any:
        return known

    def hash_key(self, tx: Tx) -> Hashable:
        return self.type_error(tx, "unhashable type: '{}'")

    # --- order -----------------------------------------------------------------------------------

    def _in_order(self, tx: Tx) -> set[Any] | None:
        """A real set with the same history, or None where the history is not known."""
        table = self.table(tx)
        if self.handle.real is not None:
            known = not self.handle.dirty and all(type(key) in FOLDABLE for key in table)
            return cast("set[Any]", self.handle.real) if known else None
        history: History | None = self.handle.value
        return None if history is None else replay(history)

    def _origin(self, tx: Tx) -> Any:
        """What the history of a derived set starts from; None where this one's is not known."""
        return self.handle.value if self.handle.real is None else self._in_order(tx)

    def unordered(self, tx: Tx) -> list[VariableTracker]:
        """The elements where their order does not matter."""
        return [entry[0] for entry in self.table(tx).values()]

    def unpack(self, tx: Tx) -> list[VariableTracker]:
        table = self.table(tx)
        if len(table) < 2 or (self.handle.real is not None and not self.handle.dirty):
            return self.unordered(tx)  # an existing set was loaded in its order
        known = self._in_order(tx)
        if known is None:
            tx.fail(Reason.UNSUPPORTED_OPERATION, "iteration over a set whose order is not known")
        return [cast(VariableTracker, table[key][0]) for key in known]

    def iter_(self, tx: Tx) -> VariableTracker:
        return SetIteratorVariable(self, self.handle, self.unpack(tx))

    # --- reading -----------------------------------------------------------------------------------

    def truth(self, tx: Tx) -> VariableTracker | bool:
        return bool(self.table(tx))

    def length(self, tx: Tx) -> VariableTracker:
        return constant(tx, len(self.table(tx)))

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        return constant(tx, self._located(tx, item) in self.table(tx))

    def _located(self, tx: Tx, item: VariableTracker) -> Hashable:
        """What stands for the element that Python finds here for `item`."""
        table = self.table(tx)
        identity = _element_key(tx, item)
        if keys.ids_met(tx):
            keys.check_ids(tx, table, identity)
        return keys.located(tx, self.handle, item, identity) if table else identity

    @method()
    def copy(self, tx: Tx) -> VariableTracker:
        """``set.copy``."""
        origin = self._origin(tx)
        made = self._fresh(tx)
        made.handle.table = dict(self.table(tx))
        made.handle.value = None if origin is None else (("=", (origin, "copy", None)),)
        return made

    @method("__repr__")
    def _repr(self, tx: Tx) -> VariableTracker:
        self._check_exact(tx, "repr()")
        return self.write(
            tx, lambda: self._written(text.reprs(tx, self.unpack(tx))), f"{self.models.__name__}(...)"
        )

    def _written(self, texts: list[str]) -> str:
        if not texts:
            return f"{self.models.__name__}()"
        shown = f"{{{', '.join(texts)}}}"
        return shown if self.models is set else f"frozenset({shown})"

    @method("__reduce__", "__reduce_ex__")
    def _reduce(self, tx: Tx, protocol: VariableTracker | None = None) -> VariableTracker:
        self._check_exact(tx, "__reduce__()")
        kind = tx.make.from_value(self.models, None)
        parts = [kind, make_tuple(tx, [make_list(tx, self.unpack(tx))]), constant(tx, None)]
        return make_tuple(tx, parts)

    def _fresh(self, tx: Tx) -> SetVariable:
        """An empty set of the class that operators give, to be filled at once."""
        return cast(SetVariable, tx.make.set([], self.models))

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        others = _elements_of_set(tx, other)
        if others is None:
            return NOT_IMPLEMENTED
        return constant(tx, COMPARE[op](self.table(tx).keys(), self._aligned(tx, others).keys()))

    def _aligned(self, tx: Tx, found: Table) -> Table:
        """Elements of another table, those that this set holds standing as they do here."""
        self.table(tx)
        return keys.aligned(tx, self.handle, found)

    def _identity(self, tx: Tx, item: Var) -> Hashable:
        """As `_located`, for an item of an iterable: a set among them cannot be hashed."""
        operand: VariableTracker = item.realize(tx)
        identity = operand.hash_key(tx)
        return keys.located(tx, self.handle, operand, identity) if self.table(tx) else identity

    @method()
    def isdisjoint(self, tx: Tx, other: VariableTracker) -> VariableTracker:
        """``set.isdisjoint``."""
        others = _elements_of_set(tx, other.realize(tx))
        if others is not None:
            return constant(tx, not self.table(tx).keys() & self._aligned(tx, others).keys())
        table = self.table(tx)
        return constant(tx, not any(self._identity(tx, item) in table for item in iteration.each(tx, other)))

    @method()
    def issubset(self, tx: Tx, other: VariableTracker) -> VariableTracker:
        """``set.issubset``."""
        return constant(tx, self.table(tx).keys() <= self._aligned(tx, _elements(tx, other)).keys())

    @method()
    def issuperset(self, tx: Tx, other: VariableTracker) -> VariableTracker:
        """``set.issuperset``."""
        others = _elements_of_set(tx, other.realize(tx))
        if others is not None:
            return constant(tx, self.table(tx).keys() >= self._aligned(tx, others).keys())
        table = self.table(tx)
        return constant(tx, all(self._identity(tx, item) in table for item in iteration.each(tx, other)))

    @method()
    def union(self, tx: Tx, *others: VariableTracker) -> VariableTracker:
        """``set.union``."""
        made = cast(SetVariable, self.copy(tx)) if self.models is set else self._fresh(tx)
        for other in others if self.models is set else (self, *others):
            made.merge(tx, other)
        return made

    def _check_exact(self, tx: Tx, what: str) -> None:
        """Break where the real method shows or makes the derived class that this is the set beneath of."""
        if self.owner is not None:
            self.refuse(tx, f"{what} of a derived class,")

    @method()
    def intersection(self, tx: Tx, *others: VariableTracker) -> VariableTracker:
        """``set.intersection``."""
        return self._derived(tx, "intersection", others)

    @method()
    def difference(self, tx: Tx, *others: VariableTracker) -> VariableTracker:
        """``set.difference``."""
        return self._derived(tx, "difference", others)

    @method()
    def symmetric_difference(self, tx: Tx, other: VariableTracker) -> VariableTracker:
        """``set.symmetric_difference``."""
        return self._derived(tx, "symmetric_difference", (other,))

    def _derived(self, tx: Tx, name: str, others: Sequence[VariableTracker]) -> SetVariable:
        """The set that a method makes of this one and others."""
        table = dict(self.table(tx))
        origin = self._origin(tx)
        for each in others:
            other = _fixed(tx, each)
            elements = _elements(tx, other)
            found = self._aligned(tx, elements)
            if name == "symmetric_difference":
                new = {key: entry for key, entry in found.items() if key not in table}
                table = {key: entry for key, entry in table.items() if key not in found} | new
            elif name == "difference":
                table = {key: entry for key, entry in table.items() if key not in found}
            else:  # of equal elements the one stays that is in the smaller set, or in an iterable
                if self._is_smaller(tx, table, other):
                    table = {key: entry for key, entry in table.items() if key in found}
                else:
                    both = zip(elements.items(), found, strict=True)
                    table = {key: entry for (key, entry), here in both if here in table}
            argument = self._argument(tx, name, other, elements, found)
            origin = None if origin is None or argument is None else (("=", (origin, name, argument)),)
        result = self._fresh(tx)
        result.handle.table = table
        result.handle.value = origin if isinstance(origin, tuple) else None
        return result

    @staticmethod
    def _argument(tx: Tx, name: str, other: Var, elements: Table, found: Table) -> Any:
        """What a history says of `other`, elements standing as in `found` where this set has equal ones."""
        if keys.open_parts(elements):
            if name == "difference" and _is_set(tx, other):
                return set(found)  # it is only asked for what it holds
            if list(elements) != list(found):
                return None
        return _plain_argument(tx, other)

    @staticmethod
    def _is_smaller(tx: Tx, table: Table, other: Var) -> bool:
        return _is_set(tx, other) and len(_elements(tx, other)) > len(table)

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        name = _OPERATORS.get(op)
        if name is None or _elements_of_set(tx, other) is None:
            return NOT_IMPLEMENTED
        if name == "union":
            return self.union(tx, other)
        return self._derived(tx, name, (other,))

    # --- changing ------------------------------------------------------------------------------------

    def inplace(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        name = _OPERATORS.get(op)
        if name is None or self.models is frozenset or _elements_of_set(tx, other) is None:
            return NOT_IMPLEMENTED
        if name == "union":
            self.merge(tx, other)
        else:
            self._become(tx, name, other)
        return self

    def _become(self, tx: Tx, name: str, other: VariableTracker) -> None:
        """Take over what the method `name` makes of this set (its ``_update`` form)."""
        other = _fixed(tx, other)
        table = dict(self._derived(tx, name, (other,)).table(tx))
        elements = _elements(tx, other)
        found = self._aligned(tx, elements)
        snapshot = self._snapshot(tx, other, found)
        argument = self._argument(tx, name, other, elements, found)
        self._note(tx, f"{name}_update", argument, snapshot, identities=found)
        tx.heap.set_table(self.handle, table)

    def _note(self, tx: Tx, name: str, plain: Any, *args: Var, identities: Iterable[Hashable] = ()) -> None:
        """Note what is about to be done.

        Arguments:
            name: the method.
            plain: its argument as a host value for the history; None: the history is lost.
            args: its arguments for doing it for real, where the set existed before.
            identities: what stands for the keys that the arguments hold.
        """
        self.table(tx)
        handle = self.handle
        tx.heap.touch(handle)
        if handle.real is not None:
            met = [*self.table(tx), *identities]
            done = (getattr(set, name), args, tuple(keys.open_parts(met)))
            tx.heap.set_slot(handle, "value", (*(handle.value or ()), done))
            return
        history = handle.value
        known = history is not None and (plain is not None or name in BARE)
        tx.heap.set_slot(handle, "value", (*history, (name, plain)) if known else None)

    def merge(self, tx: Tx, other: VariableTracker) -> None:
        """Add all elements of an iterable; those of one that fails half-way stay."""
        if not _is_fixed(tx, other):
            for item in iteration.each(tx, other):
                self.add(tx, item)
            return
        elements = _elements(tx, other)
        found = self._aligned(tx, elements)
        argument = self._argument(tx, "update", other, elements, found)
        if argument is None and all(map(keys.is_told, found)) and not _is_set(tx, other):
            argument = list(found)
        self._note(tx, "update", argument, self._snapshot(tx, other, found), identities=found)
        for key, entry in found.items():
            if key not in self.table(tx):
                tx.heap.put(self.handle, key, entry)

    def _snapshot(self, tx: Tx, other: Var, found: Table) -> Var:
        """What the set is updated with as it is now: of another set a copy, of any other iterable its items.

        Arguments:
            found: the elements, aligned.
        """
        own = self.table(tx)
        items = [own.get(identity, entry)[0] for identity, entry in found.items()]
        if not _is_set(tx, other):
            return tx.make.tuple(items)
        if not keys.open_parts(found):
            return tx.make.set(items, frozenset)
        made = cast(SetVariable, tx.make.set([], frozenset))
        made.handle.table = {identity: own.get(identity, entry) for identity, entry in found.items()}
        made.handle.value = None
        return made

    @method()
    def add(self, tx: Tx, item: VariableTracker) -> None:
        """``set.add``."""
        item = item.realize(tx)
        self.table(tx)
        key = keys.located(tx, self.handle, item, item.store_key(tx))
        if key in self.table(tx):
            return
        self._note(tx, "add", key if keys.is_told(key) else None, item, identities=(key,))
        tx.heap.put(self.handle, key, (item, item))

    @method()
    def discard(self, tx: Tx, item: VariableTracker) -> None:
        """``set.discard``."""
        self._discard(tx, item)

    def _discard(self, tx: Tx, item: VariableTracker) -> bool:
        key = self._located(tx, item)
        found = key in self.table(tx)
        if found:
            element = self.table(tx)[key][0]
            self._note(tx, "discard", key if keys.is_told(key) else None, element)
            tx.heap.drop(self.handle, key)
        return found

    @method()
    def remove(self, tx: Tx, item: VariableTracker) -> None:
        """``set.remove``."""
        if not self._discard(tx, item):
            tx.raise_(KeyError, item)

    @method()
    def pop(self, tx: Tx) -> VariableTracker:
        """``set.pop``: the first element behind the place where the last one was taken.

        CPython keeps that place, so that a pop is done for real as one even where there is no choice.
        """
        if not self.table(tx):
            tx.raise_(KeyError, "pop from an empty set")
        if len(self.table(tx)) == 1:
            (key,) = self.table(tx)
        elif self.handle.real is not None or self.handle.value is None:
            tx.fail(Reason.UNSUPPORTED_OPERATION, "set.pop() of a set whose order is not known")
        else:
            made = self._in_order(tx)
            assert made is not None
            key = made.pop()
        item: VariableTracker = self.table(tx)[key][0]
        self._note(tx, "pop", None)
        tx.heap.drop(self.handle, key)
        return item

    @method()
    def clear(self, tx: Tx) -> None:
        """``set.clear``."""
        self._note(tx, "clear", None)
        tx.heap.set_table(self.handle, {})
        if self.handle.real is None and self.handle.value is not None and not moves_place(self.handle.value):
            tx.heap.set_slot(self.handle, "value", ())

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Do to the existing set what the program did, which leaves it in the order that it would have."""
        for function, args, met in handle.value or ():
            if met:
                keys.run_stored(codegen, function, [self, *args], met)
            else:
                codegen.run(function, [self, *args])

    @method("__init__")
    def _init(self, tx: Tx, *args: VariableTracker) -> None:
        if len(args) > 1:
            name = self.models.__name__ if self.owner is None else self.owner.python_type(tx).__name__
            tx.raise_(TypeError, f"{name} expected at most 1 argument, got {len(args)}")
        if self.table(tx):
            self.clear(tx)
        self.update(tx, *args)

    @method()
    def update(self, tx: Tx, *others: VariableTracker) -> None:
        """``set.update``."""
        for other in others:
            self.merge(tx, other.realize(tx))

    @method()
    def intersection_update(self, tx: Tx, *others: VariableTracker) -> None:
        """``set.intersection_update``."""
        for other in others:
            self._become(tx, "intersection", other)

    @method()
    def difference_update(self, tx: Tx, *others: VariableTracker) -> None:
        """``set.difference_update``."""
        for other in others:
            if _is_fixed(tx, other):
                self._become(tx, "difference", other)
            else:  # what an iterable that fails half-way has named is gone
                for item in iteration.each(tx, other):
                    self.discard(tx, item.realize(tx))

    @method()
    def symmetric_difference_update(self, tx: Tx, other: VariableTracker) -> None:
        """``set.symmetric_difference_update``."""
        self._become(tx, "symmetric_difference", other)

    def reconstruct(self, codegen: Codegen) -> None:
        table = self.handle.table or {}
        history: History | None = self.handle.value if self.handle.real is None else None
        added = None if history is None else added_one_by_one(history)
        if history is not None and added is None and is_plain(history) and not keys.open_parts(table):
            codegen.call(replay, [ConstantVariable(history)])
            return
        if keys.open_parts(table):
            codegen.call(set, [])
            codegen.later(lambda: self.fill(codegen, self))
            return
        order = self._adding_order()
        for key in order:
            codegen(table[key][0])
        codegen.build("set", len(order))

    def _adding_order(self) -> list[Hashable]:
        """An order of adding that leaves the elements in the set's order, as far as that is known."""
        history: History | None = self.handle.value if self.handle.real is None else None
        if history is None:
            return list(self.handle.table or {})
        added = added_one_by_one(history)
        return list(replay(history)) if added is None else added

    def fill(self, codegen: Codegen, made: Var) -> None:
        """Emit the adding of the elements to `made`, an empty set."""
        history: History | None = self.handle.value
        if history is not None and added_one_by_one(history) is None:
            self._do_again(codegen, history, made)
            return
        order = self._adding_order()
        for key in order:
            keys.run_stored(codegen, set.add, [made, self._element(key)], order)

    def _do_again(self, codegen: Codegen, history: History, made: Var) -> None:
        """Emit what was done to the set since it was empty, so that it has the order that it would have."""
        for name, argument in history:
            one_by_one = name == "update" and isinstance(argument, list | tuple | range | str)
            if name not in ("add", "discard") and not one_by_one:
                raise Unsupported(Reason.UNSUPPORTED_VALUE, "a set whose order depends on other sets")
            met = list(argument) if one_by_one else [argument]
            identities = [*(self.handle.table or {}), *met]
            for key in met:
                function = set.discard if name == "discard" else set.add
                keys.run_stored(codegen, function, [made, self._element(key)], identities)

    def _element(self, identity: Hashable) -> Var:
        """An element that is in the set, or was."""
        entry = (self.handle.table or {}).get(identity)
        if entry is not None:
            return cast(Var, entry[0])
        if type(identity) is keys.OpenKey:
            return identity.var
        if keys.open_parts([identity]):
            raise Unsupported(Reason.UNSUPPORTED_VALUE, "a set from which a tuple of objects was taken out")
        return ConstantVariable(identity)


class FrozenSetVariable(SetVariable):
    """A frozenset."""

    __slots__ = ()
    models = frozenset
    methods: ClassVar[dict[str, Method]] = {
        name: model
        for name, model in SetVariable.methods.items()
        if hasattr(frozenset, name) and name not in ("__init__", "copy")
    }

    def _host(self, known: set[Any]) -> Any:
        return frozenset(known)

    def hash_key(self, tx: Tx) -> Hashable:
        return frozenset(self.table(tx))

    @method("copy")
    def _copy(self, tx: Tx) -> VariableTracker:
        return self if self.owner is None else self.union(tx)

    def reconstruct(self, codegen: Codegen) -> None:
        self.construct(codegen, frozenset, [])

    def construct(self, codegen: Codegen, function: Any, args: Sequence[Var]) -> None:
        """Emit the call that makes the frozenset: of `function` with `args` and the elements."""
        table = self.handle.table or {}
        if keys.open_parts(table):
            elements = TupleVariable([entry[0] for entry in table.values()])
            keys.call_stored(codegen, function, [*args, elements], table)
        else:
            codegen.call(function, [*args, SetVariable(self.handle)])

    def fill(self, codegen: Codegen, made: Var) -> None:
        """Nothing: the elements are there from the beginning."""


def _element_key(tx: Tx, item: VariableTracker) -> Hashable:
    """The identity of an element; a set is looked for as the frozenset of its elements."""
    item = item.realize(tx)
    if isinstance(item, SetVariable):
        return frozenset(item.table(tx))
    return item.hash_key(tx)


def _is_set(tx: Tx, var: Var) -> bool:
    return isinstance(storage(var.realize(tx)), SetVariable)


def _elements_of_set(tx: Tx, other: VariableTracker) -> Table | None:
    """The elements of a set or frozenset, None for anything else."""
    beneath = storage(other)
    return beneath.table(tx) if isinstance(beneath, SetVariable) else None


def _elements(tx: Tx, other: Var) -> Table:
    """The elements of any iterable, by identity."""
    operand: VariableTracker = other.realize(tx)
    beneath = storage(operand)
    if isinstance(beneath, SetVariable):
        return beneath.table(tx)
    found: Table = {}
    for item in iteration.unpack(tx, operand):
        realized = item.realize(tx)
        identity = realized.store_key(tx)
        if keys.any_met(tx):
            elements = Handle()
            elements.table = found
            identity = keys.located(tx, elements, realized, identity)
        found.setdefault(identity, (realized, realized))
    return found


def _fixed(tx: Tx, other: Var) -> VariableTracker:
    """An iterable that can be gone through more than once."""
    operand: VariableTracker = other.realize(tx)
    return operand if _is_fixed(tx, operand) else make_tuple(tx, iteration.unpack(tx, operand))


def _is_fixed(tx: Tx, other: Var) -> bool:
    operand: VariableTracker = other.realize(tx)
    return isinstance(storage(operand), SetVariable | DictVariable | DictViewVariable | KnownItemsVariable)


def in_the_order_of(value: frozenset[Any], made: Var) -> Var:
    """`made`, a set with the elements of `value`, which gives them in the same order."""
    assert isinstance(made, SetVariable)
    if made.handle.value is not None:
        made.handle.value = (("=", (value, "copy", None)),)
    return made


def _plain_argument(tx: Tx, other: Var) -> Any:
    """A host value that has the same effect on the order of a set that is updated with it, or None."""
    beneath = storage(other.realize(tx))
    if isinstance(beneath, SetVariable):
        known = beneath._in_order(tx)
        return known if known is None or beneath.handle.real is None else Existing(known)
    if isinstance(beneath, DictViewVariable):
        values = [item.realize(tx).snapshot(tx) for item in beneath.unpack(tx)]
        return None if UNKNOWN in values else values
    value = beneath.snapshot(tx)
    if value is UNKNOWN or not isinstance(value, list | tuple | dict | range | str):
        return None
    return value


_OPERATORS: Final = {"&": "intersection", "|": "union", "-": "difference", "^": "symmetric_difference"}

# --- from outside, and made by the program ------------------------------------------------------------


@wraps(set, frozenset)
def wrap_set(tx: Tx, value: Any, source: Source | None) -> Var:
    """Its type is guarded now, its elements when they are asked for."""
    if source is not None:
        tx.guard("type", source, type(value))
    handle = tx.heap.handle_of(value, source)
    handle.complete = False
    var = (SetVariable if type(value) is set else FrozenSetVariable)(handle, source)
    handle.tracker = var
    return var


@makes("set")
def new_set(tx: Tx, items: Sequence[Var], cls: type = set) -> Var:
    """See `protocol.Make.set`."""
    handle = Handle()
    handle.table = {}
    history: list[Any] | None = []
    for item in items:
        element = item.realize(tx)
        key = keys.located(tx, handle, element, element.store_key(tx))
        handle.table.setdefault(key, (element, element))
        if history is not None and keys.is_told(key):
            history.append(key)
        else:
            history = None
    handle.value = None if history is None else ((("update", history),) if history else ())
    var = (SetVariable if cls is set else FrozenSetVariable)(handle)
    handle.tracker = var
    return var
