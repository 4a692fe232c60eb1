"""The kinds about attributes of modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from graphlift.guards.guard import Guard, Kind, kind
from graphlift.guards.kinds.showing import show
from graphlift.guards.places import MISSING, Rows, dict_value
from graphlift.sources import AttrSource

#: Where ``nn.Module.__getattr__`` looks, in that order.
TABLES: Final = ("_parameters", "_buffers", "_modules")


class _EntryKind(Kind):
    """A name that a module's instance dictionary lacks, and with it the first tables of parameters, buffers
    and submodules; all those, and the next one, are plain dictionaries.

    It is about the instance dictionary. That the next table has the name is said by whoever reads its entry.
    Payload: (name,).
    """

    #: How many tables lack the name.
    passed: ClassVar[int]

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        own = guard.source
        assert own is not None
        at = rows.at(own)
        name = guard.payload[0]
        passed = self.passed
        program, dicts = rows.rows, rows.dicts
        program.append(("key_absent", at, name))
        for number in range(passed + 1):
            place = rows.at(own.child(AttrSource, TABLES[number]))
            if place not in dicts:
                dicts.add(place)
                program.append(("type_is", place, dict))
            if number < passed:
                program.append(("key_absent", place, name))
        return (at,), name

    def holds(self, payload: Any, *values: Any) -> bool:
        return issubclass(type(values[0]), dict) and self._culprit(payload, values[0]) is None

    def describe(self, payload: Any, *names: str) -> str:
        lacking = "".join(f", {table}" for table in TABLES[: self.passed])
        return f"has `{payload}` in {TABLES[self.passed]}, not in itself{lacking}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        owner = names[0].replace(".__dict__`", "`")
        if not issubclass(type(values[0]), dict):
            return f"{names[0]} is no dictionary any more"
        culprit = self._culprit(payload, values[0])
        if culprit == payload:
            return f"{owner} lacked `{payload}`, now it has it"
        found = dict_value(values[0], culprit)
        if type(found) is not dict:
            now = "gone" if found is MISSING else f"of {show(type(found))}"
            return f"`{culprit}` of {owner} was a dict, now it is {now}"
        return f"`{culprit}` of {owner} lacked `{payload}`, now it has it"

    def _culprit(self, name: str, own: dict[Any, Any]) -> str | None:
        """What is not as it was: the name itself, or that of a table."""
        if dict_value(own, name) is not MISSING:
            return name
        for number, table in enumerate(TABLES[: self.passed + 1]):
            found = dict_value(own, table)
            if type(found) is not dict or (number < self.passed and dict_value(found, name) is not MISSING):
                return table
        return None


@kind
class ParameterEntryKind(_EntryKind):
    """The name of a parameter."""

    name = "parameter_entry"
    passed = 0


@kind
class BufferEntryKind(_EntryKind):
    """The name of a buffer."""

    name = "buffer_entry"
    passed = 1


@kind
class SubmoduleEntryKind(_EntryKind):
    """The name of a submodule."""

    name = "submodule_entry"
    passed = 2


#: The kind about an entry of each of the `TABLES`.
ENTRY_KINDS: Final = (ParameterEntryKind.name, BufferEntryKind.name, SubmoduleEntryKind.name)
