"""Kinds about the keys of dictionaries and namespaces, there and not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from graphlift.guards.guard import Guard, Kind, kind
from graphlift.guards.holding import held
from graphlift.guards.kinds.containers import same_item
from graphlift.guards.kinds.showing import show
from graphlift.guards.places import MISSING, Rows, dict_keys, dict_value, hold_key, namespace
from graphlift.sources import is_own_name


def _is_table(value: Any) -> bool:
    return issubclass(type(value), dict) or type(value).__name__ == "mappingproxy"


class _OneKey(Kind):
    """A kind about one key. Payload: (key,)."""

    op = ""

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        key = guard.payload[0]
        key = key if type(key) is str else hold_key(key)
        rows.rows.append((self.op, at, key))
        return (at,), key


@kind
class AbsentKind(_OneKey):
    """A key that a dictionary lacks."""

    name = "absent"
    op = "key_absent"

    def holds(self, payload: Any, *values: Any) -> bool:
        return _is_table(values[0]) and dict_value(values[0], payload) is MISSING

    def describe(self, payload: Any, *names: str) -> str:
        return f"lacks {show(held(payload))}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} lacked {show(held(payload))}, now it has it"


@kind
class HasKeyKind(_OneKey):
    """A key that a dictionary has."""

    name = "has_key"
    op = "key_present"

    def holds(self, payload: Any, *values: Any) -> bool:
        return _is_table(values[0]) and dict_value(values[0], payload) is not MISSING

    def describe(self, payload: Any, *names: str) -> str:
        return f"has {show(held(payload))}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} had {show(held(payload))}, now it lacks it"


class Lacks(NamedTuple):
    """What a namespace lacks. One object for all guards of a place in our code: an assumption is told from
    others by its identity.

    Attributes:
        absent: names that are not there.
        empty: names of dictionaries without entries.
    """

    absent: tuple[str, ...]
    empty: tuple[str, ...]


@kind
class NamespaceLacksKind(Kind):
    """A namespace that lacks some names and has empty dictionaries under others, in one check.

    Payload: (`Lacks`,).
    """

    name = "namespace_lacks"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        lacks = guard.payload[0]
        rows.rows.append(("namespace_lacks", at, lacks.absent, lacks.empty))
        return (at,), lacks

    def holds(self, payload: Any, *values: Any) -> bool:
        return issubclass(type(values[0]), dict) and not _disturbing(payload, values[0])

    def describe(self, payload: Any, *names: str) -> str:
        absent, empty = (", ".join(f"`{name}`" for name in part) for part in payload)
        return f"lacks {absent or 'nothing'}, and has nothing in {empty or 'nothing'}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        owner = names[0].replace(".__dict__`", "`")
        if not issubclass(type(values[0]), dict):
            return f"{names[0]} is no dictionary any more"
        name = _disturbing(payload, values[0])[0]
        if name in payload[0]:
            return f"{owner} lacked `{name}`, now it has it"
        return f"{owner} had nothing in `{name}`, now it has"


def _disturbing(payload: Any, table: dict[Any, Any]) -> list[str]:
    """The names of which the guard says what is not so."""
    absent, empty = payload
    there = [name for name in absent if dict_value(table, name) is not MISSING]
    for name in empty:
        found = dict_value(table, name)
        if not isinstance(found, dict) or dict.__len__(found):
            there.append(name)
    return there


@kind
class AttrAbsentKind(_OneKey):
    """A name that an object's instance dictionary lacks, or an object without one."""

    name = "attr_absent"
    op = "attr_absent"

    def holds(self, payload: Any, *values: Any) -> bool:
        own = namespace(values[0])
        return own is MISSING or dict_value(own, payload) is MISSING

    def describe(self, payload: Any, *names: str) -> str:
        return f"has no attribute `{payload}` of its own"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"{names[0]} had no attribute `{payload}` of its own, now it has one"


@kind
class NoAttrsKind(Kind):
    """An object whose instance dictionary is empty or not there. Payload: ()."""

    name = "attrs_empty"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        rows.add("attrs_empty", at)
        return (at,), None

    def holds(self, payload: Any, *values: Any) -> bool:
        own = namespace(values[0])
        return own is MISSING or not own

    def describe(self, payload: Any, *names: str) -> str:
        return "has no attributes of its own"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        now = ", ".join(f"`{name}`" for name in namespace(values[0]))
        return f"{names[0]} had no attributes of its own, now it has {now}"


@kind
class KeysKind(Kind):
    """All keys of a dictionary, in order. Payload: (tuple of keys,)."""

    name = "keys"
    op = "dict_keys"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        keys = tuple(map(hold_key, guard.payload[0]))
        rows.rows.append((self.op, at, keys))
        return (at,), keys

    def holds(self, payload: Any, *values: Any) -> bool:
        if not _is_table(values[0]):
            return False
        keys = self._now(values[0])
        return len(keys) == len(payload) and all(map(same_item, payload, keys))

    def describe(self, payload: Any, *names: str) -> str:
        return f"has exactly the keys {show(tuple(map(held, payload)))}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        now = show(tuple(self._now(values[0]))) if _is_table(values[0]) else show(values[0])
        return f"the keys of {names[0]} were {show(tuple(map(held, payload)))}, now they are {now}"

    def _now(self, table: Any) -> list[Any]:
        return dict_keys(table)


@kind
class NamesKind(KeysKind):
    """All global names in a dictionary, in order, but those of compiled code. Payload: (tuple of names,)."""

    name = "names"
    op = "dict_names"

    def _now(self, table: Any) -> list[Any]:
        return [name for name in dict_keys(table) if not is_own_name(name)]
