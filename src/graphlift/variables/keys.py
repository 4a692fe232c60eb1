"""Keys of dictionaries and sets that only code of the program can compare: CPython's look-up on trackers.

Most keys stand for themselves in a table (`VariableTracker.hash_key`): they are equal for Python where
they are for the host. An object whose class has a ``__hash__`` of its own stands as an `OpenKey`, which
equals only itself; whoever looks for a key asks `located` first, which compares as Objects/dictobject.c
does: entries with the same hash, oldest first, the stored key's ``==`` with the key looked for. When
such keys become real, nobody asks them again (csrc/known_hashes.c).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from types import WrapperDescriptorType
from typing import Any, Final, NoReturn, final

import torch

from graphlift import _C
from graphlift.heap import Handle, Table
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import DictKeySource, DictValueSource, Source
from graphlift.variables.base import UNKNOWN, VariableTracker
from graphlift.variables.builtin_object import HostObjectVariable, constant
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.folding import fold
from graphlift.variables.slots import operators


@final
class OpenKey:
    """A key whose equality is the program's to say.

    Attributes:
        var: the key.
        value: its hash, which ``__hash__`` gave when the key was stored or looked for.
    """

    __slots__ = ("value", "var")

    def __init__(self, tx: Tx, var: Var, value: int) -> None:
        self.var: Final = var
        self.value: Final = value
        tx.reads[_MET] = True

    def __hash__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"OpenKey({self.var!r})"


@final
class IdKey:
    """A key that is ``id(value)``: equal to itself, and to what integers nobody knows."""

    __slots__ = ("var",)

    def __init__(self, tx: Tx, var: Var) -> None:
        self.var: Final = var
        tx.reads[_IDS] = True

    def __hash__(self) -> int:
        return hash(self.var)

    def __eq__(self, other: object) -> bool:
        return type(other) is IdKey and self.var is other.var


#: Where `tx.reads` keeps that an ``id()`` was used as a key.
_IDS: Final = (0, "ids as keys")


def check_ids(tx: Tx, found: Iterable[Hashable], identity: Hashable) -> None:
    """Break where a number and an ``id()`` would have to be compared to find a key among those `found`."""
    holds = holds_id(identity)
    if not holds and not isinstance(identity, (int, float, tuple, frozenset)):
        return
    for key in found:
        if holds_id(key) is not holds and isinstance(key, (int, float, tuple, frozenset, IdKey)):
            tx.fail(Reason.IDENTITY, "an id() looked for among numbers")


def holds_id(identity: Hashable) -> bool:
    """Whether a key is, or holds, an ``id()``."""
    if isinstance(identity, tuple | frozenset):
        return any(map(holds_id, identity))
    return type(identity) is IdKey


def ids_met(tx: Tx) -> bool:
    """Whether this capture used an ``id()`` as a key."""
    return _IDS in tx.reads


#: Where `tx.reads` keeps that there is such a key in this capture.
_MET: Final = (0, "open keys")


def is_open(identity: Hashable) -> bool:
    """Whether a key is, or holds, one that only the program can compare."""
    if isinstance(identity, tuple | frozenset):
        return any(map(is_open, identity))
    return type(identity) is OpenKey


def any_met(tx: Tx) -> bool:
    """Whether this capture met a key that only the program can compare."""
    return _MET in tx.reads


def known_hash(identity: Hashable) -> int | None:
    """The hash that Python gives the key, where it depends on no address."""
    return hash(identity) if is_told(identity) else None


def is_told(identity: Hashable) -> bool:
    """Whether the hash of a key depends on no address."""
    if isinstance(identity, tuple | frozenset):
        return all(map(is_told, identity))
    if type(identity) in (float, complex):
        return identity == identity  # the hash of what is not a number is its address
    return type(identity) in (OpenKey, int, bool, str, bytes, type(None))


def located(tx: Tx, handle: Handle, key: Var, identity: Hashable) -> Hashable:
    """What stands in a table for the key that Python finds there, or `identity` where it finds none.

    Arguments:
        handle: holds the table, which is complete if `identity` is open.
        key: the key looked for.
        identity: what stands for it.
    """
    table: Table | None = handle.table
    if not table or not any_met(tx):
        return identity
    open_key, value = is_open(identity), hash(identity)
    for candidate in [each for each in table if hash(each) == value]:
        if candidate == identity:
            return candidate
        if (open_key or is_open(candidate)) and _equal(tx, handle, candidate, key):
            return candidate
    return identity


def _equal(tx: Tx, handle: Handle, candidate: Hashable, key: Var) -> bool:
    table = handle.table
    assert table is not None
    before = list(table)
    stored: VariableTracker = table[candidate][0].realize(tx)
    wanted: VariableTracker = key.realize(tx)
    if stored is wanted or (not stored.is_constant() and operators.same_object(tx, stored, wanted)):
        return True
    same = operators.equal(tx, stored, wanted)
    if handle.table is not table or list(table) != before:
        tx.fail(Reason.UNSUPPORTED_OPERATION, "a comparison of keys that changes what they are looked for in")
    return same


def aligned(tx: Tx, handle: Handle, found: Table) -> Table:
    """A table whose keys stand as the equal ones of `handle` do, so that the two can be compared at once."""
    if not any_met(tx) or not handle.table:
        return found
    table: Table = {}
    for identity, entry in found.items():
        here = located(tx, handle, entry[0], identity)
        if here in table:
            tx.fail(
                Reason.UNSUPPORTED_OPERATION,
                "elements of a set of which two equal a third, but not each other",
            )
        table[here] = entry
    return table


def open_parts(identities: Iterable[Hashable]) -> list[OpenKey]:
    """All keys in some that only the program can compare."""
    parts: list[OpenKey] = []
    for identity in identities:
        if type(identity) is tuple or type(identity) is frozenset:
            parts += open_parts(identity)
        elif type(identity) is OpenKey:
            parts.append(identity)
    return parts


def hash_(tx: Tx, value: VariableTracker) -> VariableTracker:
    """``hash(value)`` by a method written in C, where it depends on no address."""
    host = value.snapshot(tx)
    if host is not UNKNOWN:
        return fold(tx, hash, host)
    known = known_hash(value.hash_key(tx))  # raises for what cannot be hashed at all
    if known is None:
        tx.fail(Reason.IDENTITY, f"hash() of {value!r}")
    return constant(tx, known)


def hash_of(tx: Tx, result: Var) -> int:
    """What a ``__hash__`` written in Python returned, as a hash (``slot_tp_hash``)."""
    answer: VariableTracker = result.realize(tx)
    value: Any = answer.snapshot(tx)
    if isinstance(value, int):
        return hash(_Hashed(value))
    if not issubclass(answer.python_type(tx), int):
        tx.raise_(TypeError, "__hash__ method should return an integer")
    tx.fail(Reason.IDENTITY, f"a hash made from {answer!r}")


class _Hashed:
    """Hands a number through the slot that cuts a hash to its size."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __hash__(self) -> int:
        return self._value


# --- existing dictionaries and sets --------------------------------------------------------------------


def load(tx: Tx, handle: Handle, ordered: Iterable[Any], is_plain: Callable[[Any], bool]) -> None:
    """Read an existing dictionary with keys that are no plain ones as a whole: each key by its place.

    Arguments:
        ordered: its keys in their order.
        is_plain: tells keys that stand for themselves.
    """
    source, real = handle.source, handle.real
    if source is None:
        refuse(tx, "a dictionary")
    found = list(ordered)
    stored = {id(key): value for key, value in _C.stored_hashes(real)}
    values = {id(key): value for key, value in dict.items(real)}
    tx.guard("length", source, len(found))
    table: Table = {}
    for position, key in enumerate(found):
        var: Any = tx.make.lazy(key, source.child(DictKeySource, position)).realize(tx)
        identity = key if type(key) is str else stored_key(tx, var, key, stored[id(key)], is_plain)
        table[identity] = (var, tx.make.lazy(values[id(key)], source.child(DictValueSource, position)))
    _guard_hashes(tx, source, real, found, table)
    handle.table = table
    handle.complete = handle.by_place = True


def _guard_hashes(tx: Tx, source: Source, real: Any, found: Sequence[Any], table: Table) -> None:
    """Assume the hashes under which an existing table keeps open keys."""
    known = {
        id(key): identity.value
        for key, identity in zip(found, table, strict=True)
        if type(identity) is OpenKey
    }
    if known:
        tx.guard("hashes", source, tuple(known.get(id(key)) for key, _ in _C.stored_hashes(real)))


def load_elements(tx: Tx, handle: Handle, elements: Sequence[Any], is_plain: Callable[[Any], bool]) -> Table:
    """The elements of an existing set, some of which are no plain ones; their order is guarded already."""
    if handle.source is None:
        refuse(tx, "a set")
    stored = {id(key): value for key, value in _C.stored_hashes(handle.real)}
    table: Table = {}
    for element in elements:
        var: Any = tx.make.from_value(element, None).realize(tx)
        table[stored_key(tx, var, element, stored[id(element)], is_plain)] = (var, var)
    _guard_hashes(tx, handle.source, handle.real, elements, table)
    return table


def stored_key(
    tx: Tx, var: VariableTracker, key: Any, value: int, is_plain: Callable[[Any], bool]
) -> Hashable:
    """What stands for a key (tracker and real one) that an existing table keeps under a hash."""
    if is_plain(key) or isinstance(key, torch.Tensor):
        return var.store_key(tx)
    cls = type(key)
    parts = next((kind for kind in (tuple, frozenset) if issubclass(cls, kind)), None)
    if parts is not None and not all(is_plain(item) for item in parts.__iter__(key)):
        refuse(tx, "a dictionary or set")  # what the parts' hashes were is not kept
    if all(isinstance(getattr(cls, name), WrapperDescriptorType) for name in ("__hash__", "__eq__")):
        return var.store_key(tx)
    return OpenKey(tx, var, value)


def refuse(tx: Tx, what: str) -> NoReturn:
    """Break: keys of an existing table cannot be read."""
    tx.fail(Reason.UNSUPPORTED_VALUE, f"{what} with keys whose comparison runs user code")


# --- becoming real -------------------------------------------------------------------------------------


def call_stored(codegen: Codegen, function: Any, args: Sequence[Var], identities: Iterable[Hashable]) -> None:
    """Emit the call of a C function that stores or deletes keys, without asking those that are open.

    Arguments:
        function: what it is handed first is the container, then, if there is more, a key; or the class of the
            container, which is handed the keys.
        identities: what stands for all keys that it may meet.
    """
    codegen.call(stored, _arguments(function, args, identities))


def run_stored(codegen: Codegen, function: Any, args: Sequence[Var], identities: Iterable[Hashable]) -> None:
    """As `call_stored`, but the result is dropped."""
    codegen.run(stored, _arguments(function, args, identities))


def _arguments(function: Any, args: Sequence[Var], identities: Iterable[Hashable]) -> list[Var]:
    parts = open_parts(identities)
    hashes = ConstantVariable(tuple(part.value for part in parts))
    return [HostObjectVariable(function), hashes, *(part.var for part in parts), *args]


def stored(function: Any, hashes: tuple[int, ...], *rest: Any) -> Any:
    """Runs in the compiled program: see `call_stored`."""
    keys, args = rest[: len(hashes)], rest[len(hashes) :]
    kept: Any = (
        None  # what is replaced or deleted must not be let go before the keys answer for themselves again
    )
    if isinstance(args[0], dict) and len(args) > 1:
        kept = _C.call_hashed(dict.get, args[:2], keys, hashes)
    result = _C.call_hashed(function, args, keys, hashes)
    del kept
    return result
