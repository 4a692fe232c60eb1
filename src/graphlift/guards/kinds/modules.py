"""The kind about attributes of modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from graphlift.guards.guard import Guard, Kind, kind
from graphlift.guards.kinds.showing import show
from graphlift.guards.places import MISSING, Rows, dict_value
from graphlift.sources import AttrSource

#: Where ``nn.Module.__getattr__`` looks, in that order.
TABLES: Final = ("_parameters", "_buffers", "_modules")


@kind
class RegisteredKind(Kind):
    """A name that a module's instance dictionary lacks, and with it the first tables of parameters, buffers
    and submodules; all those, and the next one, are plain dictionaries.

    It is about the instance dictionary. That the next table has the name is said by whoever reads its entry.
    Payload: (name, number of tables that lack it).
    """

    name = "registered"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert guard.source is not None
        at = rows.at(guard.source)
        name, passed = guard.payload
        program = rows.rows
        program.append(("key_absent", at, name))
        for number, table in enumerate(TABLES[: passed + 1]):
            place = rows.at(guard.source.child(AttrSource, table))
            if place not in rows.dicts:
                rows.dicts.add(place)
                program.append(("type_is", place, dict))
            if number < passed:
                program.append(("key_absent", place, name))
        return (at,), guard.payload

    def holds(self, payload: Any, *values: Any) -> bool:
        return issubclass(type(values[0]), dict) and _culprit(payload, values[0]) is None

    def describe(self, payload: Any, *names: str) -> str:
        name, passed = payload
        lacking = "".join(f", {table}" for table in TABLES[:passed])
        return f"has `{name}` in {TABLES[passed]}, not in itself{lacking}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        owner = names[0].replace(".__dict__`", "`")
        if not issubclass(type(values[0]), dict):
            return f"{names[0]} is no dictionary any more"
        name, culprit = payload[0], _culprit(payload, values[0])
        if culprit == name:
            return f"{owner} lacked `{name}`, now it has it"
        found = dict_value(values[0], culprit)
        if type(found) is not dict:
            now = "gone" if found is MISSING else f"of {show(type(found))}"
            return f"`{culprit}` of {owner} was a dict, now it is {now}"
        return f"`{culprit}` of {owner} lacked `{name}`, now it has it"


def _culprit(payload: Any, own: dict[Any, Any]) -> str | None:
    """What is not as it was: the name itself, or that of a table."""
    name: str
    name, passed = payload
    if dict_value(own, name) is not MISSING:
        return name
    for number, table in enumerate(TABLES[: passed + 1]):
        found = dict_value(own, table)
        if type(found) is not dict or (number < passed and dict_value(found, name) is not MISSING):
            return table
    return None
