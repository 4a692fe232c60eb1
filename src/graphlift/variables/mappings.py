"""Dictionaries: dict, OrderedDict, defaultdict, and the dict beneath objects of derived classes. Mirrors
Objects/dictobject.c and Modules/_collectionsmodule.c.

Contents are the `table` of a handle, existing ones read through `namespace.py` key by key. Views and their
iterators are in `dict_views.py`.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Final, cast

from graphlift.heap import Handle, Table
from graphlift.polyfills import mappings as polyfills
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import SlotSource, Source
from graphlift.variables import keys, namespace
from graphlift.variables.base import NOT_IMPLEMENTED, UNKNOWN, NotImplementedType, VariableTracker
from graphlift.variables.builder import makes, wraps
from graphlift.variables.builtin_object import (
    BuiltinObjectVariable,
    cannot_cycle,
    constant,
    make_tuple,
    method,
)
from graphlift.variables.dict_views import DictIteratorVariable, DictViewVariable, Part, refuse_open_order
from graphlift.variables.folding import DEPTH_LIMIT
from graphlift.variables.sequences import storage
from graphlift.variables.slots import attributes, calls, operators, text
from graphlift.variables.slots.truth import is_true


def named_entries(tx: Tx, value: VariableTracker) -> list[tuple[str, tuple[Any, Any]]] | None:
    """Names and (key, value) of a plain dictionary that can be keyword arguments; None for anything else,
    and for a dictionary with other keys than strings."""
    if type(value) is not DictVariable or value.owner is not None or keys.any_met(tx):
        return None
    entries = list(value.table(tx).items())
    if all(type(name) is str for name, _ in entries):
        return cast("list[tuple[str, tuple[Any, Any]]]", entries)
    return None


def merge_named(tx: Tx, into: VariableTracker, more: VariableTracker) -> bool:
    """Add the entries of one plain dictionary of names to another; False, with nothing done, where that is
    not what they are, or a name is there already."""
    entries = named_entries(tx, more)
    if entries is None or type(into) is not DictVariable or into.handle.real is not None:
        return False
    if any(namespace.has(tx, into.handle, name) for name, _ in entries):
        return False
    for name, (key, value) in entries:
        namespace.store(tx, into.handle, name, key, value)
    return True


class DictVariable(BuiltinObjectVariable):
    """A dictionary, or the dictionary beneath an object of a class derived from dict.

    Attributes:
        handle: the contents in the heap.
        owner: the object of a derived class that this is the storage of, or None.
    """

    __slots__ = ("handle", "owner")
    models: ClassVar[type[Any]] = dict
    #: The class of a copy.
    copies_as: ClassVar[type[Any]] = dict

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
        """All entries, in order; not to be changed by the caller."""
        namespace.complete(tx, self.handle)
        table = self.handle.table
        assert table is not None
        return table

    def children(self) -> list[Var]:
        """What it holds."""
        entries = (self.handle.table or {}).values()
        return [part for entry in entries for part in entry]

    def snapshot(self, tx: Tx, depth: int = 0) -> Any:
        if depth > DEPTH_LIMIT or self.models is not dict:
            return UNKNOWN
        found: dict[Any, Any] = {}
        for key, value in self.table(tx).values():
            known = [part.realize(tx).snapshot(tx, depth + 1) for part in (key, value)]
            if known[0] is UNKNOWN or known[1] is UNKNOWN:
                return UNKNOWN
            found[known[0]] = known[1]
        return found

    def hash_key(self, tx: Tx) -> Hashable:
        return self.type_error(tx, "unhashable type: '{}'")

    # --- reading -------------------------------------------------------------------------------

    def find(self, tx: Tx, key: VariableTracker) -> VariableTracker | None:
        """The value under a key, or None."""
        return self._value(tx, self._located(tx, key, key.hash_key(tx)))

    def _value(self, tx: Tx, identity: Hashable) -> VariableTracker | None:
        return cast("VariableTracker | None", namespace.lookup(tx, self.handle, identity))

    def _check_ids(self, tx: Tx, identity: Hashable) -> None:
        handle = self.handle
        if handle.complete or not keys.holds_id(identity):
            keys.check_ids(tx, handle.table or (), identity)
            return
        keys.check_ids(tx, dict.__iter__(handle.real), identity)  # where it breaks nothing need be guarded
        keys.check_ids(tx, self.table(tx), identity)

    def _located(self, tx: Tx, key: VariableTracker, identity: Hashable) -> Hashable:
        """What stands for the key that Python finds here for `key`; `identity` where it finds none."""
        if keys.ids_met(tx):
            self._check_ids(tx, identity)
        if keys.any_met(tx):
            if keys.is_open(identity):
                self.table(tx)
            return keys.located(tx, self.handle, key, identity)
        return identity

    def truth(self, tx: Tx) -> VariableTracker | bool:
        return bool(self.table(tx))

    def length(self, tx: Tx) -> VariableTracker:
        return constant(tx, len(self.table(tx)))

    def getitem(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        value = self.find(tx, key)
        return self.missing(tx, key) if value is None else value

    def missing(self, tx: Tx, key: VariableTracker) -> VariableTracker:
        """What ``d[key]`` gives when there is no such key (``dict_subscript``)."""
        if self.owner is not None:
            hook = attributes.lookup_special(tx, self.owner, "__missing__")
            if hook is not None:
                return cast(VariableTracker, calls.call(tx, hook, [key], {}))
        tx.raise_(KeyError, key)

    def contains(self, tx: Tx, item: VariableTracker) -> VariableTracker | NotImplementedType:
        return constant(tx, namespace.has(tx, self.handle, self._located(tx, item, item.hash_key(tx))))

    def keys_now(self, tx: Tx) -> list[VariableTracker]:
        """The key trackers, in order."""
        return [entry[0] for entry in self.table(tx).values()]

    def unpack(self, tx: Tx) -> list[VariableTracker]:
        return self.keys_now(tx)

    def iter_(self, tx: Tx) -> VariableTracker:
        return DictIteratorVariable(tx, self, Part.KEYS)

    @method("__reversed__")
    def _reversed(self, tx: Tx) -> VariableTracker:
        return DictIteratorVariable(tx, self, Part.KEYS, backwards=True)

    @method()
    def get(self, tx: Tx, key: VariableTracker, default: VariableTracker | None = None) -> VariableTracker:
        """``dict.get``."""
        value = self.find(tx, key.realize(tx))
        if value is None:
            return constant(tx, None) if default is None else default
        return value

    @method()
    def keys(self, tx: Tx) -> VariableTracker:
        """``dict.keys``."""
        return DictViewVariable(self, Part.KEYS)

    @method()
    def values(self, tx: Tx) -> VariableTracker:
        """``dict.values``."""
        return DictViewVariable(self, Part.VALUES)

    @method()
    def items(self, tx: Tx) -> VariableTracker:
        """``dict.items``."""
        return DictViewVariable(self, Part.ITEMS)

    @method("copy", "__copy__")
    def _copy(self, tx: Tx) -> VariableTracker:
        return self._fresh(tx, self.table(tx))

    def _fresh(self, tx: Tx, table: Table) -> VariableTracker:
        """A new dictionary of the class that copying gives, with these entries."""
        made = cast(DictVariable, tx.make.dict([], self.copies_as))
        made.handle.table = dict(table)
        return made

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        beneath = storage(other)
        if op not in ("==", "!=") or not isinstance(beneath, DictVariable):
            return NOT_IMPLEMENTED
        return constant(tx, self._equals(tx, beneath) is (op == "=="))

    def _equals(self, tx: Tx, other: DictVariable) -> bool:
        mine, others = self.table(tx), other.table(tx)
        if len(mine) != len(others):
            return False
        for own, (key, value) in list(mine.items()):
            identity = other._located(tx, key, own)
            if identity not in others or not operators.equal(tx, value, others[identity][1]):
                return False
        return True

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        beneath = storage(other)
        if op != "|" or not isinstance(beneath, DictVariable):
            return NOT_IMPLEMENTED
        merged = self._fresh(tx, self.table(tx))
        cast(DictVariable, merged).update(tx, other)
        return merged

    def rbinary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        beneath = storage(other)
        if op != "|" or not isinstance(beneath, DictVariable):
            return NOT_IMPLEMENTED
        merged = self._fresh(tx, beneath.table(tx))
        cast(DictVariable, merged).merge(tx, self)
        return merged

    @method("__repr__")
    def _repr(self, tx: Tx) -> VariableTracker:
        return self.write(tx, lambda: self._written(tx), "{...}")

    def _written(self, tx: Tx) -> str:
        pairs = zip(*self._texts(tx), strict=True)
        return f"{{{', '.join(f'{key}: {value}' for key, value in pairs)}}}"

    def _texts(self, tx: Tx) -> tuple[list[str], list[str]]:
        """``repr`` of all keys, and of all values."""
        entries = self.table(tx).values()
        return text.reprs(tx, [entry[0] for entry in entries]), text.reprs(
            tx, [entry[1] for entry in entries]
        )

    # --- changing ------------------------------------------------------------------------------

    def store(self, tx: Tx, key: VariableTracker, value: VariableTracker) -> None:
        """Put an entry; a key that is there stays the key object it was."""
        self._put(tx, key.store_key(tx), key, value)

    def _put(self, tx: Tx, identity: Hashable, key: VariableTracker, value: Var) -> None:
        handle = self.handle
        identity = self._located(tx, key, identity)
        if not handle.complete and type(identity) is not str:
            namespace.lookup(tx, handle, identity)  # an equal key of another type may be there
        old = handle.table.get(identity) if handle.table else None
        namespace.store(tx, handle, identity, key if old is None else old[0], value)

    def setitem(self, tx: Tx, key: VariableTracker, value: VariableTracker) -> None:
        self.store(tx, key, value)

    def delitem(self, tx: Tx, key: VariableTracker) -> None:
        if not namespace.delete(tx, self.handle, self._located(tx, key, key.hash_key(tx))):
            tx.raise_(KeyError, key)

    def inplace(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if op != "|":
            return NOT_IMPLEMENTED
        self.update(tx, other)
        return self

    def merge(self, tx: Tx, other: DictVariable) -> None:
        """Store all entries of another dictionary."""
        entries = list(other.table(tx).items())
        if keys.any_met(tx) and any(keys.is_open(identity) for identity, _ in entries):
            self.table(tx)
        is_empty = self.handle.complete and not self.handle.table  # then no two keys can be equal
        for identity, (key, value) in entries:
            if is_empty:
                namespace.store(tx, self.handle, identity, key, value)
            else:
                self._put(tx, identity, key, value)

    @method("__init__")
    def _fill(self, tx: Tx, /, *args: VariableTracker, **kwargs: VariableTracker) -> None:
        if len(args) > 1:
            tx.raise_(TypeError, f"dict expected at most 1 argument, got {len(args)}")
        self.update(tx, *args, **kwargs)

    @method()
    def update(self, tx: Tx, /, *args: VariableTracker, **kwargs: VariableTracker) -> None:
        """``dict.update``."""
        if len(args) > 1:
            tx.raise_(TypeError, f"update expected at most 1 argument, got {len(args)}")
        for arg in args:
            self._update_from(tx, arg.realize(tx))
        for name, value in kwargs.items():
            self.store(tx, constant(tx, name), value)

    def _update_from(self, tx: Tx, other: VariableTracker) -> None:
        beneath = storage(other)
        if isinstance(beneath, DictVariable) and iterates_plainly(tx, other):
            self.merge(tx, beneath)
        elif attributes.hasattr_(tx, other, "keys"):
            tx.run_host(polyfills.update_from_mapping, [self, other])
        else:
            tx.run_host(polyfills.update_from_pairs, [self, other])

    @method()
    def setdefault(
        self, tx: Tx, key: VariableTracker, default: VariableTracker | None = None
    ) -> VariableTracker:
        """``dict.setdefault``."""
        key = key.realize(tx)
        identity = self._located(tx, key, key.store_key(tx))
        value = self._value(tx, identity)
        if value is None:
            value = constant(tx, None) if default is None else default
            namespace.store(tx, self.handle, identity, key, value)
        return value

    @method()
    def pop(self, tx: Tx, key: VariableTracker, default: VariableTracker | None = None) -> VariableTracker:
        """``dict.pop``."""
        key = key.realize(tx)
        identity = self._located(tx, key, key.hash_key(tx))
        value = self._value(tx, identity)
        if value is None:
            if default is None:
                tx.raise_(KeyError, key)
            return default
        namespace.delete(tx, self.handle, identity)
        return value

    @method()
    def popitem(self, tx: Tx) -> VariableTracker:
        """``dict.popitem``."""
        return self._pop_entry(tx, last=True)

    def _pop_entry(self, tx: Tx, *, last: bool) -> VariableTracker:
        table = self.table(tx)
        if not table:
            word = "popitem(): " if self.models is not OrderedDict else ""
            tx.raise_(KeyError, f"{word}dictionary is empty")
        identity = list(table)[-1 if last else 0]
        entry = table[identity]
        namespace.delete(tx, self.handle, identity)
        return make_tuple(tx, entry)

    @method()
    def clear(self, tx: Tx) -> None:
        """``dict.clear``."""
        self.table(tx)
        tx.heap.set_table(self.handle, {})

    # --- becoming real ---------------------------------------------------------------------------

    def reconstruct(self, codegen: Codegen) -> None:
        entries = list((self.handle.table or {}).values())
        plain = self.models is dict and not keys.open_parts(self.handle.table or ())
        if plain and all(cannot_cycle(part) for entry in entries for part in entry):
            for key, value in entries:
                codegen(key)
                codegen(value)
            codegen.build("map", len(entries))
            return
        self.construct(codegen)
        identities = list(self.handle.table or ())
        has_open = bool(keys.open_parts(identities))
        store = OrderedDict.__setitem__ if self.models is OrderedDict else dict.__setitem__

        def fill() -> None:
            for key, value in entries:
                if has_open:
                    keys.run_stored(codegen, store, [self, key, value], identities)
                else:
                    codegen.set_item(self, key, value)

        codegen.later(fill)

    def construct(self, codegen: Codegen) -> None:
        """Emit the empty dictionary."""
        codegen.call(self.models, [])


def iterates_plainly(tx: Tx, var: VariableTracker) -> bool:
    """Whether a dictionary's class leaves iteration to dict, so that merging reads its storage."""
    if isinstance(var, DictVariable):
        return True
    return attributes.user_special(tx, var, "__iter__") is None


#: Whether this Python shows an OrderedDict as a list of pairs.
_AS_PAIRS: Final = "[" in repr(OrderedDict(a=1))


class OrderedDictVariable(DictVariable):
    """A `collections.OrderedDict`, or the one beneath an object of a derived class."""

    __slots__ = ()
    models = OrderedDict
    copies_as = OrderedDict

    def _fresh(self, tx: Tx, table: Table) -> VariableTracker:
        if self.owner is not None:
            self.refuse(tx, "copying an object of a derived class")
        if keys.open_parts(table):
            refuse_open_order(tx)
        return super()._fresh(tx, table)

    def _equals(self, tx: Tx, other: DictVariable) -> bool:
        if isinstance(other, OrderedDictVariable) and list(self.table(tx)) != list(other.table(tx)):
            return False
        return super()._equals(tx, other)

    @method("__repr__")
    def _repr(self, tx: Tx) -> VariableTracker:
        if self.owner is not None:  # the class's own name would be shown
            self.refuse(tx, "repr()")
        return self.write(tx, lambda: self._written(tx), "...")

    def _written(self, tx: Tx) -> str:
        if not self.table(tx):
            return "OrderedDict()"
        if _AS_PAIRS:
            pairs = zip(*self._texts(tx), strict=True)
            return f"OrderedDict([{', '.join(f'({key}, {value})' for key, value in pairs)}])"
        return f"OrderedDict({super()._written(tx)})"

    @method("popitem")
    def _popitem(self, tx: Tx, last: VariableTracker | None = None) -> VariableTracker:
        return self._pop_entry(tx, last=last is None or is_true(tx, last))

    @method()
    def move_to_end(self, tx: Tx, key: VariableTracker, last: VariableTracker | None = None) -> None:
        """``OrderedDict.move_to_end``."""
        key = key.realize(tx)
        table = self.table(tx)
        identity = self._located(tx, key, key.hash_key(tx))
        if identity not in table:
            tx.raise_(KeyError, key)
        rest = {other: entry for other, entry in table.items() if other != identity}
        moved = {identity: table[identity]}
        tx.heap.set_table(
            self.handle, {**rest, **moved} if last is None or is_true(tx, last) else {**moved, **rest}
        )

    def call_method(self, tx: Tx, name: str, args: Any, kwargs: Any) -> VariableTracker:
        if name in ("popitem", "move_to_end") and "last" in kwargs:
            rest = {key: value for key, value in kwargs.items() if key != "last"}
            return super().call_method(tx, name, [*args, kwargs["last"]], rest)
        return super().call_method(tx, name, args, kwargs)


# --- from outside, and made by the program ------------------------------------------------------------

#: Trackers by builtin class; `default_dicts.py` adds its own.
VARIABLES: Final[dict[type, type[DictVariable]]] = {
    dict: DictVariable,
    OrderedDict: OrderedDictVariable,
}

_DEFAULT_FACTORY: Final = defaultdict.__dict__["default_factory"]


@wraps(dict, OrderedDict, defaultdict)
def wrap_dict(tx: Tx, value: dict[Any, Any], source: Source | None) -> Var:
    """Its type is guarded now, keys when they are asked for."""
    if source is not None:
        tx.guard("type", source, type(value))
    return dict_storage(tx, value, type(value), source, None)


def dict_storage(
    tx: Tx, value: dict[Any, Any], kind: type, source: Source | None, owner: VariableTracker | None
) -> DictVariable:
    """The tracker of the builtin part (of class `kind`) of an existing dictionary whose type is guarded.

    Where looking for a key could run user code it is read as a whole.
    """
    handle = namespace.handle_at(tx, value, source)  # it may have been met as a namespace
    if handle.table is None and not namespace.has_plain_keys(value):
        if kind is OrderedDict:
            refuse_open_order(tx)
        keys.load(tx, handle, namespace.keys_of(value), namespace.is_plain_key)
    elif handle.table is None and kind is OrderedDict and not namespace.is_in_order(value):
        tx.fail(
            Reason.UNSUPPORTED_VALUE, "an OrderedDict that a method of dict changed, which tells it nothing"
        )
    if kind is defaultdict and handle.value is None:
        factory: Any = _DEFAULT_FACTORY.__get__(value)
        if source is None:
            handle.value = tx.make.from_value(factory, None)
        else:
            handle.value = tx.make.lazy(factory, source.child(SlotSource, _DEFAULT_FACTORY))
    var = VARIABLES[kind](handle, source, owner)
    if owner is None:
        handle.tracker = var
    return var


@makes("dict")
def new_dict(tx: Tx, entries: Sequence[tuple[Any, Any]], cls: type = dict) -> Var:
    """See `protocol.Make.dict`."""
    handle = Handle()
    handle.table = {}
    var = VARIABLES[cls](handle)
    handle.tracker = var
    for key, value in entries:
        key = key.realize(tx)
        identity = keys.located(tx, handle, key, key.store_key(tx))
        old = handle.table.get(identity)
        handle.table[identity] = (key if old is None else old[0], value)
    return var
