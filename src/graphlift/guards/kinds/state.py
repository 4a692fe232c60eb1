"""Kinds about the process: torch's global state, and what abstract base classes count as their own."""

from __future__ import annotations

import abc
import sys
from collections.abc import Sequence
from typing import Any, Final

from graphlift import _C
from graphlift.guards.guard import Guard, Kind, kind
from graphlift.guards.holding import class_name, held, hold
from graphlift.guards.kinds.showing import show
from graphlift.guards.places import Rows
from graphlift.guards.torch_readers import read_stacks, state_readers
from graphlift.sources import AnchorSource

_READERS: Final = dict(state_readers())

#: Fields by which one can say what changed, in the user's words.
_WORDS: Final = {
    "grad_flags": "grad or inference mode",
    "keys_included": "the dispatch modes or transforms in force",
    "keys_excluded": "autocast or the dispatch keys in force",
    "function_modes": "the stack of torch function modes",
    "function_disabled": "whether torch functions of subclasses are on",
    "dispatch_modes": "the stack of torch dispatch modes",
    "default_dtype": "the default dtype",
    "threads": "the number of threads",
    "deterministic": "deterministic algorithms",
}


@kind
class TorchStateKind(Kind):
    """The global state that every captured tensor operation reads. Payload: (`_C.torch_state()`,) or ()."""

    name = "torch_state"
    rank = 0

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        state = guard.payload[0] if guard.payload else _C.torch_state()
        rows.add("torch_state", -1, state)
        return (), state

    def holds(self, payload: Any, *values: Any) -> bool:
        if _changed(payload):
            return False
        stacks = payload[8 * len(_READERS) :]
        return not stacks or stacks == read_stacks()

    def describe(self, payload: Any, *names: str) -> str:
        return "torch's global state (grad mode, autocast, modes, default dtype, backend flags) is as it was"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        changed = [_WORDS.get(name, f"torch's setting {name!r}") for name in _changed(payload)]
        return f"{', '.join(changed) or 'what lies on the stacks of modes'} changed"


def _changed(state: bytes) -> list[str]:
    """The names of the fields that differ from a former state, read through Python."""
    names = _C.torch_state_fields()
    now = {name: reader() & (2**64 - 1) for name, reader in _READERS.items()}
    was = {name: int.from_bytes(state[8 * i : 8 * i + 8], sys.byteorder) for i, name in enumerate(names)}
    usual = all(was[name] == now[name] == keys for name, keys in _USUAL_KEYS.items())
    return [name for name in names if now[name] != was[name] and not (usual and name in _AUTOCAST)]


#: What nobody reads while the thread's dispatch keys are the usual ones.
_AUTOCAST: Final = frozenset(name for name in _READERS if name.startswith("autocast_"))
_USUAL_KEYS: Final = {name: _READERS[name]() for name in ("keys_included", "keys_excluded")}


@kind
class ClassVersionKind(Kind):
    """That no attribute of a class or its bases was set or deleted. Payload: (class, `_C.class_version`).

    For classes that live as long as the process and that hardly anybody changes: one number stands for all
    that was looked up on them.
    """

    name = "class_version"
    rank = 0

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        rows.add("class_version", -1, *guard.payload)
        return (), guard.payload

    def holds(self, payload: Any, *values: Any) -> bool:
        cls, version = payload
        return bool(version != 0 and _C.class_version(cls) == version)

    def describe(self, payload: Any, *names: str) -> str:
        return f"no attribute of class `{class_name(payload[0])}` or its bases was replaced"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        return f"an attribute of class `{class_name(payload[0])}` or of a base of it was set or deleted"


# --- abstract base classes -------------------------------------------------------------------------------


@kind
class SubclassKind(Kind):
    """Whether a class counts as one of an abstract base class. Payload: (base, answer).

    The source is the class itself, pinned down by another guard. Only registering classes can change the
    answer; when somebody did, it is asked for again.
    """

    name = "subclass"

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        assert isinstance(guard.source, AnchorSource)
        base, answer = guard.payload
        at = rows.at(guard.source)
        pair = (hold(guard.source.key), hold(base), answer)
        rows.add("abc", -1, abc.get_cache_token, abc.get_cache_token(), (pair,))
        return (at,), pair[1:]

    def holds(self, payload: Any, *values: Any) -> bool:
        return issubclass(values[0], held(payload[0])) is payload[1]

    def describe(self, payload: Any, *names: str) -> str:
        return f"is {'' if payload[1] else 'not '}a subclass of {show(held(payload[0]))}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        was, now = ("a", "none") if payload[1] else ("no", "one")
        return f"{names[0]} was {was} subclass of {show(held(payload[0]))}, now it is {now}"
